package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"loaderx/engine/internal/disk"
	"loaderx/engine/internal/vfs/memfs"
)

// Flipped bits (RELIABILITY 2, T8): each is found when the store is opened or
// verified, or it is harmless: the records are what they were.

// flipStore is a store of some records with deletes behind it. A dirty one
// has unsynced appends, or a redo record that is not applied everywhere.
func flipStore(t *testing.T, c setting, state string) (*memfs.FS, contents) {
	mem := memfs.New()
	o := c.o
	o.fs = mem
	s := mustOpen(t, storePath, o)
	rng := rand.New(rand.NewPCG(8, uint64(c.o.Kind)))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(appendItems(s, c.items(rng, 24)))
	if state != "fresh" {
		must(s.Delete([]int64{1, 5, 20}))
		must(s.Sync())
	}
	switch state {
	case "unsynced":
		must(appendItems(s, c.items(rng, 6)))
	case "redo":
		must(s.Delete([]int64{2, 3}))
	}
	want, err := readAll(s)
	must(err)
	left := mem
	if state == "unsynced" || state == "redo" {
		left = mem.Clone() // killed
	}
	must(s.Close())
	return left, want
}

// flips counts what became of flipped bits. In records that were not synced a
// flipped bit is taken for a power cut: they end there.
type flips struct {
	want                                  contents
	synced                                int
	opened, verified, harmless, shortened int
}

// flip turns a bit of a file and looks at the store.
func (n *flips) flip(mem *memfs.FS, c setting, name string, bit int) error {
	bad := mem.Clone()
	b := bad.ReadFile(storePath + "/" + name)
	b[bit/8] ^= 1 << (bit % 8)
	bad.WriteFile(storePath+"/"+name, b)
	o := c.o
	o.fs, o.Mode = bad, ModeRead
	s, err := Open(storePath, o)
	if err != nil {
		n.opened++
		return wantOne(err, StatusCorruptStore, StatusNotAStore, StatusUnsupported, StatusMismatch)
	}
	defer func() { _ = s.Close() }()
	got, err := readAll(s)
	if err == nil && slices.Equal(got, n.want) {
		n.harmless++
		return nil
	}
	if err == nil && len(got) >= n.synced && len(got) < len(n.want) && slices.Equal(got, n.want[:len(got)]) {
		n.shortened++
		return nil
	}
	n.verified++
	if err = sound(s); err == nil {
		return errors.New("other records, and verify finds nothing")
	}
	return wantOne(err, StatusCorruptRecord)
}

// wantOne wants an error to have one of some statuses.
func wantOne(err error, wanted ...Status) error {
	for _, s := range wanted {
		if statusOf(err) == s {
			return nil
		}
	}
	return fmt.Errorf("expected one of %v, got status %d: %w", wanted, statusOf(err), err)
}

// bitsOf is all bits from one offset to another.
func bitsOf(from, to int) []int {
	var list []int
	for b := from * 8; b < to*8; b++ {
		list = append(list, b)
	}
	return list
}

func TestFlippedBits(t *testing.T) {
	if testing.Short() {
		t.Skip("not in short runs: they are for the race detector, which has nothing to see here")
	}
	raw, frames, dict := Raw, Zstd, ZstdDict
	limits := Limits{Chunk: 4096, Segment: 16}
	for _, c := range []struct {
		kind   Kind
		codec  Codec
		states string
	}{
		{Dense, raw, "fresh clean unsynced redo"}, {Ragged, raw, "clean redo"},
		{Dense, frames, "clean"}, {Ragged, frames, "clean unsynced"},
		{Dense, dict, "clean redo"}, {Ragged, dict, "clean"},
	} {
		o := denseOptions(12, c.codec)
		if c.kind == Ragged {
			o = raggedOptions(c.codec)
		}
		if o.Limits = limits; c.codec == dict {
			o.Dict = testDict()
		}
		for _, state := range strings.Fields(c.states) {
			t.Run(fmt.Sprintf("%v %v %s", c.kind, c.codec, state), func(t *testing.T) {
				t.Parallel()
				flipAll(t, setting{o: o}, state)
			})
		}
	}
}

func flipAll(t *testing.T, c setting, state string) {
	mem, want := flipStore(t, c, state)
	n := flips{want: want, synced: len(want)}
	if state == "unsynced" {
		n.synced -= 6
	}
	rng := rand.New(rand.NewPCG(9, 9))
	size := func(name string) int { return len(mem.ReadFile(storePath + "/" + name)) }
	count := 0
	try := func(name string, list []int) {
		for _, bit := range list {
			count++
			if err := n.flip(mem, c, name, bit); err != nil {
				t.Fatalf("bit %d of %s: %v", bit, name, err)
			}
		}
	}
	try(typedName, bitsOf(0, size(typedName)))
	try(metaName, bitsOf(0, size(metaName)))
	try(journalName, bitsOf(0, disk.SlotSize))
	try(journalName, bitsOf(disk.SlotStride, disk.SlotStride+disk.SlotSize))
	try(journalName, bitsOf(disk.RedoStart, disk.RedoStart+256))
	for _, name := range mem.Names(storePath) {
		_, table := numberOf(name, tableExt)
		_, sum := numberOf(name, sumExt)
		if table || sum {
			try(name, bitsOf(0, size(name)))
		}
	}
	if state == "clean" { // the payload does not depend on how the store ended
		list := make([]int, 5000)
		for i := range list {
			list[i] = rng.IntN(8 * size("0.chunk"))
		}
		try("0.chunk", list)
	}
	if *c.o.Codec == ZstdDict {
		try(dictName, bitsOf(0, 32))
	}
	t.Logf("%d bits: %d found when opening, %d by verify, %d taken for a power cut, %d harmless",
		count, n.opened, n.verified, n.shortened, n.harmless)
}
