package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"syscall"
)

// osDir is a folder that cannot be renamed or removed while it is open, because
// its handle does not share that. So its path stays its path.
type osDir struct {
	handle syscall.Handle
	path   string // as it was given, for messages
	long   string
	noMmap bool
}

func (f osFS) OpenDir(path string) (Dir, error) {
	d := &osDir{path: path, noMmap: f.noMmap}
	var err error
	if d.long, err = longPath(path); err != nil {
		return nil, d.wrap("open", "", err)
	}
	const share = syscall.FILE_SHARE_READ | syscall.FILE_SHARE_WRITE
	d.handle, err = openHandle(d.long, syscall.FILE_LIST_DIRECTORY, share, syscall.OPEN_EXISTING, 0)
	if err != nil {
		return nil, d.wrap("open", "", err)
	}
	info, err := information(d.handle)
	if err == nil && !has(info, syscall.FILE_ATTRIBUTE_DIRECTORY) {
		err = errNotDir
	}
	if err != nil {
		_ = syscall.CloseHandle(d.handle)
		return nil, d.wrap("open", "", err)
	}
	return d, nil
}

func (d *osDir) Path() string { return d.path }

func (d *osDir) Open(name string, flag Flag) (File, error) {
	access, create, flags := uint32(syscall.GENERIC_READ), uint32(syscall.OPEN_EXISTING), uint32(0)
	if flag != Read {
		access |= syscall.GENERIC_WRITE
		flags = syscall.FILE_FLAG_OPEN_REPARSE_POINT
	}
	if flag == Create {
		create = syscall.OPEN_ALWAYS
	}
	handle, err := openHandle(d.long+`\`+name, access, shareAll, create, flags)
	if err != nil {
		return nil, d.wrap("open", name, err)
	}
	f := &osFile{handle: handle, dir: d, name: name, path: filepath.Join(d.path, name)}
	if err := f.check(flag); err != nil {
		_ = syscall.CloseHandle(handle)
		return nil, err
	}
	return f, nil
}

func (d *osDir) SizeOf(name string) (int64, error) {
	info, err := d.look(name)
	switch {
	case err != nil:
		return 0, d.wrap("stat", name, err)
	case has(info, syscall.FILE_ATTRIBUTE_DIRECTORY):
		return 0, d.wrap("stat", name, ErrNotRegular)
	default:
		return sizeOf(info), nil
	}
}

// look opens a file for its attributes alone, which anybody may.
func (d *osDir) look(name string) (syscall.ByHandleFileInformation, error) {
	handle, err := openHandle(d.long+`\`+name, fileReadAttributes, shareAll, syscall.OPEN_EXISTING, 0)
	if err != nil {
		return syscall.ByHandleFileInformation{}, err
	}
	info, err := information(handle)
	return info, errors.Join(err, syscall.CloseHandle(handle))
}

func (d *osDir) Names() ([]string, error) {
	f, err := os.Open(d.long)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return f.Readdirnames(-1)
}

// Writable opens the folder for new entries.
func (d *osDir) Writable() error {
	handle, err := d.forEntries()
	if err == nil {
		err = syscall.CloseHandle(handle)
	}
	return d.wrap("write", "", err)
}

func (d *osDir) forEntries() (syscall.Handle, error) {
	return openHandle(d.long, fileAddFile, shareAll, syscall.OPEN_EXISTING, 0)
}

// Rename replaces a file that is there.
func (d *osDir) Rename(from, to string) error {
	return d.wrap("rename", from, cause(os.Rename(d.long+`\`+from, d.long+`\`+to)))
}

// cause is an error of package os without its paths, which are not those that
// were given.
func cause(err error) error {
	var link *os.LinkError
	if errors.As(err, &link) {
		return link.Err
	}
	return err
}

func (d *osDir) Remove(name string) error {
	path, err := syscall.UTF16PtrFromString(d.long + `\` + name)
	if err == nil {
		err = syscall.DeleteFile(path)
	}
	return d.wrap("remove", name, err)
}

// Sync flushes the folder where the file system can. NTFS keeps a journal of
// entries, and has them durable with the next file that is flushed.
func (d *osDir) Sync() error {
	handle, err := d.forEntries()
	if err != nil {
		return d.wrap("sync", "", err)
	}
	err = syscall.FlushFileBuffers(handle)
	if isOneOf(err, syscall.ERROR_ACCESS_DENIED, errInvalidFunction,
		errInvalidHandle, errNotSupported) {
		err = nil
	}
	return d.wrap("sync", "", errors.Join(err, syscall.CloseHandle(handle)))
}

func (d *osDir) Close() error { return d.wrap("close", "", syscall.CloseHandle(d.handle)) }

func (d *osDir) wrap(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: filepath.Join(d.path, name), Err: err}
}
