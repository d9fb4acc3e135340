package sampler

import (
	"fmt"
	"testing"
)

// The figures to hold beside NumPy's: 256 and 8192 indices a call.
func BenchmarkFill(b *testing.B) {
	for _, mode := range []Mode{Sequential, IID, Cyclic} {
		for _, length := range []int64{50_000, 1_000_000} {
			for _, batch := range []int64{256, 8192} {
				b.Run(fmt.Sprintf("%v/n=%d/batch=%d", mode, length, batch), func(b *testing.B) {
					s := mustNew(b, Config{Mode: mode, Length: length, BatchSize: batch, Seed: 42, WorldSize: 1})
					out := make([]int64, batch)
					step := int64(0)
					for b.Loop() {
						if err := s.Fill(out, step, 1); err != nil {
							b.Fatal(err)
						}
						step++
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(step*batch), "ns/index")
				})
			}
		}
	}
}

// A cycle of a kept permutation costs this at its first batch.
func BenchmarkShuffle(b *testing.B) {
	for key := uint64(0); b.Loop(); key++ {
		shuffle(shuffleLimit, key)
	}
}
