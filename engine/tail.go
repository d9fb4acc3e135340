package engine

import (
	"encoding/binary"
	"errors"
	"io"

	"loaderx/engine/internal/disk"
	"loaderx/engine/internal/vfs"
)

const (
	// tailBlock is how many table entries of the tail are read at once.
	tailBlock = 4096
	// sumPiece is how many bytes of a record are.
	sumPiece = 256 << 10
)

// acceptTail goes on from the checkpoint through the records appended after
// it, as long as they are whole (FORMAT 7.3.6).
func (f *folder) acceptTail(st *state) error {
	limit := int64(st.meta.Length)
	if !st.metaOK {
		var err error
		if limit, err = f.entries(); err != nil {
			return err
		}
	}
	t := tail{f: f, st: st, chunks: map[uint32]*openChunk{}, taken: map[uint32]*spans{}, endChunk: st.tailChunk, endOffset: st.tailOffset}
	defer t.close()
	for i := st.length; i < limit; i++ {
		ok, err := t.accept(i)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if f.typed.Kind == Dense || i%2 == 1 {
			st.length, st.tailChunk, st.tailOffset = i+1, t.endChunk, t.endOffset
		}
	}
	return nil
}

// entries is the number of physical records that tables and sums both hold.
func (f *folder) entries() (int64, error) {
	var n int64
	for id := 0; ; id++ {
		locs, err := f.sizeOf(numbered(id, tableExt))
		if err != nil {
			return 0, err
		}
		sums, err := f.sizeOf(numbered(id, sumExt))
		if err != nil {
			return 0, err
		}
		m := max(0, min(locs/disk.EntrySize, sums/disk.SumSize, f.limits.Segment))
		n += m
		if m < f.limits.Segment {
			return n, nil
		}
	}
}

// tail reads the records after a checkpoint, a block of entries at a time.
type tail struct {
	f     *folder
	st    *state
	first int64 // of the block
	locs  []byte
	sums  []byte

	openChunk                       // the current one
	chunks    map[uint32]*openChunk // open, or known to be missing
	buf       []byte                // for a piece of a record

	taken     map[uint32]*spans // by chunk, what accepted records fill
	endChunk  uint32            // the greatest end of those records
	endOffset uint32            // and of the checkpoint's tail
}

// tailChunks is how many chunks are kept open: those that a few workers at the
// end of one and the beginning of the next write side by side.
const tailChunks = 4

type openChunk struct {
	chunk     vfs.File // nil: missing
	chunkSize int64
}

// accept says whether record i is whole: both entries present, placed at or
// past the checkpoint's tail and inside its chunk, apart from those accepted
// before, of the right sum, and where the formula puts it in an arithmetic store.
func (t *tail) accept(i int64) (ok bool, err error) {
	k := i - t.first
	if k < 0 || k >= int64(len(t.locs)/disk.EntrySize) || t.locs == nil {
		if err := t.load(i); err != nil {
			return false, err
		}
		k = 0
	}
	if int64(len(t.locs)) < (k+1)*disk.EntrySize || int64(len(t.sums)) < (k+1)*disk.SumSize {
		return false, nil
	}
	e := disk.DecodeEntry(t.locs[k*disk.EntrySize:])
	c := t.st.slot.Meta
	if e.Chunk < c.TailChunk || e.Chunk == c.TailChunk && e.Offset < c.TailOffset {
		return false, nil
	}
	if t.st.slot.Arithmetic && e != arithmeticEntry(i, uint32(t.f.typed.Width), t.st.slot.PerChunk) {
		return false, nil
	}
	if !t.plausible(e) {
		return false, nil
	}
	if err := t.open(e.Chunk); err != nil || t.chunk == nil {
		return false, err
	}
	if int64(e.Offset)+int64(e.Phys) > min(t.chunkSize, t.f.limits.Chunk) || !t.take(e) {
		return false, nil
	}
	if n := int(min(int64(e.Phys), sumPiece)); n > len(t.buf) {
		t.buf = make([]byte, n)
	}
	sum, err := sumAt(t.chunk, int64(e.Offset), e, t.buf)
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	if err != nil {
		return false, fileError("reading the tail", err)
	}
	return sum == binary.LittleEndian.Uint32(t.sums[k*disk.SumSize:]), nil
}

