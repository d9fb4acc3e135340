//go:build !amd64 && !arm64

package move

const (
	wideFrom   = 1
	hasWide    = false
	repFrom    = 1
	hasRepMovs = false
)

func prefetchLines(p uintptr, lines int)     { prefetchLinesTwin(p, lines) }
func prefetchEach(addrs *uintptr, n int)     { prefetchEachTwin(addrs, n) }
func repMovs(dst *byte, src uintptr, n int)  { copyTwin(dst, src, n) }
func wideMove(dst *byte, src uintptr, n int) { copyTwin(dst, src, n) }
