package engine

import (
	"errors"
	"testing"
	"time"

	"loaderx/engine/internal/fan"
)

// paced is a pace that was measured at ns nanoseconds per MiB, for gathers of n bytes.
func paced(n int, alone, shared int64) *pace {
	var p pace
	p.of(n).alone.Store(alone)
	p.of(n).shared.Store(shared)
	return &p
}

func several(t *testing.T) {
	if fan.Limit() == 1 {
		t.Skip("one processor shares nothing")
	}
}

// Whichever way is faster is taken, and the other one only tried.
func TestTheFasterWayIsTaken(t *testing.T) {
	several(t)
	const gathers, n = 10 * again, 1 << 20
	for _, c := range []struct{ alone, shared int64 }{
		{1e6, 6e5}, {1e6, 2e6}, {1e6, 1e6}, {6e4, 5e4}, {1e9, 1},
	} {
		shared := 0
		for p := paced(n, c.alone, c.shared); p.of(n).gathers.Load() < gathers; {
			if p.share(n, true) {
				shared++
			}
		}
		const tries = 25 // 1, 2, 4 ... of the first, and then every again-th
		if better := c.shared < c.alone; better && shared < gathers-tries || !better && (shared > tries || shared < 5) {
			t.Errorf("%+v: %d of %d were shared", c, shared, gathers)
		}
	}
}

func TestSmallGathersAreNotShared(t *testing.T) {
	for range 3 * again {
		if paced(1<<20, int64(leastShared)-1, 1).share(1<<20, true) {
			t.Fatal("a gather of 20 us was shared")
		}
		if paced(pacedFrom-1, 1<<40, 1).share(pacedFrom-1, false) {
			t.Fatal("a gather of some KiB was shared")
		}
	}
}

// Before anything is known, the first gather goes by a guess, and then both ways are
// measured: also where the guess was to share.
func TestTheFirstGathers(t *testing.T) {
	several(t)
	for _, c := range []struct {
		n     int
		raw   bool
		first bool
	}{{1 << 20, true, false}, {1 << 20, false, false}, {64 << 20, true, true}, {8 << 20, false, true}, {8 << 20, true, false}} {
		var p pace
		took := map[bool]int{}
		for k := range 10 {
			shared := p.share(c.n, c.raw)
			if k == 0 && shared != c.first {
				t.Errorf("%+v: the first one shared: %v", c, shared)
			}
			took[shared]++
			to := &p.of(c.n).alone
			if shared {
				to = &p.of(c.n).shared
			}
			to.Store(1e9)
		}
		if took[true] == 0 || took[false] == 0 {
			t.Errorf("%+v: of 10 gathers %d were shared, %d not", c, took[true], took[false])
		}
	}
}

// A pace is of gathers that went well and were large enough to say something, and of
// their size and their way only.
func TestPaceIsMeasured(t *testing.T) {
	fails := errors.New("it failed")
	for _, c := range []struct {
		n    int
		err  error
		want bool
	}{{pacedFrom - 1, nil, false}, {1 << 20, fails, false}, {pacedFrom, nil, true}, {1 << 40, nil, true}} {
		for _, shared := range []bool{false, true} {
			var p pace
			if err := p.measure(c.n, shared, func() error { return c.err }); !errors.Is(err, c.err) {
				t.Errorf("%d bytes: got %v", c.n, err)
			}
			for i := range p.sizes {
				s := &p.sizes[i]
				here := s == p.of(c.n) && c.want
				if (s.alone.Load() > 0) != (here && !shared) || (s.shared.Load() > 0) != (here && shared) {
					t.Errorf("%d bytes, shared %v, error %v: measured %d and %d at %d bits", c.n, shared, c.err, s.alone.Load(), s.shared.Load(), i)
				}
			}
		}
	}
}

func TestAverage(t *testing.T) {
	for _, c := range []struct{ old, now, want int64 }{{0, 7, 7}, {100, 50, 75}, {100, 180, 110}, {2, 1, 1}, {5, 5, 5}} {
		if got := average(c.old, c.now); got != c.want {
			t.Errorf("%d, then %d: expected %d, got %d", c.old, c.now, c.want, got)
		}
	}
	// A store that was slow at first is found out to be fast.
	pace := int64(time.Hour)
	for range 60 {
		pace = average(pace, 100)
	}
	if pace != 100 {
		t.Errorf("expected 100 after a while, got %d", pace)
	}
}
