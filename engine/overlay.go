package engine

import (
	"bytes"
	"cmp"
	"slices"

	"loaderx/engine/internal/disk"
	"loaderx/engine/internal/vfs"
)

// overlay is what a redo chain that has not been applied says of the tables
// (FORMAT 7.3.5). It is read-only, and takes no more memory than its files have
// bytes: one entry of 32 bytes for each physical record that the chain changes,
// and the images of the last record, as no other has any.
type overlay struct {
	header  disk.Meta        // after the last record
	entries []disk.RedoEntry // by index, the latest of each, once finished
	settled int              // so many at the front are so already
	images  []image          // by index
	bytes   []byte           // of the images, in the order of the journal
}

// image is where the payload of an entry starts in the overlay's bytes.
type image struct {
	index uint64
	at    int64
}

// overlaid is a table entry after its redo record; image is the payload where
// the record carries it, since the chunk may not have it yet.
type overlaid struct {
	entry disk.Entry
	sum   uint32
	image []byte
}

// find is what the chain says of physical record i.
func (o *overlay) find(i int64) (overlaid, bool) {
	k, ok := slices.BinarySearchFunc(o.entries, uint64(i), func(e disk.RedoEntry, i uint64) int { return cmp.Compare(e.Index, i) })
	if !ok {
		return overlaid{}, false
	}
	e := o.entries[k]
	return overlaid{e.Entry, e.Sum, o.imageOf(e)}, true
}

// imageOf is the payload that an entry carries, or nil.
func (o *overlay) imageOf(e disk.RedoEntry) []byte {
	if !e.Image {
		return nil
	}
	k, _ := slices.BinarySearchFunc(o.images, e.Index, func(m image, i uint64) int { return cmp.Compare(m.index, i) })
	at := o.images[k].at
	return o.bytes[at : at+int64(e.Entry.Phys) : at+int64(e.Entry.Phys)]
}

// expect prepares for a record of n entries. The first gets the room that it
// needs; a later one often says again what is said already, and needs none.
func (o *overlay) expect(n int) {
	if len(o.entries) == 0 {
		o.entries = slices.Grow(o.entries, n)
	} else if len(o.entries) > 2*o.settled {
		o.settle()
	}
}

// put keeps an entry, in place of what is settled for its index, if anything is.
func (o *overlay) put(e disk.RedoEntry) {
	k, ok := slices.BinarySearchFunc(o.entries[:o.settled], e.Index, func(e disk.RedoEntry, i uint64) int { return cmp.Compare(e.Index, i) })
	if ok {
		o.entries[k] = e
		return
	}
	o.entries = append(o.entries, e)
}

// settle sorts the entries and leaves the last of each index.
func (o *overlay) settle() {
	byIndex := func(a, b disk.RedoEntry) int { return cmp.Compare(a.Index, b.Index) }
	if !slices.IsSortedFunc(o.entries, byIndex) {
		slices.SortStableFunc(o.entries, byIndex)
	}
	kept := o.entries[:0]
	for k, e := range o.entries {
		if k+1 == len(o.entries) || o.entries[k+1].Index != e.Index {
			kept = append(kept, e)
		}
	}
	o.entries, o.settled = kept, len(kept)
}

// finish leaves what is below the length of the last record, in order.
func (o *overlay) finish() {
	o.settle()
	n, _ := slices.BinarySearchFunc(o.entries, o.header.Length, func(e disk.RedoEntry, i uint64) int { return cmp.Compare(e.Index, i) })
	o.entries = o.entries[:n]
	byIndex := func(a, b image) int { return cmp.Compare(a.index, b.index) }
	slices.SortStableFunc(o.images, byIndex)
	kept := o.images[:0]
	for k, m := range o.images {
		if k+1 == len(o.images) || o.images[k+1].index != m.index {
			kept = append(kept, m)
		}
	}
	o.images = kept
}

// readChain reads the redo records of the checkpoint's epoch, or nil if there
// are none. The first that does not count ends the chain; one that counts but
// points outside the store is an error.
func (f *folder) readChain(journal vfs.File, st *state) (*overlay, error) {
	size, err := journal.Size()
	if err != nil {
		return nil, fileError("reading the journal", err)
	}
	over := &overlay{}
	seq := uint32(0)
	for pos := int64(disk.RedoStart); ; seq++ {
		h, end, err := scanRedo(journal, pos, size, st.slot)
		if err != nil {
			return nil, err
		}
		if end == 0 || h.Seq != seq {
			break
		}
		if len(over.images) > 0 {
			return nil, corrupt(journal.Path(), "redo record %d follows one with images, which a checkpoint should have ended", h.Seq)
		}
		if pos > disk.RedoStart && end > disk.RedoStart+disk.RedoReserve {
			return nil, corrupt(journal.Path(), "redo record %d ends at %d: behind another one at most %d are used, and a checkpoint comes first", h.Seq, end, disk.RedoStart+disk.RedoReserve)
		}
		if err := f.keepRedo(over, journal, pos, h, st); err != nil {
			return nil, err
		}
		pos = (end + disk.RedoAlign - 1) &^ (disk.RedoAlign - 1)
	}
	if seq == 0 {
		return nil, nil
	}
	over.finish()
	return over, nil
}

