//go:build unix

package vfs

import (
	"errors"
	"slices"

	"golang.org/x/sys/unix"
)

// Errno is the system's number for an error, or 0.
func Errno(err error) int {
	var n unix.Errno
	if errors.As(err, &n) {
		return int(n)
	}
	return 0
}

// isOneOf tells that an error of a system call is one of these.
func isOneOf(err error, numbers ...unix.Errno) bool {
	var n unix.Errno
	return errors.As(err, &n) && slices.Contains(numbers, n)
}

// errNotDir is the system's word for a part of a path that is no folder.
const errNotDir = unix.ENOTDIR

// damage is the errors of a disk or a folder that is not as it was written.
var damage = []unix.Errno{unix.EIO, unix.EBADMSG, unix.ELOOP}

// IsFull tells that there is no room: on the disk, in a quota, or under a
// limit of the file's size.
func IsFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG)
}

// IsReadOnly tells that the files may not be written.
func IsReadOnly(err error) bool {
	return errors.Is(err, unix.EROFS) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) ||
		errors.Is(err, ErrLink)
}

// IsTooManyFiles tells that the process or the system has no descriptor left.
func IsTooManyFiles(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE)
}
