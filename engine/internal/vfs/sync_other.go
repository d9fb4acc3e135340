//go:build unix && !linux && !darwin

package vfs

import "golang.org/x/sys/unix"

func syncFD(fd int) error {
	_, err := retry(func() (int, error) { return 0, unix.Fsync(fd) })
	return err
}

// reserveFD does nothing where there is no fallocate: a full disk then shows
// at the write.
func reserveFD(int, int64, int64) error { return nil }

// dropFD does nothing: there is no such call.
func dropFD(int) error { return nil }

// CopyFrom copies by hand.
func (f *osFile) CopyFrom(src File, off, n, to int64) error {
	return copyByHand(f, src, off, n, to)
}
