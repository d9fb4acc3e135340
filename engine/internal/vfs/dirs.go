package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// OS is the operating system's file system. The environment variable
// LOADERX_NO_MMAP switches mappings off, for odd hosts and for tests.
func OS() FS { return osFS{noMmap: os.Getenv("LOADERX_NO_MMAP") != ""} }

type osFS struct{ noMmap bool }

func (f osFS) MakeDirs(path string) ([]string, error) {
	changed, err := makeDir(path)
	if parent := filepath.Dir(path); errors.Is(err, fs.ErrNotExist) && parent != path {
		above, err := f.MakeDirs(parent)
		if err != nil {
			return nil, err
		}
		changed, err = makeDir(path)
		return append(above, changed...), err
	}
	return changed, err
}

func makeDir(path string) (changed []string, err error) {
	switch err := os.Mkdir(path, 0o777); {
	case err == nil:
		return []string{filepath.Dir(path)}, nil
	case errors.Is(err, fs.ErrExist):
		return nil, nil
	case errors.Is(err, fs.ErrNotExist) && underFile(path):
		return nil, &fs.PathError{Op: "mkdir", Path: path, Err: errNotDir}
	default:
		return nil, err
	}
}

// underFile tells that the folder to make a folder in is none, which Windows
// calls a path that is not found.
func underFile(path string) bool {
	info, err := os.Stat(filepath.Dir(path))
	return err == nil && !info.IsDir()
}
