//go:build !amd64

package move

import "math"

// Go's copy is as good as it gets here.
const (
	wideFrom    = 1
	hasWide     = false
	repFrom     = 1
	hasRepMovs  = false
	streamLeast = 1
)

func repMovs(dst *byte, src uintptr, n int)    { copyTwin(dst, src, n) }
func wideMove(dst *byte, src uintptr, n int)   { copyTwin(dst, src, n) }
func streamMove(dst *byte, src uintptr, n int) { copyTwin(dst, src, n) }

func streamFrom() int { return math.MaxInt }
