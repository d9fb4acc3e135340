package engine

import (
	"errors"
	"io"

	"loaderx/engine/internal/disk"
)

// leaveFormula ends arithmetic places with a checkpoint, before the first redo
// record: what that says does not follow the formula. From then on the table counts,
// which was not read until now: an entry that has rotted in it must not take a record
// with it that could be read.
func (w *writer) leaveFormula() error {
	if !w.slot.Arithmetic {
		return nil
	}
	if err := w.restoreTable(); err != nil {
		return err
	}
	w.slot.Arithmetic, w.slot.PerChunk = false, 0
	return w.checkpoint()
}

// restoreTable writes the entries anew that are not what the formula says. Those of
// a sound store it only reads: 16 bytes a record, once in its life.
func (w *writer) restoreTable() error {
	s, width := w.s, uint32(w.s.typed.Width)
	var block [4096 * disk.EntrySize]byte
	for i := int64(0); i < s.st.length; {
		id, k := s.limits.segmentOf(i)
		n := min(s.st.length-i, s.limits.Segment-k, int64(len(block))/disk.EntrySize)
		raw := block[:n*disk.EntrySize]
		switch err := s.tables.read(id, raw, k*disk.EntrySize); {
		case errors.Is(err, io.EOF):
			return corrupt(s.dir.Path()+"/"+numbered(id, tableExt), "expected entries of %d records, got an end before them", s.st.length)
		case err != nil:
			return fileError("reading "+numbered(id, tableExt), err)
		}
		for j := range n {
			e := arithmeticEntry(i+j, width, w.slot.PerChunk)
			place := raw[j*disk.EntrySize:][:disk.EntrySize]
			if disk.DecodeEntry(place) == e {
				continue
			}
			e.Put(place)
			if err := w.writeAt(numbered(id, tableExt), place, (k+j)*disk.EntrySize); err != nil {
				return err
			}
		}
		i += n
	}
	return nil
}
