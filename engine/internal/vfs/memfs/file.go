package memfs

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"

	"loaderx/engine/internal/vfs"
)

type dir struct {
	fs     *FS
	id     int
	path   string
	closed bool
}

func (d *dir) Path() string { return d.path }

func (d *dir) fail(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: path.Join(d.path, name), Err: err}
}

func (d *dir) Open(name string, flag vfs.Flag) (vfs.File, error) {
	d.fs.mu.Lock()
	defer d.fs.mu.Unlock()
	id, ok := d.fs.now.cached.nodes[d.id].entries[name]
	switch {
	case !ok && flag != vfs.Create:
		return nil, d.fail("open", name, fs.ErrNotExist)
	case !ok:
		id = d.fs.now.next()
		d.fs.do(Op{Kind: Link, Node: d.id, Name: name, Child: id})
	case d.fs.now.cached.nodes[id].dir:
		return nil, d.fail("open", name, vfs.ErrNotRegular)
	}
	d.fs.open++
	return &file{fs: d.fs, id: id, dir: d, name: name}, nil
}

func (d *dir) SizeOf(name string) (int64, error) {
	d.fs.mu.Lock()
	defer d.fs.mu.Unlock()
	nodes := d.fs.now.cached.nodes
	id, ok := nodes[d.id].entries[name]
	switch {
	case !ok:
		return 0, d.fail("stat", name, fs.ErrNotExist)
	case nodes[id].dir:
		return 0, d.fail("stat", name, vfs.ErrNotRegular)
	}
	return int64(nodes[id].size), nil
}

func (d *dir) Names() ([]string, error) {
	d.fs.mu.Lock()
	defer d.fs.mu.Unlock()
	return d.fs.now.cached.names(d.id), nil
}

func (d *dir) Writable() error { return nil }

func (d *dir) Rename(from, to string) error {
	d.fs.mu.Lock()
	defer d.fs.mu.Unlock()
	id, ok := d.fs.now.cached.nodes[d.id].entries[from]
	if !ok {
		return d.fail("rename", from, fs.ErrNotExist)
	}
	d.fs.do(Op{Kind: Rename, Node: d.id, Name: from, To: to, Child: id})
	return nil
}

func (d *dir) Remove(name string) error {
	d.fs.mu.Lock()
	defer d.fs.mu.Unlock()
	id, ok := d.fs.now.cached.nodes[d.id].entries[name]
	if !ok {
		return d.fail("remove", name, fs.ErrNotExist)
	}
	d.fs.do(Op{Kind: Unlink, Node: d.id, Name: name, Child: id})
	return nil
}

func (d *dir) Sync() error {
	d.fs.mu.Lock()
	defer d.fs.mu.Unlock()
	if d.fs.stuck[d.id] {
		return d.fail("sync", "", fs.ErrInvalid)
	}
	d.fs.do(Op{Kind: Sync, Node: d.id})
	return nil
}

func (d *dir) Close() error {
	d.fs.mu.Lock()
	defer d.fs.mu.Unlock()
	if d.closed {
		return d.fail("close", "", fs.ErrClosed)
	}
	d.closed = true
	d.fs.open--
	return nil
}

// Lose is a failed sync of the folder: what was pending never reaches the disk.
// Processes see that at once, or all later syncs of the folder fail.
func (d *dir) Lose(drop bool) {
	d.fs.mu.Lock()
	defer d.fs.mu.Unlock()
	d.fs.do(Op{Kind: Lose, Node: d.id})
	if drop {
		d.fs.do(Op{Kind: Drop, Node: d.id})
	} else {
		d.fs.stuck[d.id] = true
	}
}

type file struct {
	fs     *FS
	id     int
	dir    *dir
	name   string
	closed bool
}

func (f *file) Path() string { return path.Join(f.dir.path, f.name) }

func (f *file) fail(op string, err error) error {
	return &fs.PathError{Op: op, Path: f.Path(), Err: err}
}

// use runs a call with the file system locked and the file open.
func (f *file) use(op string, call func(n *node) error) error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.closed {
		return f.fail(op, fs.ErrClosed)
	}
	return call(&f.fs.now.cached.nodes[f.id])
}

