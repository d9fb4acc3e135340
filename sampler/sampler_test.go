package sampler

import (
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
)

func TestNewNamesTheFieldAtFault(t *testing.T) {
	good := Config{Mode: Cyclic, Length: 1000, BatchSize: 256, Seed: 42, Rank: 0, WorldSize: 1}
	for _, c := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Mode = 3 }, "mode: expected 0 (SEQUENTIAL), 1 (IID) or 2 (CYCLIC), got 3"},
		{func(c *Config) { c.Mode = -1 }, "mode: expected 0 (SEQUENTIAL), 1 (IID) or 2 (CYCLIC), got -1"},
		{func(c *Config) { c.Length = 0 }, "length: expected at least 1, got 0"},
		{func(c *Config) { c.Length = math.MinInt64 }, "length: expected at least 1, got -9223372036854775808"},
		{func(c *Config) { c.BatchSize = 0 }, "batch_size: expected at least 1, got 0"},
		{func(c *Config) { c.WorldSize = 0 }, "world_size: expected at least 1, got 0"},
		{func(c *Config) { c.WorldSize = -2 }, "world_size: expected at least 1, got -2"},
		{func(c *Config) { c.Rank = 1 }, "rank: expected at least 0 and less than world_size 1, got 1"},
		{func(c *Config) { c.Rank = -1 }, "rank: expected at least 0 and less than world_size 1, got -1"},
		{func(c *Config) { c.WorldSize = 3 }, "batch_size: expected a multiple of world_size 3, got 256"},
		{func(c *Config) { c.Length = 255 }, "batch_size: expected at most length 255 in CYCLIC mode, got 256"},
	} {
		config := good
		c.change(&config)
		s, err := New(config)
		var argument *ArgumentError
		if s != nil || !errors.As(err, &argument) || err.Error() != c.want {
			t.Errorf("New(%+v) = %v, %v; want nil, %s", config, s, err, c.want)
		}
	}
	for _, mode := range []Mode{Sequential, IID} {
		if _, err := New(Config{Mode: mode, Length: 1, BatchSize: 256, WorldSize: 256}); err != nil {
			t.Errorf("%v with a batch beyond the length: %v", mode, err)
		}
	}
}

func TestFillNamesTheArgumentAtFault(t *testing.T) {
	s := mustNew(t, Config{Mode: IID, Length: 10, BatchSize: 8, Rank: 1, WorldSize: 2})
	for _, c := range []struct {
		count       int
		step, steps int64
		want        string
	}{
		{4, -1, 1, "step: expected at least 0, got -1"},
		{0, 0, -1, "steps: expected at least 0, got -1"},
		{8, math.MaxInt64, 2, "steps: expected at most 1 from step 9223372036854775807 on (the last step is 2^63-1), got 2"},
		{7, 0, 2, "count: expected room for 2 steps of 4 indices, got room for 7 indices"},
		{9, 0, 2, "count: expected room for 2 steps of 4 indices, got room for 9 indices"},
		// 2^62 steps of 4 indices are 2^64, which is 0 in 64 bits.
		{0, 0, 1 << 62, "count: expected room for 4611686018427387904 steps of 4 indices, got room for 0 indices"},
	} {
		out := slices.Repeat([]int64{-7}, c.count)
		err := s.Fill(out, c.step, c.steps)
		var argument *ArgumentError
		if !errors.As(err, &argument) || err.Error() != c.want {
			t.Errorf("Fill of %d from step %d, %d steps: got %v, want %s", c.count, c.step, c.steps, err, c.want)
		}
		if slices.ContainsFunc(out, func(x int64) bool { return x != -7 }) {
			t.Errorf("Fill of %d from step %d, %d steps wrote before it failed", c.count, c.step, c.steps)
		}
	}
	for _, step := range []int64{0, 7, math.MaxInt64} {
		if err := s.Fill(nil, step, 0); err != nil {
			t.Errorf("no steps from step %d: %v", step, err)
		}
	}
}

func TestModeNames(t *testing.T) {
	for mode, want := range map[Mode]string{0: "SEQUENTIAL", 1: "IID", 2: "CYCLIC", 9: "Mode(9)"} {
		if got := mode.String(); got != want {
			t.Errorf("mode %d: got %q, want %q", int32(mode), got, want)
		}
	}
}

// The greatest of everything at once: exact, and no panic.
func TestExtremes(t *testing.T) {
	const most = math.MaxInt64
	for _, mode := range []Mode{Sequential, IID, Cyclic} {
		for _, length := range []int64{1, 2, 65536, 65537, 1 << 40, most} {
			// Only a rank of 2^31-1 makes a batch of 2^63 or so affordable.
			world := int32(math.MaxInt32)
			if mode == Cyclic && int64(world) > length {
				world = 1
			}
			c := Config{Mode: mode, Length: length, BatchSize: int64(world), Seed: math.MaxUint64, Rank: world - 1, WorldSize: world}
			checkReference(t, c, most, mustFill(t, c, most, 1))
		}
	}
}

