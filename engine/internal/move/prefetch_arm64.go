package move

//go:noescape
func prefetchLines(p uintptr, lines int)

//go:noescape
func prefetchEach(addrs *uintptr, n int)
