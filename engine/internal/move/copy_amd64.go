package move

import "golang.org/x/sys/cpu"

const (
	// wideFrom is where wideMove begins to beat Go's copy, in bytes: having half as
	// many instructions, the processor sees further ahead, and waits for more lines
	// at once.
	wideFrom = 257
	// repFrom is where REP MOVSB is the fastest (measured: 23 against 19.7 GiB/s of
	// Go's copy at 256 KiB; below 8 KiB slower on Zen 3).
	repFrom = 8 << 10
)

// hasWide is set where there are registers of 32 bytes, and hasRepMovs where the
// instruction is fast (ERMS).
var (
	hasWide    = cpu.X86.HasAVX
	hasRepMovs = cpu.X86.HasERMS
)

//go:noescape
func prefetchLines(p uintptr, lines int)

//go:noescape
func prefetchEach(addrs *uintptr, n int)

// repMovs copies n bytes. A fault in it is a Go panic like one in a plain copy.
//
//go:noescape
func repMovs(dst *byte, src uintptr, n int)

// wideMove copies n bytes, at least 128. It may fault like repMovs.
//
//go:noescape
func wideMove(dst *byte, src uintptr, n int)
