package engine

import (
	"encoding/binary"

	"loaderx/engine/internal/move"
	"loaderx/engine/internal/zstd"
)

const (
	// pairsAhead is how many ragged records in front of the copy are prefetched.
	pairsAhead = 8
	// maxShape is the largest shape record (FORMAT 4).
	maxShape = 8 + 8*maxDims
)

// pairs gathers ragged records in the stages of staged: lines of the table are
// prefetched, lead records later the places are found and the first of them
// prefetched, and a stride later they are copied.
type pairs struct {
	c         *cursor
	index     []int64
	itemBytes int64
	dst       RaggedDst
	measured  bool // the offsets are there, to be held against the table

	spots   [2 * ring]spot // payload and shape of record r from 2 * (r % ring) on
	found   int            // records whose spots are there
	fetched int            // records that were prefetched
	shapes  []byte         // of the current stride
}

// gatherPairs reads the records of index and fills the offsets of dst, or
// compares them if they were measured before. It stops copying where dst has too
// little room, which the offsets then tell. Or it says no, and may have read some.
func (c *cursor) gatherPairs(index []int64, itemBytes int64, dst RaggedDst, measured bool) bool {
	g := &c.pairs
	g.c, g.index, g.itemBytes, g.dst, g.measured = c, index, itemBytes, dst, measured
	return c.locator.ready(c) && c.locator.guarded(g.run)
}

func (g *pairs) run() bool {
	if z := g.c.z; z != nil {
		defer z.frames.Empty(keepBytes)
		defer z.shapes.Empty(keepBytes)
	}
	if !g.measured {
		g.dst.Offsets[0], g.dst.DimOffsets[0] = 0, 0
	}
	l, n := &g.c.locator, len(g.index)
	l.touch(g.index[:min(lead, n)], 2)
	g.found, g.fetched = 0, 0
	for done := 0; done < n; done += stride {
		for g.found < min(done+2*stride, n) {
			l.touch(some(g.index, g.found+lead), 2)
			now := some(g.index, g.found)
			if !g.find(now, g.at(g.found)) {
				return false
			}
			g.found += len(now)
		}
		if !g.stride(done, min(stride, n-done)) {
			return false
		}
	}
	return g.c.z == nil || g.c.z.dec.DecodeBatch(&g.c.z.frames, g.dst.Payload)
}

// at is the spots of record r and those behind it, up to the end of its stride.
func (g *pairs) at(r int) []spot { return g.spots[2*(r%ring):] }

// find fills in the spots of records: the payload and the shape of each.
func (g *pairs) find(index []int64, spots []spot) bool {
	l := &g.c.locator
	length := int64(l.length / 2)
	for j, i := range index {
		i += length & (i >> 63)
		if uint64(i) >= uint64(length) {
			return false
		}
		shape := &spots[2*j+1]
		if !l.find(uint64(2*i), &spots[2*j]) || !l.find(uint64(2*i+1), shape) {
			return false
		}
		if shape.logic%8 != 0 || shape.logic < 8 || shape.logic > maxShape {
			return false
		}
	}
	return true
}

// stride reads the n records from k on.
func (g *pairs) stride(k, n int) bool {
	shapes, ok := g.measure(k, n)
	if !ok {
		return false
	}
	if g.dst.Offsets[k+n] > int64(len(g.dst.Payload)) || g.dst.DimOffsets[k+n] > int64(len(g.dst.Dims)) {
		return true // the caller's to see
	}
	if len(g.shapes) < shapes {
		g.shapes = make([]byte, max(shapes, stride*16))
	}
	if g.c.z == nil {
		g.copy(k, n)
	} else if !g.decode(k, n) {
		return false
	}
	return g.putShapes(k, n)
}

