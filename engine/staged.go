package engine

import (
	"slices"

	"loaderx/engine/internal/disk"
	"loaderx/engine/internal/move"
)

const (
	// block is how many records have their addresses computed together, small
	// enough for their lines to stay in the first cache.
	block = 64
	// aheadBytes is how far in front of the copy data is prefetched.
	aheadBytes = 8 << 10
	// eachUpTo is the largest record that one prefetched line starts off well;
	// larger ones have all their lines prefetched, since 784 bytes with two of
	// 13 lines are half as fast.
	eachUpTo = 256
	// farFrom is where the copy streams by itself.
	farFrom = 16 << 10
)

// staged is the fast way to gather raw dense records out of mappings: three
// stages, a block apart. While block k is copied, block k+1 has its addresses
// computed and its data prefetched, and block k+2 its table lines prefetched
// (docs/performance.md has the figures).
type staged struct {
	c      *cursor
	width  uint64
	index  []int64
	length uint64 // records

	table    []byte // the mapped segment that holds all of the table
	perChunk uint64 // arithmetic places, or 0: through the table

	chunk uint32 // whose base and limit these are
	base  uintptr
	limit uint64

	addrs  [2 * block]uintptr
	chunks [2 * block]uint32
}

// gatherStaged copies the records of index to dst. It says false, and may have
// copied some, where anything is not as it should be: an index or a table entry
// that is wrong, a file that is not mapped or was cut, a fault. The caller then
// goes record by record, which finds out and says what.
func (c *cursor) gatherStaged(index []int64, dst []byte) bool {
	if c.s.codec != Raw || c.v.over != nil || len(index) == 0 {
		return false
	}
	g := &c.staged
	g.c, g.index, g.width, g.length = c, index, c.s.typed.Width, uint64(c.v.length)
	g.limit, g.perChunk = 0, uint64(c.v.perChunk)
	if g.perChunk == 0 && !g.loadTable() {
		return false
	}
	ok := false
	err := move.Guard(func() error {
		ok = g.run(dst)
		return nil
	})
	return err == nil && ok && g.resolve()
}

// loadTable maps the table, if it is of one segment. Others are a record of
// 2^28 away from being usual.
func (g *staged) loadTable() bool {
	if int64(g.length) > g.c.s.limits.Segment || g.length == 0 {
		return false
	}
	table, err := g.c.s.tables.bytes(0, int64(g.length)*disk.EntrySize)
	g.table = table
	return err == nil && table != nil
}

// part is block k of the batch.
func (g *staged) part(k int) []int64 {
	return g.index[min(k*block, len(g.index)):min((k+1)*block, len(g.index))]
}

func (g *staged) run(dst []byte) bool {
	g.touch(g.part(0))
	g.touch(g.part(1))
	now := g.part(0)
	if !g.locate(now, 0) {
		return false
	}
	w := int(g.width)
	for k := 0; len(now) > 0; k++ {
		g.touch(g.part(k + 2))
		next := g.part(k + 1)
		if !g.locate(next, block) {
			return false
		}
		out := dst[k*block*w : (k*block+len(now))*w]
		g.copy(out, len(now), len(next))
		g.doubt(out, len(now))
		copy(g.addrs[:block], g.addrs[block:])
		copy(g.chunks[:block], g.chunks[block:])
		now = next
	}
	return true
}

// touch asks for the table entries of indices, which are not checked yet: a
// prefetch of a wild address does nothing.
func (g *staged) touch(index []int64) {
	if g.perChunk > 0 || len(index) == 0 {
		return
	}
	var at [block]uintptr
	base := move.Address(g.table)
	for j, i := range index {
		i += int64(g.length) & (i >> 63)
		at[j] = base + uintptr(i)*disk.EntrySize
	}
	move.PrefetchEach(at[:len(index)])
}

// locate fills in the addresses of records, from place from on.
func (g *staged) locate(index []int64, from int) bool {
	addrs, chunks := g.addrs[from:from+block], g.chunks[from:from+block]
	for j, i := range index {
		i += int64(g.length) & (i >> 63)
		if uint64(i) >= g.length {
			return false
		}
		var chunk uint32
		var off uint64
		if g.perChunk == 0 {
			e := disk.DecodeEntry(g.table[uint64(i)*disk.EntrySize:])
			if uint64(e.Phys) != g.width || uint64(e.Logic) != g.width {
				return false
			}
			chunk, off = e.Chunk, uint64(e.Offset)
		} else if uint64(i) < g.perChunk {
			off = uint64(i) * g.width
		} else {
			chunk, off = uint32(uint64(i)/g.perChunk), uint64(i)%g.perChunk*g.width
		}
		if (chunk != g.chunk || g.limit == 0) && !g.enter(chunk) || off+g.width > g.limit {
			return false
		}
		addrs[j], chunks[j] = g.base+uintptr(off), chunk
	}
	return true
}

// enter makes a chunk the current one.
func (g *staged) enter(chunk uint32) bool {
	v := g.c.v
	need := int64(1)
	if chunk == v.tailChunk {
		need = int64(v.tailOffset)
	}
	if chunk > v.tailChunk {
		return false
	}
	data, err := g.c.s.chunks.bytes(int(chunk), need)
	if err != nil || len(data) == 0 {
		return false
	}
	g.chunk, g.base, g.limit = chunk, move.Address(data), uint64(len(data))
	if chunk == v.tailChunk {
		g.limit = uint64(need)
	}
	return true
}

// copy copies the first n records located, while more are located behind them.
func (g *staged) copy(out []byte, n, more int) {
	w := int(g.width)
	if w <= eachUpTo {
		move.PrefetchEach(g.addrs[block : block+more])
		move.CopyEach(out, g.addrs[:n], w)
		return
	}
	ahead := 0
	if w < farFrom {
		ahead = min(max(aheadBytes/w, 2), block)
	}
	for j := range n {
		if k := j + ahead; ahead > 0 && (k < n || k >= block && k-block < more) {
			move.Prefetch(g.addrs[k], w)
		}
		move.Copy(out[j*w:(j+1)*w], g.addrs[j])
	}
}

// doubt notes the chunks of records that end in a zero, see cursor.doubt.
func (g *staged) doubt(out []byte, n int) {
	w := int(g.width)
	for j := range n {
		if out[(j+1)*w-1] != 0 {
			continue
		}
		if d := g.c.suspects; len(d) == 0 || d[len(d)-1] != g.chunks[j] {
			g.c.suspects = append(d, g.chunks[j])
		}
	}
}

// resolve asks whether the files that records in doubt came from are still as
// long as they were.
func (g *staged) resolve() bool {
	c := g.c
	slices.Sort(c.suspects)
	for _, chunk := range slices.Compact(c.suspects) {
		if !g.enter(chunk) {
			return false
		}
		size, err := c.s.dir.SizeOf(numbered(int(chunk), chunkExt))
		if err != nil || uint64(size) < g.limit {
			return false
		}
	}
	c.suspects = c.suspects[:0]
	return true
}
