package sampler

import "math/bits"

// iid draws every index independently of all others: the one at place p of all
// batches put one after another is made from word p of the stream, p being
// taken mod 2^64.
type iid struct {
	length, batch, key uint64
}

func (d *iid) fill(out []int64, step, offset uint64) {
	// The state of SplitMix64 for the first place: see word.
	state := d.key + (step*d.batch+offset+1)*gamma
	for {
		done := fillCertain(out, state, d.length)
		if done == len(out) {
			return
		}
		state += uint64(done) * gamma
		out[done] = int64(bounded(mix(state), d.length))
		state += gamma
		out = out[done+1:]
	}
}

// fillCertain is bounded for one word after another, up to the first that may
// be rejected: it returns how many came before. Without a call in the loop all
// stays in registers, which is twice as fast.
func fillCertain(out []int64, state, n uint64) int {
	for i := range out {
		high, low := bits.Mul64(mix(state), n)
		if low < n {
			return i
		}
		out[i] = int64(high)
		state += gamma
	}
	return len(out)
}
