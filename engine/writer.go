package engine

import (
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"loaderx/engine/internal/disk"
	"loaderx/engine/internal/vfs"
)

// writer is what a handle has once it may mutate: the lock on journal.zr, and
// the files open for writing.
type writer struct {
	s       *Store
	journal vfs.File
	meta    vfs.File
	slot    disk.Slot // the newest checkpoint
	pending bool      // committed changes that it does not cover
	since   int64     // bytes appended since the newest checkpoint was begun
	behind  *behind   // a checkpoint that runs beside appends, or nil
	redo    int64     // bytes of the redo area in use
	seq     uint32    // of the next redo record
	names   bool      // names were added or removed: the folder is to be synced
	broken  error     // after it, nothing may be written (FORMAT 7.4, last line)

	mu    sync.Mutex // guards files: a batch's workers open chunks
	files map[string]*outFile
}

// outFile is a data file open for writing. It stays open until it is synced,
// so that a failed write-back is reported to it.
type outFile struct {
	vfs.File
	touched bool // written since it was synced
	pinned  bool // being synced by a checkpoint behind
}

// lastEpoch is the first in which nobody becomes a writer: one could not make so
// many checkpoints that the 48 bits of an epoch run out.
const lastEpoch = 1<<48 - 1<<40

// becomeWriter takes the writer's role, at the first mutation (FORMAT 6.2). No
// other call of the handle may be running.
func (s *Store) becomeWriter() error {
	if err := s.mayWrite(); err != nil {
		return err
	}
	// What was clean when it was looked at may be dirty when the lock is held,
	// if a writer died in between: start over then.
	for {
		st, err := s.settle()
		if err != nil {
			return err
		}
		if e := st.slot.Meta.Epoch; e >= lastEpoch {
			return corrupt(s.dir.Path()+"/"+journalName, "expected an epoch below %d, got %d: no checkpoint could follow, so it can only be read", uint64(lastEpoch), e)
		}
		if st.dirty {
			return s.exclusively(s.recoverAsWriter)
		}
		w, err := s.lockJournal(acquire)
		if err != nil {
			return err
		}
		if st, err = s.examine(); err == nil && st.dirty {
			w.letGo()
			continue
		}
		if err == nil {
			err = w.start(st)
		}
		if err != nil {
			w.letGo()
			return err
		}
		s.w = w
		return nil
	}
}

// mayWrite refuses handles that can only read.
func (s *Store) mayWrite() error {
	switch {
	case s.opts.Mode == ModeRead:
		return errorf(StatusReadOnly, s.path, "%s: opened with mode \"r\", which never writes", s.path)
	case !s.lockable:
		return errorf(StatusReadOnly, s.path, "%s: the file system has no locks, so the store can only be read", s.path)
	}
	if err := s.dir.Writable(); err != nil {
		return notWritable(s.path, err)
	}
	return nil
}

// lockJournal opens the files that every writer needs, with the lock on
// journal.zr, which take takes.
func (s *Store) lockJournal(take func(file vfs.File, exclusive bool) error) (*writer, error) {
	meta, err := s.dir.Open(metaName, vfs.Write)
	if err != nil {
		return nil, notWritable(s.path, err)
	}
	journal, err := s.dir.Open(journalName, vfs.Create)
	if err != nil {
		_ = meta.Close()
		return nil, notWritable(s.path, err)
	}
	w := &writer{s: s, journal: journal, meta: meta, files: map[string]*outFile{}}
	if err = take(journal, true); err == nil {
		if ok, currentErr := s.meta.Current(); currentErr != nil || !ok {
			err = errorf(StatusBusy, s.path, "%s was replaced by another: open the store again", s.meta.Path())
		}
	}
	if err != nil {
		w.letGo()
		return nil, err
	}
	return w, nil
}

// notWritable says that a file of the store at path may not be opened for
// writing.
func notWritable(path string, err error) error {
	if vfs.IsReadOnly(err) {
		e := errorf(StatusReadOnly, vfs.PathOf(err), "%s cannot be written: %v", path, err)
		e.Errno, e.Cause = vfs.Errno(err), err
		return e
	}
	return oddFile(err)
}

// start goes on from a state that is clean or of version 4: others may have
// written since this handle last looked.
func (w *writer) start(st state) error {
	s := w.s
	s.adopt(st)
	if st.version == 4 {
		u, err := w.newUpgrade(st)
		for done := false; err == nil && !done; {
			done, err = u.step()
		}
		if err != nil {
			return err
		}
	} else {
		w.slot = st.slot
		// Another who made the store may have died before syncing the folder,
		// and records must not be in a store that has lost its name.
		if st.slot.Meta.Epoch == 1 && !s.made {
			if err := s.dir.Sync(); err != nil {
				return fileError("syncing the folder", err)
			}
		}
	}
	return w.sweepAndReserve()
}

// sweepAndReserve leaves nothing of the past, and room for redo records.
func (w *writer) sweepAndReserve() error {
	if err := w.sweep(); err != nil {
		return err
	}
	return fileError("reserving the journal", reserveRedo(w.journal))
}

