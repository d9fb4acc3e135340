package move

import "unsafe"

// The twins of the assembly. A prefetch does nothing that a program can see.

func prefetchLinesTwin(uintptr, int) {}

func prefetchEachTwin(*uintptr, int) {}

// Not inlined for the reason that Copy is not.
//
//go:noinline
func copyTwin(dst *byte, src uintptr, n int) { copy(unsafe.Slice(dst, n), bytesAt(src, n)) }
