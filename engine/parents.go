package engine

import (
	"path/filepath"

	"loaderx/engine/internal/vfs"
)

// makeFolder opens the folder of a new store or copy (what says which), and
// makes it if it is missing.
func makeFolder(fs vfs.FS, path, what string) (vfs.Dir, error) {
	err := makeDurable(fs, path)
	if vfs.IsNotDir(err) {
		return nil, notFolder(path, err)
	}
	if err != nil {
		return nil, changeError("making the folder of the "+what, err)
	}
	dir, err := fs.OpenDir(path)
	if vfs.IsNotDir(err) || vfs.IsNotExist(err) { // a link to nothing
		return nil, notFolder(path, err)
	}
	return dir, fileError("opening the folder of the "+what, err)
}

// makeDurable makes the folder at path and its missing parents, from the top,
// and syncs the parent of each before it makes the next: a power cut must not
// take the name of a folder whose contents were synced. So of those that are
// there only the last can be new to the disk, after an attempt that was cut
// short. Its parent is synced too, but where that cannot be, it is not ours to
// care for.
func makeDurable(fs vfs.FS, path string) error {
	parent := filepath.Dir(path)
	if dir, err := fs.OpenDir(path); err == nil {
		_ = dir.Close()
		_ = syncFolder(fs, parent)
		return nil
	} else if !vfs.IsNotExist(err) || parent == path {
		return err
	}
	if err := makeDurable(fs, parent); err != nil {
		return err
	}
	if _, err := fs.MakeDirs(path); err != nil {
		return err
	}
	return syncFolder(fs, parent)
}

func syncFolder(fs vfs.FS, path string) error {
	dir, err := fs.OpenDir(path)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	return dir.Sync()
}
