//go:build unix

package vfs

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// lockHook hears of every descriptor that is locked, and again when it is
// closed. A forked child shares its parent's locks through these descriptors
// and has to close them without entering Go, so whoever can do that is told.
var lockHook atomic.Pointer[func(fd int, held bool)]

// OnLock sets the function that hears of lock descriptors.
func OnLock(hook func(fd int, held bool)) { lockHook.Store(&hook) }

func tellLock(fd int, held bool) {
	if hook := lockHook.Load(); hook != nil {
		(*hook)(fd, held)
	}
}

// TryLock uses flock (FORMAT 6). A failed conversion has released the lock on
// Linux (flock(2)), which callers count on being possible.
func (f *osFile) TryLock(exclusive bool) (bool, error) {
	how := unix.LOCK_SH | unix.LOCK_NB
	if exclusive {
		how = unix.LOCK_EX | unix.LOCK_NB
	}
	// Told before it is held: a child forked in between must close it too.
	f.lock = true
	tellLock(f.fd, true)
	_, err := retry(func() (int, error) { return 0, unix.Flock(f.fd, how) })
	switch {
	case err == nil:
		return true, nil
	case isOneOf(err, unix.EWOULDBLOCK):
		return false, nil
	case isOneOf(err, unix.ENOLCK, unix.ENOTSUP, unix.ENOSYS, unix.EINVAL):
		return false, f.wrap("lock", ErrNoLocks)
	default:
		return false, f.wrap("lock", err)
	}
}

// Unlock releases at once, also where a forked child still has the descriptor.
func (f *osFile) Unlock() error {
	_, err := retry(func() (int, error) { return 0, unix.Flock(f.fd, unix.LOCK_UN) })
	return f.wrap("unlock", err)
}
