package engine

import (
	"errors"

	"loaderx/engine/internal/disk"
)

const (
	// roundBytes and roundRecords bound a round of a compaction: what it moves
	// is journalled first, and done by recovery if a crash interrupts it.
	roundBytes   = 64 << 20
	roundRecords = 256 << 10
)

// compaction moves every record down behind the one before it, in the order of
// their addresses, so that none is written over before it was moved.
type compaction struct {
	t    *Task
	s    *Store
	rows rows
	next int // position in the order
	pack packer
	room int64 // of a round, less when the journal cannot grow
	keep map[int64]bool
}

// Compact gives back the room of deleted records. It needs to be the only
// handle that has the store open, until the task ends; a task that is ended
// early has moved some records and freed nothing.
func (s *Store) Compact() (*Task, error) {
	if err := s.takeTurn(); err != nil {
		return nil, err
	}
	c := &compaction{s: s, pack: packer{room: s.limits.Chunk}, room: s.opts.round, keep: map[int64]bool{}}
	err := s.ready()
	if err == nil {
		err = s.alone(c.begin)
	}
	if err != nil {
		s.endTurn()
		return nil, err
	}
	c.t.stop = func() error {
		defer s.endTurn()
		err := s.alone(func() error {
			s.moving = false
			return s.goShared()
		})
		var e *Error
		if errors.As(err, &e) && e.Status == StatusClosed {
			return nil
		}
		return err
	}
	return c.t, nil
}

// begin takes the exclusive lock and plans.
func (c *compaction) begin() error {
	s := c.s
	s.settled()
	if err := s.w.usable(); err != nil {
		return err
	}
	if s.pins.Load() > 0 {
		return s.pinned("compact")
	}
	if err := s.goExclusive(); err != nil {
		return err
	}
	err := c.plan()
	if err == nil && s.w.pending {
		err = s.w.checkpoint()
	}
	if err != nil {
		return errors.Join(err, s.goShared())
	}
	s.moving = true
	return nil
}

func (c *compaction) plan() (err error) {
	s := c.s
	v := s.view.Load()
	if c.rows, err = s.rows(v); err != nil {
		return err
	}
	cur := s.reader(v)
	c.t = &Task{s: s, step: c.step}
	for i, e := range c.rows.entries {
		cur.at = int64(i) / s.perRecord()
		if err := cur.check(place{Entry: e}); err != nil {
			return err
		}
		c.t.total += int64(e.Phys)
	}
	if k := c.rows.overlap(); k >= 0 {
		i := c.rows.order[k]
		cur.at = i / s.perRecord()
		return cur.bad(place{Entry: c.rows.entries[i]}, "its bytes are also those of another record: not compacting a damaged store")
	}
	return nil
}

// step does a round, or the end.
func (c *compaction) step() (done bool, err error) {
	err = c.s.alone(func() error {
		if err := c.s.w.usable(); err != nil {
			return err
		}
		if c.next < len(c.rows.order) {
			return c.round()
		}
		done = true
		return c.finish()
	})
	return done && err == nil, err
}

// round collects the next records that move, and moves them.
func (c *compaction) round() error {
	start, pack := c.next, c.pack
	pack.ends = append([]int64(nil), c.pack.ends...)
	cur := c.s.reader(c.s.view.Load())
	var moves []disk.RedoEntry
	var payloads [][]byte
	var used, seen int64
	var source disk.Entry // of the first that moves
	for c.next < len(c.rows.order) && len(moves) < roundRecords && seen < c.s.opts.round {
		i := c.rows.order[c.next]
		e := c.rows.entries[i]
		if len(moves) > 0 && used+int64(e.Phys) > c.room {
			break
		}
		c.next++
		seen += int64(e.Phys)
		if c.keep[i] {
			c.pack.put(e)
			continue
		}
		to, moved := c.pack.next(e)
		if !moved {
			continue
		}
		payload, sum, err := cur.stored(i, e)
		if err != nil {
			return err
		}
		if len(moves) == 0 {
			source = e
		}
		used += int64(e.Phys)
		payloads = append(payloads, payload)
		moves = append(moves, disk.RedoEntry{Index: uint64(i), Entry: to, Sum: sum, Image: true})
	}
	err := c.carryOut(moves, payloads, source)
	var e *Error
	if errors.As(err, &e) && e.Status == StatusFull && c.s.w.broken == nil {
		// The journal cannot grow: smaller rounds, and in the end a record
		// whose image finds no room stays where it is.
		if len(moves) == 1 {
			c.keep[int64(moves[0].Index)] = true
		}
		c.room = min(c.room, used) / 2
		c.next, c.pack = start, pack
		return nil
	}
	c.t.at += seen
	return err
}

