package engine

import (
	"encoding/binary"

	"loaderx/engine/internal/disk"
	"loaderx/engine/internal/vfs"
)

// upgrade turns a version 4 store into version 5 in place, reading all of it
// once (FORMAT 8; the numbers are its steps). Its writer holds journal.zr.
// Until meta.zr is written it is a version 4 store, whatever else is there.
type upgrade struct {
	w          *writer
	st         state
	names      []string
	cur        *cursor
	next       int64 // physical record
	last       disk.Entry
	bytes      int64 // of the records so far
	arithmetic bool  // so far every entry follows the formula
	perChunk   uint32
}

// Upgrade is the upgrade that the first mutation of a version 4 store does, at
// once and in steps. A task that is ended early leaves a version 4 store. For
// a store of version 5 there is nothing to do.
func (s *Store) Upgrade() (*Task, error) {
	if err := s.takeTurn(); err != nil {
		return nil, err
	}
	t := &Task{s: s, stop: func() error { s.endTurn(); return nil }}
	var u *upgrade
	err := s.alone(func() (err error) {
		t.step = func() (bool, error) { return true, nil }
		if s.w != nil || s.st.version != 4 {
			return nil
		}
		u, err = s.beginUpgrade()
		return err
	})
	if err != nil {
		s.endTurn()
		return nil, err
	}
	if u == nil {
		return t, nil
	}
	t.total = u.st.length
	t.step = func() (done bool, err error) {
		err = s.alone(func() error {
			if done, err = u.step(); err == nil && done {
				err = u.w.sweepAndReserve()
			}
			if t.at = u.next; err == nil && done {
				s.w = u.w
			}
			return err
		})
		return done && err == nil, err
	}
	t.stop = func() error {
		if s.w != u.w {
			u.w.letGo()
		}
		s.endTurn()
		return nil
	}
	return t, nil
}

// beginUpgrade takes the writer's role as far as an upgrade needs it.
func (s *Store) beginUpgrade() (*upgrade, error) {
	if err := s.mayWrite(); err != nil {
		return nil, err
	}
	w, err := s.lockJournal(acquire)
	if err != nil {
		return nil, err
	}
	st, err := s.examine()
	if err == nil && st.version != 4 {
		err = errorf(StatusBusy, s.path, "%s: another handle has just upgraded it: open the store again", s.path)
	}
	var u *upgrade
	if err == nil {
		u, err = w.newUpgrade(st)
	}
	if err != nil {
		w.letGo()
	}
	return u, err
}

// newUpgrade is step 1: what a version 5 store would read is void.
func (w *writer) newUpgrade(st state) (*upgrade, error) {
	s := w.s
	s.adopt(st)
	u := &upgrade{w: w, st: st, cur: s.reader(s.view.Load()), perChunk: 1}
	if u.arithmetic = s.codec == Raw && s.typed.Kind == Dense; u.arithmetic {
		u.perChunk = uint32(s.limits.Chunk / int64(s.typed.Width))
	}
	// The last step writes it, when it is too late to refuse.
	if f, err := s.dir.Open(newName, vfs.Write); err == nil {
		_ = f.Close()
	} else if !vfs.IsNotExist(err) {
		return nil, notWritable(s.path, err)
	}
	if err := w.journal.Truncate(0); err != nil {
		return nil, fileError("upgrading", err)
	}
	var err error
	if u.names, err = s.dir.Names(); err != nil {
		return nil, fileError("upgrading", err)
	}
	for _, name := range append(beyond(u.names, sumExt, 0), numbered(0, sumExt)) {
		f, err := w.open(name)
		if err != nil {
			return nil, err
		}
		if err := f.Truncate(0); err != nil {
			return nil, fileError("upgrading", err)
		}
		f.touched = true
	}
	return u, nil
}

// sumsBytes is how many bytes of sums a step collects before it writes them.
const sumsBytes = 512 << 10

