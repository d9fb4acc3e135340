// Package move reads mapped files under fault recovery. A mapping is only as
// good as its file: when another program cuts the file, or its disk fails, a
// read faults. Only Go code may touch a mapping, since a fault in C ends the
// process.
package move

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
)

// Fault is the error of a read that the mapped file could not satisfy.
type Fault struct {
	Addr uintptr
}

func (f *Fault) Error() string {
	return fmt.Sprintf("fault at address %#x: the mapped file is shorter than it was, or its disk failed", f.Addr)
}

// Guard runs f and turns a memory fault in it into a *Fault. It covers the
// calling goroutine only. Any other panic goes on, and so does a nil pointer:
// that is a mistake of ours, and carries no address.
func Guard(f func() error) (err error) {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if value := recover(); value != nil {
			fault := asFault(value)
			if fault == nil {
				panic(value)
			}
			err = fault
		}
	}()
	return f()
}

// asFault picks out what SetPanicOnFault makes of a fault: a runtime error
// with an address.
func asFault(value any) *Fault {
	err, ok := value.(runtime.Error)
	if !ok {
		return nil
	}
	var addressed interface{ Addr() uintptr }
	if !errors.As(err, &addressed) {
		return nil
	}
	return &Fault{addressed.Addr()}
}
