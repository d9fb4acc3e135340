package engine

import (
	"io"
	"sync"
	"sync/atomic"

	"loaderx/engine/internal/vfs"
)

const (
	// openFiles bounds the descriptors of one set of files that is read by
	// position. Mapped files need none once they are mapped.
	openFiles = 4
	// mapStep is the least that a growing file is mapped ahead by.
	mapStep = 1 << 20
)

// sources is a set of numbered data files, opened when they are first read.
// A mapping stays until the store closes; a file that has grown beyond its
// mapping is mapped again, at twice the size, where the system lets a mapping
// reach past the end.
type sources struct {
	dir   vfs.Dir
	ext   string
	limit int64 // no file is larger

	list   atomic.Pointer[[]*source] // by number; nil: not seen yet
	mu     sync.Mutex                // guards growing list, and what follows
	old    []vfs.Mapping             // outgrown, still in use by readers
	recent []*source                 // with an open file, the latest last
}

// source is one file. Its fields are replaced under sources.mu.
type source struct {
	id     int
	mapped atomic.Pointer[mapped] // nil: not mapped
	file   vfs.File               // read by position; nil: closed
	users  int                    // running reads of file
	noMap  bool                   // mapping failed once
	seen   int64                  // its size when it was last asked for
}

// mapped is a mapping and how many of its bytes the file had when last seen.
type mapped struct {
	m     vfs.Mapping
	bytes []byte // m.Bytes()[:size of the file]
}

// bytes returns at least need bytes from the start of file id, or nil if it
// cannot be mapped and has to be read by position. It fails with io.EOF if the
// file is shorter.
func (s *sources) bytes(id int, need int64) ([]byte, error) {
	if list := s.list.Load(); list != nil && id < len(*list) {
		if src := (*list)[id]; src != nil {
			if m := src.mapped.Load(); m != nil && int64(len(m.bytes)) >= need {
				return m.bytes, nil
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.remap(s.at(id), need)
}

// at returns the source of a number, making it if need be.
func (s *sources) at(id int) *source {
	var list []*source
	if l := s.list.Load(); l != nil {
		list = *l
	}
	if id < len(list) && list[id] != nil {
		return list[id]
	}
	// Readers go on with the old list, so it is copied, not changed.
	grown := make([]*source, max(id+1, len(list)))
	copy(grown, list)
	grown[id] = &source{id: id}
	s.list.Store(&grown)
	return grown[id]
}

func (s *sources) remap(src *source, need int64) ([]byte, error) {
	now := src.mapped.Load()
	if now != nil && int64(len(now.bytes)) >= need {
		return now.bytes, nil // another reader was faster
	}
	if src.noMap && need <= src.seen {
		return nil, nil
	}
	file, err := s.openFile(src.id)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	size, err := file.Size()
	if err != nil {
		return nil, err
	}
	size = min(size, s.limit)
	if size < need {
		return nil, io.EOF
	}
	src.seen = size
	if size == 0 || src.noMap {
		return nil, nil
	}
	if now != nil && size <= int64(len(now.m.Bytes())) {
		src.mapped.Store(&mapped{now.m, now.m.Bytes()[:size:size]})
		return src.mapped.Load().bytes, nil
	}
	length := size
	if vfs.CanMapPastEnd && now != nil {
		length = min(max(2*size, size+mapStep), s.limit)
	}
	m, err := file.Map(length)
	if err != nil {
		// No room in the address space, or no mappings at all: positional
		// reads serve everything.
		src.noMap = true
		return nil, nil
	}
	if now != nil {
		s.old = append(s.old, now.m)
	}
	src.mapped.Store(&mapped{m, m.Bytes()[:size:size]})
	return src.mapped.Load().bytes, nil
}

// read fills p from off on of file id, by position.
func (s *sources) read(id int, p []byte, off int64) error {
	src, err := s.borrow(id)
	if err != nil {
		return err
	}
	_, err = src.file.ReadAt(p, off)
	s.giveBack(src)
	return err
}

// giveBack ends the use of a borrowed file.
func (s *sources) giveBack(src *source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	src.users--
	s.shrink(openFiles)
}

// borrow opens a file, or finds it open, and marks it used.
func (s *sources) borrow(id int) (*source, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	src := s.at(id)
	if src.file == nil {
		file, err := s.openFile(id)
		if err != nil {
			return nil, err
		}
		src.file = file
		s.recent = append(s.recent, src)
	}
	src.users++
	return src, nil
}

// sizeOf is how long file id is now. A file that is open answers in a third of the
// time that its name takes; without a descriptor to spare the name does.
func (s *sources) sizeOf(id int) (int64, error) {
	src, err := s.borrow(id)
	if err != nil {
		return s.dir.SizeOf(numbered(id, s.ext))
	}
	defer s.giveBack(src)
	return src.file.Size()
}

// advise gives do a file that takes advice, if it can be opened and does.
func (s *sources) advise(id int, do func(vfs.Advised)) {
	src, err := s.borrow(id)
	if err != nil {
		return
	}
	if f, ok := src.file.(vfs.Advised); ok {
		do(f)
	}
	s.giveBack(src)
}

// openFile closes idle files of the set when the process has no descriptor
// left, and tries again.
func (s *sources) openFile(id int) (vfs.File, error) {
	file, err := s.dir.Open(numbered(id, s.ext), vfs.Read)
	if err != nil && vfs.IsTooManyFiles(err) && len(s.recent) > 0 {
		s.shrink(0)
		file, err = s.dir.Open(numbered(id, s.ext), vfs.Read)
	}
	return file, err
}

// shrink closes idle files, the oldest first, down to most.
func (s *sources) shrink(most int) {
	for i := 0; i < len(s.recent) && len(s.recent) > most; {
		src := s.recent[i]
		if src.users > 0 {
			i++
			continue
		}
		_ = src.file.Close()
		src.file = nil
		s.recent = append(s.recent[:i], s.recent[i+1:]...)
	}
}

// reset makes s a set with nothing open. No read may be running.
func (s *sources) reset(dir vfs.Dir, ext string, limit int64) {
	s.close()
	s.dir, s.ext, s.limit = dir, ext, limit
}

// close lets go of everything. No read may be running.
func (s *sources) close() {
	s.shrink(0)
	for _, m := range s.old {
		_ = m.Close()
	}
	if list := s.list.Load(); list != nil {
		for _, src := range *list {
			if src != nil {
				if m := src.mapped.Load(); m != nil {
					_ = m.m.Close()
				}
			}
		}
	}
	s.list.Store(nil)
	s.old = nil
}
