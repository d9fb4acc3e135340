package sampler

import (
	"math"
	"math/bits"
	"sync"
)

// Source is one of the stores that a mix draws from.
type Source struct {
	Mode   Mode // how it goes through its records
	Length int64
	Subset *Subset // nil: all records
	Weight float64 // its share of the draws is this over the sum of all
}

// MixConfig is all that the order of a mix depends on.
type MixConfig struct {
	Sources   []Source
	BatchSize int64 // of the global batch, over all ranks and sources
	Seed      uint64
	Rank      int32 // in [0, WorldSize)
	WorldSize int32 // divides BatchSize
}

// Mix draws from several sources in exact proportions. It may be used by many
// goroutines at the same time.
type Mix struct {
	arrangement arrangement
	sources     []*Sampler // of one record a step, the step being the source's own place
	batch       uint64
	shard       shard
	scratch     sync.Pool // *mixScratch
}

// mixScratch is what a Fill needs beside its results.
type mixScratch struct {
	first, count []uint64 // by source: its own place, and how many draws
	drawn        []int64  // the records, source by source
}

// NewMix makes a mix, or returns an *ArgumentError naming the field at fault.
func NewMix(c MixConfig) (*Mix, error) {
	weights := make([]float64, len(c.Sources))
	for i, s := range c.Sources {
		weights[i] = s.Weight
	}
	ratios, _, err := shares("weights", weights)
	if err != nil {
		return nil, err
	}
	if c.BatchSize < 1 {
		return nil, badArgument("batch_size", "expected at least 1, got %d", c.BatchSize)
	}
	if err := checkRanks("batch_size", c.BatchSize, c.Rank, c.WorldSize); err != nil {
		return nil, err
	}
	m := &Mix{
		arrangement: arrangement{quota: newQuota(ratios), key: streamKey(c.Seed, streamMix)},
		batch:       uint64(c.BatchSize),
		shard:       newShard(uint64(c.BatchSize), uint64(c.Rank), uint64(c.WorldSize)),
	}
	seeds := streamKey(c.Seed, streamMixSource)
	for i, s := range c.Sources {
		own, err := New(Config{
			Mode: s.Mode, Length: s.Length, Subset: s.Subset, Seed: word(seeds, uint64(i)), BatchSize: 1, WorldSize: 1,
		})
		if err != nil {
			return nil, inSource(err, i)
		}
		m.sources = append(m.sources, own)
	}
	m.scratch.New = func() any {
		return &mixScratch{first: make([]uint64, len(m.sources)), count: make([]uint64, len(m.sources))}
	}
	return m, nil
}

// Fill writes, for this rank's places in the batches of steps step to
// step+steps-1, one batch after another, which source is drawn from and which of
// its records. Both have steps*BatchSize/WorldSize elements. The draws of a step
// have to lie below 2^63. A wrong argument is an *ArgumentError, and nothing is
// written then.
func (m *Mix) Fill(source []int32, index []int64, step, steps int64) error {
	if err := m.check(step, steps); err != nil {
		return err
	}
	if len(source) != len(index) {
		return badArgument("count", "expected as much room for sources as for indices, got room for %d and %d",
			len(source), len(index))
	}
	if err := m.shard.checkRoom(len(index), steps); err != nil {
		return err
	}
	first := uint64(step) * m.batch
	if m.shard.whole {
		return m.fill(source, index, first)
	}
	for size := m.shard.size; len(index) > 0; first += m.batch {
		if err := m.fill(source[:size], index[:size], first+m.shard.offset); err != nil {
			return err
		}
		source, index = source[size:], index[size:]
	}
	return nil
}

// Drawn writes, for each source, how many draws from it come before step: where
// its own sequence is then. It takes no longer for a later step.
func (m *Mix) Drawn(counts []int64, step int64) error {
	if err := m.check(step, 0); err != nil {
		return err
	}
	if len(counts) != len(m.sources) {
		return badArgument("count", "expected room for %d sources, got room for %d", len(m.sources), len(counts))
	}
	place := uint64(step) * m.batch
	m.arrangement.quota.counts(counts, place/mixBlock*mixBlock)
	for c, n := m.arrangement.at(place/mixBlock*mixBlock), place%mixBlock; n > 0; n-- {
		source, own := c.next()
		counts[source] = int64(own) + 1
	}
	return nil
}

// fill writes the draws at places first, first+1 and so on of all batches put
// one after another.
func (m *Mix) fill(source []int32, index []int64, first uint64) error {
	s := m.scratch.Get().(*mixScratch)
	defer m.scratch.Put(s)
	clear(s.count)
	c := m.arrangement.at(first)
	for i := range source {
		k, own := c.next()
		if s.count[k] == 0 {
			s.first[k] = own
		}
		s.count[k]++
		source[i] = k
	}
	if cap(s.drawn) < len(index) {
		s.drawn = make([]int64, len(index))
	}
	// The draws of a source are consecutive in its own order: one call each.
	begin := uint64(0)
	for k, n := range s.count {
		if n > 0 {
			if err := m.sources[k].Fill(s.drawn[begin:begin+n], int64(s.first[k]), int64(n)); err != nil {
				return err
			}
		}
		s.first[k], begin = begin, begin+n
	}
	for i, k := range source {
		index[i] = s.drawn[s.first[k]]
		s.first[k]++
	}
	return nil
}

// check refuses steps with draws that do not lie below 2^63.
func (m *Mix) check(step, steps int64) error {
	if err := checkSteps(step, steps); err != nil {
		return err
	}
	over, end := bits.Mul64(uint64(step)+uint64(steps), m.batch)
	if over != 0 || end > math.MaxInt64 {
		return badArgument("step", "expected steps of a batch size of %d to end before draw 2^63-1, got %d steps from step %d on",
			m.batch, steps, step)
	}
	return nil
}
