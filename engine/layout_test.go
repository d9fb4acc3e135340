package engine

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"loaderx/engine/internal/disk"
)

// The windows of placed records hold each byte once, in order, none crosses a
// multiple of windowBytes, and each record begins in one of them.
func TestWindows(t *testing.T) {
	sizes := func(f func(i int) int, n int) []int {
		list := make([]int, n)
		for i := range list {
			list[i] = f(i)
		}
		return list
	}
	r := rand.New(rand.NewPCG(3, 4))
	for name, list := range map[string][]int{
		"small":           sizes(func(int) int { return 784 }, 9000),
		"exact":           sizes(func(int) int { return windowBytes / 8 }, 50),
		"larger":          sizes(func(int) int { return 3*windowBytes + 5 }, 7),
		"empty":           sizes(func(int) int { return 0 }, 5),
		"mixed":           sizes(func(int) int { return r.IntN(2) * r.IntN(windowBytes/4) }, 300),
		"empty at an end": {windowBytes, 0, 0, 5, windowBytes - 5, 0},
	} {
		for _, from := range []int64{0, 5, windowBytes - 1, windowBytes} {
			entries := make([]disk.Entry, len(list))
			for i, size := range list {
				entries[i] = disk.Entry{Phys: uint32(size), Logic: uint32(size)}
			}
			f := frontier{chunk: 3, off: from, room: 10 * windowBytes}
			if err := f.place(entries); err != nil {
				t.Fatal(err)
			}
			checkWindows(t, name, entries, windows(entries))
		}
	}
}

func checkWindows(t *testing.T, name string, entries []disk.Entry, list []window) {
	t.Helper()
	record, chunk, off := 0, entries[0].Chunk, int64(entries[0].Offset)
	for k, w := range list {
		if w.chunk != chunk {
			if k > 0 && w.chunk < chunk || w.off != 0 {
				t.Fatalf("%s: window %d: expected the start of a later chunk, got %d in chunk %d", name, k, w.off, w.chunk)
			}
			chunk, off = w.chunk, 0
		}
		if w.off != off || w.off/windowBytes != max(w.off, w.off+w.size-1)/windowBytes {
			t.Fatalf("%s: window %d: expected one from %d on within a window, got %d bytes from %d on", name, k, off, w.size, w.off)
		}
		if w.lo != record || w.hi < w.lo {
			t.Fatalf("%s: window %d: expected records from %d on, got %d to %d", name, k, record, w.lo, w.hi)
		}
		if e := entries[w.first]; e.Chunk != w.chunk || int64(e.Offset)+w.skip != w.off {
			t.Fatalf("%s: window %d: record %d and %d bytes are at %d of chunk %d, not at %d", name, k, w.first, w.skip, e.Offset, e.Chunk, w.off)
		}
		for _, e := range entries[w.lo:w.hi] {
			if e.Chunk != w.chunk || int64(e.Offset) < w.off || int64(e.Offset) > w.off+w.size {
				t.Fatalf("%s: window %d: has a record that does not begin in it", name, k)
			}
		}
		record, off = w.hi, w.off+w.size
	}
	last := entries[len(entries)-1]
	if record != len(entries) || last.Chunk != chunk || int64(last.Offset)+int64(last.Phys) != off {
		t.Fatalf("%s: %d of %d records, up to %d", name, record, len(entries), off)
	}
}

// Raw records of all sizes come back as they were, whatever windows they cross.
func TestAppendAcrossWindows(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var payload []byte
	offsets, dims, dimOffsets := []int64{0}, []int64{}, []int64{0}
	for k := range 60 {
		size := r.IntN(windowBytes / 8)
		if k%17 == 3 {
			size = 2*windowBytes + k
		}
		for range size {
			payload = append(payload, byte(r.Uint32()))
		}
		offsets, dims, dimOffsets = append(offsets, int64(len(payload))), append(dims, int64(size)), append(dimOffsets, int64(k+1))
	}
	o := raggedOptions(Raw)
	o.AllowEmpty = true
	s := mustOpen(t, t.TempDir()+"/s", o)
	defer s.Close()
	// Two batches, so that the second begins anywhere.
	for _, part := range [][2]int{{0, 7}, {7, 60}} {
		lo, hi := part[0], part[1]
		b, err := s.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if err := b.AppendRagged(payload, offsets[lo:hi+1], dims, dimOffsets[lo:hi+1], 1); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	index := make([]int64, 60)
	for i := range index {
		index[i] = int64(i)
	}
	got := RaggedDst{make([]byte, len(payload)), make([]int64, 61), make([]int64, 60), make([]int64, 61)}
	if err := s.GatherRagged(index, 1, got, 0); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Payload, payload) {
		t.Error("other bytes came back")
	}
	task, err := s.Verify(1)
	if err != nil {
		t.Fatal(err)
	}
	if err := task.Run(); err != nil {
		t.Fatal(err)
	}
	if bad, err := task.Bad(0); err == nil {
		t.Errorf("verify: %v", bad)
	}
}
