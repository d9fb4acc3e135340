package move

import "unsafe"

// The routines below take addresses in mappings, which the garbage collector
// does not know, as numbers. Go has no words for a prefetch, nor for the
// instructions that copy fastest; each routine has a twin in Go that does the
// same, for other processors and for the tests.

const lineBytes = 64

// Prefetch asks for n bytes from p on. It never faults.
func Prefetch(p uintptr, n int) {
	prefetchLines(p, (n+lineBytes-1)/lineBytes+1)
}

// PrefetchEach asks for the first line at each address. It never faults.
func PrefetchEach(addrs []uintptr) {
	if len(addrs) > 0 {
		prefetchEach(&addrs[0], len(addrs))
	}
}

// Copy fills dst from the mapping at src. It may fault.
//
// Not inlined: with a constant length the compiler (Go 1.26) takes the address
// apart and fails with "one of arguments is not a pointer".
//
//go:noinline
func Copy(dst []byte, src uintptr) {
	switch n := len(dst); {
	case n >= repFrom && hasRepMovs:
		repMovs(&dst[0], src, n)
	case n >= wideFrom && hasWide:
		wideMove(&dst[0], src, n)
	default:
		copy(dst, bytesAt(src, n))
	}
}

// Stream is Copy for destinations that are read so much later that they will have
// left the caches: it writes past them, where the processor can. That spares the
// memory a third of the work, since a line that is written as a whole need not be
// read before. Callers ask StreamFrom when.
func Stream(dst []byte, src uintptr) {
	if n := len(dst); n >= streamLeast && hasWide {
		streamMove(&dst[0], src, n)
	} else {
		Copy(dst, src)
	}
}

// StreamFrom is the number of bytes from which a gather is to Stream: those of the
// last cache. What is smaller is still in it when the caller reads it, and would have
// to be fetched again.
func StreamFrom() int { return streamFrom() }

// CopyEach fills dst with one record of width bytes from each address. It may
// fault. Widths that are common for labels and small vectors are one load and
// one store each.
func CopyEach(dst []byte, addrs []uintptr, width int) {
	switch width {
	case 4:
		each[[4]byte](dst, addrs)
	case 8:
		each[[8]byte](dst, addrs)
	case 16:
		each[[16]byte](dst, addrs)
	case 32:
		each[[32]byte](dst, addrs)
	case 64:
		each[[64]byte](dst, addrs)
	default:
		for j, a := range addrs {
			copy(dst[j*width:(j+1)*width], bytesAt(a, width))
		}
	}
}

func each[T any](dst []byte, addrs []uintptr) {
	if len(addrs) == 0 {
		return
	}
	var width = int(unsafe.Sizeof(*new(T)))
	out := unsafe.Slice((*T)(unsafe.Pointer(&dst[0])), len(dst)/width)[:len(addrs)]
	for j := range out {
		out[j] = *(*T)(pointer(addrs[j]))
	}
}

// Address is where the bytes of a mapping begin.
func Address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// pointer goes through memory, so that neither vet nor checkptr takes an
// address in a mapping for one of Go's own.
func pointer(a uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&a)) }

func bytesAt(a uintptr, n int) []byte { return unsafe.Slice((*byte)(pointer(a)), n) }
