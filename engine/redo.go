package engine

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"

	"loaderx/engine/internal/disk"
	"loaderx/engine/internal/vfs"
)

// overlay is what a redo chain that has not been applied says of the tables
// (FORMAT 7.3.5). It is read-only.
type overlay struct {
	header  disk.Meta // after the last record
	records []redoRecord
	entries map[int64]overlaid // by physical index, the latest
}

// redoRecord is a record with the images that follow it in the journal, each
// at its entry's place; nil where the entry has none.
type redoRecord struct {
	disk.Redo
	images [][]byte
}

// overlaid is a table entry after its redo record; image is the payload where
// the record carries it, since the chunk may not have it yet.
type overlaid struct {
	entry disk.Entry
	sum   uint32
	image []byte
}

// readChain reads the redo records of the checkpoint's epoch, or nil if there
// are none. The first that does not count ends the chain; one that counts but
// points outside the store is an error.
func (f *folder) readChain(journal vfs.File, st *state) (*overlay, error) {
	size, err := journal.Size()
	if err != nil {
		return nil, fileError("reading the journal", err)
	}
	over := &overlay{entries: map[int64]overlaid{}}
	for pos := int64(disk.RedoStart); ; {
		r, end, err := readRedo(journal, pos, size, st.slot)
		if err != nil {
			return nil, err
		}
		if end == 0 || int(r.Seq) != len(over.records) {
			break
		}
		if err := f.inside(journal.Path(), r.Redo, st); err != nil {
			return nil, err
		}
		if n := len(over.records); n > 0 && over.records[n-1].ImageBytes() > 0 {
			return nil, corrupt(journal.Path(), "redo record %d follows one with images, which a checkpoint should have ended", r.Seq)
		}
		over.header, over.records = r.Meta, append(over.records, r)
		for k, e := range r.Entries {
			over.entries[int64(e.Index)] = overlaid{e.Entry, e.Sum, r.images[k]}
		}
		pos = (end + disk.RedoAlign - 1) &^ (disk.RedoAlign - 1)
	}
	if len(over.records) == 0 {
		return nil, nil
	}
	return over, nil
}

// readRedo reads the record at pos and its images. end is where it ends, or 0
// if none counts there: it has to lie inside the file and be of checkpoint c,
// and its CRC and the sum of every image have to hold.
func readRedo(journal vfs.File, pos, size int64, c disk.Slot) (r redoRecord, end int64, err error) {
	if pos+disk.RedoHeadSize > size {
		return r, 0, nil
	}
	head := make([]byte, disk.RedoHeadSize)
	if err := readFull(journal, head, pos); err != nil {
		return r, 0, err
	}
	h, ok := disk.DecodeRedoHead(head)
	if !ok || h.StoreID != c.StoreID || h.Meta.Epoch != c.Meta.Epoch {
		return r, 0, nil
	}
	// Bounded by the file before anything is allocated.
	if uint64(h.Count) > h.Meta.Length || h.ImageBytes > uint64(size) || pos+h.Size()+int64(h.ImageBytes) > size {
		return r, 0, nil
	}
	raw, err := readEntries(journal, head, pos, h)
	if err != nil {
		return r, 0, err
	}
	if r.Redo, ok = disk.DecodeRedo(raw); !ok {
		return r, 0, nil
	}
	r.images = make([][]byte, len(r.Entries))
	at := pos + h.Size()
	for k, e := range r.Entries {
		if !e.Image {
			continue
		}
		sum, err := sumAt(journal, at, e.Entry, make([]byte, min(int64(e.Entry.Phys), sumPiece)))
		if err != nil || sum != e.Sum {
			return r, 0, shrunk(journal, err)
		}
		r.images[k] = make([]byte, e.Entry.Phys)
		if err := readFull(journal, r.images[k], at); err != nil {
			return r, 0, err
		}
		at += int64(e.Entry.Phys)
	}
	return r, at, nil
}

// readEntries reads the entries of a record, behind its head. A journal with
// holes can be far larger than what it takes up, and there can be no memory for
// all that it claims: an entry that is the one before it again, as all are in a
// hole, ends the reading, and the record does not count.
func readEntries(journal vfs.File, head []byte, pos int64, h disk.RedoHead) ([]byte, error) {
	const piece = 4096 * disk.RedoEntrySize
	raw := head
	for int64(len(raw)) < h.Size() {
		from := len(raw)
		raw = append(raw, make([]byte, min(piece, h.Size()-int64(from)))...)
		if err := readFull(journal, raw[from:], pos+int64(from)); err != nil {
			return nil, err
		}
		const two = 2 * disk.RedoEntrySize
		if last := raw[max(from, len(raw)-two):]; len(last) == two && bytes.Equal(last[:two/2], last[two/2:]) {
			return nil, nil
		}
	}
	return raw, nil
}

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

// inside refuses a record that would write outside the store.
func (f *folder) inside(path string, r disk.Redo, st *state) error {
	c := st.slot.Meta
	if r.Meta.Length > c.Length || f.typed.Kind == Ragged && r.Meta.Length%2 != 0 || r.Meta.Codec != c.Codec || r.Meta.TailChunk != c.TailChunk || r.Meta.TailOffset != c.TailOffset {
		return corrupt(path, "redo record %d does not follow checkpoint %d", r.Seq, c.Epoch)
	}
	for _, e := range r.Entries {
		end := int64(e.Entry.Offset) + int64(e.Entry.Phys)
		if e.Index >= r.Meta.Length || e.Entry.Chunk > c.TailChunk || end > f.limits.Chunk ||
			e.Entry.Chunk == c.TailChunk && end > int64(c.TailOffset) {
			return corrupt(path, "redo record %d points outside the store: entry %d at chunk %d, offset %d", r.Seq, e.Index, e.Entry.Chunk, e.Entry.Offset)
		}
	}
	return nil
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
