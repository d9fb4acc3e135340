package engine

import (
	"errors"
	"io"
	"sync"

	"loaderx/engine/internal/disk"
	"loaderx/engine/internal/move"
	"loaderx/engine/internal/vfs"
)

// cursor reads the records of one gather, for one worker. It keeps the file
// it is in, since neighbours are often in the same.
type cursor struct {
	s *Store
	v *view
	z *decompressor // nil in raw stores

	segment int // whose bytes table has
	table   []byte
	chunk   int64 // whose bytes data has
	data    []byte
	at      int64          // the user's index being read, for messages
	doubts  []doubt        // of the current unit
	far     bool           // the batch is larger than the caches
	shape   [maxShape]byte // a shape record, decoded

	locator locator // of the fast ways
	staged  staged
	pairs   pairs
}

// place is where a record lies: a table entry, and its bytes where only the
// journal has them.
type place struct {
	disk.Entry
	image []byte
}

// cursors are kept for reuse: one is larger than many a batch.
var cursors = sync.Pool{New: func() any { return new(cursor) }}

// reader is a cursor for the table and for stored bytes.
func (s *Store) reader(v *view) *cursor { return &cursor{s: s, v: v, segment: -1, chunk: -1} }

// borrowCursor is a reader from the pool. It has to be ended.
func (s *Store) borrowCursor(v *view) *cursor {
	c := cursors.Get().(*cursor)
	c.s, c.v, c.segment, c.chunk = s, v, -1, -1
	c.doubts = c.doubts[:0]
	return c
}

// newCursor is a cursor that also decodes, for a batch of n bytes. It has to be
// ended.
func (s *Store) newCursor(v *view, n int) (*cursor, error) {
	c := s.borrowCursor(v)
	c.far = n >= move.StreamFrom()
	if s.codec == Raw {
		return c, nil
	}
	var err error
	c.z, err = s.coders.borrowDecoder()
	return c, err
}

func (c *cursor) end() {
	if c.z != nil {
		c.s.coders.returnDecoder(c.z)
	}
	// Nothing of the store may stay reachable, or be read, from the pool.
	c.s, c.v, c.z, c.table, c.data = nil, nil, nil, nil, nil
	c.locator.table, c.staged.index, c.pairs.index, c.pairs.dst = nil, nil, nil, RaggedDst{}
	cursors.Put(c)
}

// copy fills dst from the mapping at src. It may fault.
func (c *cursor) copy(dst []byte, src uintptr) {
	if c.far {
		move.Stream(dst, src)
	} else {
		move.Copy(dst, src)
	}
}

// guard runs a unit of work on mapped memory; a fault is the current record's.
func (c *cursor) guard(work func() error) error {
	err := move.Guard(work)
	var fault *move.Fault
	if errors.As(err, &fault) {
		path := c.s.path
		if c.chunk >= 0 {
			path += "/" + numbered(int(c.chunk), chunkExt)
		}
		return badRecord(c.at, path, -1, "%v", fault)
	}
	return err
}

// entry is the table entry of physical record i, below the view's length.
func (c *cursor) entry(i int64) (place, error) {
	if o, ok := c.v.overlaid(i); ok {
		return place{o.entry, o.image}, nil
	}
	id, k := c.s.limits.segmentOf(i)
	off := k * disk.EntrySize
	if id != c.segment || int64(len(c.table)) < off+disk.EntrySize {
		// All of the segment that the view has, so that this is rare.
		n := min(c.v.length-(i-k), c.s.limits.Segment)
		table, err := c.s.tables.bytes(id, n*disk.EntrySize)
		if err != nil {
			return place{}, c.unreadable(tableExt, id, off, err)
		}
		if table == nil {
			var b [disk.EntrySize]byte
			if err := c.s.tables.read(id, b[:], off); err != nil {
				return place{}, c.unreadable(tableExt, id, off, err)
			}
			return place{Entry: disk.DecodeEntry(b[:])}, nil
		}
		c.segment, c.table = id, table
	}
	return place{Entry: disk.DecodeEntry(c.table[off:])}, nil
}

// check refuses an entry that no append can have written.
func (c *cursor) check(e place) error {
	end := int64(e.Offset) + int64(e.Phys)
	switch {
	case e.Chunk > c.v.tailChunk:
		return c.bad(e, "expected a chunk up to %d, got %d", c.v.tailChunk, e.Chunk)
	case end > c.s.limits.Chunk || e.Chunk == c.v.tailChunk && end > int64(c.v.tailOffset):
		return c.bad(e, "%d bytes there reach past the end of the store's data", e.Phys)
	case e.Phys == 0 && (c.s.codec != Raw || !c.s.takesEmpty()), e.Logic == 0 && !c.s.takesEmpty():
		return c.bad(e, "a record of zero bytes (%d stored), which this store does not take", e.Phys)
	case c.s.codec == Raw && e.Phys != e.Logic:
		return c.bad(e, "raw bytes: expected as many stored as the record has, %d, got %d", e.Logic, e.Phys)
	case int64(e.Logic) > c.s.limits.Record:
		return c.bad(e, "expected at most %d bytes, got %d", c.s.limits.Record, e.Logic)
	case c.s.codec != Raw && int64(e.Logic) > maxRatio*int64(e.Phys):
		return c.bad(e, "%d bytes cannot come out of %d", e.Logic, e.Phys)
	}
	return nil
}

