package move

import (
	"math"
	"sync"

	"golang.org/x/sys/cpu"
)

const (
	// wideFrom is where wideMove begins to beat Go's copy, in bytes: having half as
	// many instructions, the processor sees further ahead, and waits for more lines
	// at once.
	wideFrom = 257
	// repFrom is where REP MOVSB is the fastest (measured: 23 against 19.7 GiB/s of
	// Go's copy at 256 KiB; below 8 KiB slower on Zen 3).
	repFrom = 8 << 10
	// streamLeast is the shortest record that is streamed.
	streamLeast = 1 << 10
)

// hasWide is set where there are registers of 32 bytes, which streamMove uses as well,
// and hasRepMovs where the instruction is fast (ERMS).
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

// streamMove copies n bytes, at least 256, with stores that leave the caches alone.
// It may fault like repMovs.
//
//go:noescape
func streamMove(dst *byte, src uintptr, n int)

// cpuid is the instruction of that name.
func cpuid(leaf, sub uint32) (eax, ebx, ecx, edx uint32)

const (
	// The leaves that list the caches: Intel's, and AMD's in the same format.
	intelCaches = 4
	amdCaches   = 0x8000001D
	// mostCaches bounds the list, should a hypervisor make it endless.
	mostCaches = 16
)

// streamFrom asks the processor how large its last cache is. It is math.MaxInt where
// it does not say: then nothing is streamed.
var streamFrom = sync.OnceValue(func() int {
	for _, leaf := range []uint32{amdCaches, intelCaches} {
		if most, _, _, _ := cpuid(leaf&0x80000000, 0); most < leaf {
			continue
		}
		if size := lastCache(leaf, cpuid); size > 0 {
			return size
		}
	}
	return math.MaxInt
})

// lastCache is the size of the highest cache that leaf lists, or 0 (AMD64 Architecture
// Programmer's Manual 3, appendix E.4; Intel's manual 2A, CPUID).
func lastCache(leaf uint32, cpuid func(leaf, sub uint32) (eax, ebx, ecx, edx uint32)) int {
	size, last := 0, uint32(0)
	for sub := range uint32(mostCaches) {
		eax, ebx, ecx, _ := cpuid(leaf, sub)
		kind, level := eax&31, eax>>5&7
		if kind == 0 {
			break
		}
		if level > last {
			ways, partitions, line := ebx>>22+1, ebx>>12&0x3ff+1, ebx&0xfff+1
			size, last = int(ways)*int(partitions)*int(line)*(int(ecx)+1), level
		}
	}
	return size
}
