package sampler

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
