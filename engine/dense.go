package engine

// GatherDense copies the records of index to dst, one after another. Negative
// indices count from the end. dst must be exactly as large as they are.
// threads bounds the goroutines that share the work; 0 means as many as pay.
func (s *Store) GatherDense(index []int64, dst []byte, threads int) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	w := int(s.typed.Width)
	if s.typed.Kind != Dense {
		return errorf(StatusArgument, s.path, "%s: a dense gather of a ragged store", s.path)
	}
	if len(dst)/w != len(index) || len(dst)%w != 0 {
		return errorf(StatusArgument, s.path, "%s: expected a destination of %d records of %d bytes, got %d bytes", s.path, len(index), w, len(dst))
	}
	v := s.view.Load()
	s.now.ask(s, v, index)
	per, workers := s.units(len(index), len(dst), threads)
	if workers == 1 {
		return s.one(v, len(dst), func(c *cursor) error { return c.denses(index, 0, len(index), dst) })
	}
	return s.pace.measure(len(dst), true, func() error {
		return s.gather(v, len(index), len(dst), per, workers, func(c *cursor, lo, hi int) error {
			return c.denses(index, lo, hi, dst)
		})
	})
}

// denses reads records lo to hi.
func (c *cursor) denses(index []int64, lo, hi int, dst []byte) error {
	w := int(c.s.typed.Width)
	fast := c.gatherStaged
	if c.z != nil {
		fast = c.gatherFrames
	}
	if fast(index[lo:hi], dst[lo*w:hi*w]) {
		return nil
	}
	return c.each(lo, hi, func(k int) error { return c.dense(index, k, dst) })
}

// dense reads record index[k].
func (c *cursor) dense(index []int64, k int, dst []byte) error {
	i, err := wrap(index, k, c.v.length, c.s.path)
	if err != nil {
		return err
	}
	c.at = i
	e, err := c.entry(i)
	if err != nil {
		return err
	}
	if err := c.check(e); err != nil {
		return err
	}
	w := int(c.s.typed.Width)
	if int(e.Logic) != w {
		return c.bad(e, "expected a record of %d bytes, got %d", w, e.Logic)
	}
	return c.read(e, dst[k*w:(k+1)*w:(k+1)*w])
}
