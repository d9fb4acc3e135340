package engine

import (
	"encoding/binary"

	"loaderx/engine/internal/disk"
)

const (
	// sliceRecords bounds the table entries held in memory.
	sliceRecords = 256 << 10
	// sliceChunks bounds the chunks that one slice can touch.
	sliceChunks = 4
)

// part is a run of physical records in the caller's memory: dense ones of one
// width, or for each ragged one its payload and its shape.
type part struct {
	n     int // physical records
	width int // dense; 0 for ragged
	data  []byte

	offsets  []int64 // ragged: payload i is data[offsets[i]:offsets[i+1]]
	dims     []int64 // its shape is dims[dimOffs[i]:dimOffs[i+1]]
	dimOffs  []int64
	shapes   []byte // the encoded shapes of a cut part
	shapeEnd []int  // where they end
}

// cut takes a slice off the front that is small enough to be written at once.
func (p *part) cut(l Limits) part {
	most := int(min(sliceRecords, sliceChunks*l.Segment))
	bytes := sliceChunks * l.Chunk
	if p.width > 0 {
		n := max(1, min(p.n, most, int(bytes/int64(p.width))))
		head := part{n: n, width: p.width, data: p.data[:n*p.width]}
		p.n, p.data = p.n-n, p.data[n*p.width:]
		return head
	}
	pairs := p.n / 2
	n, used := 0, int64(0)
	for n < pairs && 2*n < most {
		size := p.offsets[n+1] - p.offsets[n] + 8 + 8*(p.dimOffs[n+1]-p.dimOffs[n])
		if used += size; used > bytes && n > 0 {
			break
		}
		n++
	}
	head := part{n: 2 * n, data: p.data, offsets: p.offsets[:n+1], dims: p.dims, dimOffs: p.dimOffs[:n+1]}
	head.encodeShapes()
	p.n, p.offsets, p.dimOffs = p.n-2*n, p.offsets[n:], p.dimOffs[n:]
	return head
}

// encodeShapes writes the shape records: the number of dimensions, then each
// (FORMAT 4).
func (p *part) encodeShapes() {
	n := len(p.offsets) - 1
	p.shapes = make([]byte, 0, 8*n+8*int(p.dimOffs[n]-p.dimOffs[0]))
	p.shapeEnd = make([]int, n)
	for i := range n {
		dims := p.dims[p.dimOffs[i]:p.dimOffs[i+1]]
		p.shapes = binary.LittleEndian.AppendUint64(p.shapes, uint64(len(dims)))
		for _, d := range dims {
			p.shapes = binary.LittleEndian.AppendUint64(p.shapes, uint64(d))
		}
		p.shapeEnd[i] = len(p.shapes)
	}
}

// record is physical record i of a cut part.
func (p *part) record(i int) []byte {
	if p.width > 0 {
		return p.data[i*p.width : (i+1)*p.width]
	}
	k := i / 2
	if i%2 == 0 {
		return p.data[p.offsets[k]:p.offsets[k+1]]
	}
	start := 0
	if k > 0 {
		start = p.shapeEnd[k-1]
	}
	return p.shapes[start:p.shapeEnd[k]]
}

// size is the bytes of a cut part's records.
func (p *part) size() int {
	if p.width > 0 {
		return len(p.data)
	}
	return int(p.offsets[p.n/2]-p.offsets[0]) + len(p.shapes)
}

// perRun is how many records of a cut part make a run: whole pairs, so that a
// ragged record lies together.
func (p *part) perRun(bytes int) int {
	n := max(1, bytes*p.n/max(1, p.size()))
	return min((n+1)&^1, p.n)
}

// stored is the bytes of a window of a cut part: in the caller's memory where they
// lie there so, else copied.
func (p *part) stored(w window, scratch []byte) []byte {
	if p.width > 0 {
		from := int64(w.first)*int64(p.width) + w.skip
		return p.data[from : from+w.size]
	}
	i, r := w.first, p.record(w.first)[w.skip:]
	if int64(len(r)) >= w.size {
		return r[:w.size]
	}
	used := copy(scratch[:w.size], r)
	for int64(used) < w.size {
		i++
		used += copy(scratch[used:w.size], p.record(i))
	}
	return scratch[:used]
}