// step computes the checksums of some records and writes them; when it is done
// it commits.
func (u *upgrade) step() (done bool, err error) {
	s, width := u.w.s, uint32(u.w.s.typed.Width)
	var run []byte
	first, used := u.next, int64(0)
	for u.next < u.st.length && used < verifyBytes && len(run) < sumsBytes {
		if _, k := s.limits.segmentOf(u.next); k == 0 && u.next > first {
			break
		}
		sum, e, err := u.cur.sumOf(u.next)
		if err != nil {
			return false, err
		}
		u.arithmetic = u.arithmetic && e == arithmeticEntry(u.next, width, u.perChunk)
		run = binary.LittleEndian.AppendUint32(run, sum)
		u.last, u.next, used = e, u.next+1, used+int64(e.Phys)
	}
	// Records that share bytes are damage, and could take for ever to read.
	u.bytes += used
	if room := int64(u.st.tailChunk)*s.limits.Chunk + int64(u.st.tailOffset); u.bytes > room {
		return false, corrupt(s.path, "the first %d physical records say that they take %d bytes, but the chunks have at most %d: some share their bytes", u.next, u.bytes, room)
	}
	if len(run) > 0 {
		id, k := s.limits.segmentOf(first)
		if err := u.w.writeAt(numbered(id, sumExt), run, k*disk.SumSize); err != nil {
			return false, err
		}
	}
	if u.next < u.st.length {
		return false, u.w.rest()
	}
	return true, u.commit()
}

// commit is steps 2 to 5.
func (u *upgrade) commit() error {
	w, s := u.w, u.w.s
	if err := w.trimTables(u.names); err != nil {
		return err
	}
	if err := w.syncOld(u.st, u.names); err != nil {
		return err
	}
	w.slot = disk.Slot{StoreID: newID(), DictCRC: s.dictCRC}
	tail := [2]uint32{u.last.Chunk, u.last.Offset + u.last.Phys}
	if u.arithmetic && tail == [2]uint32{u.st.tailChunk, u.st.tailOffset} {
		w.slot.Arithmetic, w.slot.PerChunk = true, u.perChunk
	}
	w.names = true
	if err := w.checkpoint(); err != nil {
		return err
	}
	s.st.version = 5
	s.publish()
	return w.retype()
}

// sumOf computes the checksum of physical record i. A version 4 store has none
// to compare it with: what can be checked is that the entry is possible.
func (c *cursor) sumOf(i int64) (uint32, disk.Entry, error) {
	c.at = i / c.s.perRecord()
	var sum uint32
	var e place
	err := c.guard(func() (err error) {
		if e, err = c.entry(i); err != nil {
			return err
		}
		if err = c.check(e); err != nil {
			return err
		}
		bytes, err := c.mapped(e)
		if err == nil && bytes == nil && e.Phys > 0 {
			bytes, err = c.preadNew(e.Entry)
		}
		sum = disk.Sum(e.Phys, e.Logic, bytes)
		return err
	})
	return sum, e.Entry, err
}

// syncOld makes durable what 1.7.7 may have left in the page cache.
func (w *writer) syncOld(st state, names []string) error {
	touch := append(beyond(names, tableExt, -1), typedName)
	if w.s.codec == ZstdDict {
		touch = append(touch, dictName)
	}
	for id := int64(0); id <= int64(st.tailChunk); id++ {
		touch = append(touch, numbered(int(id), chunkExt))
	}
	return w.touch(touch)
}

// retype replaces store.zr by one of version 2, which names the store's id. It
// also finishes an upgrade that was cut short after its commit.
func (w *writer) retype() error {
	s := w.s
	t := disk.Typed{
		Version: 2, Kind: s.typed.Kind, Width: s.typed.Width,
		StoreID: w.slot.StoreID, Identity: s.typed.Identity,
	}
	w.shut(typedName) // Windows does not replace a file that is open
	if err := publishTyped(s.dir, t); err != nil {
		return w.poison(fileError("replacing "+typedName, err))
	}
	s.typed = t
	return nil
}

// publishTyped makes store.zr appear as a whole: temporary file, sync, rename,
// sync of the folder.
func publishTyped(dir vfs.Dir, t disk.Typed) error {
	f, err := dir.Open(newName, vfs.Create)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	b := t.Encode()
	if _, err := f.WriteAt(b, 0); err != nil {
		return err
	}
	if err := f.Truncate(int64(len(b))); err != nil { // an older one may be longer
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := dir.Rename(newName, typedName); err != nil {
		return err
	}
	return dir.Sync()
}
