package engine

import (
	"errors"
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
	for deadline := time.Now().Add(lockWait); ; time.Sleep(lockStep) {
		ok, err := file.TryLock(exclusive)
		if errors.Is(err, vfs.ErrNoLocks) {
			return err
		}
		if err != nil {
			return fileError("locking", err)
		}
		if ok {
			break
		}
		if time.Now().After(deadline) {
			return busy(file.Path(), exclusive)
		}
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

func busy(path string, exclusive bool) error {
	held := "an exclusive lock is held by a handle that creates or rewrites the store, or by loaderx 1.x"
	if exclusive {
		held = "the lock is held by another handle, of this process or another"
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
	st.dirty = false
	if err := s.checkLength(st.meta.Length); err != nil {
		return st, err
	}
	return st, s.checkFiles(&st)
}
