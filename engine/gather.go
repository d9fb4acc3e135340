package engine

import (
	"loaderx/engine/internal/fan"
)

// unitBytes is how much a worker takes at a time of a gather that is shared, and
// unitFrames how many small frames.
const (
	unitBytes  = 256 << 10
	unitFrames = 8
)

// wrap turns an index as the user gave it into one from 0 to n-1.
func wrap(index []int64, k int, n int64, path string) (int64, error) {
	i := index[k]
	if i < 0 {
		i += n
	}
	if i < 0 || i >= n {
		e := errorf(StatusIndex, path, "index %d is out of range for %d records (position %d of %d): %s", index[k], n, k, len(index), path)
		e.Index = index[k]
		return 0, e
	}
	return i, nil
}

// units says how many records a worker takes at a time, and how many workers may share
// n of them, of about size bytes in all.
func (s *Store) units(n, size, threads int) (per, workers int) {
	if threads == 1 || !s.pace.share(size, s.codec == Raw) {
		return max(1, n), 1
	}
	if threads <= 0 {
		threads = fan.Limit()
	}
	per = max(1, unitBytes/max(1, size/max(1, n)))
	if s.codec != Raw {
		per = min(unitFrames, per)
	}
	return per, threads
}

// one runs do, which reads n bytes, on this goroutine alone. Apart from gather, so
// that a small batch allocates nothing for others.
func (s *Store) one(v *view, n int, do func(c *cursor) error) error {
	c, err := s.newCursor(v, n)
	if err != nil {
		return err
	}
	defer c.end()
	return s.pace.measure(n, false, func() error { return do(c) })
}

// gather runs do for records lo to hi of a batch of n, size bytes in all, in units of
// per.
func (s *Store) gather(v *view, n, size, per, workers int, do func(c *cursor, lo, hi int) error) error {
	start := func() (*cursor, error) { return s.newCursor(v, size) }
	return fan.Run(workers, (n+per-1)/per, start, (*cursor).end, func(c *cursor, unit int) error {
		return do(c, unit*per, min((unit+1)*per, n))
	})
}

// each runs do for records lo to hi, on mapped memory.
func (c *cursor) each(lo, hi int, do func(k int) error) error {
	return c.guard(func() error {
		c.doubts = c.doubts[:0]
		for k := lo; k < hi; k++ {
			if err := do(k); err != nil {
				return err
			}
		}
		return c.resolve()
	})
}
