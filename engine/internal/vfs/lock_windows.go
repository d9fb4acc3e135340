package vfs

import (
	"syscall"
	"unsafe"
)

var (
	kernel32     = syscall.NewLazyDLL("kernel32.dll")
	lockFileEx   = kernel32.NewProc("LockFileEx")
	unlockFileEx = kernel32.NewProc("UnlockFileEx")
)

const (
	failImmediately = 1 // LOCKFILE_FAIL_IMMEDIATELY
	exclusiveLock   = 2 // LOCKFILE_EXCLUSIVE_LOCK
)

// A locked byte cannot be read or written through another handle, so the lock
// is on one that no file has: the last but one that can be named (FORMAT 6).
const (
	lockLow  = 0xfffffffe
	lockHigh = 0x7fffffff
)

func lockedByte() *syscall.Overlapped {
	return &syscall.Overlapped{Offset: lockLow, OffsetHigh: lockHigh}
}

// OnLock does nothing: it is for forks, and Windows has none.
func OnLock(func(fd int, held bool)) {}

// TryLock uses LockFileEx. A handle's own lock is in its way as another's is,
// so a conversion lets go first.
func (f *osFile) TryLock(exclusive bool) (bool, error) {
	if err := f.Unlock(); err != nil {
		return false, err
	}
	how := uintptr(failImmediately)
	if exclusive {
		how |= exclusiveLock
	}
	err := failed(lockFileEx.Call(uintptr(f.handle), how, 0, 1, 0, uintptr(unsafe.Pointer(lockedByte()))))
	switch {
	case err == nil:
		f.locked = true
		return true, nil
	case isOneOf(err, errLockViolation, syscall.ERROR_IO_PENDING):
		return false, nil
	case isOneOf(err, errNotSupported, errInvalidFunction):
		return false, f.wrap("lock", ErrNoLocks)
	default:
		return false, f.wrap("lock", err)
	}
}

// Unlock does nothing to a file that is not locked, as on other systems.
func (f *osFile) Unlock() error {
	if !f.locked {
		return nil
	}
	f.locked = false
	err := failed(unlockFileEx.Call(uintptr(f.handle), 0, 1, 0, uintptr(unsafe.Pointer(lockedByte()))))
	return f.wrap("unlock", err)
}

// failed is the error of a procedure, which returns 0 when it fails.
func failed(result, _ uintptr, err error) error {
	if result != 0 {
		return nil
	}
	return err
}
