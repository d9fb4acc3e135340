package sampler

import (
	"math"
	"math/bits"
	"testing"
)

// The first outputs of splitmix64.c (Vigna, public domain) seeded with 1234567.
func TestWordIsSplitMix64(t *testing.T) {
	for i, want := range []uint64{
		6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821,
	} {
		if got := word(1234567, uint64(i)); got != want {
			t.Errorf("word %d: got %d, want %d", i, got, want)
		}
	}
}

func TestStreamKeysDiffer(t *testing.T) {
	seen := map[uint64]uint64{}
	// Seeds that lie gamma apart are the ones that one level of keys confuses.
	for _, base := range []uint64{0, 1, 42, math.MaxUint64} {
		for i := range uint64(4) {
			seed := base + i*gamma
			for _, use := range []uint64{streamIID, streamCyclic} {
				key := streamKey(seed, use)
				if other, ok := seen[key]; ok {
					t.Errorf("seeds %d and %d share a key", seed, other)
				}
				seen[key] = seed
			}
		}
	}
}

// The words around every multiple of 2^64/n are those that rejection is about.
func TestBoundedAtTheEdges(t *testing.T) {
	for _, n := range []uint64{1, 2, 3, 5, 1000, 1 << 32, 3 << 61, 1<<63 - 1, 1 << 63, 1<<63 + 1, math.MaxUint64} {
		for k := range uint64(16) {
			edge := math.MaxUint64 / n * (k % n)
			for _, z := range []uint64{edge - 2, edge - 1, edge, edge + 1, edge + 2} {
				got, want := bounded(z, n), referenceBounded(z, n)
				if got != want || got >= n {
					t.Fatalf("bounded(%d, %d): got %d, want %d", z, n, got, want)
				}
			}
		}
	}
}

// The multiplication alone sends 8 words in a row to 3 indices as 3, 3 and 2,
// when the length is 3*2^61; the rejection makes that 2, 2 and 2.
func TestBoundedIsUnbiased(t *testing.T) {
	const n, draws = 3 << 61, 300_000
	kept, planted := make([]float64, 3), make([]float64, 3)
	for i := range uint64(draws) {
		z := word(7, i)
		kept[bounded(z, n)%3]++
		high, _ := bits.Mul64(z, n)
		planted[high%3]++
	}
	accept(t, "residues mod 3", chiSquare(kept, nil))
	reject(t, "residues mod 3 without rejection", chiSquare(planted, nil))
}
