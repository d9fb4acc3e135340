package sampler

import (
	"math"
	"sort"
)

// tolerance is how far the sum of the fractions of a split may be from 1: as
// far as three thirds of six digits are.
const tolerance = 1e-5

// SplitSizes is how many of length records go into each part of a split: the
// fractions of it, which have to add up to 1, rounded so that the sizes add up
// to length (largest remainder).
func SplitSizes(length int64, fractions []float64) ([]int64, error) {
	if length < 1 {
		return nil, badArgument("length", "expected at least 1, got %d", length)
	}
	ratios, sum, err := shares("fractions", fractions)
	if err != nil {
		return nil, err
	}
	if total, _ := sum.Float64(); math.Abs(total-1) > tolerance {
		return nil, badArgument("fractions", "expected a sum of 1, got %v", total)
	}
	return apportion(length, ratios, sum), nil
}

// Split cuts the records 0 to length-1 into parts that have no record in
// common and leave none out, of the sizes that SplitSizes says. Which record
// goes where is random, and a function of length, fractions and seed. parts has
// room for all: the parts lie one after another in it, each in ascending order.
//
// Records stay where they are when fractions change: those of a first part are
// also in the first part of any split that makes it larger, and so from the
// other end for the last.
func Split(parts []int64, length int64, fractions []float64, seed uint64) (sizes []int64, err error) {
	if sizes, err = SplitSizes(length, fractions); err != nil {
		return nil, err
	}
	if int64(len(parts)) != length {
		return nil, badArgument("count", "expected room for %d indices, got room for %d", length, len(parts))
	}
	// Record i goes where its place in a permutation lies. The permutation being
	// one, the sizes come out exactly; the records being taken in order, each
	// part is in order.
	ends := cumulative(sizes)[1:]
	next := cumulative(sizes)[:len(sizes)]
	p := newPermutations(uint64(length), streamKey(seed, streamSplit), 1)
	var room [blockSize]int64
	for first := int64(0); first < length; first += blockSize {
		places := room[:min(blockSize, length-first)]
		p.fill(places, 0, uint64(first))
		for i, place := range places {
			part := sort.Search(len(ends), func(k int) bool { return place < ends[k] })
			parts[next[part]] = first + int64(i)
			next[part]++
		}
	}
	return sizes, nil
}
