package engine

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"loaderx/engine/internal/disk"
	"loaderx/engine/internal/vfs"
	"loaderx/engine/internal/vfs/faultfs"
	"loaderx/engine/internal/vfs/memfs"
)

// small are options whose stores have several chunks and segments.
func small(codec Codec) Options {
	o := denseOptions(12, codec)
	o.Limits = Limits{Chunk: 120, Segment: 4}
	return o
}

// inMemory opens a new store with n records.
func inMemory(t *testing.T, o Options, n int) (*memfs.FS, *Store) {
	t.Helper()
	mem := memfs.New()
	if o.fs == nil {
		o.fs = mem
	}
	s := mustOpen(t, storePath, o)
	if n > 0 {
		appendDense(t, s, denseRecords(0, n, 12), 12)
	}
	return mem, s
}

// statusOf is the status of an engine's error, or StatusOK.
func statusOf(err error) Status {
	var e *Error
	if errors.As(err, &e) {
		return e.Status
	}
	return StatusOK
}

func wantStatus(t *testing.T, what string, err error, want Status) {
	t.Helper()
	if got := statusOf(err); got != want {
		t.Errorf("%s: expected status %d, got %d (%v)", what, want, got, err)
	}
}

func wantLen(t *testing.T, what string, s *Store, want int64) {
	t.Helper()
	if got, err := s.Len(); err != nil || got != want {
		t.Errorf("%s: expected %d records, got %d (%v)", what, want, got, err)
	}
}

// One handle writes; the others see a fixed length until they refresh, and may
// not write. What needs the store for itself is refused while they are open,
// and the handle that was refused goes on.
func TestTwoHandles(t *testing.T) {
	t.Parallel()
	mem, w := inMemory(t, small(Raw), 5)
	o := small(Raw)
	o.fs = mem
	other := mustOpen(t, storePath, o)
	o.Mode, o.Identity = ModeRead, nil
	reader := mustOpen(t, storePath, o)
	appendDense(t, w, denseRecords(5, 5, 12), 12)
	for _, s := range []*Store{other, reader} {
		wantLen(t, "before a refresh", s, 5)
		if err := s.Refresh(); err != nil {
			t.Fatal(err)
		}
		wantLen(t, "after a refresh", s, 10)
		if !bytes.Equal(gatherDense(t, s, all(t, s), 12), denseRecords(0, 10, 12)) {
			t.Error("records differ")
		}
	}
	_, err := other.Begin()
	wantStatus(t, "a second writer", err, StatusBusy)
	_, err = reader.Begin()
	wantStatus(t, "a reader that writes", err, StatusReadOnly)
	wantStatus(t, "a delete beside readers", w.Delete([]int64{0}), StatusBusy)
	_, err = w.Compact()
	wantStatus(t, "a compaction beside readers", err, StatusBusy)
	appendDense(t, w, denseRecords(10, 1, 12), 12)
	wantLen(t, "the writer after it was refused", w, 11)
	if err := errors.Join(other.Close(), reader.Close()); err != nil {
		t.Fatal(err)
	}
	if err := w.Delete([]int64{0}); err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if open, locks := mem.Handles(); open != 0 || locks != 0 {
		t.Errorf("%d handles and %d locks were left", open, locks)
	}
}

// Many create the same store at once: it is created once, and all have it.
func TestCreatorsRace(t *testing.T) {
	for round := range 8 {
		o, path := small(Raw), storePath
		if o.fs = memfs.New(); round == 0 {
			o.fs, path = nil, filepath.Join(t.TempDir(), "a", "b")
		}
		var ids sync.Map
		var wait sync.WaitGroup
		for range 12 {
			wait.Go(func() {
				s, err := Open(path, o)
				if err != nil {
					t.Error(err)
					return
				}
				info, err := s.Info()
				if err = errors.Join(err, s.Close()); err != nil {
					t.Error(err)
				}
				ids.Store(info.StoreID, true)
			})
		}
		wait.Wait()
		n := 0
		ids.Range(func(any, any) bool { n++; return true })
		if n != 1 {
			t.Errorf("%d stores were made", n)
		}
	}
}

