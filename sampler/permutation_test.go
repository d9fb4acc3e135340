package sampler

import (
	"math"
	"math/bits"
	"slices"
	"strconv"
	"testing"
)

// All 120 orders of 5 records come, and as often, over cycles and over seeds.
func TestAllOrdersOfFive(t *testing.T) {
	const count = 60_000
	ofCycle := mustFill(t, Config{Mode: Cyclic, Length: 5, BatchSize: 5, Seed: 8, WorldSize: 1}, 0, count)
	var ofSeed []int64
	for seed := range uint64(count) {
		ofSeed = append(ofSeed, mustFill(t, Config{Mode: Cyclic, Length: 5, BatchSize: 5, Seed: seed, WorldSize: 1}, 3, 1)...)
	}
	for what, all := range map[string][]int64{"cycles": ofCycle, "seeds": ofSeed} {
		orders, z := ordersOfFive(all)
		if orders != 120 {
			t.Errorf("over %s: got %d orders of 5, want 120", what, orders)
		}
		accept(t, "orders of 5 over "+what, z)
	}
	var ofFeistel []int64
	for cycle := range uint64(count) {
		f := newFeistel(5, word(1, cycle))
		ofFeistel = append(ofFeistel, make([]int64, 5)...)
		f.fill(ofFeistel[cycle*5:], 0)
	}
	_, z := ordersOfFive(ofFeistel)
	reject(t, "orders of 5 by a Feistel network", z)
}

func ordersOfFive(all []int64) (orders int, z float64) {
	seen := map[[5]int64]int{}
	counts := make([]float64, 120)
	for order := range slices.Chunk(all, 5) {
		k := [5]int64(order)
		if _, ok := seen[k]; !ok {
			seen[k] = len(seen)
		}
		counts[seen[k]]++
	}
	return len(seen), chiSquare(counts, nil)
}

// A permuter writes the permutation of one cycle.
type permuter func(out []int64, cycle uint64)

func shuffled(out []int64, cycle uint64) {
	p := newPermutations(uint64(len(out)), streamKey(3, streamCyclic), keptCycles)
	p.fill(out, cycle, 0)
}

// network permutes by the Feistel network, whatever the length.
func network(out []int64, cycle uint64) {
	p := permutations{n: uint64(len(out)), key: streamKey(3, streamCyclic)}
	p.fill(out, cycle, 0)
}

// weakNetwork permutes by a network of other rounds.
func weakNetwork(rounds int, f func(half, key uint64) uint64) permuter {
	return func(out []int64, cycle uint64) {
		key := word(streamKey(3, streamCyclic), cycle)
		for i := range out {
			out[i] = int64(referenceFeistel(uint64(len(out)), key, uint64(i), rounds, f))
		}
	}
}

// figures are statistics over the permutations of many cycles, each in standard
// deviations from what random permutations have.
type figures map[string]float64

// worst is the figure that is furthest off.
func (f figures) worst() (name string, z float64) {
	for n, v := range f {
		if math.Abs(v) >= math.Abs(z) {
			name, z = n, v
		}
	}
	return name, z
}

// study takes an n that is a multiple of 16, and as many cycles as make the
// figures sharp. In pairs of places of one cycle, equal parts are rarer by one
// record in n: n has to be large against the precision, which grows with the
// root of the cycles.
func study(p permuter, n, cycles int) figures {
	half := (bits.Len(uint(n-1)) + 1) / 2
	lags := map[string]int{"next": 1, "after next": 2, "half of the bits on": 1 << half, "half of the length on": n / 2}
	pairCounts := map[string][]float64{}
	correlation := map[string]*spreadOf{}
	for name := range lags {
		pairCounts[name], correlation[name] = make([]float64, 256), &spreadOf{}
	}
	steps, place, cycleAfter := make([]float64, 256), make([]float64, 256), make([]float64, 256)
	firstBatch := &spreadOf{}
	x, before := make([]int64, n), make([]int64, n)
	for cycle := range uint64(cycles) {
		p(x, cycle)
		for i, v := range x {
			part := v * 16 / int64(n)
			place[i*16/n*16+int(part)]++
			if cycle > 0 {
				cycleAfter[before[i]*16/int64(n)*16+part]++
			}
			if i > 0 {
				steps[(int(v-x[i-1])+n)%n*256/n]++
			}
		}
		for name, lag := range lags {
			countPairs(pairCounts[name], x, lag)
			correlation[name].add(serialCorrelation(x, lag))
		}
		firstBatch.add(batchMean(x, n/8))
		x, before = before, x
	}
	stepWeights := make([]float64, 256)
	for step := 1; step < n; step++ { // no record follows itself
		stepWeights[step*256/n]++
	}
	f := figures{
		"steps": chiSquare(steps, stepWeights), "place": chiSquare(place, nil), "cycle after": chiSquare(cycleAfter, nil),
		"first batch, mean": firstBatch.mean(), "first batch, variance": firstBatch.variance(),
	}
	for name := range lags {
		f[name+", pairs"] = chiSquare(pairCounts[name], pairWeights(n))
		f[name+", correlation"] = correlation[name].mean()
		f[name+", variance of correlation"] = correlation[name].variance()
	}
	return f
}