// scanRedo reads the record at pos and its images, and keeps nothing. end is
// where it ends, or 0 if none counts there: it has to lie inside the file and be
// of checkpoint c, and its CRC and the sum of every image have to hold.
func scanRedo(journal vfs.File, pos, size int64, c disk.Slot) (h disk.RedoHead, end int64, err error) {
	if pos+disk.RedoHeadSize > size {
		return h, 0, nil
	}
	head := make([]byte, disk.RedoHeadSize)
	if err := readFull(journal, head, pos); err != nil {
		return h, 0, err
	}
	s, ok := disk.ScanRedo(head)
	if !ok || s.StoreID != c.StoreID || s.Meta.Epoch != c.Meta.Epoch {
		return h, 0, nil
	}
	if h = s.RedoHead; uint64(h.Count) > h.Meta.Length || h.ImageBytes > uint64(size) || pos+h.Size()+int64(h.ImageBytes) > size {
		return h, 0, nil
	}
	if err := eachEntry(journal, pos, s, func(disk.RedoEntry) error { return nil }); err != nil || !s.Counts() {
		return h, 0, err
	}
	at, held := pos+h.Size(), true
	if s, _ = disk.ScanRedo(head); h.ImageBytes > 0 {
		err = eachEntry(journal, pos, s, func(e disk.RedoEntry) error {
			if !held || !e.Image {
				return nil
			}
			sum, err := sumAt(journal, at, e.Entry, make([]byte, min(int64(e.Entry.Phys), sumPiece)))
			held, at = sum == e.Sum, at+int64(e.Entry.Phys)
			return shrunk(journal, err)
		})
	}
	if err != nil || !held {
		return h, 0, err
	}
	return h, at, nil
}

// eachEntry reads the entries of the record at pos, in pieces. A journal with
// holes can be far larger than what it takes up: an entry that is the one before
// it again, as all are in a hole, ends the reading, and the record does not count.
func eachEntry(journal vfs.File, pos int64, s *disk.RedoScan, use func(disk.RedoEntry) error) error {
	const piece = 4096 * disk.RedoEntrySize
	raw := make([]byte, min(piece, s.Size()-disk.RedoHeadSize))
	for at := int64(disk.RedoHeadSize); at < s.Size(); at += int64(len(raw)) {
		raw = raw[:min(int64(len(raw)), s.Size()-at)]
		if err := readFull(journal, raw, pos+at); err != nil {
			return err
		}
		const two = 2 * disk.RedoEntrySize
		if last := raw[max(0, len(raw)-two):]; len(last) == two && bytes.Equal(last[:two/2], last[two/2:]) {
			return nil
		}
		var err error
		s.Add(raw, func(e disk.RedoEntry) {
			if err == nil {
				err = use(e)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// keepRedo adds a record that counts to the overlay, unless it would write
// outside the store.
func (f *folder) keepRedo(over *overlay, journal vfs.File, pos int64, h disk.RedoHead, st *state) error {
	c := st.slot.Meta
	if h.Meta.Length > c.Length || f.typed.Kind == Ragged && h.Meta.Length%2 != 0 || h.Meta.Codec != c.Codec || h.Meta.TailChunk != c.TailChunk || h.Meta.TailOffset != c.TailOffset {
		return corrupt(journal.Path(), "redo record %d does not follow checkpoint %d", h.Seq, c.Epoch)
	}
	head := make([]byte, disk.RedoHeadSize)
	if err := readFull(journal, head, pos); err != nil {
		return err
	}
	s, ok := disk.ScanRedo(head)
	if !ok || s.RedoHead != h {
		return corrupt(journal.Path(), "redo record %d changed while it was read", h.Seq)
	}
	over.header = h.Meta
	over.expect(int(h.Count))
	at := int64(0)
	err := eachEntry(journal, pos, s, func(e disk.RedoEntry) error {
		end := int64(e.Entry.Offset) + int64(e.Entry.Phys)
		if e.Index >= h.Meta.Length || e.Entry.Chunk > c.TailChunk || end > f.limits.Chunk ||
			e.Entry.Chunk == c.TailChunk && end > int64(c.TailOffset) {
			return corrupt(journal.Path(), "redo record %d points outside the store: entry %d at chunk %d, offset %d", h.Seq, e.Index, e.Entry.Chunk, e.Entry.Offset)
		}
		if e.Image {
			over.images = append(over.images, image{e.Index, at})
			at += int64(e.Entry.Phys)
		}
		over.put(e)
		return nil
	})
	if err != nil {
		return err
	}
	if !s.Counts() {
		return corrupt(journal.Path(), "redo record %d changed while it was read", h.Seq)
	}
	over.bytes = make([]byte, h.ImageBytes)
	return readFull(journal, over.bytes, pos+h.Size())
}

// applyOverlay writes what a chain says, as apply does for one record.
func (w *writer) applyOverlay(o *overlay) error {
	for _, e := range o.entries {
		if !e.Image {
			continue
		}
		if err := w.writeAt(numbered(int(e.Entry.Chunk), chunkExt), o.imageOf(e), int64(e.Entry.Offset)); err != nil {
			return err
		}
	}
	return w.applyEntries(o.entries)
}
