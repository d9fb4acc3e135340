package sampler

import "math/bits"

// sequential is the records in order, over and over: the index at place p of
// all batches put one after another is p mod the length.
type sequential struct {
	length, batch uint64
}

// fill finds its first index in 128 bits, where step*batch + offset is exact
// for every step, and counts from there.
func (s *sequential) fill(out []int64, step, offset uint64) {
	high, low := bits.Mul64(step, s.batch)
	low, carry := bits.Add64(low, offset, 0)
	first := bits.Rem64(high+carry, low, s.length)
	for len(out) > 0 {
		run := out[:min(uint64(len(out)), s.length-first)]
		for i := range run {
			run[i] = int64(first) + int64(i)
		}
		out, first = out[len(run):], 0
	}
}
