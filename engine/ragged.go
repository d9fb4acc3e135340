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
// another. It fills the offsets first; if Payload or Dims then are too small
// for what the last offsets say it returns ErrRoom, with nothing copied.
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
	if err := s.measure(v, index, dst); err != nil {
		return err
	}
	total := dst.Offsets[n]
	if total > int64(len(dst.Payload)) || dst.DimOffsets[n] > int64(len(dst.Dims)) {
		return ErrRoom
	}
	if n == 0 {
		return nil
	}
	per, workers := s.units(n, int(total)/n, threads)
	return s.gather(v, n, per, workers, func(c *cursor, lo, hi int) error {
		return c.each(lo, hi, func(k int) error { return c.pair(index, k, itemBytes, dst) })
	})
}

// measure fills the offsets from the table, without reading a payload.
func (s *Store) measure(v *view, index []int64, dst RaggedDst) error {
	c, err := s.newCursor(v)
	if err != nil {
		return err
	}
	defer c.end()
	return c.guard(func() error {
		dst.Offsets[0], dst.DimOffsets[0] = 0, 0
		for k := range index {
			i, err := wrap(index, k, v.length/2, s.path)
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
	if shape.Logic%8 != 0 || shape.Logic < 8 || shape.Logic > 8+8*maxDims {
		return payload, shape, c.bad(shape, "a shape of 0 to %d dimensions has 8 to %d bytes, got %d", maxDims, 8+8*maxDims, shape.Logic)
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
	if ndim := binary.LittleEndian.Uint64(raw); ndim != uint64(len(dims)) {
		return c.bad(shape, "expected a shape of %d dimensions by its size, it says %d", len(dims), ndim)
	}
	for d := range dims {
		dims[d] = int64(binary.LittleEndian.Uint64(raw[8+8*d:]))
	}
	if size, ok := shapeBytes(dims, itemBytes); !ok || size != int64(len(out)) {
		return c.bad(shape, "shape %v of elements of %d bytes does not make the %d bytes of the record", append([]int64(nil), dims...), itemBytes, len(out))
	}
	return c.read(payload, out)
}
