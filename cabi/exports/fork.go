//go:build unix

package exports

// #include "fork.h"
import "C"

import (
	"sync"

	"loaderx/engine"
)

// A Go runtime does not survive fork, so what a child has to do, closing the
// descriptors of its parent's locks, is done by C.
func init() {
	C.watch_forks()
	var mu sync.Mutex
	engine.OnLock(func(fd int, held bool) {
		mu.Lock()
		defer mu.Unlock()
		C.lock_descriptor(C.int(fd), C.int(boolInt(held)))
	})
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
