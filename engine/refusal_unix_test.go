//go:build unix

package engine

import (
	"bytes"
	"errors"
	"io/fs"
	"testing"

	"golang.org/x/sys/unix"

	"loaderx/engine/internal/vfs"
	"loaderx/engine/internal/vfs/faultfs"
	"loaderx/engine/internal/vfs/memfs"
)

// What a failure says of the store: that its data are damaged, that nothing was
// changed, or that the outcome is open. Callers act on it: they delete what
// verify names, and go on after StatusFull.

// breaking opens a store of n records on a disk that fails operations as long
// as *fail says so. Nothing is mapped, so that every read is one.
func breaking(t *testing.T, o Options, n int, fail *func(op *faultfs.Op) error) (*memfs.FS, *Store) {
	t.Helper()
	mem := memfs.New()
	o.fs = mem
	first := mustOpen(t, storePath, o)
	if n > 0 {
		appendDense(t, first, denseRecords(0, n, 12), 12)
	}
	must(t, first.Close())
	o.fs = &faultfs.FS{Base: mem, Hook: func(op *faultfs.Op, do func() error) error {
		if *fail != nil {
			if err := (*fail)(op); err != nil {
				return err
			}
		}
		return do()
	}}
	return mem, mustOpen(t, storePath, o)
}

// failing fails one kind of operation on one file.
func failing(kind faultfs.Kind, name string, err error) func(op *faultfs.Op) error {
	return func(op *faultfs.Op) error {
		if op.Kind == kind && op.Name == name {
			return err
		}
		return nil
	}
}

func wantErrno(t *testing.T, what string, err error, want unix.Errno) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Errno != int(want) {
		t.Errorf("%s: expected errno %d, got %+v", what, want, e)
	}
}

func verify(t *testing.T, s *Store) (*Task, error) {
	t.Helper()
	task, err := s.Verify(1)
	if err != nil {
		return nil, err
	}
	return task, task.Run()
}

// A file that this process cannot read does not make its records bad ones.
func TestUnreadableIsNotDamage(t *testing.T) {
	t.Parallel()
	for _, codec := range everyCodec {
		if codec == ZstdDict {
			continue
		}
		for _, name := range []string{numbered(0, chunkExt), numbered(0, tableExt), numbered(0, sumExt)} {
			for _, errno := range []unix.Errno{unix.EACCES, unix.EPERM, unix.EMFILE, unix.ENFILE, unix.ENOMEM} {
				what := codec.String() + " " + name + " " + errno.Error()
				var fail func(op *faultfs.Op) error
				_, s := breaking(t, small(codec), 3, &fail)
				fail = failing(faultfs.Open, name, errno)
				task, err := verify(t, s)
				wantStatus(t, what+": verify", err, StatusIO)
				wantErrno(t, what+": verify", err, errno)
				if task != nil && task.found.rows != nil {
					t.Errorf("%s: bad records: %v", what, task.bad)
				}
				if name == numbered(0, chunkExt) { // raw records are found without the table
					err = s.GatherDense([]int64{1}, make([]byte, 12), 0)
					wantStatus(t, what+": gather", err, StatusIO)
					wantErrno(t, what+": gather", err, errno)
				}
				fail = nil
				if task, err = verify(t, s); err != nil || task.found.rows != nil {
					t.Errorf("%s: afterwards: %v", what, err)
				}
			}
		}
	}
}

// A file that is missing or that the disk cannot read does.
func TestMissingAndUnreadableSectorsAreDamage(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{unix.EIO, fs.ErrNotExist, vfs.ErrNotRegular} {
		var fail func(op *faultfs.Op) error
		_, s := breaking(t, small(Zstd), 3, &fail)
		fail = failing(faultfs.Open, numbered(0, chunkExt), cause)
		wantStatus(t, cause.Error(), s.GatherDense([]int64{1}, make([]byte, 12), 0), StatusCorruptRecord)
		if task, err := verify(t, s); err != nil || len(task.found.rows) != 3 {
			t.Errorf("%v: expected 3 bad records (%v)", cause, err)
		}
	}
}

// A right that is missing for reading is not one that is missing for writing.
func TestNoRightToRead(t *testing.T) {
	t.Parallel()
	for _, name := range []string{typedName, metaName, journalName, numbered(0, chunkExt)} {
		var fail func(op *faultfs.Op) error
		_, s := breaking(t, small(Raw), 3, &fail)
		fail = failing(faultfs.Open, name, unix.EACCES)
		o := s.opts
		o.Mode, o.Identity = ModeRead, nil
		r, err := Open(storePath, o)
		if err == nil {
			err = errors.Join(r.GatherDense([]int64{1}, make([]byte, 12), 0), r.Close())
		}
		wantStatus(t, name, err, StatusIO)
		wantErrno(t, name, err, unix.EACCES)
	}
}