// measure fills in the offsets behind records k to k+n-1, or holds them against
// the table, which may have changed since: it is not ours alone. It returns the
// size of the shape records.
func (g *pairs) measure(k, n int) (shapes int, ok bool) {
	offsets, dims := g.dst.Offsets[k:k+n+1], g.dst.DimOffsets[k:k+n+1]
	spots := g.at(k)[:2*n]
	for j := range n {
		payload, shape := &spots[2*j], &spots[2*j+1]
		end, dimsEnd := offsets[j]+int64(payload.logic), dims[j]+int64(shape.logic)/8-1
		if !g.measured {
			offsets[j+1], dims[j+1] = end, dimsEnd
		} else if end != offsets[j+1] || dimsEnd != dims[j+1] {
			return 0, false // and nothing written: the next part reads it, too
		}
		shapes += int(shape.logic)
	}
	return shapes, true
}

// copy copies the payloads of raw records to their places, and their shapes,
// which lie beside them, to g.shapes.
func (g *pairs) copy(k, n int) {
	used, l := 0, &g.c.locator
	spots := g.at(k)[:2*n]
	for j := range n {
		for ; g.fetched < min(k+j+pairsAhead, g.found); g.fetched++ {
			next := g.at(g.fetched)
			move.Prefetch(next[0].at, min(int(next[0].phys+next[1].phys), aheadMost))
		}
		payload, shape := &spots[2*j], &spots[2*j+1]
		if out := g.dst.Payload[g.dst.Offsets[k+j]:g.dst.Offsets[k+j+1]]; len(out) > 0 {
			g.c.copy(out, payload.at)
			if out[len(out)-1] == 0 {
				l.suspect(payload.chunk)
			}
		}
		move.Copy(g.shapes[used:used+int(shape.logic)], shape.at)
		used += int(shape.logic)
		// No suspicion here: a shape that was lost but for zeros is not the payload's.
	}
}

// decode stages the frames of payloads, and decodes shapes to g.shapes.
func (g *pairs) decode(k, n int) bool {
	z, used := g.c.z, 0
	spots := g.at(k)[:2*n]
	for j := range n {
		for ; g.fetched < min(k+j+1+framesAhead, g.found); g.fetched++ {
			next := g.at(g.fetched)
			next[0].prefetch()
			next[1].prefetch()
		}
		payload, shape := &spots[2*j], &spots[2*j+1]
		if !z.stage(&z.frames, payload, int(g.dst.Offsets[k+j]), g.dst.Payload) || !z.stage(&z.shapes, shape, used, g.shapes) {
			return false
		}
		used += int(shape.logic)
	}
	return z.dec.DecodeBatch(&z.shapes, g.shapes)
}

// stage adds the frame at s to a batch that is decoded into dst, the content from
// to on. A full batch is decoded first.
func (z *decompressor) stage(b *zstd.Batch, s *spot, to int, dst []byte) bool {
	place := b.Add(to, int(s.logic), int(s.phys))
	if place == nil {
		if !z.dec.DecodeBatch(b, dst) {
			return false
		}
		place = b.Add(to, int(s.logic), int(s.phys))
	}
	move.Copy(place, s.at)
	return true
}

// putShapes takes the dimensions out of the shape records, and checks them.
func (g *pairs) putShapes(k, n int) bool {
	raw := g.shapes
	for j := k; j < k+n; j++ {
		dims := g.dst.Dims[g.dst.DimOffsets[j]:g.dst.DimOffsets[j+1]]
		if !decodeShape(raw, dims) {
			return false
		}
		raw = raw[8+8*len(dims):]
		if size, ok := shapeBytes(dims, g.itemBytes); !ok || size != g.dst.Offsets[j+1]-g.dst.Offsets[j] {
			return false
		}
	}
	return true
}

// decodeShape reads a shape record of len(dims) dimensions (FORMAT 4). It says no
// if the record says that it has another number.
func decodeShape(raw []byte, dims []int64) bool {
	if binary.LittleEndian.Uint64(raw) != uint64(len(dims)) {
		return false
	}
	for d := range dims {
		dims[d] = int64(binary.LittleEndian.Uint64(raw[8+8*d:]))
	}
	return true
}
