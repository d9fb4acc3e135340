package sampler

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func mixCases() []string {
	var cases []string
	for _, sources := range []string{
		"2 1000 1", "2,2 1000,1000 0.7,0.3", "0,1,2 5,1000000,70000 1,2,3.5", "2,2 100000,1 0.999,0.001",
		"2,2,2,2,2,2,2 1,2,3,4,5,6,7 1,1,1,1,1,1,1e-9",
	} {
		for _, seed := range []uint64{0, 42, 1<<64 - 1} {
			for _, step := range []int64{0, 1, 1_000_000, math.MaxInt64/12 - 1} {
				cases = append(cases, fmt.Sprintf("%s 12 %d 0 1 %d 1", sources, seed, step))
			}
		}
		cases = append(cases, sources+" 12 42 0 1 3 2000", sources+" 12 42 2 3 1 3", sources+" 1024 42 0 1 5 1")
	}
	return cases
}

func mixOrder(t *testing.T, of string) []int64 {
	var modes, lengths, weights string
	var c MixConfig
	var step, steps int64
	scan(t, of, &modes, &lengths, &weights, &c.BatchSize, &c.Seed, &c.Rank, &c.WorldSize, &step, &steps)
	weight, length := strings.Split(weights, ","), strings.Split(lengths, ",")
	for i, mode := range strings.Split(modes, ",") {
		var s Source
		scan(t, mode+" "+length[i]+" "+weight[i], &s.Mode, &s.Length, &s.Weight)
		c.Sources = append(c.Sources, s)
	}
	source, index := mustMix(t, c, step, steps)
	all := make([]int64, 0, 2*len(index))
	for _, k := range source {
		all = append(all, int64(k))
	}
	return append(all, index...)
}