// Places of more than 64 bits: step * batch_size takes 126 of them, or is just
// below 2^64, so that the place within the batch carries.
func TestSequentialBeyond64Bits(t *testing.T) {
	for _, c := range []struct {
		batch int64
		step  uint64
	}{{math.MaxInt64 / 7, math.MaxInt64}, {15, math.MaxUint64 / 15}} {
		config := Config{Mode: Sequential, Length: 1_000_003, BatchSize: c.batch, WorldSize: 1}
		out := make([]int64, 5)
		mustNew(t, config).order.fill(out, c.step, 3)
		for i, got := range out {
			if want := referenceIndex(config, c.step, 3+uint64(i)); got != want {
				t.Errorf("batch size %d, step %d, place %d: got %d, want %d", c.batch, c.step, 3+i, got, want)
			}
		}
	}
}

// The parts of all ranks, put together, are the global batch, for any number
// of ranks; and steps asked for together are those asked for one by one.
func TestRanksShareTheGlobalBatch(t *testing.T) {
	const batch, steps = 24, 7
	for _, mode := range []Mode{Sequential, IID, Cyclic} {
		for _, length := range []int64{24, 100, 1000, 70_000} {
			c := Config{Mode: mode, Length: length, BatchSize: batch, Seed: 5, WorldSize: 1}
			global := mustFill(t, c, 11, steps)
			for _, world := range []int32{1, 2, 3, 8, 24} {
				parts := make([][]int64, world)
				for rank := range parts {
					c.Rank, c.WorldSize = int32(rank), world
					parts[rank] = mustFill(t, c, 11, steps)
				}
				var joined []int64
				share := batch / int(world)
				for step := range steps {
					for _, part := range parts {
						joined = append(joined, part[step*share:(step+1)*share]...)
					}
				}
				if !slices.Equal(joined, global) {
					t.Errorf("%v, length %d, %d ranks: got %v, want %v", mode, length, world, joined, global)
				}
			}
		}
	}
}

// An order goes on from any place of a batch, over the ends of batches and
// cycles, as if all batches were one.
func TestOrdersGoOnFromAnyPlace(t *testing.T) {
	for _, mode := range []Mode{Sequential, IID, Cyclic} {
		for _, length := range []int64{10, 66_000} {
			c := Config{Mode: mode, Length: length, BatchSize: min(length, 3000) * 2 / 5, Seed: 6, WorldSize: 1}
			all := mustFill(t, c, 0, 60)
			order := mustNew(t, c).order
			for from := range len(all) {
				if from%max(1, len(all)/250) != 0 {
					continue
				}
				out := make([]int64, (len(all)-from+1)/2)
				order.fill(out, uint64(from)/uint64(c.BatchSize), uint64(from)%uint64(c.BatchSize))
				if !slices.Equal(out, all[from:from+len(out)]) {
					t.Fatalf("%v, length %d: other indices from place %d than from place 0", mode, length, from)
				}
			}
		}
	}
}

// Many goroutines on one sampler, all around the ends of cycles, get what one
// alone gets.
func TestConcurrentFill(t *testing.T) {
	const steps = 200
	for _, c := range []Config{
		{Mode: Sequential, Length: 50, BatchSize: 16, WorldSize: 1},
		{Mode: IID, Length: 50, BatchSize: 16, WorldSize: 1},
		{Mode: Cyclic, Length: 50, BatchSize: 16, WorldSize: 1},
		{Mode: Cyclic, Length: 70_000, BatchSize: 1000, WorldSize: 2},
	} {
		want := mustFill(t, c, 0, steps)
		shared := mustNew(t, c)
		share := len(want) / steps
		var group sync.WaitGroup
		for worker := range 8 {
			group.Go(func() {
				out := make([]int64, share)
				for i := range steps {
					step := (i*7 + worker*3) % steps
					if err := shared.Fill(out, int64(step), 1); err != nil {
						t.Error(err)
					}
					if !slices.Equal(out, want[step*share:(step+1)*share]) {
						t.Errorf("%v, length %d, step %d: not the batch that one goroutine gets", c.Mode, c.Length, step)
						return
					}
				}
			})
		}
		group.Wait()
	}
}

func TestFillDoesNotAllocate(t *testing.T) {
	for _, c := range []Config{
		{Mode: Sequential, Length: 1000, BatchSize: 256, WorldSize: 1},
		{Mode: IID, Length: 1000, BatchSize: 256, WorldSize: 1},
		{Mode: Cyclic, Length: 1000, BatchSize: 250, WorldSize: 1},
		{Mode: Cyclic, Length: 1_000_000, BatchSize: 256, WorldSize: 1},
	} {
		s := mustNew(t, c)
		out := make([]int64, c.BatchSize)
		step := int64(0)
		fill := func() {
			if err := s.Fill(out, step%4, 1); err != nil {
				t.Fatal(err)
			}
			step++
		}
		if allocations := testing.AllocsPerRun(100, fill); allocations != 0 {
			t.Errorf("%v, length %d: %v allocations in a call, want 0", c.Mode, c.Length, allocations)
		}
	}
}
