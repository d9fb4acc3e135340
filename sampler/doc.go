// Package sampler says which records make up which batch: the order of indices
// is a pure function of (seed, step).
//
// # The promise
//
// For given mode, length, batch size and seed, the batch of step t is the same
// on every machine, in every process, however many threads ask for it and
// whatever was asked before. Nothing is consumed: to resume a run, ask for the
// step it stopped at, which takes no longer the later it is. The same holds of
// splits, mixes and budgets. The orders of this major version never change; the
// files of testdata hold samples of them, and a test holds those.
//
// # Modes
//
// Sequential walks 0, 1, 2, ... and wraps from the last record to the first,
// also within a batch.
//
// IID draws every index independently, with replacement, each record equally
// likely. The draws repeat after 2^64 of them.
//
// Cyclic draws without replacement. A cycle is as many full batches as the
// length holds; every cycle has an order of its own and visits no record
// twice. The length mod the batch size records that are left over are dropped,
// other ones in each cycle.
//
// # Subsets and splits
//
// A Subset, a list or a range of records, is drawn from like a store of that
// length: the order is over its places, and nothing is copied. Split cuts a
// store into random parts of exact sizes.
//
// # Mixes
//
// A Mix draws from several sources. Which one a place of a batch draws from is
// decided in blocks of 64 places: how many of a block each source gets follows
// from the weights, so that after any number of draws no source is further from
// its share than the arrangement of one block makes it; and the order within a
// block is random. How many draws a source has had before a step is computed,
// not counted, and its own draws follow its mode from there.
//
// # Budgets
//
// A Budget forms batches of as many records as fit a padded size: the count
// times the longest length. Records of like lengths are grouped, and the group
// is shuffled in every cycle; where the batches are cut in the order of the
// groups is fixed, as is their number; in what order they come is random. What
// fixed cuts cost in padding is that a batch has room for the longest record of
// its group, whether that is in it or not; what they give is that a step leads
// to its batch at once. In a set so small that a batch takes all of a group,
// the same records meet in it again.
//
// # Ranks
//
// The batch size is that of the global batch, which does not depend on the
// number of ranks. Rank r of R takes the contiguous places r*B/R to (r+1)*B/R
// of it and computes no others, so a run resumed with another R sees the same
// global batches. So it is with mixes, and with budgets whose counts are
// multiples of R.
//
// # Where to read
//
// sampler.go checks the arguments, shard.go cuts a rank's part out of the
// global batch, sequential.go, iid.go and cyclic.go are the orders. rng.go is
// the one source of randomness; permute.go gives every cycle its permutation,
// and shuffle.go and feistel.go are the two ways to make one. subset.go and
// split.go are parts of stores. mix.go goes with quota.go, how many draws each
// source gets, and arrange.go, which come when; budget.go with bucket.go, how
// batches are cut; shares.go makes exact ratios of fractions and weights. The
// package knows no files, and nothing of the rest of the project.
package sampler
