package sampler

import (
	"math"
	"sort"
)

// BudgetConfig is all that the order of a budget depends on, beside the lengths.
type BudgetConfig struct {
	// Budget is what the padded size of a global batch stays within: its count
	// times its longest length.
	Budget int64
	// MaxRecords is how many records a global batch has at most; 0: as many as
	// the budget allows. With a budget beyond reach it alone says, which gives
	// batches of one size whose records are of like lengths.
	MaxRecords int64
	// Multiple divides the count of every global batch; 0 is 1. Where it does
	// not divide the number of records, as many as are over are left out of a
	// cycle, others in each. It is part of the order, unlike the ranks: choose
	// one that every number of ranks to be used divides.
	Multiple  int64
	Seed      uint64
	Rank      int32 // in [0, WorldSize)
	WorldSize int32 // divides Multiple
}

// Budget forms batches of varying counts out of records of like lengths. It may
// be used by many goroutines at the same time.
//
// Which places make up a batch is the same in every cycle; which records lie at
// the places, and which batch comes when, is not. So the number of batches is
// fixed, a step leads to its batch without those before it, and what is kept is
// 4 bytes a record, and up to 12 more of the orders of the last cycles.
type Budget struct {
	records []uint32 // by place: longest first
	groups  []group
	count   uint64 // records in a cycle
	batches uint64 // in a cycle
	shuffle permutations
	dropped uint64 // key of which records are left out
	rank    uint64
	world   uint64
}

// budgetKept is how many cycles' orders of short groups are held.
const budgetKept = 3

// NewBudget plans for records of the given lengths, which it does not keep; one
// of length 0 counts as 1. It returns an *ArgumentError naming the field at
// fault.
func NewBudget[T uint32 | int64](lengths []T, c BudgetConfig) (*Budget, error) {
	if c.Multiple == 0 {
		c.Multiple = 1
	}
	if err := c.check(int64(len(lengths))); err != nil {
		return nil, err
	}
	tallies := make([]tally, buckets)
	for i, length := range lengths {
		n := max(int64(length), 1)
		if length < 0 || n > c.Budget/c.Multiple {
			return nil, badArgument("lengths", "expected 0 to %d (the budget of %d over a multiple of %d), got %d for record %d",
				c.Budget/c.Multiple, c.Budget, c.Multiple, int64(length), i)
		}
		tallies[bucketOf(uint64(n))].add(tally{1, uint64(n), uint64(n)})
	}
	n := uint64(len(lengths))
	b := &Budget{
		records: byBucket(lengths, tallies),
		groups:  groupsOf(tallies, c.each),
		count:   n - n%uint64(c.Multiple),
		dropped: streamKey(c.Seed, streamBudgetDropped),
		rank:    uint64(c.Rank), world: uint64(c.WorldSize),
	}
	key := streamKey(c.Seed, streamBudgetRecords)
	for i := range b.groups {
		g := &b.groups[i]
		g.orders = newPermutations(g.end-g.first, word(key, g.longest), budgetKept)
	}
	b.batches = cut(b.groups, b.count)
	b.shuffle = newPermutations(b.batches, streamKey(c.Seed, streamBudgetBatches), budgetKept)
	return b, nil
}

func (c BudgetConfig) check(records int64) error {
	switch {
	case records < 1:
		return badArgument("lengths", "expected at least 1, got none")
	case records > math.MaxUint32:
		return badArgument("lengths", "expected at most %d, got %d", uint32(math.MaxUint32), records)
	case c.Budget < 1:
		return badArgument("budget", "expected at least 1, got %d", c.Budget)
	case c.Multiple < 1:
		return badArgument("multiple", "expected at least 1, or 0 for that, got %d", c.Multiple)
	case c.Multiple > records:
		return badArgument("multiple", "expected at most the number of records, %d, got %d", records, c.Multiple)
	case c.MaxRecords < 0:
		return badArgument("max_records", "expected at least 0, got %d", c.MaxRecords)
	case c.MaxRecords > 0 && c.MaxRecords < c.Multiple:
		return badArgument("max_records", "expected at least the multiple of %d, or 0, got %d", c.Multiple, c.MaxRecords)
	}
	return checkRanks("multiple", c.Multiple, c.Rank, c.WorldSize)
}

