package exports

// #include "../loaderx.h"
import "C"

import "unsafe"

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