// stored is the bytes of a record as they lie in its chunk, if its sum holds.
func (c *cursor) stored(i int64, e disk.Entry) (payload []byte, sum uint32, err error) {
	c.at = i / c.s.perRecord()
	err = c.guard(func() error {
		if sum, err = c.sum(i); err != nil {
			return err
		}
		bytes, err := c.mapped(place{Entry: e})
		if err != nil {
			return err
		}
		if bytes == nil && e.Phys > 0 {
			payload, err = c.preadNew(e)
			return err
		}
		payload = append([]byte{}, bytes...)
		return nil
	})
	if err == nil && disk.Sum(e.Phys, e.Logic, payload) != sum {
		err = c.bad(place{Entry: e}, "its checksum is wrong")
	}
	return payload, sum, err
}

// carryOut moves the records of a round (FORMAT 7.2, "compact"). Where all go
// below the first source, their old bytes stay until the redo record is
// durable, and it needs no images.
func (c *compaction) carryOut(moves []disk.RedoEntry, payloads [][]byte, source disk.Entry) error {
	if len(moves) == 0 {
		return nil
	}
	w := c.s.w
	if err := w.leaveFormula(); err != nil {
		return err
	}
	last := moves[len(moves)-1].Entry
	end := int64(last.Offset) + int64(last.Phys)
	if last.Chunk < source.Chunk || last.Chunk == source.Chunk && end <= int64(source.Offset) {
		if err := w.applyImages(moves, payloads); err != nil {
			return err
		}
		if err := w.flush(); err != nil {
			return w.poison(fileError("compacting", err))
		}
		for k := range moves {
			moves[k].Image = false
		}
	}
	if err := w.journalRedo(c.s.st.length, moves, payloads); err != nil {
		return err
	}
	err := w.apply(moves, payloads)
	if err == nil {
		err = w.checkpoint()
	}
	if err != nil {
		return w.stick(err)
	}
	for _, m := range moves {
		c.rows.entries[m.Index] = m.Entry
	}
	return nil
}

// finish makes the new end durable, then gives back what lies behind it.
func (c *compaction) finish() error {
	s, w := c.s, c.s.w
	ends := c.pack.ends
	if len(ends) == 0 {
		ends = []int64{0}
	}
	last := len(ends) - 1
	s.st.tailChunk, s.st.tailOffset = uint32(last), uint32(ends[last])
	if err := w.checkpoint(); err != nil {
		return err
	}
	// Even if not all can be given back: what is read from now on must not
	// come from a file that is gone. Windows does not cut or remove a file as
	// long as it is mapped.
	s.resetSources()
	defer s.publish()
	names, err := s.dir.Names()
	if err != nil {
		return ioError("compacting", err)
	}
	segments, _ := s.limits.segmentOf(max(s.st.length-1, 0))
	extra := beyond(names, chunkExt, int64(last))
	extra = append(extra, beyond(names, tableExt, int64(segments))...)
	extra = append(extra, beyond(names, sumExt, int64(segments))...)
	for _, name := range extra {
		if err := w.remove(name); err != nil {
			return ioError("compacting", err)
		}
	}
	for id, end := range ends {
		if err := w.cut(numbered(id, chunkExt), end); err != nil {
			return err
		}
	}
	return ioError("compacting", s.dir.Sync())
}

// cut makes a data file end where its data do.
func (w *writer) cut(name string, end int64) error {
	size, err := w.s.sizeOf(name)
	if err != nil || size <= end {
		return err
	}
	f, err := w.open(name)
	if err != nil {
		return err
	}
	if err := f.Truncate(end); err != nil {
		return ioError("cutting "+name, err)
	}
	f.touched = true
	return w.rest()
}
