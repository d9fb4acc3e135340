package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

const (
	typedMagic   = "LXST"
	typedVersion = 2
)

// FlagAllowEmpty marks a ragged store that takes records of zero bytes.
const FlagAllowEmpty = 1

// Typed is the typed header: what the records are (FORMAT 1). Version 1 has
// neither flags nor store id.
type Typed struct {
	Version  uint8
	Kind     Kind
	Flags    uint16
	Width    uint64 // of a dense record, in bytes; 0 for ragged
	StoreID  uint32 // random, not 0
	Identity []byte // msgpack, for DecodeIdentity
}

var (
	// ErrNotTyped is returned for bytes that are no typed header at all.
	ErrNotTyped = errors.New("not a loaderx store")
	// ErrTypedVersion is returned for an intact header of a later version.
	ErrTypedVersion = errors.New("typed header of a later version")
)

// Corrupt is the error of a block that cannot be what was written.
type Corrupt struct {
	Offset int64 // of the first wrong field, in its block
	Reason string
}

func (c *Corrupt) Error() string {
	return fmt.Sprintf("at offset %d: %s", c.Offset, c.Reason)
}

func corrupt(offset int, format string, args ...any) error {
	return &Corrupt{int64(offset), fmt.Sprintf(format, args...)}
}

// Encode writes t as the version it names.
func (t Typed) Encode() []byte {
	b := make([]byte, TypedSize+len(t.Identity))
	copy(b, typedMagic)
	b[4] = t.Version
	b[5] = byte(t.Kind)
	binary.LittleEndian.PutUint64(b[8:], t.Width)
	binary.LittleEndian.PutUint64(b[16:], uint64(len(t.Identity)))
	copy(b[TypedSize:], t.Identity)
	if t.Version == typedVersion {
		binary.LittleEndian.PutUint16(b[6:], t.Flags)
		binary.LittleEndian.PutUint32(b[24:], t.StoreID)
		binary.LittleEndian.PutUint32(b[28:], CRC(b[:28], t.Identity))
	}
	return b
}

// DecodeTyped reads a store.zr of which b is the whole; a caller need read no
// more than TypedSize+MaxIdentity+1 bytes of a file to have it judged. The
// identity is a part of b, and is not looked into.
func DecodeTyped(b []byte) (Typed, error) {
	if !bytes.HasPrefix([]byte(typedMagic), b[:min(4, len(b))]) {
		return Typed{}, fmt.Errorf("%w: expected magic %q at offset 0, got %q", ErrNotTyped, typedMagic, b[:min(4, len(b))])
	}
	if len(b) < TypedSize {
		return Typed{}, corrupt(len(b), "typed header: expected %d bytes, got %d", TypedSize, len(b))
	}
	size := binary.LittleEndian.Uint64(b[16:])
	have := uint64(len(b) - TypedSize)
	crc := binary.LittleEndian.Uint32(b[28:])
	right := size <= have && crc == CRC(b[:28], b[TypedSize:TypedSize+min(size, have)])
	if b[4] > typedVersion && right {
		return Typed{}, fmt.Errorf("%w: expected at most %d at offset 4, got %d", ErrTypedVersion, typedVersion, b[4])
	}
	if b[4] < 1 || b[4] > typedVersion {
		return Typed{}, corrupt(4, "typed header version: expected 1 or %d, got %d", typedVersion, b[4])
	}
	if size > MaxIdentity {
		return Typed{}, corrupt(16, "identity length: expected at most %d, got %d", MaxIdentity, size)
	}
	if size != have {
		return Typed{}, corrupt(16, "identity length: expected the %d bytes that follow the header, got %d", have, size)
	}
	if b[4] == typedVersion && !right {
		return Typed{}, corrupt(28, "typed header CRC: expected %#08x, got %#08x", CRC(b[:28], b[TypedSize:]), crc)
	}
	t := Typed{
		Version:  b[4],
		Kind:     Kind(b[5]),
		Flags:    binary.LittleEndian.Uint16(b[6:]),
		Width:    binary.LittleEndian.Uint64(b[8:]),
		StoreID:  binary.LittleEndian.Uint32(b[24:]),
		Identity: b[TypedSize:],
	}
	return t, t.check(crc)
}

// check holds the fields to FORMAT 1; crc is the one field Typed leaves out.
func (t Typed) check(crc uint32) error {
	switch {
	case t.Kind != Dense && t.Kind != Ragged:
		return corrupt(5, "kind: expected 1 (dense) or 2 (ragged), got %d", t.Kind)
	case t.Kind == Ragged && t.Width != 0:
		return corrupt(8, "width of a ragged store: expected 0, got %d", t.Width)
	case t.Version == 1 && t.Flags != 0:
		return corrupt(6, "reserved bytes of version 1: expected 0, got %#x", t.Flags)
	case t.Version == 1 && (t.StoreID != 0 || crc != 0):
		return corrupt(24, "reserved bytes of version 1: expected 0, got %#x and %#x", t.StoreID, crc)
	case t.Kind == Dense && t.Flags != 0, t.Flags&^FlagAllowEmpty != 0:
		return corrupt(6, "flags of a %v store: expected none but %#x on a ragged one, got %#x", t.Kind, FlagAllowEmpty, t.Flags)
	case t.Version == typedVersion && t.StoreID == 0:
		return corrupt(24, "store id: expected one other than 0")
	}
	return nil
}
