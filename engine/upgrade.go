package engine

import (
	"encoding/binary"

	"loaderx/engine/internal/disk"
	"loaderx/engine/internal/vfs"
)

// upgrade turns a version 4 store into version 5 in place, reading all of it
// once (FORMAT 8; the numbers are its steps). The caller holds journal.zr.
// Until meta.zr is written it is a version 4 store, whatever else is there.
func (w *writer) upgrade(st state) error {
	s := w.s
	// 1
	if err := w.journal.Truncate(0); err != nil {
		return fileError("upgrading", err)
	}
	names, err := s.dir.Names()
	if err != nil {
		return fileError("upgrading", err)
	}
	for _, name := range beyond(names, sumExt, -1) {
		f, err := w.open(name)
		if err != nil {
			return err
		}
		if err := f.Truncate(0); err != nil {
			return fileError("upgrading", err)
		}
		f.touched = true
	}
	arithmetic, err := w.computeSums(st)
	if err != nil {
		return err
	}
	// 2
	if _, err := w.trimTables(names); err != nil {
		return err
	}
	if err := w.syncOld(st, names); err != nil {
		return err
	}
	// 3 and 4
	w.slot = disk.Slot{StoreID: newID(), DictCRC: s.dictCRC}
	if arithmetic {
		w.slot.Arithmetic, w.slot.PerChunk = true, uint32(s.limits.Chunk/int64(s.typed.Width))
	}
	w.names = true
	if err := w.checkpoint(); err != nil {
		return err
	}
	s.st.version = 5
	return w.retype() // 5
}

// computeSums checks every table entry and writes its sum. It says whether the
// layout follows the formula of an arithmetic store, tail included.
func (w *writer) computeSums(st state) (arithmetic bool, err error) {
	s := w.s
	cur := &cursor{s: s, v: s.view.Load(), segment: -1, chunk: -1}
	width := uint32(s.typed.Width)
	arithmetic = s.codec == Raw && s.typed.Kind == Dense
	perChunk := uint32(1)
	if arithmetic {
		perChunk = uint32(s.limits.Chunk / int64(width))
	}
	if _, err := w.open(numbered(0, sumExt)); err != nil {
		return false, err
	}
	var last disk.Entry
	var run []byte
	var first int64
	for i := int64(0); i < st.length; i++ {
		sum, e, err := cur.sumOf(i)
		if err != nil {
			return false, err
		}
		last = e
		arithmetic = arithmetic && e == arithmeticEntry(i, width, perChunk)
		run = binary.LittleEndian.AppendUint32(run, sum)
		if _, k := s.limits.segmentOf(i + 1); len(run) >= runBytes || k == 0 || i+1 == st.length {
			id, k := s.limits.segmentOf(first)
			if err := w.writeAt(numbered(id, sumExt), run, k*disk.SumSize); err != nil {
				return false, err
			}
			run, first = run[:0], i+1
			if err := w.rest(); err != nil {
				return false, err
			}
		}
	}
	tail := [2]uint32{last.Chunk, last.Offset + last.Phys}
	return arithmetic && tail == [2]uint32{st.tailChunk, st.tailOffset}, nil
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
			bytes = make([]byte, e.Phys)
			err = c.pread(e, bytes)
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
	for _, name := range touch {
		f, err := w.open(name)
		if err != nil {
			return err
		}
		f.touched = true
		if err := w.rest(); err != nil {
			return err
		}
	}
	return nil
}

// retype replaces store.zr by one of version 2, which names the store's id. It
// also finishes an upgrade that was cut short after its commit.
func (w *writer) retype() error {
	s := w.s
	t := disk.Typed{
		Version: 2, Kind: s.typed.Kind, Width: s.typed.Width,
		StoreID: w.slot.StoreID, Identity: s.typed.Identity,
	}
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
