// Package fan spreads units of work over goroutines, within a limit that the
// whole process shares.
package fan

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// extra counts the goroutines at work beside their callers, in all Runs of
// the process. Work inside cgo calls holds a thread each, which GOMAXPROCS
// alone would not bound.
var extra atomic.Int64

// Limit is how many goroutines may work at once: GOMAXPROCS, which is the
// smaller of CPU affinity and cgroup quota.
func Limit() int { return runtime.GOMAXPROCS(0) }

// Panic is the error of a unit that panicked.
type Panic struct {
	Value any
	Stack []byte
}

func (p *Panic) Error() string { return fmt.Sprintf("panic: %v\n\n%s", p.Value, p.Stack) }

// Unwrap gives the value that was panicked with, if it was an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// Run calls do(w, unit) once for every unit from 0 to n-1 and waits for all
// calls to return. The caller works, and beside it at most threads-1
// goroutines (threads <= 0 means Limit()), fewer or none when other Runs hold
// the process-wide limit: Run never waits for a goroutine to become free.
// Each works with a w of its own, from start (nil for the zero W), and gives
// it to end (may be nil).
//
// Units are handed out in order. After an error none is handed out any more,
// and Run returns the error of the lowest unit that failed: the one a single
// worker would have met. A panic is an error, too, of type *Panic.
func Run[W any](threads, n int, start func() (W, error), end func(W), do func(w W, unit int) error) error {
	if threads <= 0 {
		threads = Limit()
	}
	if threads = min(threads, n); threads > 1 {
		if more := take(threads - 1); more > 0 {
			return together(more, n, start, end, do)
		}
	}
	return alone(n, start, end, do)
}

// take claims up to n goroutines of the limit, and gives how many it got.
func take(n int) int {
	for {
		used := extra.Load()
		got := min(int64(n), int64(Limit()-1)-used)
		if got <= 0 {
			return 0
		}
		if extra.CompareAndSwap(used, used+got) {
			return int(got)
		}
	}
}

// alone is Run on the caller only. It allocates nothing.
func alone[W any](n int, start func() (W, error), end func(W), do func(w W, unit int) error) (err error) {
	defer func() { recovered(recover(), &err) }()
	var w W
	if start != nil && n > 0 {
		if w, err = start(); err != nil {
			return err
		}
	}
	if end != nil && n > 0 {
		defer end(w)
	}
	for unit := range n {
		if err := do(w, unit); err != nil {
			return err
		}
	}
	return nil
}

// recovered turns what recover gave into an error, unless there is one: then
// it was end that panicked, after the unit.
func recovered(value any, err *error) {
	if value != nil && *err == nil {
		*err = &Panic{value, debug.Stack()}
	}
}

// crew is what the workers of one Run share.
type crew struct {
	units   int
	next    atomic.Int64
	stopped atomic.Bool
	joined  sync.WaitGroup

	mu     sync.Mutex
	err    error
	failed int // the unit of err
}

// together is Run on the caller and more goroutines.
func together[W any](more, n int, start func() (W, error), end func(W), do func(w W, unit int) error) error {
	c := &crew{units: n}
	for range more {
		c.joined.Go(func() {
			defer extra.Add(-1)
			work(c, start, end, do)
		})
	}
	work(c, start, end, do)
	c.joined.Wait()
	return c.err
}

// work takes units until there are none.
func work[W any](c *crew, start func() (W, error), end func(W), do func(w W, unit int) error) {
	unit := c.units // an error outside do ranks behind those of all units
	var err error
	defer func() {
		recovered(recover(), &err)
		c.fail(unit, err)
	}()
	var w W
	if start != nil {
		if w, err = start(); err != nil {
			return
		}
	}
	if end != nil {
		defer end(w)
	}
	for !c.stopped.Load() {
		// Whoever has claimed a unit works on it, stopped or not: so all
		// units below a failed one are done, and the lowest error is found.
		if unit = int(c.next.Add(1) - 1); unit >= c.units {
			return
		}
		if err = do(w, unit); err != nil {
			return
		}
		unit = c.units
	}
}

// fail stops the crew and keeps the error of the lowest unit.
func (c *crew) fail(unit int, err error) {
	if err == nil {
		return
	}
	c.stopped.Store(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil || unit < c.failed {
		c.err, c.failed = err, unit
	}
}
