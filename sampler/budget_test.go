package sampler

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

func budgetCases() []string {
	var cases []string
	for _, of := range []string{
		"1 4096 0 1", "7 5000 0 1", "1000 4096 0 1", "1000 32768 24 6", "30000 65536 0 1", "30003 1000000000 512 8",
	} {
		for _, seed := range []uint64{0, 42, 1<<64 - 1} {
			for _, step := range []int64{0, 1, 1_000_000, 1<<63 - 1} {
				cases = append(cases, fmt.Sprintf("%s %d 0 1 %d 1", of, seed, step))
			}
		}
		cases = append(cases, of+" 42 0 1 3 100")
	}
	return append(cases, "2000000 65536 0 1 42 0 1 5 3", "1000 32768 24 6 42 2 3 3 100", "30003 1000000000 512 8 42 1 2 0 400")
}

// lengthsOf are lengths as of texts: most near 128, few of up to 4096.
func lengthsOf(n int64) []uint32 {
	lengths := make([]uint32, n)
	for i := range lengths {
		lengths[i] = 1 + uint32(bounded(word(11, uint64(i)), 32)<<bounded(word(12, uint64(i)), 8))
	}
	return lengths
}

func budgetOrder(t *testing.T, of string) []int64 {
	var c BudgetConfig
	var records, step, steps int64
	scan(t, of, &records, &c.Budget, &c.MaxRecords, &c.Multiple, &c.Seed, &c.Rank, &c.WorldSize, &step, &steps)
	counts, all := mustBatches(t, mustNewBudget(t, lengthsOf(records), c), step, steps)
	return append(counts, all...)
}

