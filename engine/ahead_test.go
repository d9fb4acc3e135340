package engine

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"loaderx/engine/internal/vfs"
)

// adviceFS is the system's files, except that they say of themselves whether they
// are cold and note what they are asked for.
type adviceFS struct {
	vfs.FS
	advice *advice
}

type advice struct {
	cold  bool
	looks int
	asked [][2]int64 // of chunks: offset and length
	rows  [][2]int64 // of tables
}

type adviceDir struct {
	vfs.Dir
	advice *advice
}

type adviceFile struct {
	vfs.File
	table  bool
	advice *advice
}

func (f adviceFS) OpenDir(path string) (vfs.Dir, error) {
	dir, err := f.FS.OpenDir(path)
	return adviceDir{dir, f.advice}, err
}

func (d adviceDir) Open(name string, flag vfs.Flag) (vfs.File, error) {
	file, err := d.Dir.Open(name, flag)
	return adviceFile{file, strings.HasSuffix(name, tableExt), d.advice}, err
}

func (f adviceFile) Cold(int64) bool {
	f.advice.looks++
	return f.advice.cold
}

func (f adviceFile) WillNeed(off, n int64) {
	list := &f.advice.asked
	if f.table {
		list = &f.advice.rows
	}
	*list = append(*list, [2]int64{off, n})
}

func adviceStore(t *testing.T, o Options) (*Store, *advice) {
	t.Helper()
	a := &advice{}
	o.fs = adviceFS{vfs.OS(), a}
	return mustOpen(t, t.TempDir(), o), a
}

// The batch that comes from the disk is asked for as a whole, neighbours together.
func TestColdBatchIsAskedFor(t *testing.T) {
	s, a := adviceStore(t, denseOptions(100, Raw))
	appendDense(t, s, denseRecords(0, 50, 100), 100)
	a.cold = true
	_ = gatherDense(t, s, []int64{3, 4, 5, 40, 7, -50}, 100)
	want := [][2]int64{{300, 300}, {4000, 100}, {700, 100}, {0, 100}}
	if !slices.Equal(a.asked, want) {
		t.Errorf("expected to be asked for %v, got %v", want, a.asked)
	}
	if a.rows != nil {
		t.Errorf("places follow a formula here, but rows %v were asked for", a.rows)
	}
}

func TestColdRaggedBatchIsAskedFor(t *testing.T) {
	s, a := adviceStore(t, raggedOptions(Raw))
	payloads, shapes := raggedRecords(t, s, 10)
	a.cold = true
	if err := s.GatherRagged([]int64{4, 5}, 1, raggedRoom(2), 1); err != nil {
		t.Fatal(err)
	}
	size := int64(len(payloads[4]) + len(payloads[5]) + 16 + 8*len(shapes[4]) + 8*len(shapes[5]))
	if want := [][2]int64{{128, 32}, {160, 32}}; !slices.Equal(a.rows, want) {
		t.Errorf("expected to be asked for rows %v of the table, got %v", want, a.rows)
	}
	if len(a.asked) != 1 || a.asked[0][1] != size {
		t.Errorf("expected to be asked for one range of %d bytes, got %v", size, a.asked)
	}
}

// Data in memory are asked for never, and looked at less and less; what turns cold
// is noticed, and then every batch is asked for.
func TestWarmBatchesCostNothing(t *testing.T) {
	s, a := adviceStore(t, denseOptions(8, Raw))
	appendDense(t, s, denseRecords(0, 50, 8), 8)
	read := func(batches int) {
		for range batches {
			_ = gatherDense(t, s, []int64{1, 20, 30, 40, 49}, 8)
		}
	}
	read(10_000)
	if len(a.asked) > 0 || a.looks > 60*probes || a.looks < 10*probes {
		t.Errorf("10,000 warm batches: %d looks, asked for %v", a.looks, a.asked)
	}
	a.cold = true
	read(1 << calmest)
	if len(a.asked) == 0 {
		t.Errorf("%d batches later it was not noticed that data are cold", 1<<calmest)
	}
	a.asked = nil
	read(10)
	if len(a.asked) != 50 {
		t.Errorf("10 cold batches of 5 records: asked for %d ranges", len(a.asked))
	}
}

func TestAhead(t *testing.T) {
	s, a := adviceStore(t, denseOptions(8, Zstd))
	appendDense(t, s, denseRecords(0, 50, 8), 8)
	a.cold = true
	for _, index := range [][]int64{nil, {}, {3}, {3, -1, 7}} {
		a.asked = nil
		if err := s.Ahead(index); err != nil || len(a.asked) != len(index) {
			t.Errorf("%v: asked for %v (%v)", index, a.asked, err)
		}
	}
	a.asked = nil
	for _, index := range [][]int64{{50}, {0, -51}} {
		var e *Error
		if err := s.Ahead(index); !errors.As(err, &e) || e.Status != StatusIndex || a.asked != nil {
			t.Errorf("%v: got %v, asked for %v", index, err, a.asked)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var e *Error
	if err := s.Ahead([]int64{1}); !errors.As(err, &e) || e.Status != StatusClosed {
		t.Errorf("closed: got %v", err)
	}
}

// The system itself takes the advice, or does not have it.
func TestAheadOnRealFiles(t *testing.T) {
	s := mustOpen(t, t.TempDir(), denseOptions(8, Raw))
	appendDense(t, s, denseRecords(0, 50, 8), 8)
	if err := s.Ahead(all(t, s)); err != nil {
		t.Error(err)
	}
}
