package engine

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"loaderx/engine/internal/disk"
	"loaderx/engine/internal/vfs"
	"loaderx/engine/internal/vfs/faultfs"
	"loaderx/engine/internal/vfs/memfs"
)

// What operations cost in syncs, and an open in reads: ARCHITECTURE.md promises
// these figures.

// meter counts what the engine asks of its files.
type meter struct {
	syncs     []string // names, "." for the folder of the store
	readCalls int
	others    int // other calls
}

func metered(base vfs.FS) (*meter, vfs.FS) {
	m := &meter{}
	return m, &faultfs.FS{Base: base, Hook: func(op *faultfs.Op, do func() error) error {
		switch op.Kind {
		case faultfs.Sync:
			m.syncs = append(m.syncs, op.Name)
		case faultfs.SyncDir:
			name := op.Name
			if name == storePath {
				name = "."
			}
			m.syncs = append(m.syncs, name)
		case faultfs.Read:
			m.readCalls++
		default:
			m.others++
		}
		return do()
	}}
}

// want compares the syncs since the last call, in order.
func (m *meter) want(t *testing.T, what string, names ...string) {
	t.Helper()
	if !slices.Equal(m.syncs, names) {
		t.Errorf("%s: expected syncs of %q, got %q", what, names, m.syncs)
	}
	m.syncs = nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestSyncsCounted(t *testing.T) {
	t.Parallel()
	for _, codec := range []Codec{Raw, Zstd} {
		m, fs := metered(memfs.New())
		o := denseOptions(12, codec)
		o.fs = fs
		s := mustOpen(t, storePath, o)
		// "/" is where the first new folder is named.
		created := []string{"/", "/", filepath.Dir(storePath), ".", journalName, metaName, newName, "."}
		m.want(t, "create", created...)
		const chunk, table, sum = "0" + chunkExt, "0" + tableExt, "0" + sumExt
		checkpoint := []string{chunk, table, sum, journalName, metaName}
		for range 3 {
			appendDense(t, s, denseRecords(0, 100, 12), 12)
		}
		m.want(t, "append")
		must(t, s.Sync())
		m.want(t, "sync", checkpoint...)
		must(t, s.Sync())
		m.want(t, "sync without a change")
		must(t, s.Delete([]int64{5, 7}))
		if codec == Raw { // clears the arithmetic flag; nothing was written
			m.want(t, "first delete", journalName, metaName, journalName)
		} else {
			m.want(t, "delete", journalName)
		}
		must(t, s.Delete([]int64{5, 7}))
		m.want(t, "delete", journalName)
		must(t, s.Close())
		m.want(t, "close after a delete", table, sum, journalName, metaName)
		s = mustOpen(t, storePath, o)
		must(t, s.Close())
		m.want(t, "open and close")
		s = mustOpen(t, storePath, o)
		appendDense(t, s, denseRecords(0, 100, 12), 12)
		m.want(t, "append of another handle")
		must(t, s.Close())
		m.want(t, "close after an append", checkpoint...)
	}
}

// Each further chunk costs a sync, each further segment two, since its table
// and its sums are files; new names cost one of the folder.
func TestSyncsOfManyFiles(t *testing.T) {
	t.Parallel()
	m, fs := metered(memfs.New())
	o := denseOptions(12, Zstd)
	o.fs, o.Limits = fs, Limits{Chunk: 4096, Segment: 64}
	s := mustOpen(t, storePath, o)
	m.syncs = nil
	appendDense(t, s, denseRecords(0, 150, 12), 12)
	m.want(t, "append")
	must(t, s.Sync())
	files := []string{"0.chunk", "0.loc", "0.sum", "1.loc", "1.sum", "2.loc", "2.sum"}
	if s.st.tailChunk > 0 {
		files = slices.Insert(files, 3, "1.chunk")
	}
	slices.Sort(files)
	m.want(t, "sync", append(files, ".", journalName, metaName)...)
	appendDense(t, s, denseRecords(0, 5, 12), 12)
	must(t, s.Sync())
	m.want(t, "sync again", fmt.Sprintf("%d.chunk", s.st.tailChunk), "2.loc", "2.sum", journalName, metaName)
}

// An interrupted creation may have left folders that are new to the disk: the
// next one syncs one parent more than it made folders, and no further ones.
func TestCreateSyncsFewFolders(t *testing.T) {
	t.Parallel()
	mem := memfs.New()
	_, err := mem.MakeDirs("/a/b/c")
	must(t, err)
	m, fs := metered(mem)
	o := denseOptions(12, Raw)
	o.fs = fs
	s := mustOpen(t, "/a/b/c/d/e", o)
	must(t, s.Close())
	folders := slices.DeleteFunc(m.syncs, func(name string) bool { return !strings.HasPrefix(name, "/") })
	if want := []string{"/a/b", "/a/b/c", "/a/b/c/d", "/a/b/c/d/e", "/a/b/c/d/e"}; !slices.Equal(folders, want) {
		t.Errorf("expected syncs of %q, got %q", want, folders)
	}
}

// Opening a store that was closed reads headers, whatever its length.
func TestOpenReadsHeadersOnly(t *testing.T) {
	t.Parallel()
	costs := map[string]bool{}
	for _, n := range []int{1, 1000, 100_000} {
		mem := memfs.New()
		o := denseOptions(12, Raw)
		o.fs = mem
		s := mustOpen(t, storePath, o)
		appendDense(t, s, denseRecords(0, n, 12), 12)
		must(t, s.Close())
		bytes := int64(0)
		m, fs := metered(&countingFS{FS: mem, bytes: &bytes})
		o.fs = fs
		s = mustOpen(t, storePath, o)
		wantLen(t, "after a clean close", s, int64(n))
		identity, err := disk.EncodeIdentity(Dense, o.Identity)
		must(t, err)
		// store.zr, meta.zr, two slots, and the head of a record that is not there.
		most := int64(disk.TypedSize+len(identity)) + disk.MetaSize + 2*disk.SlotSize + disk.RedoHeadSize
		if bytes > most {
			t.Errorf("%d records: expected at most %d bytes to be read, got %d", n, most, bytes)
		}
		costs[fmt.Sprintf("%d reads of %d bytes, %d other calls", m.readCalls, bytes, m.others)] = true
	}
	if len(costs) > 1 {
		t.Errorf("expected the same cost for all lengths, got %q", slices.Sorted(maps.Keys(costs)))
	}
	t.Log(slices.Sorted(maps.Keys(costs)))
}

// countingFS adds up the bytes that are read.
type countingFS struct {
	vfs.FS
	bytes *int64
}

func (f *countingFS) OpenDir(path string) (vfs.Dir, error) {
	d, err := f.FS.OpenDir(path)
	if err != nil {
		return nil, err
	}
	return &countingDir{d, f.bytes}, nil
}

type countingDir struct {
	vfs.Dir
	bytes *int64
}

func (d *countingDir) Open(name string, flag vfs.Flag) (vfs.File, error) {
	f, err := d.Dir.Open(name, flag)
	if err != nil {
		return nil, err
	}
	return &countingFile{f, d.bytes}, nil
}

type countingFile struct {
	vfs.File
	bytes *int64
}

func (f *countingFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	*f.bytes += int64(n)
	return n, err
}
