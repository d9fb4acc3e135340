package engine

import (
	"encoding/binary"
	"math/rand/v2"

	"loaderx/engine/internal/disk"
	"loaderx/engine/internal/zstd"
)

// maker4 lays out a version 4 store in memory.
type maker4 struct {
	c      setting
	files  map[string][]byte
	chunk  uint32
	off    uint32
	length int64
}

func (m *maker4) typed() []byte {
	identity, err := disk.EncodeIdentity(m.c.o.Kind, m.c.o.Identity)
	if err != nil {
		panic(err)
	}
	t := disk.Typed{Version: 1, Kind: m.c.o.Kind, Identity: identity}
	if m.c.o.Kind == Dense {
		t.Width = uint64(m.c.o.Width)
	}
	return t.Encode()
}

// fill appends records, deletes one as 1.7.7 does, and returns what is left.
func (m *maker4) fill(items []item, rng *rand.Rand) contents {
	store := m.coder()
	live := asContents(items)
	per := int64(1)
	for _, it := range items {
		m.put(store(it.payload), len(it.payload))
		if m.c.o.Kind == Ragged {
			per = 2
			shape := binary.LittleEndian.AppendUint64(nil, uint64(len(it.dims)))
			for _, d := range it.dims {
				shape = binary.LittleEndian.AppendUint64(shape, uint64(d))
			}
			m.put(store(shape), len(shape))
		}
	}
	if n := int64(len(live)); n > 2 && rng.IntN(2) == 0 {
		for k := range per { // the last into the first; its entry stays behind
			copy(m.entry(k), m.entry((n-1)*per+k))
		}
		live = live.without([]int64{0})
		m.length -= per
	}
	if rng.IntN(2) == 0 { // of an append that was killed
		name := numbered(int(m.chunk), chunkExt)
		m.files[name] = append(m.files[name], "left by an append"...)
	}
	return live
}

// coder compresses as the store's codec does.
func (m *maker4) coder() func([]byte) []byte {
	if *m.c.o.Codec == Raw {
		return func(b []byte) []byte { return b }
	}
	var d *zstd.Dict
	level := zstdLevel
	if *m.c.o.Codec == ZstdDict {
		var err error
		if d, err = zstd.NewDict(m.c.o.Dict); err != nil {
			panic(err)
		}
		level = dictLevel
	}
	z, err := zstd.NewEncoder(level, d)
	if err != nil {
		panic(err)
	}
	return func(b []byte) []byte {
		frame := make([]byte, zstd.Bound(len(b)))
		n, err := z.Encode(frame, b)
		if err != nil {
			panic(err)
		}
		return frame[:n]
	}
}

func (m *maker4) put(stored []byte, logic int) {
	if int64(m.off)+int64(len(stored)) > m.c.o.Limits.Chunk {
		m.chunk, m.off = m.chunk+1, 0
	}
	name := numbered(int(m.chunk), chunkExt)
	m.files[name] = append(m.files[name], stored...)
	e := disk.Entry{Offset: m.off, Phys: uint32(len(stored)), Logic: uint32(logic), Chunk: m.chunk}
	m.off += uint32(len(stored))
	id, _ := m.c.o.Limits.segmentOf(m.length)
	table := numbered(id, tableExt)
	m.files[table] = append(m.files[table], make([]byte, disk.EntrySize)...)
	m.length++
	e.Put(m.entry(m.length - 1))
}

// entry is the bytes of a table entry.
func (m *maker4) entry(i int64) []byte {
	id, k := m.c.o.Limits.segmentOf(i)
	return m.files[numbered(id, tableExt)][k*disk.EntrySize:][:disk.EntrySize]
}
