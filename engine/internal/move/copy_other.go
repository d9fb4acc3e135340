//go:build !amd64 && !arm64

package move

import "math"

const (
	wideFrom    = 1
	hasWide     = false
	repFrom     = 1
	hasRepMovs  = false
	streamLeast = 1
	hasStream   = false
)

func prefetchLines(p uintptr, lines int)       { prefetchLinesTwin(p, lines) }
func prefetchEach(addrs *uintptr, n int)       { prefetchEachTwin(addrs, n) }
func repMovs(dst *byte, src uintptr, n int)    { copyTwin(dst, src, n) }
func wideMove(dst *byte, src uintptr, n int)   { copyTwin(dst, src, n) }
func streamMove(dst *byte, src uintptr, n int) { copyTwin(dst, src, n) }

func streamFrom() int { return math.MaxInt }
