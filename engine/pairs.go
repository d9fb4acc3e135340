package engine

import (
	"encoding/binary"

	"loaderx/engine/internal/move"
	"loaderx/engine/internal/zstd"
)

const (
	// pairsAhead is how many ragged records in front of the copy are prefetched,
	// and pairAhead how many bytes of one.
	pairsAhead = 8
	pairAhead  = 2560
	// maxShape is the largest shape record (FORMAT 4).
	maxShape = 8 + 8*maxDims
)

// pairs gathers ragged records, a block at a time: the places of block k+1 are
// found before block k is copied, so that its first records can be prefetched.
type pairs struct {
	c         *cursor
	index     []int64
	itemBytes int64
	dst       RaggedDst
	measured  bool // the offsets are there, to be held against the table

	spots  [4 * block]spot // payload and shape of each record of two blocks
	shapes []byte          // of the current block
}

// gatherPairs reads the records of index and fills the offsets of dst, or
// compares them if they were measured before. It stops copying where dst has too
// little room, which the offsets then tell. Or it says no, and may have read some.
func (c *cursor) gatherPairs(index []int64, itemBytes int64, dst RaggedDst, measured bool) bool {
	g := &c.pairs
	g.c, g.index, g.itemBytes, g.dst, g.measured = c, index, itemBytes, dst, measured
	return c.locator.ready(c) && c.locator.guarded(g.run)
}

// part is block k of the batch.
func (g *pairs) part(k int) []int64 {
	return g.index[min(k*block, len(g.index)):min((k+1)*block, len(g.index))]
}

func (g *pairs) run() bool {
	if z := g.c.z; z != nil {
		defer z.frames.Empty(keepBytes)
		defer z.shapes.Empty(keepBytes)
	}
	l := &g.c.locator
	l.touch(g.part(0), 2)
	l.touch(g.part(1), 2)
	now := g.part(0)
	if !g.measured {
		g.dst.Offsets[0], g.dst.DimOffsets[0] = 0, 0
	}
	if !g.find(now, g.spots[:]) {
		return false
	}
	for j := range min(pairsAhead, len(now)) {
		g.prefetch(j)
	}
	for k := 0; len(now) > 0; k++ {
		l.touch(g.part(k+2), 2)
		next := g.part(k + 1)
		if !g.find(next, g.spots[2*block:]) || !g.block(k*block, len(now), len(next)) {
			return false
		}
		copy(g.spots[:2*block], g.spots[2*block:])
		now = next
	}
	return g.c.z == nil || g.c.z.dec.DecodeBatch(&g.c.z.frames, g.dst.Payload)
}

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

// block reads the n records from k on, whose spots come first, while those of
// more records lie behind them.
func (g *pairs) block(k, n, more int) bool {
	shapes, ok := g.measure(k, n)
	if !ok {
		return false
	}
	if g.dst.Offsets[k+n] > int64(len(g.dst.Payload)) || g.dst.DimOffsets[k+n] > int64(len(g.dst.Dims)) {
		return true // the caller's to see
	}
	if len(g.shapes) < shapes {
		g.shapes = make([]byte, max(shapes, block*16))
	}
	if g.c.z == nil {
		g.copy(k, n, more)
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
	for j := range n {
		payload, shape := &g.spots[2*j], &g.spots[2*j+1]
		end, dimsEnd := offsets[j]+int64(payload.logic), dims[j]+int64(shape.logic)/8-1
		if g.measured && (end != offsets[j+1] || dimsEnd != dims[j+1]) {
			return 0, false
		}
		offsets[j+1], dims[j+1] = end, dimsEnd
		shapes += int(shape.logic)
	}
	return shapes, true
}

// copy copies the payloads of raw records to their places, and their shapes,
// which lie beside them, to g.shapes.
func (g *pairs) copy(k, n, more int) {
	used, l := 0, &g.c.locator
	for j := range n {
		if ahead := j + pairsAhead; ahead < n || ahead >= block && ahead-block < more {
			g.prefetch(ahead)
		}
		payload, shape := &g.spots[2*j], &g.spots[2*j+1]
		if out := g.dst.Payload[g.dst.Offsets[k+j]:g.dst.Offsets[k+j+1]]; len(out) > 0 {
			move.Copy(out, payload.at)
			if out[len(out)-1] == 0 {
				l.suspect(payload.chunk)
			}
		}
		move.Copy(g.shapes[used:used+int(shape.logic)], shape.at)
		used += int(shape.logic)
		// No suspicion here: a shape that was lost but for zeros is not the payload's.
	}
}

func (g *pairs) prefetch(j int) {
	payload, shape := &g.spots[2*j], &g.spots[2*j+1]
	if payload.phys >= farFrom {
		move.Prefetch(shape.at, int(shape.phys))
		return
	}
	move.Prefetch(payload.at, min(int(payload.phys+shape.phys), pairAhead))
}

// decode stages the frames of payloads, and decodes shapes to g.shapes.
func (g *pairs) decode(k, n int) bool {
	z, used := g.c.z, 0
	for j := range n {
		if j+framesAhead < n {
			g.spots[2*(j+framesAhead)].prefetch()
			g.spots[2*(j+framesAhead)+1].prefetch()
		}
		payload, shape := &g.spots[2*j], &g.spots[2*j+1]
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
