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

// A mix costs its sources' orders and an arrangement of its own.
func BenchmarkMix(b *testing.B) {
	for _, batch := range []int64{256, 8192} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			m := mustNewMix(b, MixConfig{BatchSize: batch, Seed: 42, WorldSize: 1, Sources: []Source{
				{Mode: Cyclic, Length: 1_000_000, Weight: 0.7}, {Mode: Cyclic, Length: 50_000, Weight: 0.3},
			}})
			source, index := make([]int32, batch), make([]int64, batch)
			step := int64(0)
			for b.Loop() {
				if err := m.Fill(source, index, step, 1); err != nil {
					b.Fatal(err)
				}
				step++
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(step*batch), "ns/index")
		})
	}
}

// A million texts in batches of 16,384 tokens: making the plan, and its steps.
func BenchmarkBudget(b *testing.B) {
	lengths, c := lengthsOf(1_000_000), BudgetConfig{Budget: 16_384, Seed: 42, WorldSize: 1}
	b.Run("new", func(b *testing.B) {
		for b.Loop() {
			mustNewBudget(b, lengths, c)
		}
	})
	b.Run("fill", func(b *testing.B) {
		plan := mustNewBudget(b, lengths, c)
		var count [1]int64
		out := make([]int64, 16_384)
		step, total := int64(0), int64(0)
		for b.Loop() {
			if err := plan.Counts(count[:], step); err != nil {
				b.Fatal(err)
			}
			if err := plan.Fill(out[:count[0]], step, 1); err != nil {
				b.Fatal(err)
			}
			step, total = step+1, total+count[0]
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(total), "ns/index")
	})
}

func BenchmarkSplit(b *testing.B) {
	parts := make([]int64, 1_000_000)
	for b.Loop() {
		if _, err := Split(parts, 1_000_000, []float64{0.9, 0.1}, 42); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1e6, "ns/index")
}
