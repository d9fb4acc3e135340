package engine

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"loaderx/engine/internal/disk"
	"loaderx/engine/internal/vfs"
)

// chained is what readChain makes of records one behind another, for a store of
// length records of one byte each.
func chained(t *testing.T, length uint64, records []disk.Redo) (over *overlay, taken uint64, err error) {
	t.Helper()
	mem, s := inMemory(t, small(Raw), 0)
	must(t, s.Close())
	c := disk.Slot{StoreID: 7, Meta: disk.Meta{Version: 5, TailOffset: uint32(length), Length: length, Epoch: 3}}
	raw := make([]byte, disk.RedoStart)
	for k, r := range records {
		meta := c.Meta
		meta.Length = r.Meta.Length
		r.StoreID, r.Meta, r.Seq = c.StoreID, meta, uint32(k)
		raw = append(raw, r.Encode()...)
		raw = append(raw, make([]byte, -len(raw)&(disk.RedoAlign-1))...)
	}
	mem.WriteFile(storePath+"/"+journalName, raw)
	dir, err := mem.OpenDir(storePath)
	must(t, err)
	journal, err := dir.Open(journalName, vfs.Read)
	must(t, err)
	f := &folder{dir: dir, typed: disk.Typed{Kind: Dense, Width: 1}, limits: Limits{Chunk: maxChunk, Segment: maxSegment}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	over, err = f.readChain(journal, &state{slot: c})
	runtime.ReadMemStats(&after)
	return over, after.TotalAlloc - before.TotalAlloc, err
}

// The latest record's word counts, and what the last one cut off does not.
func TestOverlayMerges(t *testing.T) {
	const length = 1000
	rng := rand.New(rand.NewPCG(3, 3))
	want := map[int64]uint32{}
	var records []disk.Redo
	left := uint64(length)
	for k := range 60 {
		left -= rng.Uint64N(4)
		r := disk.Redo{Meta: disk.Meta{Length: left}}
		for range rng.IntN(32) {
			i, sum := rng.Uint64N(left), uint32(len(want)<<8+k)
			r.Entries = append(r.Entries, disk.RedoEntry{Index: i, Entry: disk.Entry{Offset: uint32(i), Phys: 1, Logic: 1}, Sum: sum})
			want[int64(i)] = sum
		}
		records = append(records, r)
	}
	over, _, err := chained(t, length, records)
	must(t, err)
	if over.header.Length != left {
		t.Errorf("expected a length of %d, got %d", left, over.header.Length)
	}
	for i := range int64(length) {
		sum, ok := want[i]
		ok = ok && uint64(i) < left
		if got, found := over.find(i); found != ok || ok && got.sum != sum {
			t.Errorf("entry %d: expected %d, %v, got %d, %v", i, sum, ok, got.sum, found)
		}
	}
}

// A chain takes no more than its journal has bytes, also where it says the same
// many times over.
func TestOverlayIsSmall(t *testing.T) {
	for _, c := range []struct{ entries, records int }{{100_000, 1}, {90, 22}} {
		length := uint64(c.entries)
		r := disk.Redo{Meta: disk.Meta{Length: length}}
		for i := range length {
			r.Entries = append(r.Entries, disk.RedoEntry{Index: i, Entry: disk.Entry{Offset: uint32(i), Phys: 1, Logic: 1}})
		}
		over, taken, err := chained(t, length, slices.Repeat([]disk.Redo{r}, c.records))
		must(t, err)
		if len(over.entries) != c.entries {
			t.Errorf("expected %d entries, got %d", c.entries, len(over.entries))
		}
		if room := uint64(c.records*c.entries*disk.RedoEntrySize) + 4<<20; taken > room {
			t.Errorf("%+v: expected at most %d bytes to be taken, got %d", c, room, taken)
		}
	}
}

// The first record may be of any size. One behind it lies in the reserved room, for
// a writer makes a checkpoint otherwise: so a journal cannot have millions.
func TestChainKeepsToItsRoom(t *testing.T) {
	empty := disk.Redo{Meta: disk.Meta{Length: 5000}}
	long := empty
	for i := range uint64(5000) {
		long.Entries = append(long.Entries, disk.RedoEntry{Index: i, Entry: disk.Entry{Offset: uint32(i), Phys: 1, Logic: 1}})
	}
	const room = disk.RedoReserve / disk.RedoAlign
	for name, c := range map[string]struct {
		records []disk.Redo
		fits    bool
	}{
		"full":      {slices.Repeat([]disk.Redo{empty}, room), true},
		"too many":  {slices.Repeat([]disk.Redo{empty}, room+1), false},
		"long":      {[]disk.Redo{long}, true},
		"long last": {[]disk.Redo{empty, long}, false},
		"long, one": {[]disk.Redo{long, empty}, false},
	} {
		_, _, err := chained(t, 5000, c.records)
		if e := (*Error)(nil); c.fits && err != nil || !c.fits && (!errors.As(err, &e) || e.Status != StatusCorruptStore) {
			t.Errorf("%s: expected it to fit: %v, got %v", name, c.fits, err)
		}
	}
}
