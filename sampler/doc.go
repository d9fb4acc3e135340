// Package sampler says which records make up which batch: the order of indices
// is a pure function of (seed, step).
//
// # The promise
//
// For given mode, length, batch size and seed, the batch of step t is the same
// on every machine, in every process, however many threads ask for it and
// whatever was asked before. Nothing is consumed: to resume a run, ask for the
// step it stopped at. The orders of this major version never change;
// testdata/golden.txt holds samples of them, and a test holds those.
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
// # Ranks
//
// The batch size is that of the global batch, which does not depend on the
// number of ranks. Rank r of R takes the contiguous places r*B/R to (r+1)*B/R
// of it and computes no others, so a run resumed with another R sees the same
// global batches.
//
// # Where to read
//
// sampler.go checks the arguments, shard.go cuts a rank's part out of the
// global batch, sequential.go, iid.go and cyclic.go are the orders. rng.go is
// the one source of randomness; shuffle.go and feistel.go are the two ways to
// permute a cycle. The package knows no files, and nothing of the rest of the
// project.
package sampler
