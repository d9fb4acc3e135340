package vfs

import "golang.org/x/sys/unix"

// syncFD asks the drive itself to write: fsync on Darwin stops at its cache
// (fsync(2) there). A file system without the call gets fsync.
func syncFD(fd int) error {
	_, err := retry(func() (int, error) { return unix.FcntlInt(uintptr(fd), unix.F_FULLFSYNC, 0) })
	if isOneOf(err, unix.ENOTSUP, unix.EINVAL, unix.ENOTTY) {
		_, err = retry(func() (int, error) { return 0, unix.Fsync(fd) })
	}
	return err
}

// reserveFD does nothing: a full disk then shows at the write.
func reserveFD(int, int64, int64) error { return nil }

// dropFD does nothing: there is no such call.
func dropFD(int) error { return nil }

// CopyFrom copies by hand.
func (f *osFile) CopyFrom(src File, off, n, to int64) error {
	return copyByHand(f, src, off, n, to)
}
