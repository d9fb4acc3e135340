package engine

import (
	"slices"

	"loaderx/engine/internal/disk"
	"loaderx/engine/internal/move"
)

// The fast ways to gather (staged.go, frames.go, pairs.go) find records through
// a locator. It says no where anything is not as it should be: an index or a
// table entry that is wrong, a file that is not mapped or was cut. Its user then
// gives up, and the records are read one by one (cursor.go), which finds out and
// says what it is. So the fast ways need no messages, and the slow one no speed.

const (
	// stride is how many records go through a stage at a time: with 64 of them the
	// prefetches of a stage wait for one another (docs/performance.md).
	stride = 16
	// lead is how many records a stage is ahead of the next, and ring the places of
	// located ones.
	lead = 64
	ring = 2 * lead
)

// locator finds records in the mappings of a view.
type locator struct {
	c        *cursor
	length   uint64 // physical records
	table    []byte // the mapped segment that holds all of the table
	perChunk uint64 // arithmetic places, or 0: through the table

	chunk    uint32 // whose base and limit these are
	base     uintptr
	limit    uint64
	suspects []uint32 // chunks, see cursor.doubt

	lines [lead]uintptr // of the table, to be prefetched
}

// spot is where a physical record lies.
type spot struct {
	at          uintptr
	phys, logic uint32
	chunk       uint32
}

// ready makes the locator one for the cursor's view, or says no.
func (l *locator) ready(c *cursor) bool {
	l.c, l.length, l.limit, l.perChunk = c, uint64(c.v.length), 0, uint64(c.v.perChunk)
	l.suspects = l.suspects[:0]
	return c.v.over == nil && (l.perChunk > 0 || l.loadTable())
}

// loadTable maps the table, if it is of one segment. Others are a record of
// 2^28 away from being usual.
func (l *locator) loadTable() bool {
	if int64(l.length) > l.c.s.limits.Segment || l.length == 0 {
		return false
	}
	table, err := l.c.s.tables.bytes(0, int64(l.length)*disk.EntrySize)
	l.table = table
	return err == nil && table != nil
}

// some is the stride of an index that begins with record r.
func some(index []int64, r int) []int64 {
	return index[min(r, len(index)):min(r+stride, len(index))]
}

// touch asks for the table entries of the users' records of index, each of per
// physical ones. The indices are not checked yet: a prefetch of a wild address
// does nothing.
func (l *locator) touch(index []int64, per int64) {
	if l.perChunk > 0 || len(index) == 0 {
		return
	}
	base, n := move.Address(l.table), int64(l.length)/per
	for j, i := range index {
		i += n & (i >> 63)
		l.lines[j] = base + uintptr(i*per)*disk.EntrySize
	}
	move.PrefetchEach(l.lines[:len(index)])
}

// find fills in where physical record i lies, which is below the length. Its
// entry is checked as for a record read alone.
func (l *locator) find(i uint64, to *spot) bool {
	e := disk.DecodeEntry(l.table[i*disk.EntrySize:])
	if l.c.check(place{Entry: e}) != nil {
		return false
	}
	if (e.Chunk != l.chunk || l.limit == 0) && !l.enter(e.Chunk) || uint64(e.Offset)+uint64(e.Phys) > l.limit {
		return false
	}
	*to = spot{l.base + uintptr(e.Offset), e.Phys, e.Logic, e.Chunk}
	return true
}

// enter makes a chunk the current one.
func (l *locator) enter(chunk uint32) bool {
	v := l.c.v
	need := int64(1)
	if chunk == v.tailChunk {
		need = int64(v.tailOffset)
	}
	if chunk > v.tailChunk {
		return false
	}
	data, err := l.c.s.chunks.bytes(int(chunk), need)
	if err != nil || len(data) == 0 {
		return false
	}
	l.chunk, l.base, l.limit = chunk, move.Address(data), uint64(len(data))
	if chunk == v.tailChunk {
		l.limit = uint64(need)
	}
	return true
}

// suspect notes the chunk of a record that ends in a zero.
func (l *locator) suspect(chunk uint32) {
	if n := len(l.suspects); n == 0 || l.suspects[n-1] != chunk {
		l.suspects = append(l.suspects, chunk)
	}
}

// resolve asks whether the files that records in doubt came from are still as
// long as they were.
func (l *locator) resolve() bool {
	slices.Sort(l.suspects)
	for _, chunk := range slices.Compact(l.suspects) {
		if !l.enter(chunk) {
			return false
		}
		size, err := l.c.s.chunks.sizeOf(int(chunk))
		if err != nil || uint64(size) < l.limit {
			return false
		}
	}
	return true
}

// guarded runs a fast way on mapped memory. It says no after a fault, too.
func (l *locator) guarded(run func() bool) bool {
	ok := false
	err := move.Guard(func() error {
		ok = run()
		return nil
	})
	return err == nil && ok && l.resolve()
}
