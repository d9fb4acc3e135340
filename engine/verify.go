package engine

import (
	"errors"
	"maps"
	"sync"

	"loaderx/engine/internal/fan"
	"loaderx/engine/internal/zstd"
)

const (
	// verifyRecords and verifyBytes bound a step of a verification.
	verifyRecords = 64 << 10
	verifyBytes   = 64 << 20
	// claimed is the largest record that Go's memory is taken for on the word
	// of a table entry.
	claimed = 1 << 20
)

// verification reads everything and changes nothing.
type verification struct {
	t         *Task
	s         *Store
	v         *view
	itemBytes int64
	table     rows
	next      int64 // the user's record
	dead      map[int64]bool
	mu        sync.Mutex
}

// Verify checks every record: its place, its checksum, its frame, its shape of
// elements of itemBytes (ragged stores), and that no two overlap. The records
// found bad are the task's.
func (s *Store) Verify(itemBytes int64) (*Task, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	if s.moving {
		return nil, s.beingCompacted("verify")
	}
	if itemBytes < 1 {
		return nil, errorf(StatusArgument, s.path, "%s: expected elements of at least 1 byte, got %d", s.path, itemBytes)
	}
	c := &verification{s: s, v: s.view.Load(), itemBytes: itemBytes, dead: map[int64]bool{}}
	var err error
	if c.table, err = s.rows(c.v); err != nil {
		return nil, err
	}
	s.pins.Add(1) // a delete would make it see records where there are none
	c.t = &Task{s: s, step: c.step, stop: func() error { s.pins.Add(-1); return nil }}
	for _, e := range c.table.entries {
		c.t.total += int64(e.Phys)
	}
	return c.t, nil
}

func (c *verification) step() (done bool, err error) {
	s := c.s
	if err := s.enter(); err != nil {
		return false, err
	}
	defer s.leave()
	per := s.perRecord()
	first, used := c.next, int64(0)
	for c.next*per < c.v.length && c.next-first < verifyRecords && used < verifyBytes {
		for k := range per {
			used += int64(c.table.entries[c.next*per+k].Phys)
		}
		c.next++
	}
	n := int(c.next - first)
	start := func() (*cursor, error) { return s.newCursor(c.v, 0) }
	const unit = 64
	err = fan.Run(0, (n+unit-1)/unit, start, (*cursor).end, func(cur *cursor, u int) error {
		var dst []byte
		for i := first + int64(u*unit); i < min(first+int64((u+1)*unit), c.next); i++ {
			var err error
			if dst, err = c.record(cur, i, dst); err == nil {
				continue
			}
			if err = c.note(i, err); err != nil {
				return err
			}
		}
		return nil
	})
	c.t.at += used
	if done = err == nil && c.next*per >= c.v.length; done {
		c.overlaps()
	}
	return done, err
}

// record checks one record of the user's.
func (c *verification) record(cur *cursor, i int64, dst []byte) ([]byte, error) {
	cur.at = i
	var payload, shape place
	err := cur.guard(func() (err error) {
		if c.s.typed.Kind == Ragged {
			payload, shape, err = cur.entries(i)
		} else if payload, err = cur.entry(i); err == nil {
			err = cur.check(payload)
		}
		return err
	})
	if err != nil {
		return dst, err
	}
	if c.s.typed.Kind == Dense && uint64(payload.Logic) != c.s.typed.Width {
		return dst, cur.bad(payload, "expected a record of %d bytes, got %d", c.s.typed.Width, payload.Logic)
	}
	if err := c.sums(cur, i, payload, shape); err != nil {
		return dst, err
	}
	if payload.Logic > claimed {
		big, free, err := zstd.Scratch(int(payload.Logic))
		if err != nil {
			return dst, errorf(StatusMemory, c.s.path, "%s: no memory for the %d bytes that record %d is said to have", c.s.path, payload.Logic, i)
		}
		defer free()
		return dst, c.decode(cur, i, payload, shape, big)
	}
	if int(payload.Logic) > cap(dst) {
		dst = make([]byte, payload.Logic)
	}
	return dst, c.decode(cur, i, payload, shape, dst[:payload.Logic])
}

// decode reads one record of the user's to dst.
func (c *verification) decode(cur *cursor, i int64, payload, shape place, dst []byte) error {
	return cur.guard(func() error {
		if c.s.typed.Kind == Dense {
			return cur.read(payload, dst)
		}
		offsets := []int64{0, int64(payload.Logic)}
		dims := make([]int64, shape.Logic/8-1)
		to := RaggedDst{Payload: dst, Offsets: offsets, Dims: dims, DimOffsets: []int64{0, int64(len(dims))}}
		return cur.pair([]int64{i}, 0, c.itemBytes, to)
	})
}

// sums compares the stored bytes with their checksums, which version 4 lacks.
func (c *verification) sums(cur *cursor, i int64, payload, shape place) error {
	if c.v.version == 4 {
		return nil
	}
	per := c.s.perRecord()
	for k := range per {
		at := payload
		if k == 1 {
			at = shape
		}
		if o, ok := c.v.overlaid(i*per + k); ok && o.image != nil {
			continue // checked when the journal was read
		}
		if _, _, err := cur.stored(i*per+k, at.Entry); err != nil {
			return err
		}
	}
	if c.v.perChunk > 0 && payload.Entry != arithmeticEntry(i, uint32(c.s.typed.Width), c.v.perChunk) {
		return cur.bad(payload, "its place does not follow the formula of an arithmetic store")
	}
	return nil
}

// overlaid is the redo record's entry of physical record i.
func (v *view) overlaid(i int64) (overlaid, bool) {
	if v.over == nil {
		return overlaid{}, false
	}
	return v.over.find(i)
}

// note keeps a bad record; any other error is the verification's.
func (c *verification) note(i int64, err error) error {
	var e *Error
	if !errors.As(err, &e) || e.Status != StatusCorruptRecord {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.dead[i] {
		c.dead[i] = true
		c.t.bad = append(c.t.bad, e)
	}
	return nil
}

// overlaps finds records whose bytes are also another's. What a record that is
// bad already claims does not make its neighbour bad.
func (c *verification) overlaps() {
	r, per := c.table, c.s.perRecord()
	broken := maps.Clone(c.dead)
	last := int64(-1)
	for _, i := range r.order {
		if broken[i/per] {
			continue
		}
		if last >= 0 {
			a, b := r.entries[last], r.entries[i]
			if a.Chunk == b.Chunk && int64(a.Offset)+int64(a.Phys) > int64(b.Offset) {
				c.shared(last)
				c.shared(i)
			}
		}
		last = i
	}
}

// shared notes that the record of physical record i overlaps another.
func (c *verification) shared(i int64) {
	e := c.table.entries[i]
	i /= c.s.perRecord()
	path := c.s.path + "/" + numbered(int(e.Chunk), chunkExt)
	_ = c.note(i, badRecord(i, path, int64(e.Offset), "its bytes are also those of another record"))
}
