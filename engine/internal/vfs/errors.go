package vfs

import (
	"errors"
	"io/fs"
)

// PathOf is the path that an error names, or "".
func PathOf(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Path
	}
	return ""
}

// IsNotExist tells that a name is missing.
func IsNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// IsDamage tells that a file cannot be read for what it is, and not for what
// this process may do or has left: it is missing, no file, or the disk fails.
func IsDamage(err error) bool {
	return Errno(err) == 0 || IsNotExist(err) || IsNotRegular(err) || IsNotDir(err) || isOneOf(err, damage...)
}

// IsNotRegular tells that a name leads to something that is no regular file.
func IsNotRegular(err error) bool { return errors.Is(err, ErrNotRegular) }

// IsNotDir tells that a part of a path is no folder.
func IsNotDir(err error) bool { return errors.Is(err, errNotDir) }
