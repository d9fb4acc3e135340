package sampler

import (
	"math"
	"testing"
)

// The seeds of all statistics are fixed, so that a test passes always or never.
// A sound generator stays within limit standard deviations in each of the
// hundred or so figures; the weak ones planted beside it are beyond gross.
const (
	limit = 4.5
	gross = 8
)

func accept(t *testing.T, what string, z float64) {
	t.Helper()
	if math.IsNaN(z) || math.Abs(z) > limit {
		t.Errorf("%s: %.1f standard deviations off, want at most %v", what, z, limit)
	}
}

func reject(t *testing.T, what string, z float64) {
	t.Helper()
	if !(math.Abs(z) > gross) {
		t.Errorf("%s, planted to be weak: only %.1f standard deviations off, want more than %v", what, z, gross)
	}
}

// chiSquare tells how many standard deviations the statistic of the counts is
// from its mean. Without weights every bin is as likely.
func chiSquare(counts, weights []float64) float64 {
	total, weight := 0.0, 0.0
	for i, c := range counts {
		total += c
		weight += weightOf(weights, i)
	}
	sum, bins := 0.0, 0.0
	for i, c := range counts {
		if w := weightOf(weights, i); w > 0 {
			expected := total * w / weight
			sum += (c - expected) * (c - expected) / expected
			bins++
		}
	}
	return (sum - (bins - 1)) / math.Sqrt(2*(bins-1))
}

func weightOf(weights []float64, i int) float64 {
	if weights == nil {
		return 1
	}
	return weights[i]
}

// pairs counts which of 16 equal parts of [0, n) the elements of x and y lie in
// together. The lengths that are used are multiples of 16.
func pairs(x, y []int64, n int64) float64 {
	counts := make([]float64, 256)
	for i, v := range x {
		counts[v*16/n*16+y[i]*16/n]++
	}
	return chiSquare(counts, nil)
}

// A spread of numbers that should have mean 0 and variance 1: how far the mean
// and the variance are off, in standard deviations.
type spreadOf struct{ n, sum, squares float64 }

func (s *spreadOf) add(x float64)     { s.n, s.sum, s.squares = s.n+1, s.sum+x, s.squares+x*x }
func (s *spreadOf) mean() float64     { return s.sum / math.Sqrt(s.n) }
func (s *spreadOf) variance() float64 { return (s.squares/s.n - 1) * math.Sqrt(s.n/2) }
