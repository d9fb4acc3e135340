package sampler

import (
	"fmt"
	"math"
)

// Mode says how a sampler goes through the records. The numbers are those of
// the C interface and of saved states: they never change.
type Mode int32

const (
	Sequential Mode = 0
	IID        Mode = 1
	Cyclic     Mode = 2
)

// String gives the name that users of the Python package know.
func (m Mode) String() string {
	switch m {
	case Sequential:
		return "SEQUENTIAL"
	case IID:
		return "IID"
	case Cyclic:
		return "CYCLIC"
	}
	return fmt.Sprintf("Mode(%d)", int32(m))
}

// Config is all that an order depends on.
type Config struct {
	Mode      Mode
	Length    int64   // records there are
	Subset    *Subset // those of them to draw from; nil: all
	BatchSize int64   // of the global batch, over all ranks
	Seed      uint64
	Rank      int32 // in [0, WorldSize)
	WorldSize int32 // divides BatchSize
}

// Sampler computes the indices of any step. It may be used by many goroutines
// at the same time.
type Sampler struct {
	order  order
	shard  shard
	subset *Subset
}

// An order gives the indices at consecutive places of the global batches.
type order interface {
	// fill starts at place offset of the batch of step, offset being less than
	// the batch size, and goes on into the batches of the next steps when out is
	// longer than what is left of this one.
	fill(out []int64, step, offset uint64)
}

// New makes a sampler, or returns an *ArgumentError naming the field at fault.
func New(c Config) (*Sampler, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	length, batch := uint64(c.drawn()), uint64(c.BatchSize)
	s := &Sampler{shard: newShard(batch, uint64(c.Rank), uint64(c.WorldSize)), subset: c.Subset}
	switch c.Mode {
	case Sequential:
		s.order = &sequential{length: length, batch: batch}
	case IID:
		s.order = &iid{length: length, batch: batch, key: streamKey(c.Seed, streamIID)}
	case Cyclic:
		s.order = newCyclic(length, batch, streamKey(c.Seed, streamCyclic))
	}
	return s, nil
}

// drawn is how many records the order is over.
func (c Config) drawn() int64 {
	if c.Subset != nil {
		return c.Subset.Len()
	}
	return c.Length
}

func (c Config) check() error {
	switch {
	case c.Mode != Sequential && c.Mode != IID && c.Mode != Cyclic:
		return badArgument("mode", "expected 0 (SEQUENTIAL), 1 (IID) or 2 (CYCLIC), got %d", int32(c.Mode))
	case c.Length < 1:
		return badArgument("length", "expected at least 1, got %d", c.Length)
	case c.BatchSize < 1:
		return badArgument("batch_size", "expected at least 1, got %d", c.BatchSize)
	}
	if err := checkRanks("batch_size", c.BatchSize, c.Rank, c.WorldSize); err != nil {
		return err
	}
	if c.Subset != nil {
		if err := c.Subset.check(c.Length); err != nil {
			return err
		}
	}
	if c.Mode == Cyclic && c.BatchSize > c.drawn() {
		return badArgument("batch_size", "expected at most length %d in CYCLIC mode, got %d", c.drawn(), c.BatchSize)
	}
	return nil
}

// Fill writes this rank's indices of steps step to step+steps-1, one batch
// after another, so out has steps*BatchSize/WorldSize of them. Any step of 0 to
// 2^63-1 has its indices, by exact arithmetic; those after it do not exist. A
// wrong argument is an *ArgumentError, and out is untouched then.
func (s *Sampler) Fill(out []int64, step, steps int64) error {
	if err := s.checkFill(len(out), step, steps); err != nil {
		return err
	}
	if s.shard.whole {
		s.order.fill(out, uint64(step), 0)
	} else {
		rest := out
		for at := uint64(step); len(rest) > 0; at++ {
			s.order.fill(rest[:s.shard.size], at, s.shard.offset)
			rest = rest[s.shard.size:]
		}
	}
	if s.subset != nil {
		s.subset.apply(out)
	}
	return nil
}

func (s *Sampler) checkFill(count int, step, steps int64) error {
	if err := checkSteps(step, steps); err != nil {
		return err
	}
	return s.shard.checkRoom(count, steps)
}

// checkSteps refuses steps outside 0 to 2^63-1.
func checkSteps(step, steps int64) error {
	if step < 0 {
		return badArgument("step", "expected at least 0, got %d", step)
	}
	if steps < 0 {
		return badArgument("steps", "expected at least 0, got %d", steps)
	}
	if steps-1 > math.MaxInt64-step {
		return badArgument("steps", "expected at most %d from step %d on (the last step is 2^63-1), got %d",
			uint64(math.MaxInt64-step)+1, step, steps)
	}
	return nil
}
