package vfs

import "golang.org/x/sys/unix"

func syncFD(fd int) error {
	_, err := retry(func() (int, error) { return 0, unix.Fsync(fd) })
	return err
}

// reserveFD keeps the size: what is reserved and not written stays invisible.
func reserveFD(fd int, off, n int64) error {
	_, err := retry(func() (int, error) {
		return 0, unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, off, n)
	})
	if err == unix.EOPNOTSUPP || err == unix.ENOSYS {
		return nil
	}
	return err
}
