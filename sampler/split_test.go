package sampler

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func splitCases() []string {
	var cases []string
	for _, length := range []int64{1, 2, 5, 20, 1000, 65_536, 65_537, 200_000} {
		for _, fractions := range []string{"1", "0.9 0.1", "0.7 0.2 0.1", "0.333333 0.333333 0.333333"} {
			for _, seed := range []uint64{0, 42, 1<<64 - 1} {
				cases = append(cases, fmt.Sprintf("%d %d %s", length, seed, fractions))
			}
		}
	}
	return cases
}

func splitOrder(t *testing.T, of string) []int64 {
	var length int64
	var seed uint64
	scan(t, of, &length, &seed)
	var fractions []float64
	for _, text := range strings.Fields(of)[2:] {
		var f float64
		scan(t, text, &f)
		fractions = append(fractions, f)
	}
	parts := make([]int64, length)
	sizes, err := Split(parts, length, fractions, seed)
	if err != nil {
		t.Fatalf("golden case %q: %v", of, err)
	}
	return append(sizes, parts...)
}

func TestSplitSizes(t *testing.T) {
	third := 1.0 / 3
	for _, c := range []struct {
		length    int64
		fractions []float64
		want      []int64
	}{
		{10, []float64{0.7, 0.2, 0.1}, []int64{7, 2, 1}},
		{10, []float64{0.9, 0.1}, []int64{9, 1}},
		{25, []float64{0.7, 0.2, 0.1}, []int64{18, 5, 2}}, // 17.5 and 2.5: the first of equals
		{25, []float64{0.1, 0.2, 0.7}, []int64{3, 5, 17}},
		{3, []float64{0.5, 0.5}, []int64{2, 1}},
		{10, []float64{third, third, third}, []int64{4, 3, 3}},
		{11, []float64{third, third, third}, []int64{4, 4, 3}},
		{1, []float64{0.1, 0.2, 0.7}, []int64{0, 0, 1}},
		{7, []float64{1}, []int64{7}},
		{50, slices.Repeat([]float64{0.02, 0.03}, 20), append(slices.Repeat([]int64{1, 2}, 10), slices.Repeat([]int64{1}, 20)...)},
		{1000, []float64{0.001, 0.999}, []int64{1, 999}},
		{math.MaxInt64, []float64{0.5, 0.25, 0.25}, []int64{1<<62 - 1, 1 << 61, 1 << 61}},
		{1e18 + 1, []float64{0.1, 0.9}, []int64{1e17, 9e17 + 1}},
	} {
		got, err := SplitSizes(c.length, c.fractions)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v of %d: got %v, %v, want %v", c.fractions, c.length, got, err, c.want)
		}
	}
}

// Whatever the fractions, each size is what is due, rounded up or down, and the
// sizes add up.
func TestSplitSizesAreWithinOne(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 1))
	for range 500 {
		length := 1 + r.Int64N(1<<r.IntN(62))
		weights, total := make([]float64, 1+r.IntN(9)), 0.0
		for i := range weights {
			weights[i] = r.Float64() + 1e-9
			total += weights[i]
		}
		for i := range weights {
			weights[i] /= total
		}
		sizes, err := SplitSizes(length, weights)
		if err != nil {
			t.Fatal(err)
		}
		sum := int64(0)
		for i, size := range sizes {
			sum += size
			due := new(big.Float).Mul(big.NewFloat(float64(length)), big.NewFloat(weights[i]))
			off, _ := due.Sub(due, new(big.Float).SetInt64(size)).Float64()
			if math.Abs(off) > 1+1e-12*float64(length) {
				t.Fatalf("%v of %d: got %v, which is off by %v in part %d", weights, length, sizes, off, i)
			}
		}
		if sum != length {
			t.Fatalf("%v of %d: got %v, which are %d", weights, length, sizes, sum)
		}
	}
}

