package engine

import (
	"encoding/binary"
	"time"

	"loaderx/engine/internal/disk"
)

// Batch is an append in progress: any number of parts, published by Commit or
// taken back by Abort. Its methods are for one goroutine at a time.
type Batch struct {
	s      *Store
	start  int64 // physical length before
	n      int64 // physical records added
	bytes  int64 // that they take
	at     frontier
	wrote  bool // payload may have been written, and not been taken back
	tabled bool // table or sum entries may have been written
	failed error
	ended  bool

	entries []disk.Entry // of the current slice, reused
	sums    []uint32
	table   []byte
}

// Begin opens a batch. It takes the writer's role if the handle does not have
// it, and waits for another batch of this handle as for a lock.
func (s *Store) Begin() (*Batch, error) {
	if err := s.takeTurn(); err != nil {
		return nil, err
	}
	b, err := s.begin()
	if err != nil {
		s.endTurn()
	}
	return b, err
}

// takeTurn waits for whoever is changing the store through this handle.
func (s *Store) takeTurn() error {
	timer := time.NewTimer(lockWait)
	defer timer.Stop()
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-s.closing:
		return errorf(StatusClosed, s.path, "%s: the store is closed", s.path)
	case <-timer.C:
		return errorf(StatusBusy, s.path, "%s: this handle is being changed by another call or batch; tried for %v", s.path, lockWait)
	}
}

func (s *Store) endTurn() { <-s.turn }

func (s *Store) begin() (*Batch, error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	s.mut.Lock()
	defer s.mut.Unlock()
	if err := s.w.usable(); err != nil {
		return nil, err
	}
	if s.w.redo > 0 {
		// No unsynced appends beside redo records (FORMAT 7.1.5).
		if err := s.w.checkpoint(); err != nil {
			return nil, err
		}
	}
	room := s.limits.Chunk
	if s.w.slot.Arithmetic {
		room = int64(s.w.slot.PerChunk) * int64(s.typed.Width)
	}
	s.batch = &Batch{
		s: s, start: s.st.length,
		at: frontier{chunk: s.st.tailChunk, off: int64(s.st.tailOffset), room: room},
	}
	return s.batch, nil
}

// ready makes the handle the writer, if it is not. The caller has the turn.
func (s *Store) ready() error {
	if err := s.enter(); err != nil {
		return err
	}
	s.mut.Lock()
	w := s.w
	s.mut.Unlock()
	s.leave()
	if w != nil {
		return nil
	}
	return s.alone(s.becomeWriter)
}

// do runs one call of the batch: with the store open, its state locked and the
// writer able to write.
func (b *Batch) do(call func() error) error {
	s := b.s
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	s.mut.Lock()
	defer s.mut.Unlock()
	if b.ended {
		return errorf(StatusClosed, s.path, "%s: the batch has ended", s.path)
	}
	return call()
}

// add appends the part that made gives. After a failure, also one of its
// arguments, the batch takes no more: what the caller meant is not known.
func (b *Batch) add(made func() (*part, error)) error {
	return b.do(func() error {
		if b.failed != nil {
			return b.failed
		}
		if err := b.s.w.usable(); err != nil {
			return err
		}
		var p *part
		p, b.failed = made()
		for b.failed == nil && p.n > 0 {
			b.failed = b.addSlice(p.cut(b.s.limits))
		}
		if b.failed != nil {
			// Now, so that the answer knows whether that could be done.
			b.failed = b.undo(b.failed)
		}
		return b.failed
	})
}

// Refuse ends the batch's use for an error that its caller found in a part.
func (b *Batch) Refuse(err error) error {
	return b.add(func() (*part, error) { return nil, err })
}

// addSlice writes payloads, joins all workers, then writes the table and the
// sums (FORMAT 7.2). The header is the commit's.
func (b *Batch) addSlice(p part) error {
	if len(b.entries) < p.n {
		b.entries, b.sums = make([]disk.Entry, p.n), make([]uint32, p.n)
		b.table = make([]byte, p.n*disk.EntrySize)
	}
	entries, sums := b.entries[:p.n], b.sums[:p.n]
	if !b.wrote {
		if err := b.openFirst(); err != nil {
			return err
		}
	}
	b.wrote = true
	var err error
	if b.s.codec == Raw {
		err = b.writeRaw(&p, entries, sums)
	} else {
		err = b.writeCompressed(&p, entries, sums)
	}
	if err != nil {
		return err
	}
	b.tabled = true
	if err := b.writeTables(entries, sums); err != nil {
		return err
	}
	b.n += int64(p.n)
	for _, e := range entries {
		b.bytes += int64(e.Phys)
	}
	return b.s.w.rest()
}

