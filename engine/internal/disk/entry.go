package disk

import "encoding/binary"

// Entry is a row of the record table: where a record's bytes lie (FORMAT 3).
type Entry struct {
	Offset uint32 // in the chunk
	Phys   uint32 // bytes stored
	Logic  uint32 // bytes of the record
	Chunk  uint32
}

// Put writes e to the first EntrySize bytes of b.
func (e Entry) Put(b []byte) {
	_ = b[EntrySize-1]
	binary.LittleEndian.PutUint32(b, e.Offset)
	binary.LittleEndian.PutUint32(b[4:], e.Phys)
	binary.LittleEndian.PutUint32(b[8:], e.Logic)
	binary.LittleEndian.PutUint32(b[12:], e.Chunk)
}

// DecodeEntry reads the first EntrySize bytes of b.
func DecodeEntry(b []byte) Entry {
	_ = b[EntrySize-1]
	return Entry{
		Offset: binary.LittleEndian.Uint32(b),
		Phys:   binary.LittleEndian.Uint32(b[4:]),
		Logic:  binary.LittleEndian.Uint32(b[8:]),
		Chunk:  binary.LittleEndian.Uint32(b[12:]),
	}
}