// An append that is refused before it has written leaves a handle that works.
func TestRefusedAppendLeavesTheHandle(t *testing.T) {
	t.Parallel()
	for _, name := range []string{numbered(0, chunkExt), numbered(0, tableExt), numbered(0, sumExt)} {
		for cause, want := range map[error]Status{vfs.ErrLink: StatusReadOnly, unix.EACCES: StatusReadOnly, unix.EMFILE: StatusIO} {
			var fail func(op *faultfs.Op) error
			_, s := breaking(t, small(Raw), 3, &fail)
			fail = func(op *faultfs.Op) error {
				if op.Kind == faultfs.Open && op.Name == name && op.Flag != vfs.Read {
					return cause
				}
				return nil
			}
			data := denseRecords(3, 1, 12)
			b, err := s.Begin()
			must(t, err)
			wantStatus(t, name+" "+cause.Error(), b.AppendDense(data, 1), want)
			must(t, b.Abort())
			must(t, s.Sync())
			wantLen(t, "after the refusal", s, 3)
			fail = nil
			appendDense(t, s, data, 12)
			must(t, s.Close())
		}
	}
}

// Once the redo record is durable the change happens, whatever fails then.
func TestRecordedChangeIsNoFullDisk(t *testing.T) {
	t.Parallel()
	for _, errno := range []unix.Errno{unix.ENOSPC, unix.EFBIG, unix.EACCES} {
		for name, call := range map[string]func(s *Store) error{
			"delete":  func(s *Store) error { return s.Delete([]int64{0}) },
			"compact": func(s *Store) error { return compact(s, -1) },
		} {
			what := name + " " + errno.Error()
			var fail func(op *faultfs.Op) error
			mem, s := breaking(t, small(Raw), 9, &fail)
			must(t, s.Delete([]int64{1}))
			recorded := false
			fail = func(op *faultfs.Op) error {
				switch {
				case op.Kind == faultfs.Sync && op.Name == journalName:
					recorded = true
				case recorded && op.Kind == faultfs.Write && op.Name == numbered(0, tableExt):
					return errno
				}
				return nil
			}
			if name == "compact" { // its first sync is the checkpoint's
				must(t, s.Sync())
				recorded = false
			}
			err := call(s)
			wantStatus(t, what, err, StatusIO)
			wantErrno(t, what, err, errno)
			fail = nil
			must(t, s.Close()) // what was recorded is durable
			o := small(Raw)
			o.fs = mem
			again := mustOpen(t, storePath, o)
			want := denseRecords(0, 9, 12)
			copy(want[12:24], want[8*12:])
			want = want[:8*12]
			if name == "delete" {
				copy(want[:12], want[7*12:])
				want = want[:7*12]
			}
			if got := gatherDense(t, again, all(t, again), 12); !bytes.Equal(got, want) {
				t.Errorf("%s: %d bytes of records, expected %d, or others", what, len(got), len(want))
			}
			must(t, sound(again))
		}
	}
}

// An append that cannot be taken back, or whose commit fails, is no StatusFull
// either: the handle is of no more use, and closing it says what is at stake.
func TestPoisonedHandleSaysSo(t *testing.T) {
	t.Parallel()
	tables := failing(faultfs.Write, numbered(0, tableExt), unix.ENOSPC)
	for name, broken := range map[string]func(op *faultfs.Op) error{
		"taking back": func(op *faultfs.Op) error {
			if op.Kind == faultfs.Truncate {
				return unix.EIO
			}
			return tables(op)
		},
		"commit": failing(faultfs.Write, metaName, unix.ENOSPC),
	} {
		for _, before := range []int{0, 2} {
			var fail func(op *faultfs.Op) error
			_, s := breaking(t, denseOptions(12, Raw), 3, &fail)
			if before > 0 {
				appendDense(t, s, denseRecords(3, before, 12), 12)
			} else {
				must(t, s.ready())
			}
			fail = broken
			wantStatus(t, name, appendTwelve(s), StatusIO)
			_, err := s.Begin()
			wantStatus(t, name+": the next", err, StatusIO)
			wantStatus(t, name+": sync", s.Sync(), StatusIO)
			fail = nil
			want := StatusOK
			if before > 0 {
				want = StatusIO
			}
			wantStatus(t, name+": close", s.Close(), want)
			must(t, s.Close())
		}
	}
}

func appendTwelve(s *Store) error {
	b, err := s.Begin()
	if err != nil {
		return err
	}
	if err := b.AppendDense(denseRecords(5, 1, 12), 1); err != nil {
		return errors.Join(err, b.Abort())
	}
	_, err = b.Commit()
	return err
}

// A checkpoint behind whose last step fails has made nothing durable.
func TestFailedCheckpointBehindIsSaid(t *testing.T) {
	t.Parallel()
	var fail func(op *faultfs.Op) error
	o := denseOptions(12, Raw)
	o.Limits = Limits{Checkpoint: 60}
	_, s := breaking(t, o, 3, &fail)
	must(t, s.ready())
	fail = failing(faultfs.Write, journalName, unix.EIO)
	appendDense(t, s, denseRecords(3, 9, 12), 12)
	s.settled()
	fail = nil
	wantStatus(t, "close", s.Close(), StatusIO)
}