func mustNewMix(t testing.TB, c MixConfig) *Mix {
	t.Helper()
	m, err := NewMix(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func mustMix(t testing.TB, c MixConfig, step, steps int64) (source []int32, index []int64) {
	t.Helper()
	n := steps * c.BatchSize / int64(c.WorldSize)
	source, index = make([]int32, n), make([]int64, n)
	if err := mustNewMix(t, c).Fill(source, index, step, steps); err != nil {
		t.Fatal(err)
	}
	return source, index
}

func mixOf(batch int64, weights ...float64) MixConfig {
	c := MixConfig{BatchSize: batch, Seed: 42, WorldSize: 1}
	for i, w := range weights {
		c.Sources = append(c.Sources, Source{Mode: Mode(i % 3), Length: int64(50 + 7*i), Weight: w})
	}
	return c
}

func TestNewMixNamesTheFieldAtFault(t *testing.T) {
	for _, c := range []struct {
		change func(*MixConfig)
		want   string
	}{
		{func(c *MixConfig) { c.Sources = nil }, "weights: expected at least 1, got none"},
		{func(c *MixConfig) { c.Sources[1].Weight = 0 }, "weights: expected finite numbers above 0, got 0 at place 1"},
		{func(c *MixConfig) { c.Sources[1].Weight = math.NaN() }, "weights: expected finite numbers above 0, got NaN at place 1"},
		{func(c *MixConfig) { c.Sources[1].Length = 0 }, "source 1, length: expected at least 1, got 0"},
		{func(c *MixConfig) { c.Sources[0].Mode = 9 }, "source 0, mode: expected 0 (SEQUENTIAL), 1 (IID) or 2 (CYCLIC), got 9"},
		{func(c *MixConfig) { c.Sources[0].Subset = List(nil) }, "source 0, subset: expected at least 1 record, got none"},
		{func(c *MixConfig) { c.BatchSize = 0 }, "batch_size: expected at least 1, got 0"},
		{func(c *MixConfig) { c.WorldSize = 0 }, "world_size: expected at least 1, got 0"},
		{func(c *MixConfig) { c.WorldSize = 3 }, "batch_size: expected a multiple of world_size 3, got 8"},
		{func(c *MixConfig) { c.Rank = 1 }, "rank: expected at least 0 and less than world_size 1, got 1"},
	} {
		config := mixOf(8, 1, 2)
		c.change(&config)
		m, err := NewMix(config)
		var argument *ArgumentError
		if m != nil || !errors.As(err, &argument) || err.Error() != c.want {
			t.Errorf("got %v, %v, want nil, %s", m, err, c.want)
		}
	}
}

func TestMixNamesTheArgumentAtFault(t *testing.T) {
	m := mustNewMix(t, mixOf(8, 1, 2))
	for _, c := range []struct {
		sources, indices int
		step, steps      int64
		want             string
	}{
		{8, 8, -1, 1, "step: expected at least 0, got -1"},
		{0, 0, 0, -1, "steps: expected at least 0, got -1"},
		{8, 9, 0, 1, "count: expected as much room for sources as for indices, got room for 8 and 9"},
		{8, 8, 0, 2, "count: expected room for 2 steps of 8 indices, got room for 8 indices"},
		{
			8, 8, 1<<60 - 1, 1,
			"step: expected steps of a batch size of 8 to end before draw 2^63-1, got 1 steps from step 1152921504606846975 on",
		},
	} {
		source, index := slices.Repeat([]int32{-7}, c.sources), slices.Repeat([]int64{-7}, c.indices)
		err := m.Fill(source, index, c.step, c.steps)
		var argument *ArgumentError
		if !errors.As(err, &argument) || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
		if slices.ContainsFunc(index, func(x int64) bool { return x != -7 }) {
			t.Error("an index was written before it failed")
		}
	}
	if err := m.Drawn(make([]int64, 3), 0); err == nil || err.Error() != "count: expected room for 2 sources, got room for 3" {
		t.Errorf("Drawn with room for a source too many: %v", err)
	}
	if err := m.Drawn(make([]int64, 2), 1<<60); err == nil {
		t.Error("Drawn beyond the last draw succeeded")
	}
	source, index := make([]int32, 8), make([]int64, 8)
	if err := m.Fill(source, index, 1<<60-2, 1); err != nil {
		t.Errorf("the last step: %v", err)
	}
}

// replay goes through a mix from its beginning, counting, and holds every
// answer of it against what the counts say: where a source's own order is.
func replay(t *testing.T, c MixConfig, steps int64) {
	t.Helper()
	m := mustNewMix(t, c)
	source, index := mustMix(t, c, 0, steps)
	own := make([]*Sampler, len(c.Sources))
	for k, s := range c.Sources {
		seed := word(streamKey(c.Seed, streamMixSource), uint64(k))
		own[k] = mustNew(t, Config{Mode: s.Mode, Length: s.Length, Subset: s.Subset, Seed: seed, BatchSize: 1, WorldSize: 1})
	}
	counts, drawn := make([]int64, len(own)), make([]int64, len(own))
	for i, k := range source {
		if int64(i)%c.BatchSize == 0 {
			if err := m.Drawn(drawn, int64(i)/c.BatchSize); err != nil || !slices.Equal(drawn, counts) {
				t.Fatalf("%+v: before step %d were drawn %v, %v, want %v", c, int64(i)/c.BatchSize, drawn, err, counts)
			}
		}
		var want [1]int64
		if err := own[k].Fill(want[:], counts[k], 1); err != nil {
			t.Fatal(err)
		}
		if index[i] != want[0] {
			t.Fatalf("%+v: draw %d is record %d of source %d, want %d", c, i, index[i], k, want[0])
		}
		counts[k]++
	}
	r := rand.New(rand.NewPCG(7, uint64(steps)))
	for range 20 {
		first := r.Int64N(steps)
		n := 1 + r.Int64N(min(4, steps-first))
		s, x := mustMix(t, c, first, n)
		at, end := first*c.BatchSize, (first+n)*c.BatchSize
		if !slices.Equal(s, source[at:end]) || !slices.Equal(x, index[at:end]) {
			t.Fatalf("%+v: steps %d to %d are not those of the replay", c, first, first+n-1)
		}
	}
}

func TestMixEqualsReplay(t *testing.T) {
	replay(t, mixOf(1, 0.7, 0.3), 3000)
	replay(t, mixOf(12, 0.7, 0.3), 500)
	replay(t, mixOf(256, 1), 20)
	replay(t, mixOf(100, 3, 1, 4, 1, 5, 9, 2, 6), 60)
	replay(t, mixOf(7, 1, 1e-4, 1e4), 800)
	subset := mixOf(32, 1, 2, 3)
	subset.Sources[2].Subset = mustRange(t, 3, 43, 5)
	replay(t, subset, 100)
}

// The parts of the ranks, put together, are the global batch.
func TestRanksShareAMix(t *testing.T) {
	c := mixOf(24, 5, 3, 2)
	source, index := mustMix(t, c, 11, 9)
	for _, world := range []int32{2, 3, 8, 24} {
		c.WorldSize = world
		size := 24 / int(world)
		for c.Rank = 0; c.Rank < world; c.Rank++ {
			s, x := mustMix(t, c, 11, 9)
			for step := range 9 {
				at := step*24 + int(c.Rank)*size
				if !slices.Equal(s[step*size:][:size], source[at:][:size]) || !slices.Equal(x[step*size:][:size], index[at:][:size]) {
					t.Fatalf("rank %d of %d has another part of step %d", c.Rank, world, step)
				}
			}
		}
	}
}

// stray is how far the counts of the sources ever get from their shares.
func stray(source []int32, weights []float64) float64 {
	total, worst := 0.0, 0.0
	for _, w := range weights {
		total += w
	}
	counts := make([]float64, len(weights))
	for i, k := range source {
		counts[k]++
		for j, w := range weights {
			worst = max(worst, math.Abs(counts[j]-float64(i+1)*w/total))
		}
	}
	return worst
}

// After any number of draws the counts are within a block's arrangement and the
// rounding of the tree of the exact shares, with weights that divide nothing.
func TestMixKeepsTheShares(t *testing.T) {
	for _, weights := range [][]float64{
		{0.7, 0.3}, {1, 1}, {math.Pi, math.E, math.Sqrt2}, {1, 1e-3, 1e-6}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13},
		slices.Repeat([]float64{0.01}, 40),
	} {
		source, _ := mustMix(t, mixOf(1000, weights...), 0, 300)
		depth := float64(bits.Len(uint(len(weights) - 1)))
		if got, most := stray(source, weights), mixBlock/4+2*depth; got > most {
			t.Errorf("weights %v: the counts stray by %.1f, want at most %.1f", weights, got, most)
		}
		// Planted: independent draws stray with the root of their number.
		planted := make([]int32, len(source))
		for i := range planted {
			u, total := float64(word(3, uint64(i)))/(1<<64), 0.0
			for _, w := range weights {
				total += w
			}
			for u *= total; planted[i] < int32(len(weights)-1) && u >= weights[planted[i]]; planted[i]++ {
				u -= weights[planted[i]]
			}
		}
		if got, most := stray(planted, weights), mixBlock/4+2*depth; got <= most {
			t.Errorf("weights %v: independent draws stray by only %.1f, so the bound of %.1f says nothing", weights, got, most)
		}
	}
}

// The counts at any place, up to the last, are within the rounding of the tree
// of the exact shares, never fall and add up.
func TestQuotaFarOut(t *testing.T) {
	weights := []float64{5, 1, 1e-3, 7, 0.3}
	ratios, sum, err := shares("weights", weights)
	if err != nil {
		t.Fatal(err)
	}
	q := newQuota(ratios)
	r := rand.New(rand.NewPCG(8, 1))
	for range 2000 {
		n := r.Uint64N(1 << 63 >> r.IntN(62))
		a, b := make([]int64, 5), make([]int64, 5)
		q.counts(a, n)
		q.counts(b, n+1)
		total, steps := uint64(0), int64(0)
		due := apportion(int64(n), ratios, sum)
		for k := range a {
			total += uint64(a[k])
			steps += b[k] - a[k]
			if b[k] < a[k] || a[k]-due[k] > 3 || due[k]-a[k] > 3 {
				t.Fatalf("%d draws: got %v, then %v, want about %v", n, a, b, due)
			}
		}
		if total != n || steps != 1 {
			t.Fatalf("%d draws: %v are %d, and the next is %d more", n, a, total, steps)
		}
		spans := q.spans(nil, n, 64)
		q.counts(b, n+64)
		for _, s := range spans {
			if int64(s.first) != a[s.source] || int64(s.first+s.count) != b[s.source] {
				t.Fatalf("%d draws: span %+v, want %d to %d", n, s, a[s.source], b[s.source])
			}
			a[s.source] = b[s.source]
		}
		if !slices.Equal(a, b) {
			t.Fatalf("%d draws: the spans leave out a source", n)
		}
	}
}

// blockPlaces counts, over blocks, which source lies at which sixteenth of a block.
func blockPlaces(source []int32) float64 {
	counts := make([]float64, 16)
	for i, k := range source {
		if k == 0 {
			counts[i%mixBlock*16/mixBlock]++
		}
	}
	return chiSquare(counts, nil)
}

// blocksAlike counts how often the same place of two blocks in a row is of the
// same source.
func blocksAlike(source []int32) float64 {
	alike, n := 0.0, float64(len(source)-mixBlock)
	for i := range source[mixBlock:] {
		if source[i] == source[i+mixBlock] {
			alike++
		}
	}
	return (alike - n/2) / math.Sqrt(n/4)
}

// neighbours counts how often two draws in a row, of one block, are of one
// source: (mixBlock/2 - 1) of mixBlock - 1 with two sources of equal weights.
func neighbours(source []int32) float64 {
	same, n := 0.0, 0.0
	for i := 1; i < len(source); i++ {
		if i%mixBlock == 0 {
			continue
		}
		n++
		if source[i] == source[i-1] {
			same++
		}
	}
	p := float64(mixBlock/2-1) / (mixBlock - 1)
	return (same - n*p) / math.Sqrt(n*p*(1-p))
}

func TestMixArrangementIsRandom(t *testing.T) {
	source, _ := mustMix(t, mixOf(1024, 1, 1), 0, 200)
	accept(t, "places in blocks", blockPlaces(source))
	accept(t, "blocks in a row", blocksAlike(source))
	accept(t, "draws in a row", neighbours(source))
	other := mixOf(1024, 1, 1)
	other.Seed = 43
	second, _ := mustMix(t, other, 0, 200)
	alike := 0.0
	for i := range source {
		if source[i] == second[i] {
			alike++
		}
	}
	n := float64(len(source))
	accept(t, "two seeds", (alike-n/2)/math.Sqrt(n/4))

	// Planted: blocks that are not shuffled, blocks that are all shuffled alike,
	// and sources that take turns.
	sorted, fixed, turns := make([]int32, len(source)), make([]int32, len(source)), make([]int32, len(source))
	for i := range sorted {
		sorted[i] = int32(i % mixBlock * 2 / mixBlock)
		fixed[i] = source[i%mixBlock]
		turns[i] = int32(i % 2)
	}
	reject(t, "places in blocks that are not shuffled", blockPlaces(sorted))
	reject(t, "blocks in a row that are shuffled alike", blocksAlike(fixed))
	reject(t, "draws in a row of sources that take turns", neighbours(turns))
}

// Two sources of one mode and length have orders of their own.
func TestMixSourcesAreIndependent(t *testing.T) {
	const n = 64
	for _, mode := range []Mode{IID, Cyclic} {
		c := MixConfig{BatchSize: 2048, Seed: 5, WorldSize: 1, Sources: []Source{{mode, n, nil, 1}, {mode, n, nil, 1}}}
		source, index := mustMix(t, c, 0, 300)
		var of [2][]int64
		for i, k := range source {
			of[k] = append(of[k], index[i])
		}
		most := min(len(of[0]), len(of[1]))
		accept(t, mode.String()+", records of two sources at the same place", pairs(of[0][:most], of[1][:most], n))
	}
	x := mustFill(t, Config{Mode: IID, Length: n, BatchSize: 1, Seed: 5, WorldSize: 1}, 0, 20_000)
	reject(t, "two sources of one seed", pairs(x, x, n))
}
