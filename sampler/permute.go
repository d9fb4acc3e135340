package sampler

// permutations is a random one of [0, n) for every cycle, any part of which can
// be asked for by itself.
type permutations struct {
	n, key uint64
	kept   *keptShuffles // nil: the length is beyond shuffleLimit
}

// newPermutations takes n of 1 to 2^63. kept is how many permutations may be
// held, if n is short enough for that.
func newPermutations(n, key uint64, kept int) permutations {
	p := permutations{n: n, key: key}
	if n <= shuffleLimit {
		p.kept = newKeptShuffles(kept)
	}
	return p
}

// fill writes what the permutation of a cycle has at places first, first+1 and
// so on.
func (p *permutations) fill(out []int64, cycle, first uint64) {
	key := word(p.key, cycle)
	if p.kept == nil {
		f := newFeistel(p.n, key)
		f.fill(out, first)
		return
	}
	permutation := p.kept.get(cycle, p.n, key)
	for i, index := range permutation[first : first+uint64(len(out))] {
		out[i] = int64(index)
	}
}