func TestSplitNamesTheArgumentAtFault(t *testing.T) {
	for _, c := range []struct {
		room      int
		length    int64
		fractions []float64
		want      string
	}{
		{0, 0, []float64{1}, "length: expected at least 1, got 0"},
		{10, 10, nil, "fractions: expected at least 1, got none"},
		{10, 10, []float64{1, 0}, "fractions: expected finite numbers above 0, got 0 at place 1"},
		{10, 10, []float64{-0.5, 1.5}, "fractions: expected finite numbers above 0, got -0.5 at place 0"},
		{10, 10, []float64{math.NaN()}, "fractions: expected finite numbers above 0, got NaN at place 0"},
		{10, 10, []float64{math.Inf(1)}, "fractions: expected finite numbers above 0, got +Inf at place 0"},
		{10, 10, []float64{0.9, 0.2}, "fractions: expected a sum of 1, got 1.1"},
		{10, 10, []float64{0.9}, "fractions: expected a sum of 1, got 0.9"},
		{9, 10, []float64{0.9, 0.1}, "count: expected room for 10 indices, got room for 9"},
	} {
		_, err := Split(make([]int64, c.room), c.length, c.fractions, 1)
		var argument *ArgumentError
		if !errors.As(err, &argument) || err.Error() != c.want {
			t.Errorf("%v of %d: got %v, want %s", c.fractions, c.length, err, c.want)
		}
	}
}

// split returns the parts one by one.
func split(t *testing.T, length int64, fractions []float64, seed uint64) [][]int64 {
	t.Helper()
	all := make([]int64, length)
	sizes, err := Split(all, length, fractions, seed)
	if err != nil {
		t.Fatal(err)
	}
	var parts [][]int64
	for _, size := range sizes {
		parts, all = append(parts, all[:size]), all[size:]
	}
	return parts
}

// Every record is in one part, and each part in order.
func TestSplitCoversAll(t *testing.T) {
	lengths := []int64{65_535, 65_536, 65_537, 131_072, 300_001}
	for n := int64(1); n <= 700; n++ {
		lengths = append(lengths, n)
	}
	for _, n := range lengths {
		var all []int64
		for _, part := range split(t, n, []float64{0.6, 0.3, 0.05, 0.05}, uint64(n)) {
			if !slices.IsSorted(part) {
				t.Fatalf("length %d: a part is not in order", n)
			}
			all = append(all, part...)
		}
		slices.Sort(all)
		for i, index := range all {
			if index != int64(i) {
				t.Fatalf("length %d: got %d where %d was due", n, index, i)
			}
		}
	}
}

// A first part that grows keeps what it had, and so does a last one.
func TestSplitsAreNested(t *testing.T) {
	for _, n := range []int64{1000, 100_000} {
		small, large := split(t, n, []float64{0.8, 0.1, 0.1}, 3), split(t, n, []float64{0.85, 0.05, 0.1}, 3)
		in := map[int64]bool{}
		for _, index := range large[0] {
			in[index] = true
		}
		if slices.ContainsFunc(small[0], func(index int64) bool { return !in[index] }) {
			t.Errorf("length %d: a record left the first part when that grew", n)
		}
		if !slices.Equal(small[2], large[2]) {
			t.Errorf("length %d: the last part changed with the others", n)
		}
	}
}

// membership is 1 for the records of a part and 0 for the others.
func membership(part []int64, n int64) []int64 {
	in := make([]int64, n)
	for _, index := range part {
		in[index] = 1
	}
	return in
}

// halfPairs counts which of two records some way apart are in a half of all.
func halfPairs(in []int64, lag int) float64 {
	counts := make([]float64, 4)
	for i := lag; i < len(in); i++ {
		counts[2*in[i-lag]+in[i]]++
	}
	return chiSquare(counts, nil)
}

func TestSplitsAreRandom(t *testing.T) {
	for _, n := range []int64{4096, 65_536, 100_000, 1 << 18} {
		a := membership(split(t, n, []float64{0.5, 0.5}, 1)[0], n)
		b := membership(split(t, n, []float64{0.5, 0.5}, 2)[0], n)
		for _, lag := range []int{1, 2, 3, 16, 256} {
			accept(t, fmt.Sprintf("length %d, records %d apart", n, lag), halfPairs(a, lag))
		}
		both := make([]float64, 4)
		tenths := make([]float64, 16)
		for i := range a {
			both[2*a[i]+b[i]]++
			tenths[int64(i)*16/n] += float64(a[i])
		}
		accept(t, fmt.Sprintf("length %d, two seeds", n), chiSquare(both, nil))
		accept(t, fmt.Sprintf("length %d, sixteenths", n), chiSquare(tenths, nil))
	}
	// Planted: an even spread of half of the records that is no permutation's.
	planted := make([]int64, 4096)
	for i := range planted {
		planted[i] = int64(uint64(i) * gamma >> 63)
	}
	reject(t, "records taken at an even distance", halfPairs(planted, 1))
}