// checkDense says whether count records of the store's width fill data.
func (s *Store) checkDense(data []byte, count int64) error {
	w := int64(s.typed.Width)
	if s.typed.Kind != Dense {
		return errorf(StatusArgument, s.path, "%s: expected ragged records, got dense ones", s.path)
	}
	if count < 0 || count > int64(len(data)) || count*w != int64(len(data)) {
		return errorf(StatusArgument, s.path, "%s: expected %d records of %d bytes, got %d bytes", s.path, count, w, len(data))
	}
	return nil
}

// AppendDense adds count records that lie one after another.
func (b *Batch) AppendDense(data []byte, count int64) error {
	return b.add(func() (*part, error) {
		p := &part{n: int(count), width: int(b.s.typed.Width), data: data}
		return p, b.s.checkDense(data, count)
	})
}

// AppendRagged adds len(offsets) - 1 records: record i is
// payload[offsets[i]:offsets[i+1]], of elements of itemBytes in the shape
// dims[dimOffsets[i]:dimOffsets[i+1]].
func (b *Batch) AppendRagged(payload []byte, offsets, dims, dimOffsets []int64, itemBytes int64) error {
	return b.add(func() (*part, error) {
		p := &part{n: 2 * (len(offsets) - 1), data: payload, offsets: offsets, dims: dims, dimOffs: dimOffsets}
		return p, b.s.checkRagged(p, itemBytes)
	})
}

func (s *Store) checkRagged(p *part, itemBytes int64) error {
	n := len(p.offsets) - 1
	switch {
	case s.typed.Kind != Ragged:
		return errorf(StatusArgument, s.path, "%s: expected dense records, got ragged ones", s.path)
	case n < 0 || len(p.dimOffs) != n+1:
		return errorf(StatusArgument, s.path, "%s: expected count + 1 offsets for payloads and shapes, got %d and %d", s.path, n+1, len(p.dimOffs))
	case itemBytes < 1:
		return errorf(StatusArgument, s.path, "%s: expected elements of at least 1 byte, got %d", s.path, itemBytes)
	}
	most := min(s.limits.Record, s.limits.Chunk)
	for i := range n {
		lo, hi, dlo, dhi := p.offsets[i], p.offsets[i+1], p.dimOffs[i], p.dimOffs[i+1]
		if lo < 0 || hi < lo || hi > int64(len(p.data)) || dlo < 0 || dhi < dlo || dhi > int64(len(p.dims)) {
			return errorf(StatusArgument, s.path, "%s: record %d of the batch: offsets %d to %d and %d to %d do not fit %d bytes and %d dimensions",
				s.path, i, lo, hi, dlo, dhi, len(p.data), len(p.dims))
		}
		if hi == lo && s.typed.Flags&disk.FlagAllowEmpty == 0 {
			return errorf(StatusArgument, s.path, "%s: record %d of the batch has zero bytes, which this store was made without (allow_empty)", s.path, i)
		}
		if hi-lo > most {
			return errorf(StatusArgument, s.path, "%s: record %d of the batch: expected at most %d bytes, got %d", s.path, i, most, hi-lo)
		}
		if got, ok := shapeBytes(p.dims[dlo:dhi], itemBytes); !ok || got != hi-lo {
			return errorf(StatusArgument, s.path, "%s: record %d of the batch: %d bytes do not fill shape %v of elements of %d bytes",
				s.path, i, hi-lo, p.dims[dlo:dhi], itemBytes)
		}
	}
	return nil
}

// shapeBytes is the size of an array; false if it overflows or no array has
// such a shape.
func shapeBytes(dims []int64, itemBytes int64) (int64, bool) {
	if len(dims) > maxDims {
		return 0, false
	}
	total, empty := itemBytes, false
	for _, d := range dims {
		switch {
		case d < 0:
			return 0, false
		case d == 0:
			empty = true
		case total > (1<<62)/d:
			return 0, false
		default:
			total *= d
		}
	}
	if empty {
		return 0, true
	}
	return total, true
}
