package sampler

import (
	"slices"
	"sync"
	"testing"
)

// checkCycles goes through whole cycles and finds no index twice in any. It
// returns how many times each index was drawn.
func checkCycles(t *testing.T, c Config, cycles int64) []int {
	t.Helper()
	steps := c.Length / c.BatchSize
	all := mustFill(t, c, 0, steps*cycles)
	drawn, lastCycle := make([]int, c.Length), make([]int64, c.Length)
	for i, index := range all {
		cycle := int64(i)/(steps*c.BatchSize) + 1
		if index < 0 || index >= c.Length {
			t.Fatalf("length %d, batch %d: index %d at place %d", c.Length, c.BatchSize, index, i)
		}
		if lastCycle[index] == cycle {
			t.Fatalf("length %d, batch %d: index %d twice in cycle %d", c.Length, c.BatchSize, index, cycle-1)
		}
		lastCycle[index] = cycle
		drawn[index]++
	}
	return drawn
}

// Full batches of distinct records, floor(n/B)*B of them: with B dividing n
// that is every index exactly once.
func TestCyclesVisitEveryIndexOnce(t *testing.T) {
	for n := int64(1); n <= 2000; n++ {
		for _, batch := range []int64{1, 7, 64, n/2 + 1, n} {
			if batch <= n {
				checkCycles(t, Config{Mode: Cyclic, Length: n, BatchSize: batch, Seed: uint64(n), WorldSize: 1}, 2)
			}
		}
	}
	for _, n := range []int64{4096, 65_535, 65_536, 65_537, 99_991, 131_072, 131_073, 1_000_000} {
		for _, batch := range []int64{1, 1024} {
			checkCycles(t, Config{Mode: Cyclic, Length: n, BatchSize: batch, Seed: 1, WorldSize: 1}, 1)
		}
	}
}

// The Feistel network is a bijection also at the lengths that it is not used
// for, where a cycle is small enough to try every key and block boundary.
func TestFeistelIsABijection(t *testing.T) {
	for n := uint64(1); n <= 2000; n++ {
		f := newFeistel(n, word(3, n))
		out := make([]int64, n)
		f.fill(out, 0)
		slices.Sort(out)
		for i, index := range out {
			if index != int64(i) {
				t.Fatalf("length %d: got %d where %d was due", n, index, i)
			}
		}
	}
}

// With a remainder, which records are dropped changes from cycle to cycle, so
// that over many cycles none is drawn less than the others.
func TestEveryCycleDropsOtherRecords(t *testing.T) {
	const cycles = 4000
	drawn := checkCycles(t, Config{Mode: Cyclic, Length: 20, BatchSize: 8, Seed: 4, WorldSize: 1}, cycles)
	// 4 of 20 are dropped in a cycle: 3200 draws each, standard deviation 25.3.
	for index, count := range drawn {
		accept(t, "draws of a record", (float64(count)-3200)/25.3)
		if count == cycles {
			t.Errorf("record %d was dropped in no cycle", index)
		}
	}
}

// A seed and a cycle have an order of their own.
func TestOrdersDiffer(t *testing.T) {
	for _, n := range []int64{100, 100_000} {
		a := mustFill(t, Config{Mode: Cyclic, Length: n, BatchSize: 50, Seed: 1, WorldSize: 1}, 0, 2*n/50)
		b := mustFill(t, Config{Mode: Cyclic, Length: n, BatchSize: 50, Seed: 2, WorldSize: 1}, 0, n/50)
		if slices.Equal(a[:n], a[n:]) || slices.Equal(a[:n], b) {
			t.Errorf("length %d: two cycles or two seeds have the same order", n)
		}
	}
}

// However many goroutines ask, a permutation is made once; a sampler holds the
// last ones used, and no more.
func TestKeptShuffles(t *testing.T) {
	kept := newKeptShuffles(keptCycles)
	get := func(cycle uint64) *uint32 { return &kept.get(cycle, 1000, cycle)[0] }
	for cycle := range uint64(20) {
		got := make([]*uint32, 8)
		var group sync.WaitGroup
		for i := range got {
			group.Go(func() { got[i] = get(cycle) })
		}
		group.Wait()
		if slices.ContainsFunc(got, func(p *uint32) bool { return p != got[0] }) {
			t.Fatalf("cycle %d: made more than once", cycle)
		}
	}
	var last [keptCycles]*uint32
	for i := range last {
		last[i] = get(uint64(20 - keptCycles + i))
	}
	for range 2 { // going through them again and again loses none
		for i := range last {
			for range keptCycles {
				if get(uint64(20-keptCycles+i)) != last[i] {
					t.Fatalf("a cycle in use was pushed out by uses of itself")
				}
			}
		}
	}
	oldest := get(uint64(20 - keptCycles)) // now the latest
	get(20)                                // pushes out the least recently used
	if get(uint64(20-keptCycles)) != oldest {
		t.Error("a cycle in use was pushed out before one that was not")
	}
	if get(uint64(20-keptCycles+1)) == last[1] {
		t.Errorf("more than %d permutations are kept", keptCycles)
	}
}
