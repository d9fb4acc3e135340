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

// windowBytes is how much of a raw chunk a worker checksums and writes at a time.
// Where the page cache is written in whole windows of the size and place of a huge
// page, Linux keeps it in huge pages and maps it so (from 6.16 on ext4), which
// random reads gain most by.
const windowBytes = 2 << 20

// window is what a run of records has in one window of a chunk.
type window struct {
	chunk     uint32
	off, size int64
	lo, hi    int   // the records that begin in it
	first     int   // the record that its first byte is of
	skip      int64 // the bytes of that record before it
}

// windows cuts the places of entries, which lie in order, at the multiples of
// windowBytes.
func windows(entries []disk.Entry) []window {
	var list []window
	w, limit := &window{}, int64(0)
	open := func(chunk uint32, off int64, lo, first int, skip int64) {
		list = append(list, window{chunk: chunk, off: off, lo: lo, hi: lo, first: first, skip: skip})
		w, limit = &list[len(list)-1], off/windowBytes*windowBytes+windowBytes
	}
	for i, e := range entries {
		off, end := int64(e.Offset), int64(e.Offset)+int64(e.Phys)
		if i == 0 || e.Chunk != w.chunk || off >= limit {
			open(e.Chunk, off, i, i, 0)
		}
		w.hi = i + 1
		for end > limit {
			w.size = limit - w.off
			open(e.Chunk, limit, i+1, i, limit-off)
		}
		w.size = end - w.off
	}
	return list
}
