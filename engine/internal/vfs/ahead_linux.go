package vfs

import "golang.org/x/sys/unix"

// Cold asks for the byte, if it can be had at once: preadv2(2), RWF_NOWAIT. (What
// mincore(2) says of a file depends on who owns it.) Where the file system cannot
// tell, nothing is cold.
func (f *osFile) Cold(off int64) bool {
	var b [1]byte
	_, err := unix.Preadv2(f.fd, [][]byte{b[:]}, off, unix.RWF_NOWAIT)
	return err == unix.EAGAIN
}

// WillNeed is posix_fadvise(2). What goes wrong shows when the bytes are read.
func (f *osFile) WillNeed(off, n int64) {
	_ = unix.Fadvise(f.fd, off, n, unix.FADV_WILLNEED)
}
