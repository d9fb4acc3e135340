package engine

import (
	"errors"
	"testing"

	"loaderx/engine/internal/fan"
)

func TestWorthSharing(t *testing.T) {
	if fan.HandOver() <= 0 {
		t.Errorf("a hand-over that takes %v", fan.HandOver())
	}
	var p pace
	if p.worthSharing(0, true) || p.worthSharing(1<<10, false) {
		t.Error("next to nothing is worth sharing")
	}
	if more := fan.Limit() > 1; p.worthSharing(1<<40, true) != more || p.worthSharing(1<<40, false) != more {
		t.Errorf("with %d threads, a terabyte: expected %v", fan.Limit(), more)
	}
	p.ns.Store(1 << 40) // a quarter of an hour for a megabyte
	if p.worthSharing(1<<20, true) != (fan.Limit() > 1) {
		t.Error("a slow store's gather is not worth sharing")
	}
	p.ns.Store(1)
	if p.worthSharing(1<<30, true) {
		t.Error("a gather of a microsecond is worth sharing")
	}
}

// A pace is of gathers that went well and were large enough to say something.
func TestPaceIsMeasured(t *testing.T) {
	var p pace
	fails := errors.New("it failed")
	for _, c := range []struct {
		n    int
		err  error
		want bool
	}{{pacedFrom - 1, nil, false}, {1 << 20, fails, false}, {pacedFrom, nil, true}} {
		if err := p.measure(c.n, func() error { return c.err }); !errors.Is(err, c.err) {
			t.Errorf("%d bytes: got %v", c.n, err)
		}
		if got := p.ns.Load() > 0; got != c.want {
			t.Errorf("%d bytes, error %v: measured %v", c.n, c.err, got)
		}
	}
}

// A store whose first gathers were slow is found out to be fast.
func TestPaceIsMeasuredAgain(t *testing.T) {
	if fan.Limit() == 1 {
		t.Skip("one processor shares nothing")
	}
	var p pace
	p.ns.Store(1 << 40)
	gathers, alone := 0, 0
	for ; p.worthSharing(1<<20, true); gathers++ {
		if gathers == 40*again {
			t.Fatalf("after %d gathers of no time, %d of them alone: it is still shared", gathers, alone)
		}
		if !p.share(1<<20, true) {
			alone++
			_ = p.measure(1<<20, func() error { return nil })
		}
	}
	p.ns.Store(1 << 40)
	for range 2 * again {
		if p.share(1<<20, true) {
			return
		}
	}
	t.Error("a slow store's gathers are never shared")
}