// reserveRedo asks for the room of the redo area, so that a full disk cannot
// keep a delete from being journalled. Copies of a store lose it.
func reserveRedo(journal vfs.File) error {
	const size = disk.RedoStart + disk.RedoReserve
	have, err := journal.Size()
	if err != nil {
		return err
	}
	if have < size {
		if err := journal.Truncate(size); err != nil {
			return err
		}
	}
	return journal.Reserve(0, size)
}

// sweep takes away what tables hold past the length, and then removes chunks
// beyond the tail (FORMAT 6.2).
func (w *writer) sweep() error {
	s := w.s
	names, err := s.dir.Names()
	if err != nil {
		return fileError("listing the store", err)
	}
	long, err := w.longTables(names)
	if err != nil {
		return err
	}
	extra := beyond(names, chunkExt, int64(s.st.tailChunk))
	if slices.Contains(names, newName) {
		extra = append(extra, newName)
	}
	if len(long) == 0 && len(extra) == 0 {
		return nil
	}
	if err := w.takeAway(long); err != nil {
		return err
	}
	for _, name := range extra {
		if err := s.dir.Remove(name); err != nil {
			return fileError("removing what an append left", err)
		}
	}
	return fileError("syncing the folder", s.dir.Sync())
}

// numberOf is the number in the name of a data file of this extension.
func numberOf(name, ext string) (int64, bool) {
	digits, ok := strings.CutSuffix(name, ext)
	if !ok || digits == "" || digits[0] == '0' && len(digits) > 1 {
		return 0, false
	}
	id, err := strconv.ParseUint(digits, 10, 32)
	return int64(id), err == nil
}

// usable says why a handle that failed may not write any more.
func (w *writer) usable() error {
	if w.broken == nil {
		return nil
	}
	e := errorf(StatusIO, w.s.path, "%s: a write failed earlier and left the outcome open (%v); open the store again", w.s.path, w.broken)
	e.Errno, e.Cause = vfs.Errno(w.broken), w.broken
	return e
}

// poison ends the writer's role after a failure whose outcome is unknown. The
// lock is given up at once, so that another handle can recover. It returns what
// the caller is to be told.
func (w *writer) poison(err error) error {
	if w.broken == nil {
		w.broken = err
		_ = w.journal.Unlock()
	}
	return unsettled(w.s.path, err)
}

// open opens a data file for writing, once; it makes one that is missing.
func (w *writer) open(name string) (*outFile, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f := w.files[name]; f != nil {
		return f, nil
	}
	file, err := w.s.dir.Open(name, vfs.Write)
	if vfs.IsNotExist(err) {
		file, err = w.s.dir.Open(name, vfs.Create)
		w.names = true
	}
	if err != nil {
		return nil, notWritable(w.s.path, err)
	}
	f := &outFile{File: file}
	w.files[name] = f
	return f, nil
}

// writeAt writes to a data file. Workers call it side by side.
func (w *writer) writeAt(name string, p []byte, off int64) error {
	f, err := w.open(name)
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(p, off); err != nil {
		return fileError("appending", err)
	}
	w.mu.Lock()
	f.touched = true
	w.mu.Unlock()
	return nil
}

// shut closes a file, if it is open.
func (w *writer) shut(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f := w.files[name]; f != nil {
		_ = f.Close()
		delete(w.files, name)
	}
}

// remove closes a data file and takes it away.
func (w *writer) remove(name string) error {
	w.shut(name)
	w.mu.Lock()
	w.names = true
	w.mu.Unlock()
	if err := w.s.dir.Remove(name); err != nil && !vfs.IsNotExist(err) {
		return err
	}
	return nil
}

// rest closes finished data files beyond a few, synced first, so that a store
// of any size does with few descriptors. No worker may be running.
func (w *writer) rest() error {
	const most = 8
	if len(w.files) <= most {
		return nil
	}
	for _, name := range w.sorted() {
		f := w.files[name]
		if f.pinned {
			continue
		}
		if f.touched {
			if err := f.Sync(); err != nil {
				return w.poison(fileError("syncing "+name, err))
			}
		}
		_ = f.Close()
		delete(w.files, name)
	}
	return nil
}

// sorted is the names of the open data files in a fixed order, so that a run
// of the engine does the same operations every time.
func (w *writer) sorted() []string {
	names := make([]string, 0, len(w.files))
	for name := range w.files {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// unsynced tells that there are appends that a power cut may take away. Deletes
// are durable with their redo record.
func (w *writer) unsynced() bool { return w.pending && w.redo == 0 }

// close checkpoints what is pending, and ends the role.
func (w *writer) close() error {
	var err error
	switch {
	case w.broken == nil && w.pending:
		err = w.checkpoint()
	case w.broken != nil && w.unsynced():
		e := errorf(StatusIO, w.s.path, "%s: the records appended since the last sync could not be made durable, because a write failed earlier (%v); open the store again and see what it holds", w.s.path, w.broken)
		e.Errno, e.Cause = vfs.Errno(w.broken), w.broken
		err = e
	}
	w.letGo()
	return err
}

func (w *writer) letGo() {
	for _, name := range w.sorted() {
		_ = w.files[name].Close()
	}
	w.files = nil
	_ = w.meta.Close()
	_ = w.journal.Unlock()
	_ = w.journal.Close()
}