// maxRatio is the most that a zstd frame can expand: a block of at least 4
// bytes gives at most 128 KiB (RFC 8878, 3.1.1.2).
const maxRatio = 128 << 10 / 4

func (s *Store) takesEmpty() bool { return s.typed.Flags&disk.FlagAllowEmpty != 0 }

// read brings the record of a checked entry to dst, of e.Logic bytes.
func (c *cursor) read(e place, dst []byte) error {
	if e.Phys == 0 {
		return nil
	}
	stored, err := c.mapped(e)
	if err != nil {
		return err
	}
	if c.z == nil {
		if stored != nil {
			copy(dst, stored)
			c.doubt(e, dst)
			return nil
		}
		return c.pread(e, dst)
	}
	if cap(c.z.frame) < int(e.Phys) {
		if stored == nil {
			if err := c.reaches(e.Entry); err != nil {
				return err
			}
		}
		c.z.frame = make([]byte, max(int(e.Phys), 64<<10))
	}
	// C never sees the mapping: a fault in C would end the process.
	frame := c.z.frame[:e.Phys]
	if stored != nil {
		copy(frame, stored)
	} else if err := c.pread(e, frame); err != nil {
		return err
	}
	if err := c.z.dec.Decode(dst, frame); err != nil {
		return c.bad(e, "%v", err)
	}
	return nil
}

// doubt is a record that may have been read behind the end of a file that was
// cut: the rest of the last page reads as zeros there, without a fault. Frames
// need no doubt, they do not decode.
type doubt struct {
	at int64
	e  disk.Entry
}

// doubt notes a copied record that ends in a zero, if there is reason to: a
// record that ends in anything else was not behind the end.
func (c *cursor) doubt(e place, dst []byte) {
	if dst[len(dst)-1] == 0 && e.image == nil {
		c.doubts = append(c.doubts, doubt{c.at, e.Entry})
	}
}

// resolve asks for the size of the files that doubts are about, after the
// records were copied.
func (c *cursor) resolve() error {
	chunk, size := int64(-1), int64(0)
	for _, d := range c.doubts {
		if int64(d.e.Chunk) != chunk {
			var err error
			chunk = int64(d.e.Chunk)
			if size, err = c.s.chunks.sizeOf(int(chunk)); err != nil {
				return fileError("reading", err)
			}
		}
		if end := int64(d.e.Offset) + int64(d.e.Phys); end > size {
			c.at = d.at
			return c.bad(place{Entry: d.e}, "the file ends at %d, before the end of the record at %d", size, end)
		}
	}
	c.doubts = c.doubts[:0]
	return nil
}

// mapped is the stored bytes of an entry in the mapping of its chunk, or nil
// where there is none.
func (c *cursor) mapped(e place) ([]byte, error) {
	if e.image != nil {
		return e.image, nil
	}
	end := int64(e.Offset) + int64(e.Phys)
	if c.chunk != int64(e.Chunk) || int64(len(c.data)) < end {
		data, err := c.s.chunks.bytes(int(e.Chunk), end)
		if err != nil {
			return nil, c.unreadable(chunkExt, int(e.Chunk), int64(e.Offset), err)
		}
		if data == nil {
			return nil, nil
		}
		c.chunk, c.data = int64(e.Chunk), data
	}
	return c.data[e.Offset:end:end], nil
}

func (c *cursor) pread(e place, p []byte) error {
	if err := c.s.chunks.read(int(e.Chunk), p, int64(e.Offset)); err != nil {
		return c.unreadable(chunkExt, int(e.Chunk), int64(e.Offset), err)
	}
	return nil
}

// reaches holds an entry against the size of its chunk, before memory is taken
// for the bytes that it claims.
func (c *cursor) reaches(e disk.Entry) error {
	size, err := c.s.chunks.sizeOf(int(e.Chunk))
	if err == nil && size < int64(e.Offset)+int64(e.Phys) {
		err = io.EOF
	}
	if err != nil {
		return c.unreadable(chunkExt, int(e.Chunk), int64(e.Offset), err)
	}
	return nil
}

// preadNew reads stored bytes into new memory.
func (c *cursor) preadNew(e disk.Entry) ([]byte, error) {
	if err := c.reaches(e); err != nil {
		return nil, err
	}
	p := make([]byte, e.Phys)
	return p, c.pread(place{Entry: e}, p)
}

// bad is the error of the current record, whose entry is e.
func (c *cursor) bad(e place, format string, args ...any) error {
	return badRecord(c.at, c.s.path+"/"+numbered(int(e.Chunk), chunkExt), int64(e.Offset), format, args...)
}

// unreadable is the error of the current record when a file fails it. Where
// that says nothing of the data, only that this process may not read them or
// has no descriptor left, the record is not a bad one: those get deleted.
func (c *cursor) unreadable(ext string, id int, off int64, err error) error {
	path := c.s.path + "/" + numbered(id, ext)
	if errors.Is(err, io.EOF) {
		return badRecord(c.at, path, off, "the file ends before it")
	}
	e := badRecord(c.at, path, off, "%v", err)
	e.Cause = err
	if !vfs.IsDamage(err) {
		e.Status, e.Errno = StatusIO, vfs.Errno(err)
	}
	return e
}
