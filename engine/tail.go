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
	t := tail{f: f, st: st, chunkID: -1, taken: map[uint32]int64{st.tailChunk: int64(st.tailOffset)}}
	defer t.close()
	start, end := st.length, [2]uint32{st.tailChunk, st.tailOffset}
	ends := end // after the last whole pair
	for i := start; i < limit; i++ {
		e, ok, err := t.accept(i)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if e.Chunk > end[0] || e.Chunk == end[0] && e.Offset+e.Phys > end[1] {
			end = [2]uint32{e.Chunk, e.Offset + e.Phys}
		}
		if f.typed.Kind == Dense || i%2 == 1 {
			st.length, ends = i+1, end
		}
	}
	st.tailChunk, st.tailOffset = ends[0], ends[1]
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

	chunkID   int64
	chunk     vfs.File // nil: missing
	chunkSize int64
	taken     map[uint32]int64 // bytes of each chunk that accepted records fill
	buf       []byte           // for a piece of a record
}

// accept says whether record i is whole: both entries present, placed at or
// past the checkpoint's tail and inside its chunk, of the right sum, and where
// the formula puts it in an arithmetic store.
func (t *tail) accept(i int64) (e disk.Entry, ok bool, err error) {
	k := i - t.first
	if k < 0 || k >= int64(len(t.locs)/disk.EntrySize) || t.locs == nil {
		if err := t.load(i); err != nil {
			return e, false, err
		}
		k = 0
	}
	if int64(len(t.locs)) < (k+1)*disk.EntrySize || int64(len(t.sums)) < (k+1)*disk.SumSize {
		return e, false, nil
	}
	e = disk.DecodeEntry(t.locs[k*disk.EntrySize:])
	c := t.st.slot.Meta
	if e.Chunk < c.TailChunk || e.Chunk == c.TailChunk && e.Offset < c.TailOffset {
		return e, false, nil
	}
	if t.st.slot.Arithmetic && e != arithmeticEntry(i, uint32(t.f.typed.Width), t.st.slot.PerChunk) {
		return e, false, nil
	}
	if err := t.open(e.Chunk); err != nil || t.chunk == nil {
		return e, false, err
	}
	// Records that share bytes are no append's, and could take for ever to read.
	room := min(t.chunkSize, t.f.limits.Chunk)
	if int64(e.Offset)+int64(e.Phys) > room || t.taken[e.Chunk]+int64(e.Phys) > room {
		return e, false, nil
	}
	if n := int(min(int64(e.Phys), sumPiece)); n > len(t.buf) {
		t.buf = make([]byte, n)
	}
	sum, err := sumAt(t.chunk, int64(e.Offset), e, t.buf)
	if errors.Is(err, io.EOF) {
		return e, false, nil
	}
	if err != nil {
		return e, false, fileError("reading the tail", err)
	}
	t.taken[e.Chunk] += int64(e.Phys)
	return e, sum == binary.LittleEndian.Uint32(t.sums[k*disk.SumSize:]), nil
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
	if t.chunkID == int64(id) {
		return nil
	}
	t.close()
	t.chunkID = int64(id)
	file, err := t.f.dir.Open(numbered(int(id), chunkExt), vfs.Read)
	if vfs.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return oddFile(err)
	}
	t.chunk = file
	t.chunkSize, err = file.Size()
	return fileError("reading the tail", err)
}

func (t *tail) close() {
	if t.chunk != nil {
		_ = t.chunk.Close()
		t.chunk = nil
	}
}