// plausible says whether an append can have written such lengths. What cannot be
// is not read for its sum: it may claim gigabytes.
func (t *tail) plausible(e disk.Entry) bool {
	takesEmpty := t.f.typed.Flags&disk.FlagAllowEmpty != 0
	switch {
	case int64(e.Logic) > t.f.limits.Record, e.Logic == 0 && !takesEmpty:
		return false
	case t.f.typed.Kind == Dense && uint64(e.Logic) != t.f.typed.Width:
		return false
	case t.st.codec == Raw:
		return e.Phys == e.Logic
	}
	return e.Phys > 0 && int64(e.Logic) <= maxRatio*int64(e.Phys)
}

// take claims the place of a record, which is inside its chunk, and says whether
// an append can have put it there. Sums leave the address out: where records
// repeat, the entry of one that is torn can lead to another and hold. Records
// that share bytes could also take for ever to read. An empty one has no bytes
// to tell by, and lies where those before it end.
func (t *tail) take(e disk.Entry) bool {
	if e.Phys == 0 {
		return e.Chunk == t.endChunk && e.Offset == t.endOffset
	}
	s := t.taken[e.Chunk]
	if s == nil {
		s = new(spans)
		t.taken[e.Chunk] = s
	}
	end := e.Offset + e.Phys
	if !s.add(e.Offset, end) {
		return false
	}
	if e.Chunk > t.endChunk || e.Chunk == t.endChunk && end > t.endOffset {
		t.endChunk, t.endOffset = e.Chunk, end
	}
	return true
}

// sumAt computes the sum of a record whose bytes lie in file from off on. It
// reads as much as buf holds at a time: what the entry says of their number may
// be wrong.
func sumAt(file vfs.File, off int64, e disk.Entry, buf []byte) (uint32, error) {
	sum := disk.NewSum(e.Phys, e.Logic)
	for left := int64(e.Phys); left > 0; {
		p := buf[:min(left, int64(len(buf)))]
		if _, err := file.ReadAt(p, off); err != nil {
			return 0, err
		}
		sum = sum.Add(p)
		off, left = off+int64(len(p)), left-int64(len(p))
	}
	return uint32(sum), nil
}

// load reads the entries from i on, up to the end of their segment.
func (t *tail) load(i int64) error {
	id, k := t.f.limits.segmentOf(i)
	n := min(tailBlock, t.f.limits.Segment-k)
	var err error
	t.first = i
	if t.locs, err = t.f.readSome(numbered(id, tableExt), k*disk.EntrySize, n*disk.EntrySize); err != nil {
		return err
	}
	t.sums, err = t.f.readSome(numbered(id, sumExt), k*disk.SumSize, n*disk.SumSize)
	return err
}

// readSome reads what there is of n bytes; a missing file has none.
func (f *folder) readSome(name string, off, n int64) ([]byte, error) {
	file, err := f.dir.Open(name, vfs.Read)
	if vfs.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, oddFile(err)
	}
	defer func() { _ = file.Close() }()
	b := make([]byte, n)
	got, err := file.ReadAt(b, off)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b[:got], fileError("reading "+name, err)
}

// open makes a chunk the current one; a missing one leaves t.chunk nil.
func (t *tail) open(id uint32) error {
	if known := t.chunks[id]; known != nil {
		t.openChunk = *known
		return nil
	}
	if len(t.chunks) >= tailChunks {
		t.close()
	}
	t.openChunk = openChunk{}
	file, err := t.f.dir.Open(numbered(int(id), chunkExt), vfs.Read)
	if err != nil && !vfs.IsNotExist(err) {
		return oddFile(err)
	}
	if err == nil {
		t.chunk = file
		if t.chunkSize, err = file.Size(); err != nil {
			_ = file.Close()
			return fileError("reading the tail", err)
		}
	}
	known := t.openChunk
	t.chunks[id] = &known
	return nil
}

func (t *tail) close() {
	for _, c := range t.chunks {
		if c.chunk != nil {
			_ = c.chunk.Close()
		}
	}
	clear(t.chunks)
}