// While a copy is made nobody else makes a store or a copy in its folder, and
// a copy that is given up leaves nothing there.
func TestSnapshotKeepsItsFolder(t *testing.T) {
	t.Parallel()
	mem, s := inMemory(t, small(Raw), 9)
	const dest = "/data/copy"
	task, err := s.Snapshot(dest)
	must(t, err)
	before := mem.Names(dest)
	_, err = s.Snapshot(dest)
	wantStatus(t, "another copy into the folder", err, StatusArgument)
	o := small(Raw)
	o.fs = mem
	_, err = Open(dest, o)
	wantStatus(t, "a new store in the folder", err, StatusBusy)
	if after := mem.Names(dest); !slices.Equal(before, after) {
		t.Errorf("expected %q to be left alone, got %q", before, after)
	}
	must(t, task.End())
	if left := mem.Names(dest); len(left) > 0 {
		t.Errorf("a copy that was given up left %q", left)
	}
	task, err = s.Snapshot(dest)
	must(t, err)
	must(t, task.Run())
	copied := mustOpen(t, dest, o) // at once, before the task has ended
	wantLen(t, "copy", copied, 9)
	must(t, task.End())
	if open, locks := mem.Handles(); locks != 3 { // s has written: two of them are its own
		t.Errorf("expected three locks, got %d, of %d handles", locks, open)
	}
}

