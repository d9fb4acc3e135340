package engine

import (
	"math/bits"
	"sync/atomic"
	"time"

	"loaderx/engine/internal/fan"
)

const (
	// pacedFrom is the smallest gather, in bytes, that says something about the pace.
	pacedFrom = 16 << 10
	// leastShared is what a gather must take before it is tried whether others help: no
	// machine wakes another core in less than some microseconds.
	leastShared = 20 * time.Microsecond
	// again is how often, in gathers, the slower way is tried again once it is known:
	// the first gathers of a process wait for page faults, and other work comes and goes.
	again = 128
	// A gather of a size that was never read is shared if it takes more than guessFrom at
	// these paces, in nanoseconds per MiB: 10 GiB/s of copying and 1 GiB/s of decoding.
	guessFrom   = time.Millisecond
	guessRaw    = 100_000
	guessFrames = 1_000_000
)

// pace is how fast a store is read by one goroutine and by several that share a gather.
// Both are measured as it is read, for each size by itself: what waking another core
// costs depends on the machine, on its host and on how long that core has slept, and
// cannot be told beforehand.
type pace struct {
	sizes [bits.UintSize]sizePace // by the number of bits of a gather's bytes
}

// sizePace has nanoseconds per MiB, of the latest gathers. 0: not measured yet.
type sizePace struct {
	alone, shared atomic.Int64
	gathers       atomic.Uint64 // that could have been shared
}

func (p *pace) of(n int) *sizePace { return &p.sizes[bits.Len(uint(n))%bits.UintSize] }

// share tells whether a gather of n bytes is to be shared.
func (p *pace) share(n int, raw bool) bool {
	if n < pacedFrom || fan.Limit() == 1 {
		return false
	}
	s := p.of(n)
	alone, shared := s.alone.Load(), s.shared.Load()
	if alone == 0 {
		guess := int64(guessFrames)
		if raw {
			guess = guessRaw
		}
		return shared == 0 && perMiB(guess, n) > guessFrom
	}
	if perMiB(alone, n) < leastShared {
		return false
	}
	better := shared > 0 && shared < alone
	if k := s.gathers.Add(1); k&(k-1) == 0 || k%again == 0 {
		return !better
	}
	return better
}

// measure times a gather of n bytes.
func (p *pace) measure(n int, shared bool, do func() error) error {
	if n < pacedFrom {
		return do()
	}
	start := time.Now()
	err := do()
	if err == nil {
		s := p.of(n)
		to := &s.alone
		if shared {
			to = &s.shared
		}
		to.Store(average(to.Load(), max(1, int64(time.Since(start))<<20/int64(n))))
	}
	return err
}

// average moves an old pace towards a new one. Being slow has many reasons, being fast
// has one.
func average(old, now int64) int64 {
	switch {
	case old == 0:
		return now
	case old > now:
		return old - (old-now+1)/2
	default:
		return old + (now-old)/8
	}
}

func perMiB(ns int64, n int) time.Duration { return time.Duration(ns * int64(n) >> 20) }
