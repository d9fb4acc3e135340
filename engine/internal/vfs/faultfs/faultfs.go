// Package faultfs stands between the engine and a file system, and hands every
// operation to a function that may carry it out, fail it, do a part of it, or
// pretend to have done it. Tests use it to break disks, and to break the
// engine: an fsync that is not done is an fsync that the engine forgot.
package faultfs

import "loaderx/engine/internal/vfs"

// Kind names an operation.
type Kind string

// The operations that a hook hears of.
const (
	OpenDir  Kind = "open folder"
	MakeDirs Kind = "make folders"
	Open     Kind = "open"
	Names    Kind = "list"
	Rename   Kind = "rename"
	Remove   Kind = "remove"
	SyncDir  Kind = "sync folder"
	Read     Kind = "read"
	Write    Kind = "write"
	Size     Kind = "size"
	Truncate Kind = "truncate"
	Reserve  Kind = "reserve"
	Sync     Kind = "sync"
	Drop     Kind = "drop"
	Copy     Kind = "copy"
	Map      Kind = "map"
	TryLock  Kind = "lock"
	Unlock   Kind = "unlock"
	Current  Kind = "current"
	Close    Kind = "close"
)

// Op is an operation that is about to be done.
type Op struct {
	Kind Kind
	Name string // of the file in its folder, or the path of the folder
	Off  int64  // of a read or write; the size of a truncation
	Data []byte // of a write
	Flag vfs.Flag
	File vfs.File // the real ones, for doing something else
	Dir  vfs.Dir
}

// Hook decides about an operation: do carries it out. An error without do is
// a failure, nil without do is a lie, which operations that return more than
// an error cannot be told.
type Hook func(op *Op, do func() error) error

// FS hands the operations on Base to Hook.
type FS struct {
	Base vfs.FS
	Hook Hook
}

// OpenDir opens a folder whose operations go through the hook.
func (f *FS) OpenDir(path string) (vfs.Dir, error) {
	var d vfs.Dir
	err := f.Hook(&Op{Kind: OpenDir, Name: path}, func() (err error) {
		d, err = f.Base.OpenDir(path)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &dir{Dir: d, hook: f.Hook}, nil
}

// MakeDirs makes folders.
func (f *FS) MakeDirs(path string) (changed []string, err error) {
	err = f.Hook(&Op{Kind: MakeDirs, Name: path}, func() (err error) {
		changed, err = f.Base.MakeDirs(path)
		return err
	})
	return changed, err
}

type dir struct {
	vfs.Dir
	hook Hook
}

func (d *dir) Open(name string, flag vfs.Flag) (vfs.File, error) {
	var f vfs.File
	err := d.hook(&Op{Kind: Open, Name: name, Flag: flag, Dir: d.Dir}, func() (err error) {
		f, err = d.Dir.Open(name, flag)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &file{File: f, name: name, hook: d.hook}, nil
}

func (d *dir) SizeOf(name string) (size int64, err error) {
	err = d.hook(&Op{Kind: Size, Name: name, Dir: d.Dir}, func() (err error) {
		size, err = d.Dir.SizeOf(name)
		return err
	})
	return size, err
}

func (d *dir) Names() (names []string, err error) {
	err = d.hook(&Op{Kind: Names, Dir: d.Dir}, func() (err error) {
		names, err = d.Dir.Names()
		return err
	})
	return names, err
}

func (d *dir) Rename(from, to string) error {
	return d.hook(&Op{Kind: Rename, Name: from, Dir: d.Dir}, func() error { return d.Dir.Rename(from, to) })
}

func (d *dir) Remove(name string) error {
	return d.hook(&Op{Kind: Remove, Name: name, Dir: d.Dir}, func() error { return d.Dir.Remove(name) })
}

func (d *dir) Sync() error {
	return d.hook(&Op{Kind: SyncDir, Name: d.Path(), Dir: d.Dir}, d.Dir.Sync)
}

// Lose reaches through to a file system that can lose names.
func (d *dir) Lose(drop bool) { lose(d.Dir, drop) }

type file struct {
	vfs.File
	name string
	hook Hook
}

func (f *file) op(kind Kind) *Op { return &Op{Kind: kind, Name: f.name, File: f.File} }

func (f *file) ReadAt(p []byte, off int64) (n int, err error) {
	op := f.op(Read)
	op.Off = off
	err = f.hook(op, func() (err error) {
		n, err = f.File.ReadAt(p, off)
		return err
	})
	return n, err
}

func (f *file) WriteAt(p []byte, off int64) (int, error) {
	op := f.op(Write)
	op.Off, op.Data = off, p
	err := f.hook(op, func() error {
		_, err := f.File.WriteAt(p, off)
		return err
	})
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

func (f *file) Size() (size int64, err error) {
	err = f.hook(f.op(Size), func() (err error) {
		size, err = f.File.Size()
		return err
	})
	return size, err
}

func (f *file) Truncate(size int64) error {
	op := f.op(Truncate)
	op.Off = size
	return f.hook(op, func() error { return f.File.Truncate(size) })
}

func (f *file) Reserve(off, n int64) error {
	op := f.op(Reserve)
	op.Off = off
	return f.hook(op, func() error { return f.File.Reserve(off, n) })
}

func (f *file) Sync() error   { return f.hook(f.op(Sync), f.File.Sync) }
func (f *file) Drop() error   { return f.hook(f.op(Drop), f.File.Drop) }
func (f *file) Unlock() error { return f.hook(f.op(Unlock), f.File.Unlock) }

// Close closes the file even if the hook fails it, as the system does.
func (f *file) Close() error {
	closed := false
	err := f.hook(f.op(Close), func() error {
		closed = true
		return f.File.Close()
	})
	if !closed {
		_ = f.File.Close()
	}
	return err
}

func (f *file) CopyFrom(src vfs.File, off, n, to int64) error {
	if s, ok := src.(*file); ok {
		src = s.File
	}
	return f.hook(f.op(Copy), func() error { return f.File.CopyFrom(src, off, n, to) })
}

func (f *file) Map(n int64) (m vfs.Mapping, err error) {
	err = f.hook(f.op(Map), func() (err error) {
		m, err = f.File.Map(n)
		return err
	})
	return m, err
}

func (f *file) TryLock(exclusive bool) (ok bool, err error) {
	err = f.hook(f.op(TryLock), func() (err error) {
		ok, err = f.File.TryLock(exclusive)
		return err
	})
	return ok, err
}

func (f *file) Current() (current bool, err error) {
	err = f.hook(f.op(Current), func() (err error) {
		current, err = f.File.Current()
		return err
	})
	return current, err
}

// Lose reaches through to a file system that can lose writes.
func (f *file) Lose(drop bool) { lose(f.File, drop) }

func lose(of any, drop bool) {
	if under, ok := of.(interface{ Lose(bool) }); ok {
		under.Lose(drop)
	}
}