func mustNewBudget[T uint32 | int64](t testing.TB, lengths []T, c BudgetConfig) *Budget {
	t.Helper()
	b, err := NewBudget(lengths, c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func mustBatches(t testing.TB, b *Budget, step, steps int64) (counts, all []int64) {
	t.Helper()
	counts = make([]int64, steps)
	if err := b.Counts(counts, step); err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	for _, n := range counts {
		total += n
	}
	all = make([]int64, total)
	if err := b.Fill(all, step, steps); err != nil {
		t.Fatal(err)
	}
	return counts, all
}

func TestBudgetNamesTheFieldAtFault(t *testing.T) {
	for _, c := range []struct {
		lengths []int64
		change  func(*BudgetConfig)
		want    string
	}{
		{nil, func(c *BudgetConfig) {}, "lengths: expected at least 1, got none"},
		{[]int64{1, -1}, func(c *BudgetConfig) {}, "lengths: expected 0 to 50 (the budget of 100 over a multiple of 2), got -1 for record 1"},
		{[]int64{50, 51}, func(c *BudgetConfig) {}, "lengths: expected 0 to 50 (the budget of 100 over a multiple of 2), got 51 for record 1"},
		{[]int64{1, 2}, func(c *BudgetConfig) { c.Budget = 0 }, "budget: expected at least 1, got 0"},
		{[]int64{1, 2}, func(c *BudgetConfig) { c.Multiple = -1 }, "multiple: expected at least 1, or 0 for that, got -1"},
		{[]int64{1}, func(c *BudgetConfig) {}, "multiple: expected at most the number of records, 1, got 2"},
		{[]int64{1, 2}, func(c *BudgetConfig) { c.MaxRecords = -1 }, "max_records: expected at least 0, got -1"},
		{[]int64{1, 2}, func(c *BudgetConfig) { c.MaxRecords = 1 }, "max_records: expected at least the multiple of 2, or 0, got 1"},
		{[]int64{1, 2}, func(c *BudgetConfig) { c.WorldSize = 3 }, "multiple: expected a multiple of world_size 3, got 2"},
		{[]int64{1, 2}, func(c *BudgetConfig) { c.WorldSize = 0 }, "world_size: expected at least 1, got 0"},
		{[]int64{1, 2}, func(c *BudgetConfig) { c.Rank = 2 }, "rank: expected at least 0 and less than world_size 2, got 2"},
	} {
		config := BudgetConfig{Budget: 100, Multiple: 2, WorldSize: 2}
		c.change(&config)
		b, err := NewBudget(c.lengths, config)
		var argument *ArgumentError
		if b != nil || !errors.As(err, &argument) || err.Error() != c.want {
			t.Errorf("lengths %v: got %v, %v, want nil, %s", c.lengths, b, err, c.want)
		}
	}
}

func TestBudgetNamesTheArgumentAtFault(t *testing.T) {
	b := mustNewBudget(t, []uint32{5, 5, 5, 5}, BudgetConfig{Budget: 10, WorldSize: 1}) // two of two
	for _, c := range []struct {
		count       int
		step, steps int64
		want        string
	}{
		{2, -1, 1, "step: expected at least 0, got -1"},
		{0, 0, -1, "steps: expected at least 0, got -1"},
		{3, 7, 2, "count: expected the sum of the counts of the 2 steps from step 7 on, got 3"},
		{5, 7, 2, "count: expected the sum of the counts of the 2 steps from step 7 on, got 5"},
		{0, 7, math.MaxInt64 - 7, "count: expected the sum of the counts of the 9223372036854775800 steps from step 7 on, got 0"},
		{4, math.MaxInt64, 2, "steps: expected at most 1 from step 9223372036854775807 on (the last step is 2^63-1), got 2"},
	} {
		out := slices.Repeat([]int64{-7}, c.count)
		err := b.Fill(out, c.step, c.steps)
		var argument *ArgumentError
		if !errors.As(err, &argument) || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
		if slices.ContainsFunc(out, func(x int64) bool { return x != -7 }) {
			t.Error("an index was written before it failed")
		}
	}
	if err := b.Counts(make([]int64, 2), math.MaxInt64); err == nil {
		t.Error("counts beyond the last step")
	}
	if counts, _ := mustBatches(t, b, math.MaxInt64, 1); counts[0] != 2 {
		t.Errorf("the last step has %d indices, want 2", counts[0])
	}
}

func TestBucketsFollowLengths(t *testing.T) {
	for length := uint64(1); length < 16; length++ {
		if got := bucketOf(length); got != int(length) {
			t.Errorf("length %d is in bucket %d", length, got)
		}
	}
	last := 15
	for bits := 4; bits < 63; bits++ {
		for eighth := uint64(0); eighth < 8; eighth++ {
			last++
			low := (8 + eighth) << (bits - 3)
			high := (9+eighth)<<(bits-3) - 1
			if bucketOf(low) != last || bucketOf(high) != last {
				t.Fatalf("lengths %d to %d are in buckets %d to %d, want %d", low, high, bucketOf(low), bucketOf(high), last)
			}
		}
	}
	if last != buckets-1 {
		t.Errorf("the last bucket is %d, want %d", last, buckets-1)
	}
}

// Buckets are joined until there are two batches, but not over more than a
// doubling of the lengths.
func TestGroups(t *testing.T) {
	each := func(longest uint64) uint64 { return 1000 / longest }
	tallies := make([]tally, 12)
	for _, c := range []struct{ length, count uint64 }{
		{11, 100}, {10, 80}, // two batches of 90
		{9, 1}, {8, 1}, {5, 2}, // 4 is less than half of 9
		{4, 1000},
		{3, 1}, {2, 1},
		{1, 1},
	} {
		tallies[c.length] = tally{c.count, c.length, c.length}
	}
	var ends, longest []uint64
	for _, g := range groupsOf(tallies, each) {
		ends, longest = append(ends, g.end), append(longest, g.longest)
		if g.each != each(g.longest) {
			t.Errorf("a group of up to %d has batches of %d", g.longest, g.each)
		}
	}
	if !slices.Equal(ends, []uint64{180, 184, 1184, 1186, 1187}) || !slices.Equal(longest, []uint64{11, 9, 4, 3, 1}) {
		t.Errorf("groups end at %d, of lengths of up to %d", ends, longest)
	}
}

// What is left out of a cycle is one run of places, which goes on from the last
// at the first.
func TestBudgetLeavesOutARun(t *testing.T) {
	b := mustNewBudget(t, lengthsOf(19), BudgetConfig{Budget: 1 << 20, Multiple: 5, Seed: 4, WorldSize: 1})
	all, kept := make([]int64, 19), make([]int64, 15)
	begun := map[int]bool{}
	for cycle := range uint64(400) {
		b.run(all, cycle, 0)
		gap := int(bounded(word(b.dropped, cycle), 19))
		begun[gap] = true
		var want []int64
		for place, index := range all {
			if (place-gap+19)%19 >= 4 {
				want = append(want, index)
			}
		}
		for first := range uint64(15) {
			if b.fill(kept[first:], cycle, first); !slices.Equal(kept[first:], want[first:]) {
				t.Fatalf("cycle %d, %d to %d left out: got %v, want %v", cycle, gap, gap+3, kept[first:], want[first:])
			}
		}
	}
	if len(begun) != 19 {
		t.Errorf("the run began at %d places of 19", len(begun))
	}
}

// However many cycles were used, 16 bytes a record are held and no more.
func TestBudgetHoldsLittle(t *testing.T) {
	b := mustNewBudget(t, lengthsOf(5000), BudgetConfig{Budget: 1 << 13, Seed: 4, WorldSize: 1})
	for cycle := range int64(6) {
		mustBatches(t, b, cycle*b.Batches(), b.Batches())
	}
	held := 4 * len(b.records)
	for _, g := range b.groups {
		for _, s := range g.orders.kept.latest {
			held += 4 * len(s.permutation)
		}
	}
	if held != 16*5000 {
		t.Errorf("5000 records: %d bytes are held, want %d", held, 16*5000)
	}
}

// checkBudgetCycle goes through the batches of a cycle, and finds every record once,
// but for the remainder, and every batch within its limits.
func checkBudgetCycle(t *testing.T, lengths []uint32, c BudgetConfig, b *Budget, cycle int64) (efficiency float64) {
	t.Helper()
	counts, all := mustBatches(t, b, cycle*b.Batches(), b.Batches())
	multiple := max(c.Multiple, 1)
	seen := make([]bool, len(lengths))
	padded, real := 0.0, 0.0
	rest := all
	for k, n := range counts {
		longest := uint32(1)
		for _, index := range rest[:n] {
			if index < 0 || index >= int64(len(lengths)) || seen[index] {
				t.Fatalf("%d records, %+v: index %d is outside, or twice in cycle %d", len(lengths), c, index, cycle)
			}
			seen[index] = true
			longest, real = max(longest, lengths[index]), real+float64(lengths[index])
		}
		if n < 1 || n%multiple != 0 || n*int64(longest) > c.Budget || c.MaxRecords > 0 && n > c.MaxRecords {
			t.Fatalf("%d records, %+v: batch %d has %d records of up to %d", len(lengths), c, k, n, longest)
		}
		rest, padded = rest[n:], padded+float64(n)*float64(longest)
	}
	if want := int64(len(lengths)) / multiple * multiple; int64(len(all)) != want {
		t.Fatalf("%d records, %+v: cycle %d has %d, want %d", len(lengths), c, cycle, len(all), want)
	}
	return real / padded
}

func TestBudgetCycles(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 1))
	for i := range 700 {
		n := 1 + r.IntN(400)
		lengths := make([]uint32, n)
		for k := range lengths {
			lengths[k] = uint32(r.Int32N(1 << r.IntN(9)))
		}
		c := BudgetConfig{Seed: uint64(i), WorldSize: 1, Multiple: int64(r.IntN(min(n, 12) + 1))}
		c.Budget = int64(slices.Max(append(lengths, 1)))*max(c.Multiple, 1) + r.Int64N(2000)
		if i%3 == 0 {
			c.MaxRecords = max(c.Multiple, 1) + r.Int64N(30)
		}
		b := mustNewBudget(t, lengths, c)
		for cycle := range int64(3) {
			checkBudgetCycle(t, lengths, c, b, cycle)
		}
		checkBudgetCycle(t, lengths, c, b, math.MaxInt64/b.Batches()-1)
	}
}

