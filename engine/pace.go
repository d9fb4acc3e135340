package engine

import (
	"sync/atomic"
	"time"

	"loaderx/engine/internal/fan"
)

const (
	// worthOver is how many times the cost of a hand-over a gather must take before
	// others share it.
	worthOver = 8
	// pacedFrom is the smallest gather that says something about the pace.
	pacedFrom = 64 << 10
	// Paces in nanoseconds per MiB, before any was measured: 10 GiB/s of copying
	// and 1 GiB/s of decoding.
	firstRaw    = 100_000
	firstFrames = 1_000_000
)

// pace is how fast one goroutine reads a store: nanoseconds per MiB, of the
// latest gathers. 0: not measured yet.
type pace struct{ ns atomic.Int64 }

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
	if old := p.ns.Load(); old > 0 {
		now = old + (now-old)/8
	}
	if err == nil {
		p.ns.Store(max(1, now))
	}
	return err
}