// Two handles recover at once: neither loses its handle.
func TestRecoverersRace(t *testing.T) {
	t.Parallel()
	for range 3 {
		a, b := dirtyPair(t, nil)
		var wait sync.WaitGroup
		for _, s := range []*Store{a, b} {
			wait.Go(func() {
				if err := s.Sync(); err != nil && statusOf(err) != StatusBusy {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		wantLen(t, "the first", a, 6)
		wantLen(t, "the second", b, 6)
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		if err := b.Sync(); err != nil {
			t.Error(err)
		}
		appendDense(t, b, denseRecords(6, 1, 12), 12)
	}
}

// dirtyPair is two handles of a store of 6 records whose writer was killed.
// The first sees its files through the hook.
func dirtyPair(t *testing.T, hook func(mem *memfs.FS) faultfs.Hook) (a, b *Store) {
	mem, w := inMemory(t, small(Raw), 6)
	left := mem.Clone()
	_ = w.Close()
	o := small(Raw)
	o.fs = left
	b = mustOpen(t, storePath, o)
	if hook != nil {
		o.fs = &faultfs.FS{Base: left, Hook: hook(left)}
	}
	return mustOpen(t, storePath, o), b
}

// Who takes meta.zr for recovery and finds that another holds journal.zr has
// got between the other's locks, and gives up at once: the other waits for its
// shared lock, and would lose its handle (FORMAT 6.2).
func TestRecovererGivesWay(t *testing.T) {
	t.Parallel()
	tries, exclusive := 0, false
	a, b := dirtyPair(t, func(mem *memfs.FS) faultfs.Hook {
		return func(op *faultfs.Op, do func() error) error {
			if op.Kind != faultfs.TryLock {
				return do()
			}
			if op.Name == journalName && exclusive {
				tries++
			}
			err := do()
			if op.Name == metaName && !exclusive {
				release, shared := mem.Hold(storePath+"/"+metaName, false)
				if release(); !shared {
					exclusive = true
					mem.Hold(storePath+"/"+journalName, true)
				}
			}
			return err
		}
	})
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, "sync", a.Sync(), StatusBusy)
	if !exclusive || tries > 2 { // the second when it looks again
		t.Errorf("expected one try of journal.zr under meta.zr, and one after it, got %d (exclusive: %v)", tries, exclusive)
	}
	wantLen(t, "who gave way", a, 6)
}

// A handle whose sync failed gives up the writer's lock while it still holds
// meta.zr for itself. Between that and its shared lock another may do anything:
// it has to look again (FORMAT 6.3).
func TestChangedBetweenLocks(t *testing.T) {
	mem := memfs.New()
	o := small(Raw)
	var failing, done bool
	o.fs = &faultfs.FS{Base: mem, Hook: func(op *faultfs.Op, do func() error) error {
		if failing && !done && op.Kind == faultfs.Sync && op.Name == journalName {
			return syscall.EIO
		}
		return do()
	}}
	s := mustOpen(t, storePath, o)
	appendDense(t, s, denseRecords(0, 9, 12), 12)
	s.w.journal = &between{File: s.w.journal, unlocked: func() {
		done = true
		_ = s.meta.Unlock() // as a conversion does, for a moment
		p := o
		p.fs = mem
		intruder := mustOpen(t, storePath, p)
		if err := errors.Join(intruder.Delete([]int64{0, 1}), compact(intruder, -1), intruder.Close()); err != nil {
			t.Error(err)
		}
	}}
	failing = true
	wantStatus(t, "a delete whose sync fails", s.Delete([]int64{3}), StatusIO)
	wantLen(t, "after another has deleted two", s, 7)
	want := bytes.Join([][]byte{denseRecords(7, 2, 12), denseRecords(2, 5, 12)}, nil)
	swapped := bytes.Join([][]byte{denseRecords(8, 1, 12), denseRecords(7, 1, 12), denseRecords(2, 5, 12)}, nil)
	if got := gatherDense(t, s, all(t, s), 12); !bytes.Equal(got, want) && !bytes.Equal(got, swapped) {
		t.Error("records differ")
	}
	_, err := s.Begin()
	wantStatus(t, "an append after a failed sync", err, StatusIO)
}

// between calls unlocked after its lock was given up, once.
type between struct {
	vfs.File
	unlocked func()
}

func (b *between) Unlock() error {
	err := b.File.Unlock()
	if call := b.unlocked; call != nil {
		b.unlocked = nil
		call()
	}
	return err
}

// A handle that may not write any more can still follow the one that does.
func TestRefreshAfterFailure(t *testing.T) {
	mem := memfs.New()
	o := small(Raw)
	fail := false
	o.fs = &faultfs.FS{Base: mem, Hook: func(op *faultfs.Op, do func() error) error {
		if fail && op.Kind == faultfs.Size && op.Name == journalName {
			return syscall.EIO // after the checkpoint, when the journal is cut
		}
		return do()
	}}
	s := mustOpen(t, storePath, o)
	appendDense(t, s, denseRecords(0, 2, 12), 12)
	fail = true
	wantStatus(t, "sync", s.Sync(), StatusIO)
	fail = false
	p := o
	p.fs = mem
	next := mustOpen(t, storePath, p)
	appendDense(t, next, denseRecords(2, 3, 12), 12)
	if err := s.Refresh(); err != nil {
		t.Fatal(err)
	}
	wantLen(t, "after a refresh", s, 5)
	_, err := s.Begin()
	wantStatus(t, "an append after the failure", err, StatusIO)
}

// What walks all records is not run beside what moves them.
func TestTasksExcludeEachOther(t *testing.T) {
	_, s := inMemory(t, small(Raw), 9)
	if err := s.Delete([]int64{0}); err != nil {
		t.Fatal(err)
	}
	for name, begin := range map[string]func() (*Task, error){
		"verify":   func() (*Task, error) { return s.Verify(1) },
		"snapshot": func() (*Task, error) { return s.Snapshot("/copy") },
	} {
		task, err := begin()
		if err != nil {
			t.Fatal(err)
		}
		wantStatus(t, "delete beside "+name, s.Delete([]int64{1}), StatusBusy)
		_, err = s.Compact()
		wantStatus(t, "compact beside "+name, err, StatusBusy)
		if err := task.End(); err != nil {
			t.Fatal(err)
		}
		moving, err := s.Compact()
		if err != nil {
			t.Fatal(err)
		}
		_, err = begin()
		wantStatus(t, name+" beside compact", err, StatusBusy)
		if err := moving.Run(); err != nil {
			t.Fatal(err)
		}
	}
}

// A reader that has a store of version 4 open takes a copy of that, even if a
// writer has upgraded it meanwhile.
func TestSnapshotAcrossUpgrade(t *testing.T) {
	mem := memfs.New()
	c := setting{o: small(Raw), version4: true}
	rng := rand.New(rand.NewPCG(1, 1))
	want := image4(mem, c, rng, c.items(rng, 7))
	o := c.o
	o.fs = mem
	reader, writer := mustOpen(t, storePath, o), mustOpen(t, storePath, o)
	appendDense(t, writer, denseRecords(0, 3, 12), 12)
	for _, s := range []*Store{reader, writer} {
		path := fmt.Sprintf("/copy%p", s)
		task, err := s.Snapshot(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := task.Run(); err != nil {
			t.Fatal(err)
		}
		p := o
		p.Mode = ModeRead
		copied := mustOpen(t, path, p)
		got, err := readAll(copied)
		if err != nil {
			t.Fatal(err)
		}
		if s == writer {
			wantLen(t, "the writer's copy", copied, int64(len(want)+3))
		} else if got.key() != want.key() {
			t.Error("the reader's copy: records differ")
		}
	}
}

// A record whose table entry is damaged is not moved by a delete: a redo
// record that points outside the store would make all of it corrupt.
func TestDeleteMovesNoDamage(t *testing.T) {
	mem, s := inMemory(t, small(Raw), 4)
	must(t, s.Delete([]int64{3})) // from here on the table counts
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	table := mem.ReadFile(storePath + "/0.loc")
	disk.Entry{Offset: 108, Phys: 12, Logic: 12, Chunk: 7}.Put(table[2*disk.EntrySize:])
	mem.WriteFile(storePath+"/0.loc", table)
	o := small(Raw)
	o.fs = mem
	s = mustOpen(t, storePath, o)
	wantStatus(t, "delete", s.Delete([]int64{0}), StatusCorruptRecord)
	wantLen(t, "after it", s, 3)
	if err := s.Delete([]int64{2}); err != nil {
		t.Errorf("deleting the damaged one: %v", err)
	}
	wantLen(t, "after deleting the damaged one", s, 2)
}

// A header of a later version whose CRC does not hold may be a flipped bit;
// but without a journal there is nothing else to go by.
func TestLaterVersionWithoutJournal(t *testing.T) {
	mem, s := inMemory(t, small(Raw), 3)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	meta := mem.ReadFile(storePath + "/meta.zr")
	meta[4] = 9
	mem.WriteFile(storePath+"/meta.zr", meta)
	dir, err := mem.OpenDir(storePath)
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.Remove(journalName); err != nil {
		t.Fatal(err)
	}
	o := small(Raw)
	o.fs, o.Mode = mem, ModeRead
	_, err = Open(storePath, o)
	wantStatus(t, "open", err, StatusUnsupported)
}

// A checkpoint that runs beside appends has begun to sync files, and a batch is
// taken back meanwhile. Its own checkpoint must not say that those files are
// on disk before they are.
func TestTakenBackBesideCheckpoint(t *testing.T) {
	mem := memfs.New()
	o := small(Raw)
	o.Limits.Checkpoint = 60
	var mu sync.Mutex
	unsynced, early := map[string]bool{}, []string{}
	slot := make(chan struct{}, 64)
	o.fs = &faultfs.FS{Base: mem, Hook: func(op *faultfs.Op, do func() error) error {
		mu.Lock()
		behind := op.Kind == faultfs.Sync && op.Name == "0.loc"
		if op.Kind == faultfs.Write && isTable(op.Name) && len(op.Data) > 0 {
			unsynced[op.Name] = true
		}
		if isSlot(op) {
			for name := range unsynced {
				early = append(early, name)
			}
			slot <- struct{}{}
		}
		mu.Unlock()
		if behind {
			select { // long enough for a checkpoint that does not wait
			case <-slot:
			case <-time.After(100 * time.Millisecond):
			}
		}
		err := do()
		if op.Kind == faultfs.Sync {
			mu.Lock()
			delete(unsynced, op.Name)
			mu.Unlock()
		}
		return err
	}}
	s := mustOpen(t, storePath, o)
	<-slot                                        // of the creation
	appendDense(t, s, denseRecords(0, 8, 12), 12) // begins the checkpoint
	b, err := s.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.AppendDense(denseRecords(8, 4, 12), 4); err != nil {
		t.Fatal(err)
	}
	if err := b.Abort(); err != nil {
		t.Fatal(err)
	}
	s.settled()
	if len(early) > 0 {
		t.Errorf("a slot was written before %q were synced", early)
	}
	wantLen(t, "at the end", s, 8)
}

// Gathers, appends, syncs, deletes, stats and at last closing, all at once.
func TestTogether(t *testing.T) {
	for _, codec := range everyCodec {
		for _, inOS := range []bool{false, true} {
			o, path := small(codec), storePath
			o.Limits = Limits{Chunk: 4096, Segment: 64, Checkpoint: 2000}
			if o.fs = memfs.New(); inOS {
				o.fs, path = nil, t.TempDir()
			}
			together(t, mustOpen(t, path, o))
		}
	}
}

func together(t *testing.T, s *Store) {
	const w = 12
	record := func(k byte) []byte { return bytes.Repeat([]byte{k}, w) }
	var wait sync.WaitGroup
	run := func(work func(k int) error) {
		wait.Go(func() {
			for k := range 150 {
				if err := work(k); err != nil && statusOf(err) != StatusClosed && statusOf(err) != StatusBusy {
					t.Error(err)
					return
				}
			}
		})
	}
	appends := func(k int) error {
		return appendItems(s, []item{{nil, record(byte(k))}, {nil, record(byte(k + 1))}})
	}
	run(appends)
	run(appends)
	for range 3 {
		run(func(int) error {
			n, err := s.Len()
			if err != nil || n == 0 {
				return err
			}
			dst := make([]byte, 2*w)
			err = s.GatherDense([]int64{0, n - 1}, dst, 0)
			if statusOf(err) == StatusIndex { // deleted meanwhile
				return nil
			}
			if err == nil && (!bytes.Equal(dst[:w], record(dst[0])) || !bytes.Equal(dst[w:], record(dst[w]))) {
				return errors.New("a record of mixed bytes")
			}
			return err
		})
	}
	run(func(int) error { return s.Sync() })
	run(func(k int) error {
		if n, err := s.Len(); err != nil || n < 10 || k%5 > 0 {
			return err
		}
		return s.Delete([]int64{0, 3, -1})
	})
	run(func(int) error { _, err := s.Stats(); return err })
	run(func(k int) error {
		if k == 140 {
			return s.Close()
		}
		return s.Refresh()
	})
	wait.Wait()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
