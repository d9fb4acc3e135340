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
	l, z, n, w := &c.locator, c.z, len(index), int(c.s.typed.Width)
	defer z.frames.Empty(keepBytes)
	spots := c.pairs.spots[:ring]
	l.touch(index[:min(lead, n)], 1)
	found := 0
	for done := range n {
		for found < min(done+framesAhead+1, n) {
			l.touch(some(index, found+lead), 1)
			now := some(index, found)
			if !l.findFrames(now, spots[found%ring:], w) {
				return false
			}
			found += len(now)
		}
		if done+framesAhead < n {
			spots[(done+framesAhead)%ring].prefetch()
		}
		if !z.stage(&z.frames, &spots[done%ring], done*w, dst) {
			return false
		}
	}
	return z.dec.DecodeBatch(&z.frames, dst)
}

// findFrames fills in the spots of records, each of w bytes when decoded.
func (l *locator) findFrames(index []int64, spots []spot, w int) bool {
	for j, i := range index {
		i += int64(l.length) & (i >> 63)
		if uint64(i) >= l.length || !l.find(uint64(i), &spots[j]) || int(spots[j].logic) != w {
			return false
		}
	}
	return true
}

// prefetch asks for the first of a record's bytes.
func (s *spot) prefetch() { move.Prefetch(s.at, min(int(s.phys), aheadMost)) }
