package sampler

import (
	"slices"
	"testing"
)

const iidDraws = 1_000_000

// draws gives as many IID indices as asked for, from word(key, i) = f(i).
func draws(n uint64, count int, f func(i uint64) uint64) []int64 {
	out := make([]int64, count)
	for i := range out {
		out[i] = int64(bounded(f(uint64(i)), n))
	}
	return out
}

func iidStream(t *testing.T, n int64, seed uint64) []int64 {
	t.Helper()
	return mustFill(t, Config{Mode: IID, Length: n, BatchSize: 1000, Seed: seed, WorldSize: 1}, 0, iidDraws/1000)
}

func uniformity(x []int64, n int64, bins int) float64 {
	counts := make([]float64, bins)
	for _, v := range x {
		counts[int64(float64(v)/float64(n)*float64(bins))]++
	}
	return chiSquare(counts, nil)
}

func TestIIDIsUniformAndIndependent(t *testing.T) {
	const n = 64
	x, y := iidStream(t, n, 42), iidStream(t, n, 43)
	accept(t, "all indices", uniformity(x, n, n))
	for _, lag := range []int{1, 2, 3, 7, 256, 1000} {
		accept(t, "pairs at a distance", pairs(x[:len(x)-lag], x[lag:], n))
	}
	accept(t, "two seeds, same place", pairs(x, y, n))
	accept(t, "two seeds, next place", pairs(x[1:], y, n))
	accept(t, "a long length", uniformity(iidStream(t, 3<<30, 9), 3<<30, 512))
	accept(t, "a length near 2^63", uniformity(iidStream(t, 3<<61, 9), 3<<61, 512))

	triples := make([]float64, 4096)
	for i := 2; i < len(x); i++ {
		triples[x[i-2]/4*256+x[i-1]/4*16+x[i]/4]++
	}
	accept(t, "triples", chiSquare(triples, nil))
}

// The same place of the same batch for many seeds in a row, and the same place
// of many batches: people count seeds and steps up from 0.
func TestIIDSeedsAndStepsAreIndependent(t *testing.T) {
	const n, count = 16, 20_000
	seeds, steps := make([]int64, count), make([]int64, count)
	fixed := mustNew(t, Config{Mode: IID, Length: n, BatchSize: 256, Seed: 42, WorldSize: 256})
	for i := range count {
		seeds[i] = mustFill(t, Config{Mode: IID, Length: n, BatchSize: 1, Seed: uint64(i), WorldSize: 1}, 0, 1)[0]
		if err := fixed.Fill(steps[i:i+1], int64(i), 1); err != nil {
			t.Fatal(err)
		}
	}
	for what, x := range map[string][]int64{"first place over seeds": seeds, "first place over steps": steps} {
		accept(t, what, uniformity(x, n, n))
		accept(t, what+", pairs", pairs(x[1:], x[:count-1], n))
	}
}

// The same figures reject a generator that mixes too little: the bare sequence
// of states, and one multiplication of it.
func TestIIDFiguresRejectWeakMixers(t *testing.T) {
	const n = 64
	for what, f := range map[string]func(uint64) uint64{
		"states":             func(i uint64) uint64 { return i * gamma },
		"one multiplication": func(i uint64) uint64 { return (i ^ i>>30) * 0xbf58476d1ce4e5b9 },
	} {
		x := draws(n, iidDraws, f)
		reject(t, what+", pairs", pairs(x[1:], x[:len(x)-1], n))
	}
	sound := draws(n, 1000, func(i uint64) uint64 { return word(streamKey(42, streamIID), i) })
	if !slices.Equal(sound, iidStream(t, n, 42)[:1000]) {
		t.Error("draws is not what the sampler does, so its rejections say nothing")
	}
}
