package engine

import (
	"loaderx/engine/internal/disk"
	"loaderx/engine/internal/move"
)

const (
	// aheadBytes is how far in front of the copy data is prefetched.
	aheadBytes = 8 << 10
	// eachUpTo is the largest record that one prefetched line starts off well;
	// larger ones have all their lines prefetched, since 784 bytes with two of
	// 13 lines are half as fast.
	eachUpTo = 256
	// runFrom is the shortest run of neighbours that is copied as one.
	runFrom = 8
)

// staged gathers raw dense records out of mappings in three stages, a block
// apart: while block k is copied, block k+1 has its addresses computed and its
// data prefetched, and block k+2 its table lines prefetched (docs/performance.md
// has the figures).
type staged struct {
	*locator
	width uint64
	index []int64

	addrs  [2 * block]uintptr
	chunks [2 * block]uint32
}

// gatherStaged copies the records of index to dst, or says no and may have
// copied some.
func (c *cursor) gatherStaged(index []int64, dst []byte) bool {
	g := &c.staged
	g.locator, g.index, g.width = &c.locator, index, c.s.typed.Width
	return g.ready(c) && g.guarded(func() bool {
		done := g.runs(dst)
		g.index = index[done:]
		return g.run(dst[done*int(g.width):])
	})
}

// runs copies records at the front that lie one after another, as the ones of
// slices and of sequential orders do. It returns how many it copied, and leaves
// what it cannot do to run.
func (g *staged) runs(dst []byte) (done int) {
	for {
		rest := g.index[done:]
		n := 1
		for n < len(rest) && rest[n] == rest[n-1]+1 {
			n++
		}
		if n < runFrom || !g.locate(rest[:1], 0) {
			return done
		}
		first := uint64(rest[0] + int64(g.length)&(rest[0]>>63))
		if first+uint64(n) > g.length {
			return done
		}
		n = g.together(first, n)
		w := int(g.width)
		out := dst[done*w : (done+n)*w]
		move.Copy(out, g.addrs[0])
		for k := w - 1; k < len(out); k += w {
			if out[k] == 0 {
				g.suspect(g.chunk)
				break
			}
		}
		done += n
	}
}

// together is how many of n records from first on, the located one, lie together.
func (g *staged) together(first uint64, n int) int {
	room := int((g.limit - uint64(g.addrs[0]-g.base)) / g.width)
	n = min(n, room)
	off := uint64(g.addrs[0] - g.base)
	for k := 1; g.perChunk == 0 && k < n; k++ {
		e := disk.DecodeEntry(g.table[(first+uint64(k))*disk.EntrySize:])
		if e.Chunk != g.chunk || uint64(e.Offset) != off+uint64(k)*g.width || uint64(e.Phys) != g.width || e.Logic != e.Phys {
			return k
		}
	}
	return n
}

// part is block k of the batch.
func (g *staged) part(k int) []int64 {
	return g.index[min(k*block, len(g.index)):min((k+1)*block, len(g.index))]
}

func (g *staged) run(dst []byte) bool {
	g.touch(g.part(0), 1)
	g.touch(g.part(1), 1)
	now := g.part(0)
	if !g.locate(now, 0) {
		return false
	}
	w := int(g.width)
	for k := 0; len(now) > 0; k++ {
		g.touch(g.part(k+2), 1)
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

// doubt suspects the chunks of copied records that end in a zero.
func (g *staged) doubt(out []byte, n int) {
	w := int(g.width)
	for j := range n {
		if out[(j+1)*w-1] == 0 {
			g.suspect(g.chunks[j])
		}
	}
}
