package sampler

// cyclic goes through a fresh permutation of the records in every cycle, in
// full batches only. The records at the end of the permutation that do not fill
// a batch are not drawn in that cycle.
type cyclic struct {
	length, batch uint64
	steps         uint64 // full batches in a cycle
	key           uint64
	kept          *keptShuffles // nil: the length is beyond shuffleLimit
}

// newCyclic expects batch to be at most length, so that a cycle has a step.
func newCyclic(length, batch, key uint64) *cyclic {
	c := &cyclic{length: length, batch: batch, steps: length / batch, key: key}
	if length <= shuffleLimit {
		c.kept = &keptShuffles{}
	}
	return c
}

// fill cuts out at the ends of cycles. All places within a cycle are less than
// the length, so nothing here overflows, whatever the step.
func (c *cyclic) fill(out []int64, step, offset uint64) {
	for len(out) > 0 {
		cycle, within := step/c.steps, step%c.steps
		left := (c.steps-within)*c.batch - offset
		run := out[:min(uint64(len(out)), left)]
		c.permute(run, cycle, within*c.batch+offset)
		out = out[len(run):]
		step, offset = step+c.steps-within, 0
	}
}

// permute writes what the permutation of a cycle has at places first, first+1
// and so on.
func (c *cyclic) permute(out []int64, cycle, first uint64) {
	key := word(c.key, cycle)
	if c.kept == nil {
		f := newFeistel(c.length, key)
		f.fill(out, first)
		return
	}
	permutation := c.kept.get(cycle, c.length, key)
	for i, index := range permutation[first : first+uint64(len(out))] {
		out[i] = int64(index)
	}
}
