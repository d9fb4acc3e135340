package engine

import (
	"math/rand/v2"
	"testing"

	"loaderx/engine/internal/disk"
	"loaderx/engine/internal/vfs/memfs"
	"loaderx/engine/internal/zstd"
)

// Hostile bytes (RELIABILITY 2, T7). Whatever the files hold, the engine neither
// panics nor hangs, and asks for no more memory than they account for. The
// blocks of a store have their targets beside them, in internal/disk.

// FuzzImage makes a version 4 store of a table and a chunk, reads all of it,
// and upgrades it.
func FuzzImage(f *testing.F) {
	entry := func(e disk.Entry) []byte {
		b := make([]byte, disk.EntrySize)
		e.Put(b)
		return b
	}
	shape := []byte{1, 0, 0, 0, 0, 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0}
	f.Add(byte(0), entry(disk.Entry{Phys: 12, Logic: 12}), []byte("twelve bytes"))
	f.Add(byte(3), append(entry(disk.Entry{Phys: 12, Logic: 12}), entry(disk.Entry{Offset: 12, Phys: 16, Logic: 16})...),
		append([]byte("twelve bytes"), shape...))
	f.Add(byte(1), entry(disk.Entry{Phys: 1 << 31, Logic: 1 << 31}), []byte("x"))
	f.Add(byte(0), entry(disk.Entry{Offset: 1<<32 - 1, Phys: 12, Logic: 12, Chunk: 1<<32 - 1}), []byte("x"))
	f.Fuzz(func(t *testing.T, how byte, table, chunk []byte) {
		c := setting{o: denseOptions(12, Codec(how%3)), version4: true}
		if how%2 == 1 {
			c.o = raggedOptions(Codec(how % 3))
		}
		if *c.o.Codec == ZstdDict {
			c.o.Dict = testDict()
		}
		mem := memfs.New()
		c.o.Limits = Limits{Chunk: maxChunk, Segment: maxSegment}
		image4(mem, c, rand.New(rand.NewPCG(0, 0)), nil)
		n := int64(len(table) / disk.EntrySize)
		if c.o.Kind == Ragged {
			n &^= 1
		}
		meta := disk.Meta{Codec: *c.o.Codec, TailOffset: uint32(len(chunk)), Length: uint64(n)}.EncodeVersion4()
		mem.WriteFile(storePath+"/"+metaName, meta[:])
		mem.WriteFile(storePath+"/0.loc", table)
		mem.WriteFile(storePath+"/0.chunk", chunk)
		prod(mem, c.o)
	})
}

// prod does everything to a store that may be damaged.
func prod(mem *memfs.FS, o Options) {
	o.fs = mem
	for _, mode := range []Mode{ModeRead, ModeAppend} {
		o.Mode = mode
		s, err := Open(storePath, o)
		if err != nil {
			continue
		}
		_, _ = readAll(s)
		_ = sound(s)
		_, _ = s.Stats()
		_ = s.Sync()
		if mode == ModeAppend {
			c := setting{o: o}
			_ = appendItems(s, c.items(rand.New(rand.NewPCG(1, 1)), 2))
			_ = s.Delete([]int64{0})
			_ = compact(s, -1)
			_, _ = readAll(s)
		}
		_ = s.Close()
	}
}

// FuzzFrame decodes a frame against a dictionary, both hostile.
func FuzzFrame(f *testing.F) {
	d, err := zstd.NewDict(testDict())
	if err != nil {
		f.Fatal(err)
	}
	z, err := zstd.NewEncoder(dictLevel, d)
	if err != nil {
		f.Fatal(err)
	}
	frame := make([]byte, zstd.Bound(100))
	n, err := z.Encode(frame, denseRecords(1, 1, 100))
	if err != nil {
		f.Fatal(err)
	}
	z.Close()
	d.Close()
	f.Add(testDict(), frame[:n], 100)
	f.Add(testDict()[:300], frame[:n-4], 100)
	f.Add([]byte{0x37, 0xa4, 0x30, 0xec, 1, 0, 0, 0}, []byte{0x28, 0xb5, 0x2f, 0xfd, 0x20, 0, 1, 0, 0}, 0)
	f.Fuzz(func(t *testing.T, dict, frame []byte, size int) {
		if size < 0 || size > 1<<16 {
			return
		}
		d, err := zstd.NewDict(dict)
		if err != nil {
			return
		}
		defer d.Close()
		z, err := zstd.NewDecoder(d)
		if err != nil {
			return
		}
		defer z.Close()
		dst := make([]byte, size+1)
		dst[size] = 0xa5
		_ = z.Decode(dst[:size:size], frame)
		if dst[size] != 0xa5 {
			t.Error("wrote behind the destination")
		}
	})
}

// FuzzFolder runs a script of operations on a store whose files it damages on
// the way: each pair of bytes is an operation and its argument.
func FuzzFolder(f *testing.F) {
	f.Add(uint64(1), []byte{0, 3, 1, 0, 3, 0, 0, 5, 4, 0, 2, 0})
	f.Add(uint64(2), []byte{0, 9, 6, 1, 5, 77, 0, 2, 3, 1})
	f.Add(uint64(3), []byte{0, 9, 0, 9, 1, 2, 6, 0, 7, 130, 5, 3, 0, 1, 2, 0})
	f.Fuzz(func(t *testing.T, seed uint64, ops []byte) {
		rng := rand.New(rand.NewPCG(seed, 5))
		c := newSetting(rng)
		mem := memfs.New()
		c.o.fs = mem
		var s *Store
		for ; len(ops) >= 2 && len(ops) < 200; ops = ops[2:] {
			if s == nil {
				var err error
				if s, err = Open(storePath, c.o); err != nil {
					break
				}
			}
			mem, s = c.folderOp(mem, s, ops[0]%8, ops[1], rng)
			c.o.fs = mem
		}
		if s != nil {
			_ = s.Close()
		}
		prod(mem, c.o)
	})
}

// folderOp does one operation. It returns no store if it has to be opened again.
func (c setting) folderOp(mem *memfs.FS, s *Store, op, arg byte, rng *rand.Rand) (*memfs.FS, *Store) {
	switch op {
	case 0:
		_ = appendItems(s, c.items(rng, int(arg%16)))
	case 1:
		_ = s.Delete([]int64{int64(arg), 0, -1})
	case 2:
		_ = compact(s, int(arg%4)-1)
	case 3:
		_ = s.Sync()
	case 4:
		_ = s.Close()
		return mem, nil
	case 5, 6: // a killed process, and damage
		left := mem.Clone()
		_ = s.Close()
		if names := left.Names(storePath); len(names) > 0 && op == 6 {
			name := storePath + "/" + names[int(arg)%len(names)]
			b := left.ReadFile(name)
			if at := rng.IntN(len(b) + 1); at < len(b) {
				b[at] ^= byte(1 + rng.IntN(255))
				left.WriteFile(name, b)
			} else {
				left.WriteFile(name, b[:rng.IntN(len(b)+1)])
			}
		}
		return left, nil
	default:
		_, _ = readAll(s)
		_ = s.Refresh()
	}
	return mem, s
}
