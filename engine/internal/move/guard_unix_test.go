//go:build unix

package move

import (
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"
)

// shrunk is the mapping of a file that has lost its second half.
func shrunk(t *testing.T) (b []byte, half int) {
	t.Helper()
	half = 4 * os.Getpagesize()
	f, err := os.Create(filepath.Join(t.TempDir(), "0.chunk"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(int64(2 * half)); err != nil {
		t.Fatal(err)
	}
	b, err = syscall.Mmap(int(f.Fd()), 0, 2*half, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(b) })
	if err := f.Truncate(int64(half)); err != nil {
		t.Fatal(err)
	}
	return b, half
}

func TestGuardFault(t *testing.T) {
	b, half := shrunk(t)
	base := uintptr(unsafe.Pointer(&b[0]))
	dst := make([]byte, len(b))
	read := func() {
		for _, from := range []int{0, half, len(b) - 1} { // across, at, past the new end
			err := Guard(func() error { copy(dst, b[from:]); return nil })
			var fault *Fault
			if !errors.As(err, &fault) {
				t.Errorf("from %d: expected a *Fault, got %v", from, err)
				continue
			}
			if at := fault.Addr - base; at < uintptr(half) || at >= uintptr(len(b)) {
				t.Errorf("from %d: expected an address in the lost half, got offset %#x", from, at)
			}
			if !strings.Contains(err.Error(), "the mapped file is shorter than it was") {
				t.Errorf("got message %q", err)
			}
		}
		if err := Guard(func() error { copy(dst, b[:half]); return nil }); err != nil {
			t.Errorf("expected the first half to be readable, got %v", err)
		}
	}
	read()
	var others sync.WaitGroup
	for range 4 {
		others.Go(func() {
			own := make([]byte, len(b))
			for range 10 {
				err := Guard(func() error { copy(own, b); return nil })
				if fault := (*Fault)(nil); !errors.As(err, &fault) {
					t.Errorf("expected a *Fault, got %v", err)
				}
			}
		})
	}
	others.Wait()
}

func TestGuardRestores(t *testing.T) {
	b, _ := shrunk(t)
	var sink byte
	for _, setting := range []bool{true, false} {
		old := debug.SetPanicOnFault(setting)
		for name, f := range map[string]func() error{
			"no fault": func() error { return nil },
			"fault":    func() error { sink = b[len(b)-1]; return nil },
		} {
			_ = Guard(f)
			if got := debug.SetPanicOnFault(setting); got != setting {
				t.Errorf("%s: expected the setting %v back, got %v", name, setting, got)
			}
		}
		debug.SetPanicOnFault(old)
	}
	_ = sink
}

// Each routine is recovered from, wherever in it the fault is.
func TestGuardFaultInEachRoutine(t *testing.T) {
	b, half := shrunk(t)
	lost := Address(b) + uintptr(half)
	big := make([]byte, 3*repFrom)
	for name, do := range map[string]func(){
		"Copy, small":       func() { Copy(big[:100], lost-50) },
		"Copy, large":       func() { Copy(big, lost-uintptr(repFrom)) },
		"repMovs":           func() { repMovs(&big[0], lost-50, 100) },
		"Copy, middle":      func() { Copy(big[:wideFrom+300], lost-200) },
		"Copy, middle, end": func() { Copy(big[:wideFrom+300], lost-uintptr(wideFrom)-299) },
		"streamMove, begin": func() { streamMove(&big[0], lost-8, 1000) },
		"streamMove":        func() { streamMove(&big[1], lost-500, 1000) },
		"streamMove, end":   func() { streamMove(&big[0], lost-999, 1000) },
		"copyTwin":          func() { copyTwin(&big[0], lost-50, 100) },
		"CopyEach, fixed":   func() { CopyEach(big[:16], []uintptr{lost - 8, lost}, 8) },
		"CopyEach, general": func() { CopyEach(big[:200], []uintptr{lost - 100, lost - 50}, 100) },
	} {
		for range 100 {
			err := Guard(func() error { do(); return nil })
			var fault *Fault
			if !errors.As(err, &fault) || fault.Addr < lost {
				t.Fatalf("%s: expected a *Fault in the lost half, got %v", name, err)
			}
		}
	}
}
