package engine

import (
	"loaderx/engine/internal/move"
)

// framesAhead is how many frames in front of the copy are prefetched.
const framesAhead = 2

// gatherFrames decodes the dense records of index to dst, or says no and may have
// decoded some. The frames are copied out of the mapping, which C must not see,
// into the decoder's batch and decoded many in one call.
func (c *cursor) gatherFrames(index []int64, dst []byte) bool {
	return c.locator.ready(c) && c.locator.guarded(func() bool { return c.frames(index, dst) })
}

func (c *cursor) frames(index []int64, dst []byte) bool {
	l, z, w := &c.locator, c.z, int(c.s.typed.Width)
	defer z.frames.Empty(keepBytes)
	spots := c.pairs.spots[:block]
	for k, n := 0, 0; k < len(index); k += n {
		n = min(block, len(index)-k)
		l.touch(index[k+n:min(k+n+block, len(index))], 1)
		for j, i := range index[k : k+n] {
			i += int64(l.length) & (i >> 63)
			if uint64(i) >= l.length || !l.find(uint64(i), &spots[j]) || int(spots[j].logic) != w {
				return false
			}
		}
		for j := range n {
			if j+framesAhead < n {
				spots[j+framesAhead].prefetch()
			}
			if !z.stage(&z.frames, &spots[j], (k+j)*w, dst) {
				return false
			}
		}
	}
	return z.dec.DecodeBatch(&z.frames, dst)
}

// prefetch asks for a record's bytes, unless there are so many that the copy
// streams by itself.
func (s *spot) prefetch() {
	if s.phys < farFrom {
		move.Prefetch(s.at, int(s.phys))
	}
}
