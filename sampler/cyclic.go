package sampler

// cyclic goes through a fresh permutation of the records in every cycle, in
// full batches only. The records at the end of the permutation that do not fill
// a batch are not drawn in that cycle.
type cyclic struct {
	batch  uint64
	steps  uint64 // full batches in a cycle
	orders permutations
}

// keptCycles is how many permutations a sampler holds: 1 MiB at most. Threads
// that read ahead work on both sides of the end of a cycle; four leave room for
// one that has fallen behind and one that went back.
const keptCycles = 4

// newCyclic expects batch to be at most length, so that a cycle has a step.
func newCyclic(length, batch, key uint64) *cyclic {
	return &cyclic{batch: batch, steps: length / batch, orders: newPermutations(length, key, keptCycles)}
}

// fill cuts out at the ends of cycles. All places within a cycle are less than
// the length, so nothing here overflows, whatever the step.
func (c *cyclic) fill(out []int64, step, offset uint64) {
	for len(out) > 0 {
		cycle, within := step/c.steps, step%c.steps
		left := (c.steps-within)*c.batch - offset
		run := out[:min(uint64(len(out)), left)]
		c.orders.fill(run, cycle, within*c.batch+offset)
		out = out[len(run):]
		step, offset = step+c.steps-within, 0
	}
}
