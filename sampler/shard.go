package sampler

import "math/bits"

// shard is a rank's contiguous part of every global batch. Contiguous, so that
// the parts of ranks 0, 1, ... put one after another are the global batch.
type shard struct {
	size   uint64 // indices in the part
	offset uint64 // of the part in the global batch
	whole  bool   // one rank: the parts of consecutive steps follow each other
}

// newShard expects world to divide batch, and rank to be less than world: the
// offset is then less than batch and cannot overflow.
func newShard(batch, rank, world uint64) shard {
	size := batch / world
	return shard{size: size, offset: rank * size, whole: world == 1}
}

// checkRanks refuses what newShard does not take. field is the batch's name.
func checkRanks(field string, batch int64, rank, world int32) error {
	switch {
	case world < 1:
		return badArgument("world_size", "expected at least 1, got %d", world)
	case rank < 0 || rank >= world:
		return badArgument("rank", "expected at least 0 and less than world_size %d, got %d", world, rank)
	case batch%int64(world) != 0:
		return badArgument(field, "expected a multiple of world_size %d, got %d", world, batch)
	}
	return nil
}

// checkRoom refuses any room but that of the parts of so many steps.
func (s shard) checkRoom(count int, steps int64) error {
	over, want := bits.Mul64(uint64(steps), s.size)
	if over != 0 || want != uint64(count) {
		return badArgument("count", "expected room for %d steps of %d indices, got room for %d indices",
			steps, s.size, count)
	}
	return nil
}
