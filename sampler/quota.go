package sampler

import (
	"math/big"
	"math/bits"
)

// quota says how many of the first n draws each source gets: its share of n,
// but for a bounded rounding, whatever n is.
//
// The sources are the leaves of a balanced binary tree. A node with n draws
// gives its left child n times the left share, rounded to the nearest, and the
// right one the others. As n grows by one, so does exactly one of the two
// children's, which makes counts that never fall and always add up to n: what
// rounding the share of each source by itself does not (the apportionment
// paradoxes). A level of the tree adds less than one draw of rounding.
type quota struct {
	sources int
	left    []uint64 // by node: the left child's share of 2^64
}

// newQuota takes weights above 0.
func newQuota(weights []*big.Rat) *quota {
	q := &quota{sources: len(weights), left: make([]uint64, len(weights))}
	q.weigh(weights, 0, len(weights))
	return q
}

// weigh fills in the nodes over sources lo to hi-1 and returns their weight. A
// node is known by its middle, the first source of its right child.
func (q *quota) weigh(weights []*big.Rat, lo, hi int) *big.Rat {
	if hi-lo == 1 {
		return weights[lo]
	}
	mid := (lo + hi) / 2
	a, b := q.weigh(weights, lo, mid), q.weigh(weights, mid, hi)
	q.left[mid] = ratio(a, b)
	return new(big.Rat).Add(a, b)
}

// share is the left child's part of n draws of a node. It is at most n, and
// grows by 0 or 1 when n grows by 1, since the share is less than 1.
func share(n, left uint64) uint64 {
	high, low := bits.Mul64(n, left)
	return high + low>>63
}

// span is what a source gets of a run of draws: those from its own first on.
type span struct {
	source       int32
	first, count uint64
}

// spans appends what each source gets of draws n to n+count-1, leaving out those
// that get none.
func (q *quota) spans(to []span, n, count uint64) []span {
	return q.visit(to, 0, q.sources, n, n+count)
}

func (q *quota) visit(to []span, lo, hi int, from, end uint64) []span {
	if from == end {
		return to
	}
	if hi-lo == 1 {
		return append(to, span{int32(lo), from, end - from})
	}
	mid := (lo + hi) / 2
	a, b := share(from, q.left[mid]), share(end, q.left[mid])
	to = q.visit(to, lo, mid, a, b)
	return q.visit(to, mid, hi, from-a, end-b)
}

// counts writes how many of the first n draws each source gets.
func (q *quota) counts(to []int64, n uint64) { q.descend(to, 0, q.sources, n) }

func (q *quota) descend(to []int64, lo, hi int, n uint64) {
	if hi-lo == 1 {
		to[lo] = int64(n)
		return
	}
	mid := (lo + hi) / 2
	a := share(n, q.left[mid])
	q.descend(to, lo, mid, a)
	q.descend(to, mid, hi, n-a)
}