// Little of a batch is padding where there are batches enough, also beyond the
// lengths of groups whose orders are kept.
func TestBudgetPadsLittle(t *testing.T) {
	for _, n := range []int64{20_000, 2_000_000} {
		lengths, c := lengthsOf(n), BudgetConfig{Budget: 16_384, Seed: 1, WorldSize: 1}
		b := mustNewBudget(t, lengths, c)
		if got := checkBudgetCycle(t, lengths, c, b, 1); got < 0.92 {
			t.Errorf("%d records: %.3f of the batches are records, want 0.92", n, got)
		}
		most := uint64(0)
		for _, g := range b.groups {
			most = max(most, g.end-g.first)
		}
		if n > 1_000_000 && most <= shuffleLimit {
			t.Errorf("the largest group has %d records, so the network was not used", most)
		}
	}
}

// Lengths may come in either width.
func TestBudgetOfBothWidths(t *testing.T) {
	narrow, wide := lengthsOf(500), make([]int64, 500)
	for i, length := range narrow {
		wide[i] = int64(length)
	}
	c := BudgetConfig{Budget: 5000, Seed: 3, WorldSize: 1}
	_, a := mustBatches(t, mustNewBudget(t, narrow, c), 0, 100)
	_, b := mustBatches(t, mustNewBudget(t, wide, c), 0, 100)
	if !slices.Equal(a, b) {
		t.Error("lengths of 8 bytes give another order than those of 4")
	}
	huge := mustNewBudget(t, []int64{math.MaxInt64, 1, math.MaxInt64 / 2, 0}, BudgetConfig{Budget: math.MaxInt64, WorldSize: 1})
	counts, _ := mustBatches(t, huge, 0, huge.Batches())
	slices.Sort(counts)
	if !slices.Equal(counts, []int64{1, 3}) && !slices.Equal(counts, []int64{1, 1, 2}) {
		t.Errorf("lengths up to 2^63-1: batches of %v", counts)
	}
}

