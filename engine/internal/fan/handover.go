package fan

import (
	"slices"
	"sync"
	"time"
)

const mostHandOver = 100 * time.Microsecond

// HandOver is what it costs to give work to another goroutine and to wait for it:
// the median of a few tries, made once a process (it takes less than a
// millisecond). It depends on the machine and, in a virtual one, on its host: 5 to
// 70 us were seen. A machine that was busy when it was asked does not count for more
// than mostHandOver: it may not stay so.
var HandOver = sync.OnceValue(func() time.Duration {
	const tries = 9
	took := make([]time.Duration, tries)
	for i := range took {
		start := time.Now()
		done := make(chan struct{})
		go close(done)
		<-done
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	return min(took[tries/2], mostHandOver)
})
