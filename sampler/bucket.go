package sampler

import (
	"math/bits"
	"sort"
)

// Lengths are grouped by their leading bits, as in a log-linear histogram
// (Tene's HdrHistogram): exactly below 16, and above in eight steps for each
// doubling, so that in a batch of one bucket less than an eighth is padding.
const (
	bucketBits = 3
	buckets    = (64 - bucketBits) << bucketBits
)

// bucketOf is the bucket of a length of 1 to 2^63-1. A longer one has the same
// or a greater bucket.
func bucketOf(length uint64) int {
	shift := max(0, bits.Len64(length)-1-bucketBits)
	return shift<<bucketBits + int(length>>shift)
}

// group is a run of neighbouring buckets whose records are shuffled together,
// and the batches that begin in it. Places are those in the order of all
// records, the group with the longest coming first.
type group struct {
	first, end uint64 // places
	longest    uint64
	start      uint64 // of its first batch: the batch before may reach into it
	batch      uint64 // the number of that
	each       uint64 // records in a batch that begins here
	orders     permutations
}

// A bucket that holds few batches would make nearly the same ones in every
// cycle. Buckets are joined until there are groupBatches, as long as the
// longest record is no more than twice as long as the shortest.
const groupBatches = 2

// tally is what is known of a bucket's records.
type tally struct {
	count, shortest, longest uint64
}

func (t *tally) add(o tally) {
	if t.count == 0 {
		*t = o
		return
	}
	t.count += o.count
	t.shortest, t.longest = min(t.shortest, o.shortest), max(t.longest, o.longest)
}

// groupsOf joins the buckets from the longest lengths down. each says how many
// records of a length a batch holds.
func groupsOf(tallies []tally, each func(longest uint64) uint64) []group {
	var groups []group
	var open tally
	place := uint64(0)
	shut := func() {
		if open.count > 0 {
			g := group{first: place, end: place + open.count, longest: open.longest, each: each(open.longest)}
			groups, place, open = append(groups, g), g.end, tally{}
		}
	}
	for b := len(tallies) - 1; b >= 0; b-- {
		t := tallies[b]
		if t.count == 0 {
			continue
		}
		if open.count/groupBatches >= each(max(open.longest, 1)) || open.longest > 2*t.shortest {
			shut()
		}
		open.add(t)
	}
	shut()
	return groups
}

// cut numbers the batches of the first count places: a batch has as many
// records as the longest of the group in which it begins allows, also where it
// reaches into groups of shorter ones. It returns how many there are.
func cut(groups []group, count uint64) (batches uint64) {
	start := uint64(0)
	for i := range groups {
		g := &groups[i]
		g.start, g.batch = start, batches
		if end := min(g.end, count); start < end {
			n := (end-start-1)/g.each + 1
			start, batches = start+n*g.each, batches+n
		}
	}
	return batches
}

// batchAt is the run of places of a batch.
func batchAt(groups []group, batch, count uint64) (first, end uint64) {
	g := &groups[sort.Search(len(groups), func(i int) bool { return groups[i].batch > batch })-1]
	first = g.start + (batch-g.batch)*g.each
	return first, min(first+g.each, count)
}