func (f *file) ReadAt(p []byte, off int64) (got int, err error) {
	err = f.use("read", func(n *node) error {
		if got = n.read(p, int(off)); got < len(p) {
			return io.EOF
		}
		return nil
	})
	return got, err
}

func (f *file) WriteAt(p []byte, off int64) (int, error) {
	err := f.use("write", func(*node) error {
		if len(p) > 0 {
			f.fs.do(Op{Kind: Write, Node: f.id, Off: int(off), Data: slices.Clone(p)})
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

func (f *file) Size() (size int64, err error) {
	err = f.use("stat", func(n *node) error {
		size = int64(n.size)
		return nil
	})
	return size, err
}

func (f *file) Truncate(size int64) error {
	return f.use("truncate", func(n *node) error {
		if int(size) != n.size {
			f.fs.do(Op{Kind: Truncate, Node: f.id, Off: int(size)})
		}
		return nil
	})
}

func (f *file) Reserve(int64, int64) error { return f.use("reserve", func(*node) error { return nil }) }

func (f *file) Sync() error { return f.mark("sync", Sync) }

// Drop keeps what is mapped, as the system does.
func (f *file) Drop() error {
	return f.use("drop", func(*node) error {
		if len(f.fs.maps[f.id]) == 0 {
			f.fs.do(Op{Kind: Drop, Node: f.id})
		}
		return nil
	})
}

func (f *file) mark(op string, kind Kind) error {
	return f.use(op, func(*node) error {
		f.fs.do(Op{Kind: kind, Node: f.id})
		return nil
	})
}

// Lose is a failed sync: what was pending never reaches the disk. The page
// cache keeps it, or drops it at once.
func (f *file) Lose(drop bool) {
	_ = f.mark("sync", Lose)
	if drop {
		_ = f.Drop()
	}
}

func (f *file) CopyFrom(src vfs.File, off, n, to int64) error {
	b := make([]byte, n)
	if _, err := src.ReadAt(b, off); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	_, err := f.WriteAt(b, to)
	return err
}

func (f *file) Current() (current bool, err error) {
	err = f.use("stat", func(*node) error {
		id, ok := f.fs.now.cached.nodes[f.dir.id].entries[f.name]
		current = ok && id == f.id
		return nil
	})
	return current, err
}

func (f *file) Close() error {
	return f.use("close", func(*node) error {
		f.fs.unlock(f)
		f.closed = true
		f.fs.open--
		return nil
	})
}

// lockState is who holds a file's lock.
type lockState struct {
	exclusive *file
	shared    map[*file]bool
}

func (f *file) TryLock(exclusive bool) (ok bool, err error) {
	err = f.use("lock", func(*node) error {
		ok = f.fs.lock(f, exclusive)
		return nil
	})
	return ok, err
}

func (f *file) Unlock() error {
	return f.use("unlock", func(*node) error {
		f.fs.unlock(f)
		return nil
	})
}

// lock lets go of what f holds and then takes what it wants, which may fail.
func (f *FS) lock(by *file, exclusive bool) bool {
	l := f.locks[by.id]
	if l == nil {
		l = &lockState{shared: map[*file]bool{}}
		f.locks[by.id] = l
	}
	if l.exclusive == by && exclusive || l.shared[by] && !exclusive {
		return true
	}
	f.unlock(by)
	switch {
	case l.exclusive != nil || exclusive && len(l.shared) > 0:
		return false
	case exclusive:
		l.exclusive = by
		f.do(Op{Kind: Lock, Node: by.id, Off: 2})
	default:
		l.shared[by] = true
		f.do(Op{Kind: Lock, Node: by.id, Off: 1})
	}
	return true
}

func (f *FS) unlock(by *file) {
	l := f.locks[by.id]
	if l == nil || l.exclusive != by && !l.shared[by] {
		return
	}
	if l.exclusive == by {
		l.exclusive = nil
	}
	delete(l.shared, by)
	f.do(Op{Kind: Lock, Node: by.id})
}
