package engine

import (
	"cmp"
	"encoding/binary"
	"slices"

	"loaderx/engine/internal/disk"
	"loaderx/engine/internal/vfs"
)

// Delete removes records. Each hole is filled with the last record, so the
// live ones stay 0 to n-1; a batch is done in descending order, with
// duplicates removed, so no swap moves a record that is still to go. Negative
// indices count from the end. It needs to be the only handle that has the
// store open, and is durable when it returns.
func (s *Store) Delete(index []int64) error {
	if len(index) == 0 {
		return s.usable()
	}
	if err := s.takeTurn(); err != nil {
		return err
	}
	defer s.endTurn()
	if err := s.ready(); err != nil {
		return err
	}
	return s.alone(func() error {
		s.settled()
		if err := s.w.usable(); err != nil {
			return err
		}
		if s.pins.Load() > 0 {
			return s.pinned("delete")
		}
		gone, err := s.descending(index)
		if err != nil {
			return err
		}
		return s.exclusively(func() error { return s.w.delete(gone) })
	})
}

// usable says why the handle cannot be used, or nil.
func (s *Store) usable() error {
	if err := s.enter(); err != nil {
		return err
	}
	s.leave()
	return nil
}

// descending is the wrapped indices, each once, the largest first.
func (s *Store) descending(index []int64) ([]int64, error) {
	n := s.st.length / s.perRecord()
	gone := make([]int64, len(index))
	for k := range index {
		i, err := wrap(index, k, n, s.path)
		if err != nil {
			return nil, err
		}
		gone[k] = i
	}
	slices.Sort(gone)
	gone = slices.Compact(gone)
	slices.Reverse(gone)
	return gone, nil
}

// delete is the write order of FORMAT 7.2: checkpoint if there is anything
// that it has to cover, the redo record, then what it says.
func (w *writer) delete(gone []int64) error {
	s := w.s
	if err := w.leaveFormula(); err != nil {
		return err
	}
	if w.pending && w.redo == 0 {
		if err := w.checkpoint(); err != nil {
			return err
		}
	}
	entries, err := w.afterImages(gone)
	if err != nil {
		return err
	}
	length := s.st.length - int64(len(gone))*s.perRecord()
	if err := w.journalRedo(length, entries, nil); err != nil {
		return err
	}
	if err := w.finishDelete(length, entries); err != nil {
		return w.stick(err)
	}
	s.publish()
	return nil
}

func (w *writer) finishDelete(length int64, entries []disk.RedoEntry) error {
	if err := w.apply(entries, nil); err != nil {
		return err
	}
	w.s.st.length, w.pending = length, true
	names, err := w.s.dir.Names()
	if err != nil {
		return err
	}
	if err := w.trimTables(names); err != nil {
		return err
	}
	return w.writeHeader(false)
}

// stick ends the handle's use after a change that is durable in the journal
// but not done in the files: it keeps both locks and refuses reads until it is
// closed, and the next writer finishes the change (FORMAT 6.5).
func (w *writer) stick(err error) error {
	w.broken = err
	e := errorf(StatusIO, w.s.path, "%s: a change was recorded but could not be carried out (%v); it will be when the store is opened again: close it", w.s.path, err)
	e.Errno, e.Cause = vfs.Errno(err), err
	w.s.stuck = e
	return e
}

// afterImages is what the table says of the holes once they are filled. gone is
// in descending order.
func (w *writer) afterImages(gone []int64) ([]disk.RedoEntry, error) {
	s, per := w.s, w.s.perRecord()
	after := make(map[int64]disk.RedoEntry, per*int64(len(gone)))
	c := s.reader(s.view.Load())
	length := s.st.length
	for _, i := range gone {
		length -= per
		for k := range per {
			from, to := length+k, i*per+k
			if from == to {
				continue // the last one: nothing moves
			}
			e, ok := after[from]
			if !ok {
				var err error
				var at place
				if at, e.Sum, err = c.row(from); err != nil {
					return nil, err
				}
				e.Entry = at.Entry
			}
			e.Index = uint64(to)
			after[to] = e
		}
	}
	entries := make([]disk.RedoEntry, 0, len(after))
	for to, e := range after {
		if to < length {
			entries = append(entries, e)
		}
	}
	slices.SortFunc(entries, func(a, b disk.RedoEntry) int { return cmp.Compare(a.Index, b.Index) })
	return entries, nil
}

// row is the table entry and the sum of physical record i.
func (c *cursor) row(i int64) (e place, sum uint32, err error) {
	c.at = i / c.s.perRecord()
	err = c.guard(func() error {
		if e, err = c.entry(i); err != nil {
			return err
		}
		if err = c.check(e); err != nil {
			return err // a redo record of it would be refused (FORMAT 7)
		}
		sum, err = c.sum(i)
		return err
	})
	return e, sum, err
}

// sum is the stored checksum of physical record i.
func (c *cursor) sum(i int64) (uint32, error) {
	if o, ok := c.v.overlaid(i); ok {
		return o.sum, nil
	}
	id, k := c.s.limits.segmentOf(i)
	off := k * disk.SumSize
	b, err := c.s.sums.bytes(id, off+disk.SumSize)
	if b != nil {
		return binary.LittleEndian.Uint32(b[off:]), nil
	}
	var one [disk.SumSize]byte
	if err == nil {
		err = c.s.sums.read(id, one[:], off)
	}
	if err != nil {
		return 0, c.unreadable(sumExt, id, off, err)
	}
	return binary.LittleEndian.Uint32(one[:]), nil
}
