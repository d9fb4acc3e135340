// Package memfs is a file system in memory that remembers every change, and
// so can show what a killed process or a power cut would have left after any
// of them. Tests put it in place of the operating system's (vfs.FS).
//
// What it assumes of a disk is what FORMAT 7.1 assumes: fsync makes the bytes
// and the size of one file durable, and only that file's; names need an fsync
// of their folder; pending changes reach the disk in any order, in part, or
// not at all; a torn write leaves its neighbours alone; a file whose size
// reached the disk without its bytes shows zeros or garbage. After a failed
// fsync the pages count as clean and are never written again (File.Lose). A
// folder whose fsync failed either shows what is on disk from then on, or fails
// every fsync until the machine starts anew, as file systems with a journal do.
//
// Small mappings follow what is written to their files, unless the file system
// is told to refuse them (Unmappable), and then all reads are positional. Locks
// work between the handles of one process, and converting one can lose it, as
// on Linux.
package memfs

import (
	"io/fs"
	"path"
	"strings"
	"sync"

	"loaderx/engine/internal/vfs"
)

// FS is a file system in memory. Its root exists.
type FS struct {
	mu    sync.Mutex
	now   image
	start image // when the log began
	log   []Op
	locks map[int]*lockState
	maps  map[int][]*mapping // by file
	stuck map[int]bool       // folders that fail to sync
	noMap bool
	open  int // files and folders
}

// New is an empty file system.
func New() *FS {
	root := newDisk()
	return newFS(image{durable: root, cached: root.clone()})
}

func newFS(im image) *FS {
	return &FS{
		now: im, start: im.clone(), locks: map[int]*lockState{},
		maps: map[int][]*mapping{}, stuck: map[int]bool{},
	}
}

// Unmappable makes mappings fail from now on, so that all reads are positional.
func (f *FS) Unmappable() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.noMap = true
}

// Stuck tells whether the folder name, or any for "", fails to sync until the machine
// starts anew.
func (f *FS) Stuck(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if name == "" {
		return len(f.stuck) > 0
	}
	return f.stuck[f.find(name)]
}

// Clone is a file system with the same durable, pending and cached bytes,
// nothing open and an empty log.
func (f *FS) Clone() *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	return newFS(f.now.clone())
}

// Len is the number of changes so far.
func (f *FS) Len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.log)
}

// Handles is the number of files and folders that are open, and of locks that
// are held.
func (f *FS) Handles() (open, locks int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.locks {
		locks += len(l.shared)
		if l.exclusive != nil {
			locks++
		}
	}
	return f.open, locks
}

// do records a change and makes it. The caller holds mu.
func (f *FS) do(op Op) {
	f.log = append(f.log, op)
	f.now.step(op)
	for _, m := range f.maps[op.Node] {
		m.follow(op)
	}
}

// find is the node at a path, or -1.
func (f *FS) find(name string) int {
	at := 0
	for _, part := range strings.Split(path.Clean("/"+name), "/") {
		if part == "" {
			continue
		}
		n := &f.now.cached.nodes[at]
		child, ok := n.entries[part]
		if !n.dir || !ok {
			return -1
		}
		at = child
	}
	return at
}

// OpenDir opens the folder at a path.
func (f *FS) OpenDir(name string) (vfs.Dir, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := f.find(name)
	if id < 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if !f.now.cached.nodes[id].dir {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	f.open++
	return &dir{fs: f, id: id, path: name}, nil
}

// MakeDirs makes the folder at a path and its missing parents.
func (f *FS) MakeDirs(name string) (changed []string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, above := 0, "/"
	for _, part := range strings.Split(path.Clean("/"+name), "/") {
		if part == "" {
			continue
		}
		child, ok := f.now.cached.nodes[at].entries[part]
		if !ok {
			child = f.now.next()
			f.do(Op{Kind: Link, Node: at, Name: part, Child: child, Dir: true})
			changed = append(changed, above)
		}
		at, above = child, path.Join(above, part)
	}
	return changed, nil
}

// ReadFile is the bytes of the file at a path, nil if there is none.
func (f *FS) ReadFile(name string) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := f.find(name)
	if id < 0 {
		return nil
	}
	n := &f.now.cached.nodes[id]
	b := make([]byte, n.size)
	n.read(b, 0)
	return b
}

// WriteFile makes a file with these bytes, durable and outside the log: part
// of the image that a test begins with. Its folder must be there.
func (f *FS) WriteFile(name string, b []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	folder, id := f.find(path.Dir(name)), f.find(name)
	link := id < 0
	if link {
		id = f.now.next()
	}
	for _, d := range []*disk{&f.now.durable, &f.now.cached} {
		if link {
			d.apply(Op{Kind: Link, Node: folder, Name: path.Base(name), Child: id})
		}
		d.apply(Op{Kind: Truncate, Node: id})
		d.apply(Op{Kind: Write, Node: id, Data: b})
	}
	f.start = f.now.clone()
	f.log = nil
}

// Names lists the folder at a path.
func (f *FS) Names(name string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := f.find(name)
	if id < 0 {
		return nil
	}
	return f.now.cached.names(id)
}

// Settle makes everything durable and begins a new log.
func (f *FS) Settle() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = image{durable: f.now.cached.clone(), cached: f.now.cached}
	f.start = f.now.clone()
	f.log = nil
}

// Hold locks the file at a path as another process would, until release.
func (f *FS) Hold(name string, exclusive bool) (release func(), ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ghost := &file{fs: f, id: f.find(name)}
	if ghost.id < 0 {
		return func() {}, false
	}
	ok = f.lock(ghost, exclusive)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.unlock(ghost)
	}, ok
}

// Unsynced describes the changes in the folder at a path that a power cut may
// undo, each as the kind and the name of its file: "write 0.loc". Those of files
// without a name are left out.
func (f *FS) Unsynced(name string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	folder := f.find(name)
	if folder < 0 {
		return nil
	}
	names := map[int]string{folder: "."}
	for file, id := range f.now.cached.nodes[folder].entries {
		names[id] = file
	}
	var list []string
	for _, op := range f.now.pending {
		if file, ok := names[op.Node]; ok {
			list = append(list, op.Kind.String()+" "+file)
		}
	}
	return list
}

// Changes is the number of entries in the log that change something.
func (f *FS) Changes() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, op := range f.log {
		if op.Kind <= Rename {
			n++
		}
	}
	return n
}
