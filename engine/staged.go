package engine

import (
	"loaderx/engine/internal/disk"
	"loaderx/engine/internal/move"
)

const (
	// aheadBytes is how far in front of the copy the data of records above eachUpTo
	// bytes are prefetched, and aheadMost how much of each: the processor goes on
	// by itself.
	aheadBytes = 8 << 10
	aheadMost  = 12 * 64
	// eachUpTo is the largest record that one prefetched line starts off well, when
	// it is located.
	eachUpTo = 256
	// runFrom is the shortest run of neighbours that is copied as one.
	runFrom = 8
)

// staged gathers raw dense records out of mappings in three stages: lines of the
// table are prefetched, lead records later the addresses are computed and the data
// prefetched, and lead records later they are copied.
type staged struct {
	*locator
	width uint64
	index []int64

	addrs  [ring]uintptr // of record r at r % ring
	chunks [ring]uint32
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
		if n < runFrom || !g.locate(0, rest[:1]) {
			return done
		}
		first := uint64(rest[0] + int64(g.length)&(rest[0]>>63))
		if first+uint64(n) > g.length {
			return done
		}
		n = g.together(first, n)
		w := int(g.width)
		out := dst[done*w : (done+n)*w]
		g.c.copy(out, g.addrs[0])
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

// run copies all records of the index.
func (g *staged) run(dst []byte) bool {
	n, w := len(g.index), int(g.width)
	clear(g.chunks[:])
	g.touch(g.index[:min(lead, n)], 1)
	located, fetched := 0, 0
	for done := 0; done < n; done += stride {
		for located < min(done+stride+lead, n) {
			g.touch(some(g.index, located+lead), 1)
			now := some(g.index, located)
			if !g.locate(located, now) {
				return false
			}
			located += len(now)
		}
		end := min(done+stride, n)
		fetched = g.copy(dst[done*w:end*w], done, fetched, located)
		g.doubt(dst[done*w:end*w], done)
	}
	return true
}

// locate fills in the addresses of records r and on, and prefetches small ones.
func (g *staged) locate(r int, index []int64) bool {
	addrs := g.addrs[r%ring:][:len(index)]
	found := false
	if g.perChunk >= g.length {
		found = g.locateInOne(addrs, index)
	} else {
		found = g.locateInMany(addrs, g.chunks[r%ring:][:len(index)], index)
	}
	if found && g.width <= eachUpTo {
		move.PrefetchEach(addrs)
	}
	return found
}

// locateInOne is locate where the places of all records follow a formula and are in
// chunk 0, as in most stores: small records take more time to find than to copy.
func (g *staged) locateInOne(addrs []uintptr, index []int64) bool {
	if g.limit == 0 && !g.enter(0) || g.length*g.width > g.limit {
		return false
	}
	base, width, length := g.base, uintptr(g.width), g.length
	for j, i := range index {
		i += int64(length) & (i >> 63)
		if uint64(i) >= length {
			return false
		}
		addrs[j] = base + uintptr(i)*width
	}
	return true
}

// locateInMany is locate for any other store.
func (g *staged) locateInMany(addrs []uintptr, chunks []uint32, index []int64) bool {
	for j, i := range index {
		i += int64(g.length) & (i >> 63)
		if uint64(i) >= g.length {
			return false
		}
		chunk, off := uint32(0), uint64(0)
		if g.perChunk == 0 {
			e := disk.DecodeEntry(g.table[uint64(i)*disk.EntrySize:])
			if uint64(e.Phys) != g.width || uint64(e.Logic) != g.width {
				return false
			}
			chunk, off = e.Chunk, uint64(e.Offset)
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

// copy copies the records from r on that out has room for, and prefetches some of
// those located behind them. It returns up to where that was done.
func (g *staged) copy(out []byte, r, fetched, located int) int {
	w := int(g.width)
	n := len(out) / w
	if w <= eachUpTo {
		move.CopyEach(out, g.addrs[r%ring:][:n], w)
		return fetched
	}
	ahead := min(max(aheadBytes/w, 2), lead)
	for j := range n {
		for ; fetched < min(r+j+ahead, located); fetched++ {
			move.Prefetch(g.addrs[fetched%ring], min(w, aheadMost))
		}
		g.c.copy(out[j*w:(j+1)*w], g.addrs[(r+j)%ring])
	}
	return fetched
}

// doubt suspects the chunks of copied records, r and on, that end in a zero.
func (g *staged) doubt(out []byte, r int) {
	w := int(g.width)
	for k, j := w-1, 0; k < len(out); k, j = k+w, j+1 {
		if out[k] == 0 {
			g.suspect(g.chunks[(r+j)%ring])
		}
	}
}
