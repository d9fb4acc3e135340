//go:build !amd64 && !arm64

package move

func prefetchLines(p uintptr, lines int) { prefetchLinesTwin(p, lines) }
func prefetchEach(addrs *uintptr, n int) { prefetchEachTwin(addrs, n) }
