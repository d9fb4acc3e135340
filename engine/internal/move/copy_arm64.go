package move

// Go's copy is as good as it gets here.
const (
	wideFrom   = 1
	hasWide    = false
	repFrom    = 1
	hasRepMovs = false
)

//go:noescape
func prefetchLines(p uintptr, lines int)

//go:noescape
func prefetchEach(addrs *uintptr, n int)

func repMovs(dst *byte, src uintptr, n int)  { copyTwin(dst, src, n) }
func wideMove(dst *byte, src uintptr, n int) { copyTwin(dst, src, n) }
