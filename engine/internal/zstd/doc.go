// Package zstd is a thin layer over the C zstd that github.com/DataDog/zstd
// carries: whole records in, single frames out, and back (FORMAT 4). Contexts
// are reused, a call is one crossing into C and allocates nothing in Go.
package zstd

// The blank import brings the C sources into the link. Their headers cannot
// be reached from another module, so calls.h declares what is called.

// #include "calls.h"
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	_ "github.com/DataDog/zstd" // the C library
)

// ErrMemory is returned when C has no memory for a context or for scratch.
var ErrMemory = errors.New("zstd: no memory")

// Bound is the greatest size a frame of n bytes of content can have.
func Bound(n int) int {
	return int(C.ZSTD_compressBound(C.size_t(n)))
}

// failure turns a result of zstd into an error, nil if it is none.
func failure(doing string, result C.size_t) error {
	if C.ZSTD_isError(result) == 0 {
		return nil
	}
	return fmt.Errorf("zstd: %s: %s", doing, C.GoString(C.ZSTD_getErrorName(result)))
}

// address gives C the place of b. A pointer to char needs no check by cgo of
// what lies around it, which would refuse memory that neighbours Go pointers.
func address(b []byte) *C.char {
	return (*C.char)(unsafe.Pointer(unsafe.SliceData(b)))
}
