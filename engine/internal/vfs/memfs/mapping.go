package memfs

import (
	"slices"

	"loaderx/engine/internal/vfs"
)

// maxMapping is small, since each mapping is a copy.
const maxMapping = 1 << 20

// mapping is a file's bytes as they are now: every change is made to it, too.
// Past the end of the file it is zero, where a real one would fault.
type mapping struct {
	file  *file
	bytes []byte
}

func (f *file) Map(n int64) (m vfs.Mapping, err error) {
	err = f.use("map", func(node *node) error {
		if f.fs.noMap || n > maxMapping {
			return f.fail("map", vfs.ErrNoMapping)
		}
		made := &mapping{file: f, bytes: make([]byte, n)}
		node.read(made.bytes, 0)
		f.fs.maps[f.id] = append(f.fs.maps[f.id], made)
		m = made
		return nil
	})
	return m, err
}

// follow makes a change of the file to the mapping.
func (m *mapping) follow(op Op) {
	switch op.Kind {
	case Write:
		if op.Off < len(m.bytes) {
			copy(m.bytes[op.Off:], op.Data)
		}
	case Truncate:
		if op.Off < len(m.bytes) {
			clear(m.bytes[op.Off:])
		}
	}
}

func (m *mapping) Bytes() []byte { return m.bytes }

// Close spoils the bytes: who still reads them would have faulted.
func (m *mapping) Close() error {
	fs := m.file.fs
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.maps[m.file.id] = slices.DeleteFunc(fs.maps[m.file.id], func(o *mapping) bool { return o == m })
	for i := range m.bytes {
		m.bytes[i] = 0xdd
	}
	return nil
}
