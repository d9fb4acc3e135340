package engine

import (
	"encoding/binary"
)

// RaggedDst is where GatherRagged puts a batch of n records.
type RaggedDst struct {
	Payload    []byte
	Offsets    []int64 // n + 1: record i is Payload[Offsets[i]:Offsets[i+1]]
	Dims       []int64
	DimOffsets []int64 // n + 1: its shape is Dims[DimOffsets[i]:DimOffsets[i+1]]
}

// GatherRagged copies the records of index and their shapes, one after
// another. If Payload or Dims are too small for what the last offsets say it
// returns ErrRoom, with all offsets filled.
// Every shape must be one of elements of itemBytes.
func (s *Store) GatherRagged(index []int64, itemBytes int64, dst RaggedDst, threads int) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	n := len(index)
	switch {
	case s.typed.Kind != Ragged:
		return errorf(StatusArgument, s.path, "%s: a ragged gather of a dense store", s.path)
	case itemBytes < 1:
		return errorf(StatusArgument, s.path, "%s: expected elements of at least 1 byte, got %d", s.path, itemBytes)
	case len(dst.Offsets) != n+1 || len(dst.DimOffsets) != n+1:
		return errorf(StatusArgument, s.path, "%s: expected %d offsets, got %d and %d", s.path, n+1, len(dst.Offsets), len(dst.DimOffsets))
	}
	v := s.view.Load()
	s.now.ask(s, v, index)
	if per, workers := s.units(n, len(dst.Payload), threads); workers > 1 {
		return s.pace.measure(len(dst.Payload), true, func() error {
			return s.shareRagged(v, index, itemBytes, dst, per, workers)
		})
	}
	return s.one(v, len(dst.Payload), func(c *cursor) error {
		if c.gatherPairs(index, itemBytes, dst, false) {
			return dst.room()
		}
		if err := c.measure(index, dst); err != nil {
			return err
		}
		if err := dst.room(); err != nil {
			return err
		}
		return c.each(0, n, func(k int) error { return c.pair(index, k, itemBytes, dst) })
	})
}

// shareRagged is GatherRagged by workers: where records go has to be known before.
func (s *Store) shareRagged(v *view, index []int64, itemBytes int64, dst RaggedDst, per, workers int) error {
	err := s.one(v, 0, func(c *cursor) error {
		room := RaggedDst{Offsets: dst.Offsets, DimOffsets: dst.DimOffsets}
		if c.gatherPairs(index, itemBytes, room, false) {
			return nil
		}
		return c.measure(index, dst)
	})
	if err != nil {
		return err
	}
	if err := dst.room(); err != nil {
		return err
	}
	return s.gather(v, len(index), len(dst.Payload), per, workers, func(c *cursor, lo, hi int) error {
		part := RaggedDst{dst.Payload, dst.Offsets[lo : hi+1], dst.Dims, dst.DimOffsets[lo : hi+1]}
		if c.gatherPairs(index[lo:hi], itemBytes, part, true) {
			return nil
		}
		return c.each(lo, hi, func(k int) error { return c.pair(index, k, itemBytes, dst) })
	})
}

// room says whether what the offsets say has room.
func (d RaggedDst) room() error {
	n := len(d.Offsets) - 1
	if d.Offsets[n] > int64(len(d.Payload)) || d.DimOffsets[n] > int64(len(d.Dims)) {
		return ErrRoom
	}
	return nil
}

// measure fills the offsets from the table, without reading a payload.
func (c *cursor) measure(index []int64, dst RaggedDst) error {
	return c.guard(func() error {
		dst.Offsets[0], dst.DimOffsets[0] = 0, 0
		for k := range index {
			i, err := wrap(index, k, c.v.length/2, c.s.path)
			if err != nil {
				return err
			}
			payload, shape, err := c.entries(i)
			if err != nil {
				return err
			}
			dst.Offsets[k+1] = dst.Offsets[k] + int64(payload.Logic)
			dst.DimOffsets[k+1] = dst.DimOffsets[k] + int64(shape.Logic)/8 - 1
		}
		return nil
	})
}

// entries is the checked table entries of record i: its payload and its shape
// (FORMAT 4).
func (c *cursor) entries(i int64) (payload, shape place, err error) {
	c.at = i
	if payload, err = c.entry(2 * i); err != nil {
		return payload, shape, err
	}
	if shape, err = c.entry(2*i + 1); err != nil {
		return payload, shape, err
	}
	if err = c.check(payload); err != nil {
		return payload, shape, err
	}
	if shape.Logic%8 != 0 || shape.Logic < 8 || shape.Logic > maxShape {
		return payload, shape, c.bad(shape, "a shape of 0 to %d dimensions has 8 to %d bytes, got %d", maxDims, maxShape, shape.Logic)
	}
	return payload, shape, c.check(shape)
}

// pair reads record index[k] and its shape.
func (c *cursor) pair(index []int64, k int, itemBytes int64, dst RaggedDst) error {
	i, err := wrap(index, k, c.v.length/2, c.s.path)
	if err != nil {
		return err
	}
	payload, shape, err := c.entries(i)
	if err != nil {
		return err
	}
	out := dst.Payload[dst.Offsets[k]:dst.Offsets[k+1]:dst.Offsets[k+1]]
	dims := dst.Dims[dst.DimOffsets[k]:dst.DimOffsets[k+1]]
	// The table may have changed since it was measured: it is not ours alone.
	if int(payload.Logic) != len(out) || int(shape.Logic) != 8+8*len(dims) {
		return c.bad(payload, "the table changed while it was read")
	}
	raw := c.shape[:shape.Logic]
	if err := c.read(shape, raw); err != nil {
		return err
	}
	if !decodeShape(raw, dims) {
		return c.bad(shape, "expected a shape of %d dimensions by its size, it says %d", len(dims), binary.LittleEndian.Uint64(raw))
	}
	if size, ok := shapeBytes(dims, itemBytes); !ok || size != int64(len(out)) {
		return c.bad(shape, "shape %v of elements of %d bytes does not make the %d bytes of the record", append([]int64(nil), dims...), itemBytes, len(out))
	}
	return c.read(payload, out)
}
