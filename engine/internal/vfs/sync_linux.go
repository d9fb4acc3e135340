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
	if isOneOf(err, unix.EOPNOTSUPP, unix.ENOSYS) {
		return nil
	}
	return err
}

// dropFD is advice only where pages are dirty or mapped: they stay.
func dropFD(fd int) error {
	err := unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED)
	if isOneOf(err, unix.ENOSYS, unix.EINVAL) {
		return nil
	}
	return err
}

// CopyFrom uses copy_file_range, which shares the bytes on file systems that
// can (reflink), and copies inside the kernel on others.
func (f *osFile) CopyFrom(src File, off, n, to int64) error {
	in, ok := src.(*osFile)
	for ok && n > 0 {
		from, at := off, to
		k, err := unix.CopyFileRange(in.fd, &from, f.fd, &at, int(min(n, maxIO)), 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil || k == 0 {
			break // not between these files: by hand, which tells what is wrong
		}
		off, to, n = off+int64(k), to+int64(k), n-int64(k)
	}
	return copyByHand(f, src, off, n, to)
}
