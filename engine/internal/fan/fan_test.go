package fan

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// withLimit gives the process n processors for one test.
func withLimit(t *testing.T, n int) {
	old := runtime.GOMAXPROCS(n)
	t.Cleanup(func() {
		runtime.GOMAXPROCS(old)
		if n := extra.Load(); n != 0 {
			t.Errorf("expected all goroutines given back, got %d missing", n)
		}
	})
}

func TestEveryUnitOnce(t *testing.T) {
	withLimit(t, 4)
	for _, threads := range []int{-1, 0, 1, 2, 3, 99} {
		for _, n := range []int{0, 1, 2, 3, 1000} {
			seen := make([]atomic.Int32, n)
			err := Run(threads, n, nil, nil, func(_ struct{}, unit int) error {
				seen[unit].Add(1)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for unit := range seen {
				if got := seen[unit].Load(); got != 1 {
					t.Errorf("%d threads: unit %d of %d done %d times", threads, unit, n, got)
				}
			}
		}
	}
}

// meet makes a function that returns once n goroutines are in it: proof that
// n work at a time.
func meet(n int) func() {
	var all sync.WaitGroup
	all.Add(n)
	return func() {
		all.Done()
		all.Wait()
	}
}

func TestWorkersHaveTheirOwn(t *testing.T) {
	withLimit(t, 3)
	var started, ended atomic.Int32
	together := meet(3)
	busy := make([]atomic.Bool, 4)
	err := Run(3, 300,
		func() (int, error) { return int(started.Add(1)), nil },
		func(w int) { ended.Add(1) },
		func(w, unit int) error {
			if unit < 3 {
				together()
			}
			if !busy[w].CompareAndSwap(false, true) {
				t.Errorf("worker %d is in two units at once", w)
			}
			busy[w].Store(false)
			return nil
		})
	if err != nil || started.Load() != 3 || ended.Load() != 3 {
		t.Errorf("expected 3 started and 3 ended, got %d and %d, %v", started.Load(), ended.Load(), err)
	}
}

func TestAloneWithinThreads(t *testing.T) {
	withLimit(t, 4)
	var started atomic.Int32
	one := func() (int, error) { return int(started.Add(1)), nil }
	for _, c := range []struct{ threads, n int }{{1, 100}, {4, 1}} {
		started.Store(0)
		order := 0
		err := Run(c.threads, c.n, one, nil, func(_, unit int) error {
			if unit != order {
				t.Errorf("expected unit %d, got %d", order, unit)
			}
			order++
			return nil
		})
		if err != nil || started.Load() != 1 {
			t.Errorf("%+v: expected one worker, got %d, %v", c, started.Load(), err)
		}
	}
}

func TestLowestErrorWins(t *testing.T) {
	withLimit(t, 4)
	for range 50 {
		together := meet(4)
		var inside, ended atomic.Int32
		err := Run(4, 1000, nil, func(struct{}) { ended.Add(1) }, func(_ struct{}, unit int) error {
			inside.Add(1)
			defer inside.Add(-1)
			if unit < 4 {
				together()
			}
			if unit == 1 || unit == 3 || unit >= 900 {
				return fmt.Errorf("unit %d", unit)
			}
			return nil
		})
		if err == nil || err.Error() != "unit 1" {
			t.Fatalf("expected the error of unit 1, got %v", err)
		}
		if inside.Load() != 0 || ended.Load() != 4 {
			t.Fatalf("expected all joined and ended, got %d inside, %d ended", inside.Load(), ended.Load())
		}
	}
}

// After an error the rest is left undone: the units here would take for ever.
func TestNothingStartsAfterAnError(t *testing.T) {
	withLimit(t, 2)
	stopped := errors.New("stopped")
	for _, threads := range []int{1, 2} {
		var done atomic.Int64
		err := Run(threads, math.MaxInt, nil, nil, func(_ struct{}, unit int) error {
			done.Add(1)
			if unit == 3 {
				return stopped
			}
			return nil
		})
		if !errors.Is(err, stopped) || done.Load() < 4 || threads == 1 && done.Load() != 4 {
			t.Errorf("%d threads: expected to stop after 4 units, got %d, %v", threads, done.Load(), err)
		}
	}
}

func TestPanic(t *testing.T) {
	withLimit(t, 2)
	cause := errors.New("cause")
	for _, threads := range []int{1, 2} {
		for where, run := range map[string]func() error{
			"start": func() error {
				return Run(threads, 9, func() (int, error) { panic(cause) }, nil, func(_, _ int) error { return nil })
			},
			"end": func() error {
				return Run(threads, 9, nil, func(int) { panic(cause) }, func(_, _ int) error { return nil })
			},
			"do": func() error {
				return Run(threads, 9, nil, nil, func(_, unit int) error { panic(cause) })
			},
		} {
			var p *Panic
			err := run()
			if !errors.As(err, &p) || !errors.Is(err, cause) || p.Value != any(cause) {
				t.Fatalf("%s, %d threads: expected a *Panic with its cause, got %v", where, threads, err)
			}
			if !strings.Contains(string(p.Stack), "fan_test.go") || !strings.HasPrefix(p.Error(), "panic: cause\n") {
				t.Errorf("%s: expected the stack of the panic, got %v", where, p)
			}
		}
	}
	err := Run(1, 1, nil, nil, func(_, _ int) error { panic("text") })
	var p *Panic
	if !errors.As(err, &p) || errors.Unwrap(p) != nil {
		t.Errorf("expected a *Panic without a cause, got %v", err)
	}
}

func TestStartFails(t *testing.T) {
	withLimit(t, 2)
	cause := errors.New("no context")
	for _, threads := range []int{1, 2} {
		err := Run(threads, 9, func() (int, error) { return 0, cause }, func(int) { t.Error("end without start") },
			func(_, _ int) error { t.Error("do without start"); return nil })
		if !errors.Is(err, cause) {
			t.Errorf("expected %v, got %v", cause, err)
		}
	}
}

// A start that fails beside one that works is an error all the same.
func TestOneStartFails(t *testing.T) {
	withLimit(t, 2)
	cause := errors.New("no context")
	var started atomic.Int32
	together := meet(2)
	err := Run(2, 9, func() (int, error) {
		n := started.Add(1)
		together()
		if n == 1 {
			return 0, cause
		}
		return 0, nil
	}, nil, func(_, _ int) error { return nil })
	if !errors.Is(err, cause) {
		t.Errorf("expected %v, got %v", cause, err)
	}
}

// Whoever comes first, the lowest unit's error stays, and one outside all
// units ranks last.
func TestRank(t *testing.T) {
	outside, three, five := errors.New("outside"), errors.New("3"), errors.New("5")
	c := &crew{units: 9}
	for _, f := range []struct {
		unit int
		err  error
		want error
	}{{9, outside, outside}, {5, five, five}, {3, three, three}, {4, nil, three}, {5, five, three}, {9, outside, three}} {
		if c.fail(f.unit, f.err); !errors.Is(c.err, f.want) {
			t.Errorf("after unit %d: expected %v, got %v", f.unit, f.want, c.err)
		}
	}
}

// A worker that fails in end has done its units: the error of a unit comes
// before its own.
func TestEndRanksLast(t *testing.T) {
	withLimit(t, 2)
	bad := errors.New("bad unit")
	for range 50 {
		together := meet(2)
		err := Run(2, 3, nil, func(int) { panic("end") }, func(_, unit int) error {
			if unit < 2 {
				together()
			}
			if unit == 1 {
				return bad
			}
			return nil
		})
		if !errors.Is(err, bad) {
			t.Fatalf("expected %v, got %v", bad, err)
		}
	}
}

func TestOneLimitForAll(t *testing.T) {
	withLimit(t, 3)
	var working, most atomic.Int32
	var runs sync.WaitGroup
	const callers = 5
	together := meet(callers)
	for range callers {
		runs.Go(func() {
			together()
			err := Run(3, 50, func() (int, error) {
				n := working.Add(1)
				for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
				}
				return 0, nil
			}, func(int) { working.Add(-1) }, func(_, _ int) error { return nil })
			if err != nil {
				t.Error(err)
			}
		})
	}
	runs.Wait()
	if got := most.Load(); got > callers+2 {
		t.Errorf("expected at most %d callers and 2 more at work, got %d", callers, got)
	}
}

// While one Run holds the whole limit another works alone, without waiting.
func TestNoneFree(t *testing.T) {
	withLimit(t, 2)
	together := meet(2)
	over := make(chan struct{})
	err := Run(2, 2, nil, nil, func(_ struct{}, unit int) error {
		together() // both goroutines of the limit are here, and stay
		if unit == 1 {
			<-over
			return nil
		}
		defer close(over)
		var started atomic.Int32
		err := Run(2, 10, func() (int, error) { return int(started.Add(1)), nil }, nil, func(_, _ int) error { return nil })
		if started.Load() != 1 {
			err = fmt.Errorf("expected 1 worker, got %d", started.Load())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAloneAllocatesNothing(t *testing.T) {
	start := func() (*int, error) { return nil, nil }
	end := func(*int) {}
	do := func(*int, int) error { return nil }
	for _, c := range []struct{ threads, n int }{{1, 100}, {4, 1}} {
		if got := testing.AllocsPerRun(100, func() { _ = Run(c.threads, c.n, start, end, do) }); got != 0 {
			t.Errorf("%+v: expected no allocation, got %v", c, got)
		}
	}
}
