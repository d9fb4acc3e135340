package sampler

import (
	"cmp"
	"math"
	"math/big"
	"slices"
	"strconv"
)

// shares turns the fractions or weights of a caller into exact ratios. Each is
// taken for the decimal number that it prints as: 0.1 is a tenth, and not the
// binary fraction next to it, so that 0.7, 0.2 and 0.1 of 10 are 7, 2 and 1,
// and their sum is 1.
func shares(field string, values []float64) ([]*big.Rat, *big.Rat, error) {
	if len(values) == 0 {
		return nil, nil, badArgument(field, "expected at least 1, got none")
	}
	ratios, sum := make([]*big.Rat, len(values)), new(big.Rat)
	for i, v := range values {
		if !(v > 0) || math.IsInf(v, 1) {
			return nil, nil, badArgument(field, "expected finite numbers above 0, got %v at place %d", v, i)
		}
		ratios[i], _ = new(big.Rat).SetString(strconv.FormatFloat(v, 'g', -1, 64))
		sum.Add(sum, ratios[i])
	}
	return ratios, sum, nil
}

// apportion cuts total into whole parts as the ratios are to their sum: what a
// part is due is rounded down, and what is left over goes to the largest
// remainders, of equal ones to the first (the method of Hamilton).
func apportion(total int64, ratios []*big.Rat, sum *big.Rat) []int64 {
	parts, order := make([]int64, len(ratios)), make([]int, len(ratios))
	remainders := make([]*big.Rat, len(ratios))
	left := total
	for i, r := range ratios {
		due := new(big.Rat).SetInt64(total)
		due.Mul(due, r).Quo(due, sum)
		whole := new(big.Int).Quo(due.Num(), due.Denom())
		remainders[i] = due.Sub(due, new(big.Rat).SetInt(whole))
		parts[i], order[i] = whole.Int64(), i
		left -= parts[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return remainders[b].Cmp(remainders[a]) })
	for _, i := range order[:left] {
		parts[i]++
	}
	return parts
}

// cumulative is where each part begins, and at the end where the last ends.
func cumulative[T cmp.Ordered](parts []T) []T {
	starts := make([]T, len(parts)+1)
	for i, n := range parts {
		starts[i+1] = starts[i] + n
	}
	return starts
}

// ratio is a/(a+b) as a fraction of 2^64, at least 1 and at most 2^64 - 1 of it.
func ratio(a, b *big.Rat) uint64 {
	r := new(big.Rat).Quo(a, new(big.Rat).Add(a, b))
	n := new(big.Int).Lsh(r.Num(), 65)
	n.Quo(n, r.Denom()).Add(n, big.NewInt(1)).Rsh(n, 1) // to the nearest
	switch {
	case n.Sign() == 0:
		return 1
	case !n.IsUint64():
		return math.MaxUint64
	}
	return n.Uint64()
}
