package exports

// #include <stdlib.h>
// #include "../loaderx.h"
import "C"

import (
	"fmt"
	"unsafe"
)

// bufferAlign suits the widest vector loads, and JAX, which takes memory
// without a copy from 64 bytes on.
const bufferAlign = 64

//export lx_buffer_new
func lx_buffer_new(bytes C.int64_t, buffer *unsafe.Pointer, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		if bytes < 1 || buffer == nil {
			return badArgument("a buffer: expected at least 1 byte and a place for the pointer, got %d bytes", int64(bytes))
		}
		var p unsafe.Pointer
		if C.posix_memalign(&p, bufferAlign, C.size_t(bytes)) != 0 {
			return &fault{C.LX_MEMORY, fmt.Sprintf("no memory for a buffer of %d bytes", int64(bytes))}
		}
		*buffer = p
		return nil
	})
}

//export lx_buffer_free
func lx_buffer_free(buffer unsafe.Pointer) { C.free(buffer) }

// view makes a slice of n values of the caller's memory.
func view[T any](p unsafe.Pointer, n C.int64_t, what string) ([]T, error) {
	const most = 1 << 56 // no process has more memory, and the size cannot overflow
	if n < 0 || n > most || n > 0 && p == nil {
		return nil, badArgument("%s: expected a pointer and a count of at least 0, got %p and %d", what, p, int64(n))
	}
	if n == 0 {
		return nil, nil
	}
	return unsafe.Slice((*T)(p), int(n)), nil
}
