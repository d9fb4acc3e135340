package zstd

/*
#include <stdlib.h>

// Go's own C.malloc ends the process where there is no memory.
static void *lx_scratch(size_t size) { return malloc(size); }
*/
import "C"

import "unsafe"

// Scratch is n bytes to decode into, for a size that only a table claims.
// Unlike Go's memory they take no room before they are written, and where they
// are not to be had that is an error. free ends them.
func Scratch(n int) (b []byte, free func(), err error) {
	p := C.lx_scratch(C.size_t(max(n, 1)))
	if p == nil {
		return nil, nil, ErrMemory
	}
	return unsafe.Slice((*byte)(p), n), func() { C.free(p) }, nil
}
