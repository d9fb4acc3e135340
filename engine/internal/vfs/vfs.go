// Package vfs is the only place of the engine that touches files. The engine
// sees a folder at a time, through the interfaces below; OS is the real thing,
// and tests put others in its place that fail or that lose unsynced writes.
//
// Names are relative to an open folder, so a folder that is renamed while a
// store in it is open stays the folder it was. Errors are *fs.PathError and
// name the operation and the whole path.
package vfs

import "errors"

// FS opens folders.
type FS interface {
	// OpenDir opens the folder at path.
	OpenDir(path string) (Dir, error)
	// MakeDirs makes the folder at path and its missing parents. It returns
	// the folders whose entries changed, which have to be synced before a new
	// folder is sure to survive a power cut.
	MakeDirs(path string) (changed []string, err error)
}

// Dir is an open folder.
type Dir interface {
	Path() string
	// Open opens a file of the folder for what the flag says.
	Open(name string, flag Flag) (File, error)
	// SizeOf is the size of a file of the folder, without opening it.
	SizeOf(name string) (int64, error)
	// Names lists the entries of the folder, in no order.
	Names() ([]string, error)
	// Writable says why entries cannot be made or removed, or nil.
	Writable() error
	Rename(from, to string) error
	Remove(name string) error
	// Sync makes the entries of the folder durable.
	Sync() error
	Close() error
}

// Flag says what a file is opened for.
type Flag uint8

const (
	// Read opens for reading, through links.
	Read Flag = iota
	// Write opens an existing file for reading and writing, and refuses a
	// link: what it names may lie outside the store, or belong to another.
	Write
	// Create is Write, and makes the file if it is missing. It never
	// truncates one that is there.
	Create
)

// File is an open regular file. Reads and writes are positional and complete:
// they go on after interruptions and short counts.
type File interface {
	// Path is the whole path, for messages.
	Path() string
	// ReadAt fills p from off on. A file that ends before gives the bytes
	// there are and io.EOF.
	ReadAt(p []byte, off int64) (int, error)
	WriteAt(p []byte, off int64) (int, error)
	Size() (int64, error)
	Truncate(size int64) error
	// Reserve asks for the room of n bytes at off without changing the size.
	// Where the file system has no such call it does nothing.
	Reserve(off, n int64) error
	// Sync makes the file's bytes and size durable, not its name.
	Sync() error
	// Drop forgets what the page cache holds of the file, as far as it is on
	// disk already.
	Drop() error
	// CopyFrom copies n bytes of src, from off on, to the file, from to on.
	// Where the file system can share them it does.
	CopyFrom(src File, off, n, to int64) error
	// Map maps the first n bytes for reading. Where CanMapPastEnd, n may be
	// more than the size, so that a file that grows need not be mapped anew.
	Map(n int64) (Mapping, error)
	// TryLock takes the whole file's advisory lock, shared or exclusive, or
	// converts the one held: a conversion that fails may have lost it.
	TryLock(exclusive bool) (bool, error)
	Unlock() error
	// Current tells whether the folder's entry still leads to this file.
	Current() (bool, error)
	Close() error
}

// Mapping is a file's bytes in memory. They may vanish at any time when
// somebody truncates the file: read them under move.Guard only.
type Mapping interface {
	Bytes() []byte
	Close() error
}

var (
	// ErrNotRegular says that a name leads to a folder, a pipe or a device.
	ErrNotRegular = errors.New("not a regular file")
	// ErrLink says that a file to be written is a symbolic link, or has
	// several names.
	ErrLink = errors.New("a link, which is not written through")
	// ErrNoMapping says that mapping is switched off or not to be had.
	ErrNoMapping = errors.New("mapping is switched off")
	// ErrNoLocks says that the file system has no advisory locks.
	ErrNoLocks = errors.New("the file system has no locks")
)
