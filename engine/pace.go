package engine

import (
	"sync/atomic"
	"time"

	"loaderx/engine/internal/fan"
)

const (
	// worthOver is how many times the cost of a hand-over a gather must take before
	// others share it.
	worthOver = 4
	// pacedFrom is the smallest gather that says something about the pace.
	pacedFrom = 64 << 10
	// Paces in nanoseconds per MiB, before any was measured: 10 GiB/s of copying
	// and 1 GiB/s of decoding.
	firstRaw    = 100_000
	firstFrames = 1_000_000
)

// pace is how fast one goroutine reads a store: nanoseconds per MiB, of the
// latest gathers. 0: not measured yet.
type pace struct {
	ns     atomic.Int64
	shared atomic.Uint64 // gathers that were worth sharing
}

// again is how often a gather that is worth sharing is not shared.
const again = 32

// share tells whether a gather of n bytes is to be shared. Now and then one that is
// worth it is not, so that its pace is measured again: the first gathers of a process
// are slow, for page faults, and nothing else would show that the later ones are not.
func (p *pace) share(n int, raw bool) bool {
	if !p.worthSharing(n, raw) {
		return false
	}
	k := p.shared.Add(1)
	return k&(k-1) != 0 && k%again != 0
}

// worthSharing tells whether n bytes take so long that they should be shared.
func (p *pace) worthSharing(n int, raw bool) bool {
	ns := p.ns.Load()
	if ns == 0 {
		ns = firstFrames
		if raw {
			ns = firstRaw
		}
	}
	took := time.Duration(ns * int64(n) >> 20)
	// Whatever a hand-over costs, it is not less than a microsecond.
	return took > worthOver*time.Microsecond && fan.Limit() > 1 && took > worthOver*fan.HandOver()
}

// measure times a gather of n bytes on this goroutine.
func (p *pace) measure(n int, do func() error) error {
	if n < pacedFrom {
		return do()
	}
	start := time.Now()
	err := do()
	now := int64(time.Since(start)) << 20 / int64(n)
	// Being slow has many reasons, being fast has one.
	if old := p.ns.Load(); old > now {
		now = old - (old-now)/2
	} else if old > 0 {
		now = old + (now-old)/8
	}
	if err == nil {
		p.ns.Store(max(1, now))
	}
	return err
}
