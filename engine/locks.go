package engine

import (
	"errors"
	"strings"
	"time"

	"loaderx/engine/internal/vfs"
)

const (
	// lockWait is how long a lock is tried for (FORMAT 6).
	lockWait = 500 * time.Millisecond
	lockStep = 5 * time.Millisecond
)

// acquire takes a lock, trying for a while. The name must still lead to the
// file that was locked.
func acquire(file vfs.File, exclusive bool) error {
	if err := tryFor(file, exclusive); err != nil {
		return err
	}
	current, err := file.Current()
	if err != nil {
		return fileError("locking", err)
	}
	if !current {
		_ = file.Unlock()
		return errorf(StatusBusy, file.Path(), "%s was replaced while it was being locked: open the store again", file.Path())
	}
	return nil
}

// tryFor takes or converts a lock, trying for a while.
func tryFor(file vfs.File, exclusive bool) error {
	for deadline := time.Now().Add(lockWait); ; time.Sleep(lockStep) {
		ok, err := file.TryLock(exclusive)
		if errors.Is(err, vfs.ErrNoLocks) {
			return err
		}
		if err != nil {
			return fileError("locking", err)
		}
		if ok {
			return nil
		}
		if time.Now().After(deadline) {
			return busy(file.Path(), exclusive)
		}
	}
}

// tryOnce takes a lock if it is to be had now.
func tryOnce(file vfs.File, exclusive bool) error {
	ok, err := file.TryLock(exclusive)
	if err != nil {
		return fileError("locking", err)
	}
	if !ok {
		return busy(file.Path(), exclusive)
	}
	return nil
}

func busy(path string, exclusive bool) error {
	held := "an exclusive lock is held by a handle that creates or rewrites the store, or by loaderx 1.x"
	if exclusive {
		held = "another handle, of this process or another, has the store open"
		if strings.HasSuffix(path, journalName) {
			held = "another handle, of this process or another, is the writer"
		}
	}
	return errorf(StatusBusy, path, "%s: %s; tried for %v", path, held, lockWait)
}

// settle examines until what the folder says can be relied on (the table of
// FORMAT 7.3): reads of a writer's files may tear, and a state that is dirty
// is a crash's only if nobody holds journal.zr.
func (s *Store) settle() (state, error) {
	for deadline := time.Now().Add(lockWait); ; time.Sleep(lockStep) {
		st, err := s.examine()
		if err == nil && !st.dirty {
			return st, nil
		}
		held, free, lockErr := s.writerHolds()
		if lockErr != nil {
			return st, lockErr
		}
		if !held {
			// Nobody can become the writer while the shared lock is here, so
			// this examination is final.
			st, err = s.examine()
			free()
			return st, err
		}
		if err == nil && st.metaOK {
			return s.asWritten(st)
		}
		if time.Now().After(deadline) {
			if err == nil {
				err = corrupt(s.meta.Path(), "not readable beside its writer")
			}
			return st, err
		}
	}
}

// writerHolds tells whether another handle is the writer. If not, it keeps
// others from becoming it until free is called.
func (s *Store) writerHolds() (held bool, free func(), err error) {
	free = func() {}
	if !s.lockable {
		return false, free, nil
	}
	journal, err := s.dir.Open(journalName, vfs.Read)
	if vfs.IsNotExist(err) {
		return false, free, nil
	}
	if err != nil {
		return false, free, oddFile(err)
	}
	ok, err := journal.TryLock(false)
	if err != nil || !ok {
		_ = journal.Close()
		return err == nil, free, fileError("locking", err)
	}
	return false, func() {
		_ = journal.Unlock()
		_ = journal.Close()
	}, nil
}

// asWritten shows meta.zr as a living writer has left it: exact.
func (s *Store) asWritten(st state) (state, error) {
	st.length, st.tailChunk, st.tailOffset = int64(st.meta.Length), st.meta.TailChunk, st.meta.TailOffset
	st.dirty, st.over = false, nil
	if err := s.checkLength(st.meta.Length); err != nil {
		return st, err
	}
	return st, s.checkFiles(&st)
}

// exclusively runs work with meta.zr locked against every other handle.
func (s *Store) exclusively(work func() error) error {
	if err := s.goExclusive(); err != nil {
		return err
	}
	return errors.Join(work(), s.goShared())
}

// goExclusive converts the lock on meta.zr (FORMAT 6.3). No call of this handle
// may be running: converting a lock can lose it. After a failure the handle
// holds a shared lock again, or is closed.
func (s *Store) goExclusive() error {
	if err := tryFor(s.meta, true); err != nil {
		return s.backToShared(err)
	}
	return nil
}

// goShared converts it back, with journal.zr still held: who else takes meta.zr
// in between gives it up again (FORMAT 6.4). A handle that is stuck keeps both,
// so that nobody reads half of its change.
func (s *Store) goShared() error {
	if s.stuck != nil {
		return nil
	}
	err := tryFor(s.meta, false)
	if err == nil && !s.holdsJournal() {
		_, err = s.lookAgain()
	}
	if err != nil {
		s.lose()
	}
	return err
}

// holdsJournal tells whether this handle keeps others from becoming the writer.
func (s *Store) holdsJournal() bool { return s.w != nil && s.w.broken == nil }

// lookAgain takes over what other handles may have made of the store while no
// lock was held.
func (s *Store) lookAgain() (changed bool, err error) {
	st, err := s.settle()
	if err != nil {
		return false, err
	}
	changed = st.length != s.st.length
	s.resetSources()
	s.adopt(st)
	return changed, nil
}

// backToShared ends a conversion that failed. Whoever does not hold journal.zr
// may find the store changed by another in between.
func (s *Store) backToShared(cause error) error {
	if err := tryFor(s.meta, false); err != nil {
		s.lose()
		return errors.Join(cause, err)
	}
	if s.holdsJournal() {
		return cause
	}
	before := s.st.length
	changed, err := s.lookAgain()
	if err != nil {
		s.lose()
		return errors.Join(cause, err)
	}
	if changed {
		cause = errorf(StatusBusy, s.path, "%v; meanwhile another handle changed the store from %d to %d records",
			cause, before/s.perRecord(), s.st.length/s.perRecord())
	}
	return cause
}

// lose closes the handle after its lock was lost to another.
func (s *Store) lose() {
	s.closed = true
	if s.w != nil {
		s.w.letGo()
	}
	s.release()
}
