package disk

import "encoding/binary"

const (
	redoMagic  = "ZRDO"
	redoSealed = 60 // bytes of the head that its CRC covers, before the entries
	redoImage  = 1  // entry flag: a payload image follows
)

// Sizes of a redo record's parts (FORMAT 7).
const (
	RedoHeadSize  = 64
	RedoEntrySize = 32
	RedoAlign     = 64 // where the next record starts
)

// Redo is a delete or a round of a compaction, written before it is applied:
// the table entries as they will be, and bytes that no longer lie anywhere
// else (FORMAT 7). The images follow it in the file, in the order of the
// entries, each covered by its entry's sum.
type Redo struct {
	StoreID uint32
	Meta    Meta   // the header after the record is applied; the epoch is C's
	Seq     uint32 // within the epoch, from 0
	Entries []RedoEntry
}

// RedoEntry is the after-image of one table entry and its sum.
type RedoEntry struct {
	Index uint64 // physical
	Entry Entry
	Sum   uint32
	Image bool
}

// RedoHead is what the fixed part of a record says. It is not to be believed
// before a RedoScan has seen all of the record.
type RedoHead struct {
	StoreID    uint32
	Meta       Meta
	Seq        uint32
	Count      uint32
	ImageBytes uint64
}

// ImageBytes is the size of all images of r.
func (r Redo) ImageBytes() uint64 {
	var n uint64
	for _, e := range r.Entries {
		if e.Image {
			n += uint64(e.Entry.Phys)
		}
	}
	return n
}

// Encode writes the head and the entries of r.
func (r Redo) Encode() []byte {
	b := make([]byte, RedoHeadSize+RedoEntrySize*len(r.Entries))
	copy(b, redoMagic)
	binary.LittleEndian.PutUint32(b[4:], r.StoreID)
	r.Meta.putHeader(b[8:36])
	binary.LittleEndian.PutUint32(b[36:], r.Seq)
	binary.LittleEndian.PutUint32(b[40:], uint32(len(r.Entries)))
	binary.LittleEndian.PutUint64(b[48:], r.ImageBytes())
	for i, e := range r.Entries {
		p := b[RedoHeadSize+i*RedoEntrySize:]
		binary.LittleEndian.PutUint64(p, e.Index)
		e.Entry.Put(p[8:])
		binary.LittleEndian.PutUint32(p[24:], e.Sum)
		if e.Image {
			binary.LittleEndian.PutUint32(p[28:], redoImage)
		}
	}
	binary.LittleEndian.PutUint32(b[redoSealed:], CRC(b[:redoSealed], b[RedoHeadSize:]))
	return b
}

// DecodeRedoHead reads the fixed part of a record.
func DecodeRedoHead(b []byte) (RedoHead, bool) {
	if len(b) < RedoHeadSize || string(b[:4]) != redoMagic || string(b[8:12]) != metaMagic || b[12] != metaVersion {
		return RedoHead{}, false
	}
	return RedoHead{
		StoreID:    binary.LittleEndian.Uint32(b[4:]),
		Meta:       header(b[8:36]),
		Seq:        binary.LittleEndian.Uint32(b[36:]),
		Count:      binary.LittleEndian.Uint32(b[40:]),
		ImageBytes: binary.LittleEndian.Uint64(b[48:]),
	}, true
}

// Size is the bytes of the head and the entries that h counts.
func (h RedoHead) Size() int64 { return RedoHeadSize + RedoEntrySize*int64(h.Count) }

// RedoScan reads a record piece by piece, so that nothing need be kept of one
// that does not count.
type RedoScan struct {
	RedoHead
	want, sum uint32
	images    uint64
	seen      uint32
	wrong     bool
}

// ScanRedo begins with the fixed part of a record.
func ScanRedo(head []byte) (*RedoScan, bool) {
	h, ok := DecodeRedoHead(head)
	if !ok || binary.LittleEndian.Uint32(head[44:]) != 0 || binary.LittleEndian.Uint32(head[56:]) != 0 {
		return nil, false
	}
	return &RedoScan{RedoHead: h, want: binary.LittleEndian.Uint32(head[redoSealed:]), sum: CRC(head[:redoSealed])}, true
}

// Add takes the next whole entries and hands each to use.
func (s *RedoScan) Add(b []byte, use func(RedoEntry)) {
	s.sum = AddCRC(s.sum, b)
	for ; len(b) >= RedoEntrySize; b = b[RedoEntrySize:] {
		flags := binary.LittleEndian.Uint32(b[28:])
		e := RedoEntry{
			Index: binary.LittleEndian.Uint64(b), Entry: DecodeEntry(b[8:]),
			Sum: binary.LittleEndian.Uint32(b[24:]), Image: flags&redoImage != 0,
		}
		s.wrong = s.wrong || flags&^redoImage != 0
		if s.seen++; e.Image {
			s.images += uint64(e.Entry.Phys)
		}
		use(e)
	}
}

// Counts says, after the last entry, whether the record is valid: its CRC holds
// and its images add up.
func (s *RedoScan) Counts() bool {
	return !s.wrong && s.seen == s.Count && s.sum == s.want && s.images == s.ImageBytes
}

// DecodeRedo reads a record of which b holds the head and the entries.
func DecodeRedo(b []byte) (Redo, bool) {
	s, ok := ScanRedo(b)
	if !ok || int64(len(b)) != s.Size() {
		return Redo{}, false
	}
	r := Redo{StoreID: s.StoreID, Meta: s.Meta, Seq: s.Seq, Entries: make([]RedoEntry, 0, s.Count)}
	s.Add(b[RedoHeadSize:], func(e RedoEntry) { r.Entries = append(r.Entries, e) })
	if !s.Counts() {
		return Redo{}, false
	}
	return r, true
}