func TestRanksShareABudget(t *testing.T) {
	lengths, c := lengthsOf(1003), BudgetConfig{Budget: 100_000, Multiple: 12, Seed: 3, WorldSize: 1}
	whole := mustNewBudget(t, lengths, c)
	steps := 3 * whole.Batches()
	counts, all := mustBatches(t, whole, 5, steps)
	for _, world := range []int32{2, 3, 12} {
		c.WorldSize = world
		var parts [][]int64
		for c.Rank = 0; c.Rank < world; c.Rank++ {
			own, part := mustBatches(t, mustNewBudget(t, lengths, c), 5, steps)
			for k := range own {
				if own[k]*int64(world) != counts[k] {
					t.Fatalf("rank %d of %d has %d of batch %d, which has %d", c.Rank, world, own[k], k, counts[k])
				}
			}
			parts = append(parts, part)
		}
		var joined []int64
		for _, n := range counts {
			for r := range parts {
				joined = append(joined, parts[r][:n/int64(world)]...)
				parts[r] = parts[r][n/int64(world):]
			}
		}
		if !slices.Equal(joined, all) {
			t.Errorf("%d ranks: their parts are not the global batches", world)
		}
	}
}

// Whoever asks, in whatever order, gets the same.
func TestBudgetIsAFunction(t *testing.T) {
	b := mustNewBudget(t, lengthsOf(3000), BudgetConfig{Budget: 8192, Seed: 5, WorldSize: 1})
	steps := 4 * b.Batches()
	counts, all := mustBatches(t, b, 0, steps)
	starts := cumulative(counts)
	var group sync.WaitGroup
	for worker := range uint64(4) {
		group.Go(func() {
			r := rand.New(rand.NewPCG(10, worker))
			for range 300 {
				step := r.Int64N(steps)
				_, got := mustBatches(t, b, step, 1)
				if !slices.Equal(got, all[starts[step]:starts[step+1]]) {
					t.Errorf("step %d is not what it was", step)
				}
			}
		})
	}
	group.Wait()
}
