package engine

import (
	"math"
	"sync"

	"loaderx/engine/internal/disk"
)

// arithmeticEntry is the table entry of record i where places follow a formula
// (FORMAT 7, "Arithmetic").
func arithmeticEntry(i int64, width, perChunk uint32) disk.Entry {
	return disk.Entry{
		Offset: uint32(i%int64(perChunk)) * width, Phys: width, Logic: width,
		Chunk: uint32(i / int64(perChunk)),
	}
}

// frontier is where the next record goes. Records never straddle chunks.
type frontier struct {
	mu    sync.Mutex
	chunk uint32
	off   int64
	room  int64 // of a chunk
}

// place takes room for the stored bytes of entries, in order, and fills in
// where they go.
func (f *frontier) place(entries []disk.Entry) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range entries {
		e := &entries[i]
		if f.off+int64(e.Phys) > f.room {
			if f.chunk == math.MaxUint32 {
				return errorf(StatusFull, "", "the store has %d chunks, the most a store can have", int64(math.MaxUint32)+1)
			}
			f.chunk, f.off = f.chunk+1, 0
		}
		e.Chunk, e.Offset = f.chunk, uint32(f.off)
		f.off += int64(e.Phys)
	}
	return nil
}

// extent is the number of entries at the front that lie one after another in
// one chunk, and their bytes.
func extent(entries []disk.Entry) (n int, size int64) {
	first := entries[0]
	for n = 0; n < len(entries) && entries[n].Chunk == first.Chunk && int64(entries[n].Offset) == int64(first.Offset)+size; n++ {
		size += int64(entries[n].Phys)
	}
	return n, size
}
