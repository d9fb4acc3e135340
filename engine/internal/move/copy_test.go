package move

import (
	"bytes"
	"fmt"
	"testing"
	"unsafe"
)

// source is n bytes, each different from its neighbours.
func source(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*131 + i>>8)
	}
	return b
}

var sizes = []int{1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 32, 63, 64, 65, 100, 127, 128, 129, 255, 256, 257, 383, 384, 511, 784, repFrom - 1, repFrom, repFrom + 1, streamLeast, streamLeast + 1, 4096, 12345, 1 << 18}

// The assembly and its twin copy the same bytes, and no others.
func TestCopyEqualsItsTwin(t *testing.T) {
	src := source(1<<18 + 64)
	for _, n := range sizes {
		for _, shift := range []int{0, 1, 7, 33} {
			want := make([]byte, n+2)
			copyTwin(&want[1], Address(src[shift:]), n)
			for name, do := range map[string]func(dst []byte, src uintptr){
				"Copy":    Copy,
				"repMovs": func(dst []byte, src uintptr) { repMovs(&dst[0], src, len(dst)) },
				"wideMove": func(dst []byte, src uintptr) {
					if hasWide && len(dst) >= 128 {
						wideMove(&dst[0], src, len(dst))
					} else {
						Copy(dst, src)
					}
				},
				"Stream": Stream,
				"streamMove": func(dst []byte, src uintptr) {
					if hasWide && len(dst) >= 256 {
						streamMove(&dst[0], src, len(dst))
					} else {
						Stream(dst, src)
					}
				},
			} {
				got := make([]byte, n+2)
				do(got[1:n+1], Address(src[shift:]))
				if !bytes.Equal(got, want) {
					t.Errorf("%s of %d bytes from offset %d: differs from copy", name, n, shift)
				}
			}
			if !bytes.Equal(want[1:n+1], src[shift:shift+n]) || want[0] != 0 || want[n+1] != 0 {
				t.Errorf("the twin of %d bytes copies something else", n)
			}
		}
	}
}

func TestCopyEach(t *testing.T) {
	src := source(1 << 14)
	for _, width := range []int{1, 3, 4, 8, 12, 16, 32, 64, 100, 256} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			var addrs []uintptr
			var want []byte
			for k := range 40 {
				at := k * 37 % (len(src) - width)
				addrs = append(addrs, Address(src[at:]))
				want = append(want, src[at:at+width]...)
			}
			got := make([]byte, len(want)+1)
			CopyEach(got[:len(want)], addrs, width)
			if !bytes.Equal(got[:len(want)], want) || got[len(want)] != 0 {
				t.Error("records differ, or more than them was written")
			}
			CopyEach(nil, nil, width)
		})
	}
}

// A prefetch of any address is harmless, whatever the count.
func TestPrefetchNeverFaults(t *testing.T) {
	here := uintptr(unsafe.Pointer(t))
	for _, p := range []uintptr{0, 1, 1 << 47, ^uintptr(0) - 4096, here} {
		Prefetch(p, 0)
		Prefetch(p, 1)
		Prefetch(p, 10000)
		PrefetchEach([]uintptr{p, p + 64})
		prefetchLinesTwin(p, 3)
		prefetchEachTwin(&p, 1)
	}
	PrefetchEach(nil)
}
