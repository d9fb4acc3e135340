package vfs

import (
	"errors"
	"unsafe"

	"syscall"
)

// CanMapPastEnd tells whether a mapping may reach past the end of its file: here
// that would make the file longer.
const CanMapPastEnd = false

func (f *osFile) Map(n int64) (Mapping, error) {
	if f.dir.noMmap {
		return nil, f.wrap("map", ErrNoMapping)
	}
	if n <= 0 || int64(int(n)) != n {
		return nil, f.wrap("map", errInvalidParameter)
	}
	section, err := syscall.CreateFileMapping(f.handle, nil, syscall.PAGE_READONLY, uint32(n>>32), uint32(n), nil)
	if err != nil {
		return nil, f.wrap("map", err)
	}
	address, err := syscall.MapViewOfFile(section, syscall.FILE_MAP_READ, 0, 0, uintptr(n))
	// The view keeps the section.
	if err := errors.Join(err, syscall.CloseHandle(section)); err != nil {
		return nil, f.wrap("map", err)
	}
	return &osMapping{address, n}, nil
}

type osMapping struct {
	address uintptr
	n       int64
}

// Bytes goes through memory, so that neither vet nor checkptr takes the address
// for one of Go's own.
func (m *osMapping) Bytes() []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&m.address)), m.n)
}

func (m *osMapping) Close() error { return syscall.UnmapViewOfFile(m.address) }