func countPairs(counts []float64, x []int64, lag int) {
	n := int64(len(x))
	for i := lag; i < len(x); i++ {
		counts[x[i-lag]*16/n*16+x[i]*16/n]++
	}
}

// pairWeights accounts for an index not coming twice.
func pairWeights(n int) []float64 {
	part := float64(n) / 16
	weights := slices.Repeat([]float64{part * part}, 256)
	for i := 0; i < 256; i += 17 {
		weights[i] = part * (part - 1)
	}
	return weights
}

// serialCorrelation has mean 0 and variance 1 for random permutations, but for
// terms of the order of 1/n.
func serialCorrelation(x []int64, lag int) float64 {
	n := float64(len(x))
	mean, variance, sum := (n-1)/2, (n*n-1)/12, 0.0
	for i := lag; i < len(x); i++ {
		sum += (float64(x[i-lag]) - mean) * (float64(x[i]) - mean)
	}
	count := float64(len(x) - lag)
	return (sum + count*variance/(n-1)) / (variance * math.Sqrt(count))
}

// batchMean standardizes the sum of the first count indices, drawn without
// replacement.
func batchMean(x []int64, count int) float64 {
	n, k, sum := float64(len(x)), float64(count), 0.0
	for _, v := range x[:count] {
		sum += float64(v)
	}
	return (sum - k*(n-1)/2) / math.Sqrt(k*(n-k)*(n+1)/12)
}

// Permutations of every kind look random: those in use at their lengths, and
// the network also where it is not used, near 1000 and at a power of two, where
// weak rounds show most.
func TestPermutationsLookRandom(t *testing.T) {
	for _, c := range []struct {
		name      string
		p         permuter
		n, cycles int
	}{
		{"shuffle", shuffled, 1008, 1000}, {"shuffle", shuffled, 65_536, 15},
		{"network", network, 1008, 1000}, {"network", network, 4096, 250},
		{"network", network, 65_552, 15}, {"network", network, 131_072, 8}, {"network", network, 1_000_000, 2},
	} {
		for name, z := range study(c.p, c.n, c.cycles) {
			accept(t, c.name+" at length "+strconv.Itoa(c.n)+", "+name, z)
		}
	}
}

// The same figures reject networks of weaker rounds, and too few of good ones.
func TestFiguresRejectWeakNetworks(t *testing.T) {
	for _, c := range []struct {
		name   string
		rounds int
		f      func(half, key uint64) uint64
	}{
		{"low bits of a product", 6, func(half, key uint64) uint64 { return (half ^ key) * spread }},
		{"high bits of a product", 6, func(half, key uint64) uint64 { high, _ := bits.Mul64(half^key, spread); return high }},
		{"folded product", 6, func(half, key uint64) uint64 { high, low := bits.Mul64(half^key, spread); return high ^ low }},
		{"four rounds", 4, middle},
		{"two rounds", 2, middle},
	} {
		name, z := study(weakNetwork(c.rounds, c.f), 1024, 1000).worst()
		reject(t, c.name+" at length 1024, "+name, z)
	}
	sound, planted := make([]int64, 1024), make([]int64, 1024)
	network(sound, 5)
	weakNetwork(6, middle)(planted, 5)
	if !slices.Equal(sound, planted) {
		t.Error("the planted networks differ in more than their rounds, so their rejection says nothing")
	}
}
