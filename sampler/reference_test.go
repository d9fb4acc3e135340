package sampler

import (
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// The orders once more, one index at a time and in the plainest words: what
// Fill has to give, and what a reader in another language would write.

func referenceIndex(c Config, step, place uint64) int64 {
	n, b := uint64(c.Length), uint64(c.BatchSize)
	switch c.Mode {
	case Sequential:
		p := new(big.Int).SetUint64(step)
		p.Mul(p, new(big.Int).SetUint64(b)).Add(p, new(big.Int).SetUint64(place))
		return p.Mod(p, new(big.Int).SetUint64(n)).Int64()
	case IID:
		return int64(referenceBounded(word(streamKey(c.Seed, streamIID), step*b+place), n))
	}
	cycle, within := step/(n/b), step%(n/b)
	key := word(streamKey(c.Seed, streamCyclic), cycle)
	if n <= shuffleLimit {
		return lastShuffle.get(n, key)[within*b+place]
	}
	return int64(referenceFeistel(n, key, within*b+place, 6, middle))
}

// referenceBounded is Lemire's method without its short cut.
func referenceBounded(z, n uint64) uint64 {
	excess := (math.MaxUint64%n + 1) % n
	for x, i := z, uint64(0); ; i++ {
		if high, low := bits.Mul64(x, n); low >= excess {
			return high
		}
		x = word(z, i)
	}
}

func referenceShuffle(n, key uint64) []int64 {
	p := make([]int64, n)
	for i := range p {
		p[i] = int64(i)
	}
	for i := n - 1; i > 0; i-- {
		j := referenceBounded(word(key, i), i+1)
		p[i], p[j] = p[j], p[i]
	}
	return p
}

// lastShuffle saves making a permutation again for each of its indices.
var lastShuffle memo

type memo struct {
	n, key      uint64
	permutation []int64
}

func (m *memo) get(n, key uint64) []int64 {
	if m.n != n || m.key != key {
		*m = memo{n, key, referenceShuffle(n, key)}
	}
	return m.permutation
}

// referenceFeistel takes the number of rounds and their function, so that the
// statistics can be shown to reject weaker ones.
func referenceFeistel(n, key, x uint64, rounds int, f func(half, key uint64) uint64) uint64 {
	width := max(2, bits.Len64(n-1))
	rightBits := width - width/2
	for {
		left, right := x>>rightBits, x%(1<<rightBits)
		for r := range rounds {
			if k := word(key, uint64(r)); r%2 == 0 {
				left ^= f(right, k) % (1 << (width / 2))
			} else {
				right ^= f(left, k) % (1 << rightBits)
			}
		}
		if x = left<<rightBits + right; x < n {
			return x
		}
	}
}

func mustNew(t testing.TB, c Config) *Sampler {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustFill(t testing.TB, c Config, step, steps int64) []int64 {
	t.Helper()
	out := make([]int64, steps*c.BatchSize/int64(c.WorldSize))
	if err := mustNew(t, c).Fill(out, step, steps); err != nil {
		t.Fatal(err)
	}
	return out
}

// Whatever the lengths, the batch sizes, the ranks, the step and the number of
// steps asked for at once, Fill gives what the reference gives.
func TestFillEqualsReference(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	lengths := []int64{1, 2, 3, 5, 64, 1000, 65536, 65537, 100_000, 1 << 20, 1<<32 + 1, 1 << 40, 1<<62 + 1, 1<<63 - 1}
	for i := range 600 {
		world := 1 + r.Int32N(4)
		c := Config{
			Mode: Mode(i % 3), Length: lengths[r.IntN(len(lengths))], BatchSize: int64(world) * (1 + r.Int64N(8)),
			Seed: r.Uint64(), Rank: r.Int32N(world), WorldSize: world,
		}
		if c.Mode == Cyclic && c.BatchSize > c.Length {
			continue
		}
		steps := 1 + r.Int64N(4)
		step := (1<<63 - 1) >> r.IntN(63)
		got := mustFill(t, c, int64(step)-min(int64(step), steps-1), steps)
		checkReference(t, c, uint64(step)-min(uint64(step), uint64(steps-1)), got)
	}
}

// The blocks of the Feistel fill and the runs of the others, over many places.
func TestLongFillEqualsReference(t *testing.T) {
	for _, mode := range []Mode{Sequential, IID, Cyclic} {
		c := Config{Mode: mode, Length: 70_000, BatchSize: 30, Seed: 9, WorldSize: 1}
		// 2,333 steps are a cycle: the end of the first is within.
		checkReference(t, c, 2300, mustFill(t, c, 2300, 70))
	}
}

func checkReference(t *testing.T, c Config, step uint64, got []int64) {
	t.Helper()
	size := uint64(c.BatchSize) / uint64(c.WorldSize)
	want := make([]int64, len(got))
	for i := range want {
		place := uint64(c.Rank)*size + uint64(i)%size
		want[i] = referenceIndex(c, step+uint64(i)/size, place)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%+v step %d:\n got %v\nwant %v", c, step, got, want)
	}
}