// each is how many records of a length a batch holds.
func (c BudgetConfig) each(longest uint64) uint64 {
	n := uint64(c.Budget) / longest
	if c.MaxRecords > 0 {
		n = min(n, uint64(c.MaxRecords))
	}
	return n - n%uint64(c.Multiple)
}

// byBucket lists the records, those of the last bucket first.
func byBucket[T uint32 | int64](lengths []T, tallies []tally) []uint32 {
	next := make([]uint32, len(tallies))
	place := uint32(0)
	for b := len(tallies) - 1; b >= 0; b-- {
		next[b] = place
		place += uint32(tallies[b].count)
	}
	records := make([]uint32, len(lengths))
	for i, length := range lengths {
		b := bucketOf(max(uint64(length), 1))
		records[next[b]] = uint32(i)
		next[b]++
	}
	return records
}

// Batches is how many batches each cycle has: step s is batch s mod Batches of
// cycle s / Batches.
func (b *Budget) Batches() int64 { return int64(b.batches) }

// Counts writes how many indices this rank has in each of the steps from step
// on.
func (b *Budget) Counts(counts []int64, step int64) error {
	if err := checkSteps(step, int64(len(counts))); err != nil {
		return err
	}
	for i := range counts {
		first, end := b.places(uint64(step) + uint64(i))
		counts[i] = int64(end - first)
	}
	return nil
}

// Fill writes this rank's indices of steps step to step+steps-1, one batch after
// another. out has the sum of what Counts says of them. A wrong argument is an
// *ArgumentError, and out is untouched then.
func (b *Budget) Fill(out []int64, step, steps int64) error {
	if err := checkSteps(step, steps); err != nil {
		return err
	}
	want := uint64(0)
	for s := range uint64(steps) {
		first, end := b.places(uint64(step) + s)
		if want += end - first; want > uint64(len(out)) {
			break
		}
	}
	if want != uint64(len(out)) {
		return badArgument("count", "expected the sum of the counts of the %d steps from step %d on, got %d", steps, step, len(out))
	}
	for s := range uint64(steps) {
		first, end := b.places(uint64(step) + s)
		b.fill(out[:end-first], (uint64(step)+s)/b.batches, first)
		out = out[end-first:]
	}
	return nil
}

// places is this rank's part of the batch of a step, in places of its cycle.
func (b *Budget) places(step uint64) (first, end uint64) {
	var batch [1]int64
	b.shuffle.fill(batch[:], step/b.batches, step%b.batches)
	first, end = batchAt(b.groups, uint64(batch[0]), b.count)
	size := (end - first) / b.world
	return first + b.rank*size, first + (b.rank+1)*size
}

// fill writes the records that a cycle has at places first, first+1 and so on,
// those that are left out not counting as places. They are a run of the places
// of all, with a random beginning, that goes on from the last place at the
// first. Every place may be in it equally often. Leaving out makes a batch no
// longer: what moves up to a place comes from behind it, where records are no
// longer.
func (b *Budget) fill(out []int64, cycle, first uint64) {
	all := uint64(len(b.records))
	over := all - b.count
	if over == 0 {
		b.run(out, cycle, first)
		return
	}
	gap := bounded(word(b.dropped, cycle), all)
	if gap > b.count { // the run of those left out goes on at the first place
		first += gap - b.count
		b.run(out, cycle, first)
		return
	}
	before := out[:min(uint64(len(out)), max(gap, first)-first)]
	b.run(before, cycle, first)
	after := out[len(before):]
	b.run(after, cycle, first+uint64(len(before))+over)
}

// run writes the records at consecutive places of all.
func (b *Budget) run(out []int64, cycle, first uint64) {
	i := sort.Search(len(b.groups), func(i int) bool { return b.groups[i].end > first })
	for ; len(out) > 0; i++ {
		g := &b.groups[i]
		part := out[:min(uint64(len(out)), g.end-first)]
		g.orders.fill(part, cycle, first-g.first)
		for k, place := range part {
			part[k] = int64(b.records[g.first+uint64(place)])
		}
		out, first = out[len(part):], g.end
	}
}
