package engine

import (
	"errors"
	"io"
	"maps"
	"slices"

	"loaderx/engine/internal/disk"
	"loaderx/engine/internal/vfs"
)

// readFull reads all of p. The file had it a moment ago: its end is an error.
func readFull(file vfs.File, p []byte, off int64) error {
	_, err := file.ReadAt(p, off)
	return shrunk(file, err)
}

// shrunk is the error of reading what a file had a moment ago.
func shrunk(file vfs.File, err error) error {
	if errors.Is(err, io.EOF) {
		return corrupt(file.Path(), "the file became shorter while it was read")
	}
	return fileError("reading "+file.Path(), err)
}

// journalRedo makes a record durable before it is applied. images has
// the payloads of the entries that carry one, each at its entry's place. A full disk fails it with
// nothing changed; a failed sync poisons the handle.
func (w *writer) journalRedo(length int64, entries []disk.RedoEntry, images [][]byte) error {
	if err := w.openFor(length, entries); err != nil {
		return err
	}
	r := disk.Redo{StoreID: w.slot.StoreID, Meta: w.header(), Seq: w.seq, Entries: entries}
	r.Meta.Length = uint64(length)
	size := int64(disk.RedoHeadSize+disk.RedoEntrySize*len(entries)) + int64(r.ImageBytes())
	if w.redo > 0 && w.redo+size > disk.RedoReserve {
		if err := w.checkpoint(); err != nil {
			return err
		}
		r.Meta.Epoch, r.Seq = w.slot.Meta.Epoch, w.seq
	}
	at := disk.RedoStart + w.redo
	if err := w.journal.Reserve(at, size); err != nil {
		return fileError("journalling", err)
	}
	pieces := [][]byte{r.Encode()}
	for k, e := range entries {
		if e.Image {
			pieces = append(pieces, images[k])
		}
	}
	for _, p := range pieces {
		if _, err := w.journal.WriteAt(p, at); err != nil {
			return w.unwrite(fileError("journalling", err))
		}
		at += int64(len(p))
	}
	if err := w.journal.Sync(); err != nil {
		return w.poison(fileError("journalling", err))
	}
	w.redo = (at - disk.RedoStart + disk.RedoAlign - 1) &^ (disk.RedoAlign - 1)
	w.seq++
	return nil
}

// unwrite takes back a record that failed while it was written: all of it may
// be there, and then it would count.
func (w *writer) unwrite(cause error) error {
	var none [disk.RedoHeadSize]byte
	_, err := w.journal.WriteAt(none[:], disk.RedoStart+w.redo)
	if err == nil {
		err = w.journal.Sync()
	}
	if err != nil {
		return w.poison(errors.Join(cause, err))
	}
	return cause
}

// openFor opens for writing what carrying out a record changes, so that a link
// or a missing right shows before the record counts.
func (w *writer) openFor(length int64, entries []disk.RedoEntry) error {
	limits := w.s.limits
	tables := map[int]bool{}
	for _, e := range entries {
		id, _ := limits.segmentOf(int64(e.Index))
		tables[id] = true
		if e.Image {
			if _, err := w.open(numbered(int(e.Entry.Chunk), chunkExt)); err != nil {
				return err
			}
		}
	}
	for i := length; i < w.s.st.length; i += limits.Segment - i&(limits.Segment-1) {
		id, _ := limits.segmentOf(i)
		tables[id] = true // to be cut
	}
	for _, id := range slices.Sorted(maps.Keys(tables)) {
		for _, ext := range []string{tableExt, sumExt} {
			if _, err := w.open(numbered(id, ext)); err != nil {
				return err
			}
		}
	}
	return nil
}

// apply writes what a record says: images, then table entries and sums. They
// are synced with the next checkpoint.
func (w *writer) apply(entries []disk.RedoEntry, images [][]byte) error {
	if err := w.applyImages(entries, images); err != nil {
		return err
	}
	return w.applyEntries(entries)
}

// applyImages writes the payloads that a record carries.
func (w *writer) applyImages(entries []disk.RedoEntry, images [][]byte) error {
	for k, e := range entries {
		if !e.Image {
			continue
		}
		if err := w.writeAt(numbered(int(e.Entry.Chunk), chunkExt), images[k], int64(e.Entry.Offset)); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) applyEntries(entries []disk.RedoEntry) error {
	for _, e := range entries {
		id, k := w.s.limits.segmentOf(int64(e.Index))
		var loc [disk.EntrySize]byte
		e.Entry.Put(loc[:])
		if err := w.writeAt(numbered(id, tableExt), loc[:], k*disk.EntrySize); err != nil {
			return err
		}
		if err := w.writeAt(numbered(id, sumExt), le32(e.Sum), k*disk.SumSize); err != nil {
			return err
		}
	}
	return nil
}

func le32(v uint32) []byte { return []byte{byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24)} }
