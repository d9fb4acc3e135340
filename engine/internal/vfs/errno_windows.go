package vfs

import (
	"errors"
	"slices"

	"syscall"
)

// Errors that package syscall does not name. golang.org/x/sys/windows does, and
// would bring its table of a thousand procedures into the library.
const (
	errInvalidFunction   = syscall.Errno(1)
	errTooManyOpenFiles  = syscall.Errno(4)
	errInvalidHandle     = syscall.Errno(6)
	errNotEnoughMemory   = syscall.Errno(8)
	errWriteProtect      = syscall.Errno(19)
	errCrc               = syscall.Errno(23)
	errSharingViolation  = syscall.Errno(32)
	errLockViolation     = syscall.Errno(33)
	errHandleDiskFull    = syscall.Errno(39)
	errNotSupported      = syscall.Errno(50)
	errBadNetpath        = syscall.Errno(53)
	errInvalidParameter  = syscall.Errno(87)
	errDiskFull          = syscall.Errno(112)
	errFileTooLarge      = syscall.Errno(223)
	errDirectory         = syscall.Errno(267)
	errIoDevice          = syscall.Errno(1117)
	errUserMappedFile    = syscall.Errno(1224)
	errDiskQuotaExceeded = syscall.Errno(1295)
	errNoSystemResources = syscall.Errno(1450)
)

// errNotDir is the system's word for a part of a path that is no folder.
const errNotDir = errDirectory

// invalid is EINVAL of the C library, which it gives for what it does not know.
const invalid = 22

// numbers are those of the C library for Windows' own, as its errno.h and its
// function _dosmaperr have them.
var numbers = map[syscall.Errno]int{
	syscall.ERROR_FILE_NOT_FOUND: 2, // ENOENT
	syscall.ERROR_PATH_NOT_FOUND: 2,
	errBadNetpath:                2,
	errIoDevice:                  5, // EIO
	errCrc:                       5,
	errNotEnoughMemory:           12, // ENOMEM
	syscall.ERROR_ACCESS_DENIED:  13, // EACCES
	errSharingViolation:          13,
	errLockViolation:             13,
	errWriteProtect:              13,
	syscall.ERROR_FILE_EXISTS:    17, // EEXIST
	syscall.ERROR_ALREADY_EXISTS: 17,
	errDirectory:                 20, // ENOTDIR
	errTooManyOpenFiles:          24, // EMFILE
	errDiskFull:                  28, // ENOSPC
	errHandleDiskFull:            28,
	errDiskQuotaExceeded:         28,
	syscall.ERROR_DIR_NOT_EMPTY:  41, // ENOTEMPTY
}

// Errno is the C library's number for an error of the system, or 0: it is what
// Python knows as errno.
func Errno(err error) int {
	var n syscall.Errno
	switch {
	case !errors.As(err, &n):
		return 0
	case numbers[n] != 0:
		return numbers[n]
	default:
		return invalid
	}
}

// isOneOf tells that an error of a system call is one of these.
func isOneOf(err error, numbers ...syscall.Errno) bool {
	var n syscall.Errno
	return errors.As(err, &n) && slices.Contains(numbers, n)
}

// damage is the errors of a disk that is not as it was written.
var damage = []syscall.Errno{errCrc, errIoDevice}

// IsFull tells that there is no room: on the disk, or in a quota.
func IsFull(err error) bool {
	return isOneOf(err, errDiskFull, errHandleDiskFull,
		errDiskQuotaExceeded, errFileTooLarge)
}

// IsReadOnly tells that the files may not be written.
func IsReadOnly(err error) bool {
	return isOneOf(err, syscall.ERROR_ACCESS_DENIED, errWriteProtect) || errors.Is(err, ErrLink)
}

// IsTooManyFiles tells that the process or the system has no handle left.
func IsTooManyFiles(err error) bool {
	return isOneOf(err, errTooManyOpenFiles, errNoSystemResources)
}
