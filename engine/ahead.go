package engine

import (
	"sync/atomic"

	"loaderx/engine/internal/disk"
	"loaderx/engine/internal/vfs"
)

const (
	// probes is how many records of a batch are looked at.
	probes = 4
	// calmest bounds how many batches go by unlooked at: 2^calmest.
	calmest = 8
)

// Ahead asks the system to read the records of index in the background, and
// returns at once: for indices whose gather is still to come. It is advice, so
// nothing in it fails but an index or a store that cannot be used.
func (s *Store) Ahead(index []int64) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	v := s.view.Load()
	for k := range index {
		if _, err := wrap(index, k, v.length/s.perRecord(), s.path); err != nil {
			return err
		}
	}
	s.later.ask(s, v, index)
	return nil
}

// cold finds out when data have to come from the disk, and then asks for the
// whole of a batch before its first record is read: the disk works on many
// records at once, while reading one by one it waits for each. Data in memory
// must not pay for it, so it looks at a few records of a batch, and while they
// are in memory at fewer and fewer batches.
type cold struct {
	skip atomic.Int64 // batches to let go by
	calm atomic.Int64 // looks in a row that found everything in memory
}

// ask reads ahead for a batch if it is cold. Indices outside the store are left
// for the gather to find.
func (c *cold) ask(s *Store, v *view, index []int64) {
	if len(index) == 0 || c.skip.Load() > 0 && c.skip.Add(-1) >= 0 {
		return
	}
	for k := range min(probes, len(index)) {
		at := index[k*(len(index)-1)/max(1, min(probes, len(index))-1)]
		if s.isCold(v, at) {
			c.calm.Store(0)
			s.willNeed(v, index)
			return
		}
	}
	calm := min(c.calm.Add(1), calmest)
	c.skip.Store(1<<calm - 1)
}

func (s *Store) isCold(v *view, at int64) (yes bool) {
	s.extents(v, []int64{at}, func(f vfs.Advised, off, _ int64) { yes = yes || f.Cold(off) })
	return yes
}

// willNeed asks for the bytes of records, neighbours together, and before them for
// the rows of the table that have to be read to find them.
func (s *Store) willNeed(v *view, index []int64) {
	if v.perChunk == 0 {
		per := s.perRecord()
		for _, i := range index {
			i += v.length / per & (i >> 63)
			if i < 0 || i*per >= v.length {
				continue
			}
			id, k := s.limits.segmentOf(i * per)
			s.tables.advise(id, func(f vfs.Advised) { f.WillNeed(k*disk.EntrySize, per*disk.EntrySize) })
		}
	}
	s.extents(v, index, func(f vfs.Advised, off, n int64) { f.WillNeed(off, n) })
}

// extents calls do for where the records of index lie, as far as that can be told.
func (s *Store) extents(v *view, index []int64, do func(f vfs.Advised, off, n int64)) {
	c, per := s.borrowCursor(v), s.perRecord()
	defer c.end()
	var chunk, off, end int64
	flush := func() {
		if end > off {
			s.chunks.advise(int(chunk), func(f vfs.Advised) { do(f, off, end-off) })
		}
	}
	_ = c.guard(func() error {
		for _, i := range index {
			i += v.length / per & (i >> 63)
			for i, last := i*per, i*per+per; i >= 0 && last <= v.length && i < last; i++ {
				e, err := c.place(i)
				if err != nil || c.check(e) != nil || e.image != nil {
					continue
				}
				if int64(e.Chunk) != chunk || int64(e.Offset) != end {
					flush()
					chunk, off = int64(e.Chunk), int64(e.Offset)
				}
				end = int64(e.Offset) + int64(e.Phys)
			}
		}
		return nil
	})
	flush()
}

// place is entry, without the table where places follow a formula.
func (c *cursor) place(i int64) (place, error) {
	if c.v.perChunk > 0 && c.v.over == nil {
		return place{Entry: arithmeticEntry(i, uint32(c.s.typed.Width), c.v.perChunk)}, nil
	}
	return c.entry(i)
}