// openFirst opens what the first slice is written to, and what taking it back
// would cut, so that a link or a missing right shows before anything is written. So
// does a file that another program has cut: written to behind its end, what was lost
// would read as zeros.
func (b *Batch) openFirst() error {
	id, k := b.s.limits.segmentOf(b.start)
	for _, f := range []struct {
		name string
		end  int64 // of what is there
	}{
		{numbered(int(b.at.chunk), chunkExt), b.at.off},
		{numbered(id, tableExt), k * disk.EntrySize},
		{numbered(id, sumExt), k * disk.SumSize},
	} {
		file, err := b.s.w.open(f.name)
		if err != nil {
			return err
		}
		size, err := file.Size()
		if err != nil {
			return fileError("appending", err)
		}
		if size < f.end {
			return corrupt(file.Path(), "expected at least %d bytes, got %d: another program has cut it", f.end, size)
		}
	}
	return nil
}

// writeTables writes the entries and sums of the slice behind those before it.
func (b *Batch) writeTables(entries []disk.Entry, sums []uint32) error {
	for first := b.start + b.n; len(entries) > 0; {
		id, k := b.s.limits.segmentOf(first)
		n := int(min(int64(len(entries)), b.s.limits.Segment-k))
		locs := b.table[:n*disk.EntrySize]
		for i, e := range entries[:n] {
			e.Put(locs[i*disk.EntrySize:])
		}
		if err := b.s.w.writeAt(numbered(id, tableExt), locs, k*disk.EntrySize); err != nil {
			return err
		}
		crcs := b.table[:n*disk.SumSize]
		for i, sum := range sums[:n] {
			binary.LittleEndian.PutUint32(crcs[i*disk.SumSize:], sum)
		}
		if err := b.s.w.writeAt(numbered(id, sumExt), crcs, k*disk.SumSize); err != nil {
			return err
		}
		entries, sums, first = entries[n:], sums[n:], first+int64(n)
	}
	return nil
}

// Commit publishes the batch: meta.zr is the commit point. It returns the
// index of the first record. Whatever it returns, the batch has ended.
func (b *Batch) Commit() (first int64, err error) {
	err = b.do(func() error {
		if b.failed == nil {
			b.failed = b.s.w.usable()
		}
		if b.failed != nil {
			b.end()
			return b.undo(b.failed)
		}
		b.end()
		if b.n == 0 {
			return nil
		}
		return b.publish()
	})
	return b.start / b.s.perRecord(), err
}

func (b *Batch) publish() error {
	s, before := b.s, b.s.st
	s.st.length += b.n
	s.st.tailChunk, s.st.tailOffset = b.at.chunk, uint32(b.at.off)
	if err := s.w.writeHeader(false); err != nil {
		s.st = before
		return s.w.poison(fileError("committing an append", err))
	}
	s.w.pending = true
	s.w.since += b.bytes
	s.publish()
	if s.w.since >= s.limits.Checkpoint {
		s.w.checkpointBehind()
	}
	return nil
}

// Abort takes the batch back.
func (b *Batch) Abort() error { return b.do(b.rollBack) }

func (b *Batch) end() {
	b.ended = true
	b.s.batch = nil
	b.s.endTurn()
}

// rollBack leaves the store as it was before the batch (FORMAT 7.2, "append
// fails"): new chunks go, the tail chunk and the tables are cut, and if any
// table entry was written a checkpoint makes that durable.
func (b *Batch) rollBack() error {
	b.end()
	return b.undo(nil)
}

// undo takes back what was written for a cause, which may be nil. It is the
// error afterwards, too, unless taking back fails.
func (b *Batch) undo(cause error) error {
	w := b.s.w
	if !b.wrote || w.broken != nil {
		return cause
	}
	if err := b.takeBack(); err != nil {
		if w.broken == nil {
			err = w.poison(then(cause, ioError("taking back an append", err)))
		}
		return err
	}
	b.wrote = false
	return cause
}

func (b *Batch) takeBack() error {
	s, w := b.s, b.s.w
	for id := int64(b.at.chunk); id > int64(s.st.tailChunk); id-- {
		if err := w.remove(numbered(int(id), chunkExt)); err != nil {
			return err
		}
	}
	tail, err := w.open(numbered(int(s.st.tailChunk), chunkExt))
	if err != nil {
		return err
	}
	if err := tail.Truncate(int64(s.st.tailOffset)); err != nil {
		return err
	}
	tail.touched = true
	if !b.tabled {
		return nil
	}
	names, err := s.dir.Names()
	if err != nil {
		return err
	}
	long, err := w.longTables(names)
	if err != nil {
		return err
	}
	return w.takeAway(long)
}
