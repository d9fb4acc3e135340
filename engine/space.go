package engine

import (
	"cmp"
	"slices"

	"loaderx/engine/internal/disk"
)

// Stats is how much room a store takes.
type Stats struct {
	Records     int64
	LiveBytes   int64 // stored bytes of the records
	ChunkBytes  int64 // size of the chunk files
	Reclaimable int64 // what Compact would take off ChunkBytes
}

// Stats reads the whole record table.
func (s *Store) Stats() (Stats, error) {
	if err := s.enter(); err != nil {
		return Stats{}, err
	}
	defer s.leave()
	v := s.view.Load()
	st := Stats{Records: v.length / s.perRecord()}
	ends, err := s.packInOrder(v, &st)
	if err == nil && ends == nil {
		ends, err = s.packByAddress(v)
	}
	if err != nil {
		return Stats{}, err
	}
	var packed int64
	for _, end := range ends {
		packed += end
	}
	for id := int64(0); id <= int64(v.tailChunk); id++ {
		size, err := s.sizeOf(numbered(int(id), chunkExt))
		if err != nil {
			return Stats{}, err
		}
		st.ChunkBytes += max(size, 0)
	}
	st.Reclaimable = max(0, st.ChunkBytes-packed)
	return st, nil
}

// packInOrder counts the live bytes, and gives how long each chunk is after a
// compaction, or nil if the records do not lie in their order: then that takes the
// whole table in memory.
func (s *Store) packInOrder(v *view, st *Stats) (ends []int64, err error) {
	c, p, last := s.reader(v), packer{room: s.limits.Chunk, ends: []int64{}}, disk.Entry{}
	err = c.guard(func() error {
		for i := range v.length {
			c.at = i / s.perRecord()
			e, err := c.entry(i)
			if err != nil {
				return err
			}
			st.LiveBytes += int64(e.Phys)
			if p.ends == nil || e.Chunk < last.Chunk || e.Chunk == last.Chunk && e.Offset < last.Offset {
				p.ends = nil
				continue
			}
			p.next(e.Entry)
			last = e.Entry
		}
		return nil
	})
	return p.ends, err
}

func (s *Store) packByAddress(v *view) ([]int64, error) {
	r, err := s.rows(v)
	if err != nil {
		return nil, err
	}
	return r.packed(s.limits.Chunk), nil
}

// rows is the whole record table, and its order by address.
type rows struct {
	entries []disk.Entry
	order   []int64 // physical indices
}

// rows reads the table of a view. It takes 24 bytes a physical record.
func (s *Store) rows(v *view) (rows, error) {
	r := rows{entries: make([]disk.Entry, v.length), order: make([]int64, v.length)}
	c := s.reader(v)
	err := c.guard(func() error {
		for i := range r.entries {
			c.at = int64(i) / s.perRecord()
			e, err := c.entry(int64(i))
			if err != nil {
				return err
			}
			r.entries[i], r.order[i] = e.Entry, int64(i)
		}
		return nil
	})
	before := func(a, b int64) int {
		x, y := r.entries[a], r.entries[b]
		return cmp.Or(cmp.Compare(x.Chunk, y.Chunk), cmp.Compare(x.Offset, y.Offset), cmp.Compare(x.Phys, y.Phys))
	}
	if err == nil && !slices.IsSortedFunc(r.order, before) {
		slices.SortFunc(r.order, before)
	}
	return r, err
}

// overlap is the position in the order of the first record that begins before
// the one in front of it ends, or -1.
func (r rows) overlap() int {
	for k := 1; k < len(r.order); k++ {
		a, b := r.entries[r.order[k-1]], r.entries[r.order[k]]
		if a.Chunk == b.Chunk && int64(a.Offset)+int64(a.Phys) > int64(b.Offset) {
			return k
		}
	}
	return -1
}

// packer walks the records in the order of their addresses and moves each to
// the lowest place behind those before it, in one of which it may lie already.
type packer struct {
	room  int64
	chunk uint32
	off   int64
	ends  []int64 // where the data of each chunk end
}

// next is where a record goes. It moves if that is below where it lies.
func (p *packer) next(e disk.Entry) (to disk.Entry, moves bool) {
	chunk, off := p.chunk, p.off
	if off+int64(e.Phys) > p.room {
		chunk, off = chunk+1, 0
	}
	to = e
	if moves = chunk < e.Chunk || chunk == e.Chunk && off < int64(e.Offset); moves {
		to.Chunk, to.Offset = chunk, uint32(off)
	}
	p.put(to)
	return to, moves
}

// put makes the place behind e the next one.
func (p *packer) put(e disk.Entry) {
	p.chunk, p.off = e.Chunk, int64(e.Offset)+int64(e.Phys)
	for int64(len(p.ends)) <= int64(p.chunk) {
		p.ends = append(p.ends, 0)
	}
	p.ends[p.chunk] = p.off
}

// packed is how long each chunk is after a compaction that finds room.
func (r rows) packed(room int64) []int64 {
	p := packer{room: room}
	for _, i := range r.order {
		p.next(r.entries[i])
	}
	return p.ends
}
