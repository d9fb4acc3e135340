//go:build unix

package vfs

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// CanMapPastEnd tells whether a mapping may reach past the end of its file.
const CanMapPastEnd = true

// maxIO bounds one system call: Linux moves at most 2 GiB - 4 KiB in one, and
// Darwin refuses more than 2 GiB - 1.
const maxIO = 1 << 30

func (f osFS) OpenDir(path string) (Dir, error) {
	fd, err := retry(func() (int, error) {
		return unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return &osDir{fd: fd, path: path, noMmap: f.noMmap}, nil
}

type osDir struct {
	fd     int
	path   string
	noMmap bool
}

func (d *osDir) Path() string { return d.path }

func (d *osDir) Open(name string, flag Flag) (File, error) {
	path := filepath.Join(d.path, name)
	// O_NONBLOCK: opening a pipe in place of a file must not wait for its
	// other end. It has no effect on regular files.
	how := unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK
	if flag != Read {
		how = unix.O_RDWR | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOFOLLOW
	}
	if flag == Create {
		how |= unix.O_CREAT
	}
	fd, err := retry(func() (int, error) { return unix.Openat(d.fd, name, how, 0o666) })
	switch {
	case isOneOf(err, unix.ELOOP) && flag != Read:
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrLink}
	case isOneOf(err, unix.ENXIO, unix.EISDIR):
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	case err != nil:
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	f := &osFile{fd: fd, dir: d, name: name, path: path}
	if err := f.check(flag); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return f, nil
}

func (d *osDir) SizeOf(name string) (int64, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(d.fd, name, &st, 0); err != nil {
		return 0, d.wrap("stat", name, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return 0, d.wrap("stat", name, ErrNotRegular)
	}
	return st.Size, nil
}

func (d *osDir) Names() ([]string, error) {
	// A descriptor of its own, because reading a folder moves its position.
	fd, err := retry(func() (int, error) {
		return unix.Openat(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: d.path, Err: err}
	}
	f := os.NewFile(uintptr(fd), d.path)
	defer func() { _ = f.Close() }()
	return f.Readdirnames(-1)
}

func (d *osDir) Writable() error {
	return d.wrap("write", "", unix.Faccessat(d.fd, ".", unix.W_OK|unix.X_OK, unix.AT_EACCESS))
}

func (d *osDir) Rename(from, to string) error {
	return d.wrap("rename", from, unix.Renameat(d.fd, from, d.fd, to))
}

func (d *osDir) Remove(name string) error {
	return d.wrap("remove", name, unix.Unlinkat(d.fd, name, 0))
}

func (d *osDir) Sync() error  { return d.wrap("sync", "", syncFD(d.fd)) }
func (d *osDir) Close() error { return d.wrap("close", "", unix.Close(d.fd)) }

func (d *osDir) wrap(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: filepath.Join(d.path, name), Err: err}
}

type osFile struct {
	fd   int
	dir  *osDir
	name string
	path string
	lock bool // a lock was asked for, so the hook knows the descriptor
}

func (f *osFile) Path() string { return f.path }

// check refuses what is not a regular file, and what is not to be written.
func (f *osFile) check(flag Flag) error {
	var st unix.Stat_t
	if err := unix.Fstat(f.fd, &st); err != nil {
		return f.wrap("stat", err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return f.wrap("open", ErrNotRegular)
	}
	if flag != Read && st.Nlink > 1 {
		return f.wrap("open", ErrLink)
	}
	return nil
}

func (f *osFile) ReadAt(p []byte, off int64) (int, error) {
	done := 0
	for done < len(p) {
		n, err := unix.Pread(f.fd, p[done:min(len(p), done+maxIO)], off+int64(done))
		switch {
		case err == unix.EINTR:
		case err != nil:
			return done, f.wrap("read", err)
		case n == 0:
			return done, io.EOF
		default:
			done += n
		}
	}
	return done, nil
}

func (f *osFile) WriteAt(p []byte, off int64) (int, error) {
	done := 0
	for done < len(p) {
		n, err := unix.Pwrite(f.fd, p[done:min(len(p), done+maxIO)], off+int64(done))
		switch {
		case err == unix.EINTR:
		case err != nil:
			return done, f.wrap("write", err)
		case n == 0:
			return done, f.wrap("write", io.ErrShortWrite)
		default:
			done += n
		}
	}
	return done, nil
}

func (f *osFile) Size() (int64, error) {
	var st unix.Stat_t
	if err := unix.Fstat(f.fd, &st); err != nil {
		return 0, f.wrap("stat", err)
	}
	return st.Size, nil
}

func (f *osFile) Truncate(size int64) error {
	_, err := retry(func() (int, error) { return 0, unix.Ftruncate(f.fd, size) })
	return f.wrap("truncate", err)
}

func (f *osFile) Reserve(off, n int64) error { return f.wrap("reserve", reserveFD(f.fd, off, n)) }
func (f *osFile) Sync() error                { return f.wrap("sync", syncFD(f.fd)) }
func (f *osFile) Drop() error                { return f.wrap("drop", dropFD(f.fd)) }

func (f *osFile) Close() error {
	if f.lock {
		tellLock(f.fd, false)
	}
	return f.wrap("close", unix.Close(f.fd))
}

func (f *osFile) Map(n int64) (Mapping, error) {
	if f.dir.noMmap {
		return nil, f.wrap("map", ErrNoMapping)
	}
	if n <= 0 || int64(int(n)) != n {
		return nil, f.wrap("map", unix.EINVAL)
	}
	b, err := unix.Mmap(f.fd, 0, int(n), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, f.wrap("map", err)
	}
	return osMapping(b), nil
}

func (f *osFile) Current() (bool, error) {
	var own, named unix.Stat_t
	if err := unix.Fstat(f.fd, &own); err != nil {
		return false, f.wrap("stat", err)
	}
	switch err := unix.Fstatat(f.dir.fd, f.name, &named, 0); err {
	case nil:
		return own.Ino == named.Ino && own.Dev == named.Dev, nil
	case unix.ENOENT:
		return false, nil
	default:
		return false, f.wrap("stat", err)
	}
}

func (f *osFile) wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: f.path, Err: err}
}

type osMapping []byte

func (m osMapping) Bytes() []byte { return m }
func (m osMapping) Close() error  { return unix.Munmap(m) }

// retry repeats a call that a signal interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !isOneOf(err, unix.EINTR) {
			return n, err
		}
	}
}
