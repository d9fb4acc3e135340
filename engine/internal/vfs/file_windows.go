package vfs

import (
	"io"
	"io/fs"

	"syscall"
)

// maxIO bounds one system call, whose counts have 32 bits.
const maxIO = 1 << 30

type osFile struct {
	handle syscall.Handle
	dir    *osDir
	name   string
	path   string
	locked bool
}

func (f *osFile) Path() string { return f.path }

// check refuses what is not a regular file, and what is not to be written.
func (f *osFile) check(flag Flag) error {
	if kind, err := syscall.GetFileType(f.handle); err != nil || kind != syscall.FILE_TYPE_DISK {
		return f.wrap("open", ErrNotRegular)
	}
	info, err := information(f.handle)
	switch {
	case err != nil:
		return f.wrap("stat", err)
	case flag != Read && (has(info, syscall.FILE_ATTRIBUTE_REPARSE_POINT) || info.NumberOfLinks > 1):
		return f.wrap("open", ErrLink)
	case has(info, syscall.FILE_ATTRIBUTE_DIRECTORY):
		return f.wrap("open", ErrNotRegular)
	default:
		return nil
	}
}

// at names an offset to ReadFile and WriteFile, which then leave the handle's
// own position alone.
func at(off int64) *syscall.Overlapped {
	return &syscall.Overlapped{Offset: uint32(off), OffsetHigh: uint32(off >> 32)}
}

func (f *osFile) ReadAt(p []byte, off int64) (int, error) {
	done := 0
	for done < len(p) {
		var n uint32
		err := syscall.ReadFile(f.handle, p[done:min(len(p), done+maxIO)], &n, at(off+int64(done)))
		switch {
		case isOneOf(err, syscall.ERROR_HANDLE_EOF) || err == nil && n == 0:
			return done, io.EOF
		case err != nil:
			return done, f.wrap("read", err)
		default:
			done += int(n)
		}
	}
	return done, nil
}

func (f *osFile) WriteAt(p []byte, off int64) (int, error) {
	done := 0
	for done < len(p) {
		var n uint32
		err := syscall.WriteFile(f.handle, p[done:min(len(p), done+maxIO)], &n, at(off+int64(done)))
		switch {
		case err != nil:
			return done, f.wrap("write", err)
		case n == 0:
			return done, f.wrap("write", io.ErrShortWrite)
		default:
			done += int(n)
		}
	}
	return done, nil
}

func (f *osFile) Size() (int64, error) {
	info, err := information(f.handle)
	return sizeOf(info), f.wrap("stat", err)
}

// Truncate fills with zeros what it cannot cut off: Windows does not shorten a
// file while anybody has the part mapped. Zeros are no record and no sum, so
// the format reads them as nothing (FORMAT 7.4).
func (f *osFile) Truncate(size int64) error {
	err := syscall.Ftruncate(f.handle, size)
	if !isOneOf(err, errUserMappedFile) {
		return f.wrap("truncate", err)
	}
	end, err := f.Size()
	if err != nil {
		return err
	}
	zeros := make([]byte, min(max(end-size, 0), copyBuffer))
	for ; size < end; size += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(int64(len(zeros)), end-size)], size); err != nil {
			return err
		}
	}
	return nil
}

// Reserve does nothing: room past the end is given back when a file is closed.
// A full disk then shows at the write.
func (f *osFile) Reserve(int64, int64) error { return nil }

func (f *osFile) Sync() error { return f.wrap("sync", syscall.FlushFileBuffers(f.handle)) }

// Drop does nothing: there is no such call.
func (f *osFile) Drop() error { return nil }

// CopyFrom copies by hand.
func (f *osFile) CopyFrom(src File, off, n, to int64) error {
	return copyByHand(f, src, off, n, to)
}

func (f *osFile) Current() (bool, error) {
	own, err := information(f.handle)
	if err != nil {
		return false, f.wrap("stat", err)
	}
	named, err := f.dir.look(f.name)
	if IsNotExist(err) {
		return false, nil
	}
	return own.VolumeSerialNumber == named.VolumeSerialNumber && own.FileIndexHigh == named.FileIndexHigh &&
		own.FileIndexLow == named.FileIndexLow, f.wrap("stat", err)
}

func (f *osFile) Close() error { return f.wrap("close", syscall.CloseHandle(f.handle)) }

func (f *osFile) wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: f.path, Err: err}
}
