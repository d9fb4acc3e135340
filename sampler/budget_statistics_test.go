package sampler

import (
	"math"
	"testing"
)

// oneLength is a budget over records of one length: batches of 16, whose order
// is then all that a seed decides.
func oneLength(t *testing.T, n int, seed uint64) *Budget {
	t.Helper()
	lengths := make([]uint32, n)
	for i := range lengths {
		lengths[i] = 100
	}
	return mustNewBudget(t, lengths, BudgetConfig{Budget: 1600, Seed: seed, WorldSize: 1})
}

// Records of one length are a permutation in each cycle, as random as those of
// a sampler, over cycles and over seeds.
func TestBudgetPermutes(t *testing.T) {
	const n = 1024
	one := oneLength(t, n, 3)
	for name, z := range study(func(out []int64, cycle uint64) {
		if err := one.Fill(out, int64(cycle)*n/16, n/16); err != nil {
			t.Fatal(err)
		}
	}, n, 1000) {
		accept(t, "records over cycles, "+name, z)
	}
	for name, z := range study(func(out []int64, seed uint64) {
		if err := oneLength(t, n, seed).Fill(out, 0, n/16); err != nil {
			t.Fatal(err)
		}
	}, n, 300) {
		accept(t, "records over seeds, "+name, z)
	}
	name, z := study(func(out []int64, cycle uint64) { // planted: a weaker network in its place
		weakNetwork(2, middle)(out, cycle)
	}, n, 1000).worst()
	reject(t, "a network of two rounds, "+name, z)
}

// drift is how the lengths of batches go with their places in a cycle: a sum
// of products, in standard deviations of a random order.
func drift(longest []float64) float64 {
	n := float64(len(longest))
	mean, variance, sum := 0.0, 0.0, 0.0
	for _, x := range longest {
		mean += x / n
	}
	for i, x := range longest {
		variance += (x - mean) * (x - mean) / (n - 1)
		sum += (float64(i) - (n-1)/2) * (x - mean)
	}
	return sum / math.Sqrt(variance*n*(n*n-1)/12)
}

// Batches of short and of long records come mixed.
func TestBudgetMixesLengths(t *testing.T) {
	lengths := lengthsOf(50_000)
	b := mustNewBudget(t, lengths, BudgetConfig{Budget: 16_384, Seed: 1, WorldSize: 1})
	cycles := spreadOf{}
	for cycle := range int64(30) {
		longest := make([]float64, b.Batches())
		for k := range longest {
			_, batch := mustBatches(t, b, cycle*b.Batches()+int64(k), 1)
			for _, index := range batch {
				longest[k] = max(longest[k], float64(lengths[index]))
			}
		}
		z := drift(longest)
		accept(t, "lengths within a cycle", z)
		cycles.add(z)
		if cycle == 0 { // planted: the batches as they were cut
			for k := range longest {
				first, _ := batchAt(b.groups, uint64(k), b.count)
				longest[k] = float64(lengths[b.records[first]])
			}
			reject(t, "lengths of batches in the order of their cutting", drift(longest))
		}
	}
	accept(t, "lengths over cycles", cycles.mean())
	accept(t, "lengths over cycles, variance", cycles.variance())
}

// With a multiple, every record is left out as often as any other, however long
// it is.
func TestBudgetLeavesOutEvenly(t *testing.T) {
	const n, cycles = 43, 6000
	lengths := make([]uint32, n)
	for i := range lengths {
		lengths[i] = uint32(1 + i)
	}
	b := mustNewBudget(t, lengths, BudgetConfig{Budget: 800, Multiple: 8, Seed: 2, WorldSize: 1})
	counts := make([]float64, n)
	planted := make([]float64, n)
	for cycle := range int64(cycles) {
		_, all := mustBatches(t, b, cycle*b.Batches(), b.Batches())
		drawn := make([]bool, n)
		for _, index := range all {
			drawn[index] = true
		}
		for i := range drawn {
			if !drawn[i] {
				counts[i]++
			}
			if i < n%8 { // planted: the shortest, which come last
				planted[i]++
			}
		}
	}
	// 3 of 43 in a cycle: the counts of one sum vary less than independent ones,
	// and neighbours go together, which makes them vary up to three times as much.
	if z := chiSquare(counts, nil); math.Abs(z) > 3*limit {
		t.Errorf("records left out: %.1f standard deviations off, want at most %v", z, 3*limit)
	}
	reject(t, "the last ones left out", chiSquare(planted, nil)/3)
}
