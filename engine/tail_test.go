package engine

import (
	"math/rand/v2"
	"slices"
	"testing"

	"loaderx/engine/internal/disk"
	"loaderx/engine/internal/vfs/memfs"
)

// A power cut can leave half of a table entry. The checksum leaves the address
// out, so such an entry can hold: what is accepted behind the checkpoint must not
// overlap, or verify finds damage and compact refuses for ever.

// unsyncedStore is a store whose records, all of the same bytes, no checkpoint covers,
// as a power cut leaves it that spares everything.
func unsyncedStore(t *testing.T, codec Codec, sizes ...int) (*memfs.FS, Options) {
	t.Helper()
	o := raggedOptions(codec)
	o.AllowEmpty, o.Limits = true, Limits{Chunk: 120, Segment: 64, Record: 60}
	mem := memfs.New()
	o.fs = mem
	s := mustOpen(t, storePath, o)
	items := make([]item, len(sizes))
	for i, n := range sizes {
		items[i] = item{[]int64{int64(n)}, make([]byte, n)}
	}
	must(t, appendItems(s, items))
	left := mem.Clone()
	left.Settle()
	o.fs = left
	return left, o
}

// editTable changes the entries of segment 0.
func editTable(mem *memfs.FS, change func(entries []disk.Entry)) {
	b := mem.ReadFile(storePath + "/0.loc")
	entries := make([]disk.Entry, len(b)/disk.EntrySize)
	for i := range entries {
		entries[i] = disk.DecodeEntry(b[i*disk.EntrySize:])
	}
	change(entries)
	for i, e := range entries {
		e.Put(b[i*disk.EntrySize:])
	}
	mem.WriteFile(storePath+"/0.loc", b)
}

// wantTail expects n records, sound, that can be compacted and grow again.
func wantTail(t *testing.T, o Options, n int64) {
	t.Helper()
	read := o
	read.Mode = ModeRead
	s := mustOpen(t, storePath, read)
	wantLen(t, "after the power cut", s, n)
	must(t, sound(s))
	must(t, s.Close())
	s = mustOpen(t, storePath, o)
	must(t, appendItems(s, []item{{[]int64{4}, []byte("more")}}))
	must(t, compact(s, -1))
	must(t, sound(s))
	wantLen(t, "after another record", s, n+1)
}

func TestTailRefusesMisplacedRecords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		codec Codec
		sizes []int
		tear  func(entries []disk.Entry)
		want  int64
	}{
		{"untouched", Raw, []int{30, 30, 40, 0, 7}, func([]disk.Entry) {}, 5},
		{"an empty record without its chunk", Raw, []int{30, 30, 40, 0, 7}, func(e []disk.Entry) {
			if e[6].Phys != 0 || e[6].Chunk != 1 || e[6].Offset == 0 || e[6].Offset >= 120 {
				t.Fatalf("expected an empty record inside chunk 1, got %+v", e[6])
			}
			e[6].Chunk = 0
		}, 3},
		{"an empty record without its offset", Raw, []int{30, 30, 40, 0, 7}, func(e []disk.Entry) { e[6].Offset = 0 }, 3},
		{"a shape without its chunk", Raw, []int{40, 30, 40}, func(e []disk.Entry) {
			if e[5].Chunk != 1 || e[5].Offset != e[1].Offset {
				t.Fatalf("expected the shape of record 2 in chunk 1, where that of record 0 is in chunk 0, got %+v", e[5])
			}
			e[5].Chunk = 0
		}, 2},
		{"a shape at another's", Raw, []int{7, 7, 7}, func(e []disk.Entry) { e[3].Offset = e[1].Offset }, 1},
		{"a frame at another's", Zstd, []int{7, 7, 7}, func(e []disk.Entry) { e[3].Offset = e[1].Offset }, 1},
		{"frames in another order", Zstd, []int{7, 7, 7, 7}, func(e []disk.Entry) {
			e[0], e[4], e[2] = e[4], e[2], e[0]
			e[1], e[5] = e[5], e[1]
		}, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			mem, o := unsyncedStore(t, c.codec, c.sizes...)
			editTable(mem, c.tear)
			wantTail(t, o, c.want)
		})
	}
}

// spans are compared with a list of bytes.
func TestSpans(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		var s spans
		taken := make([]bool, 80)
		for range 60 {
			from := rng.IntN(len(taken))
			to := from + 1 + rng.IntN(min(9, len(taken)-from))
			free := !slices.Contains(taken[from:to], true)
			if got := s.add(uint32(from), uint32(to)); got != free {
				t.Fatalf("%d to %d of %v: expected %v, got %v", from, to, s, free, got)
			}
			for i := from; free && i < to; i++ {
				taken[i] = true
			}
			var want spans
			for i, is := range taken {
				switch {
				case is && i > 0 && taken[i-1]:
					want[len(want)-1].to++
				case is:
					want = append(want, span{uint32(i), uint32(i + 1)})
				}
			}
			if !slices.Equal(s, want) {
				t.Fatalf("expected %v, got %v", want, s)
			}
		}
	}
}

// A hostile table of scattered records ends where no append would go on.
func TestSpansAreFew(t *testing.T) {
	t.Parallel()
	var s spans
	for i := range uint32(mostSpans) {
		if !s.add(2*i, 2*i+1) {
			t.Fatalf("span %d was refused", i)
		}
	}
	if s.add(2*mostSpans, 2*mostSpans+1) {
		t.Errorf("expected at most %d spans", mostSpans)
	}
	if !s.add(1, 2) || !s.add(2*mostSpans, 2*mostSpans+1) {
		t.Error("a gap that is filled should make room for another span")
	}
}
