package disk

import "encoding/binary"

const (
	metaMagic   = "ZREC"
	metaVersion = 5

	// headerSize is the part of the meta that slots and redo records repeat.
	// A CRC over bytes that end in their own CRC is blind to them, so the
	// meta's CRC is left out (FORMAT 7).
	headerSize = 28
)

// Meta is the physical header: how far a store reaches (FORMAT 2).
type Meta struct {
	Version    uint8 // as read: 4, 5, or one this program does not know
	Codec      Codec
	TailChunk  uint32
	TailOffset uint32
	Length     uint64 // physical records
	Epoch      uint64 // 48 bits on disk; 0 in version 4
}

// MetaState says what the bytes of a meta turned out to be.
type MetaState uint8

// What DecodeMeta can find.
const (
	MetaInvalid      MetaState = iota
	MetaValid                  // version 4 or 5, and right
	MetaNewer                  // a later version whose CRC is right as version 5 reads it
	MetaNewerDamaged           // a later version whose CRC is not: perhaps a flipped bit
)

// Encode writes m as version 5, with its CRC.
func (m Meta) Encode() [MetaSize]byte {
	var b [MetaSize]byte
	m.putHeader(b[:headerSize])
	binary.LittleEndian.PutUint32(b[headerSize:], CRC(b[:headerSize]))
	return b
}

// EncodeVersion4 writes m as version 4, which has neither epoch nor CRC.
func (m Meta) EncodeVersion4() [MetaSize]byte {
	var b [MetaSize]byte
	m.Epoch = 0
	m.putHeader(b[:headerSize])
	b[4] = 4
	return b
}

// putHeader writes bytes 0..28.
func (m Meta) putHeader(b []byte) {
	copy(b, metaMagic)
	b[4] = metaVersion
	b[5] = byte(m.Codec)
	binary.LittleEndian.PutUint32(b[6:], m.TailChunk)
	binary.LittleEndian.PutUint32(b[10:], m.TailOffset)
	binary.LittleEndian.PutUint64(b[14:], m.Length)
	binary.LittleEndian.PutUint32(b[22:], uint32(m.Epoch))
	binary.LittleEndian.PutUint16(b[26:], uint16(m.Epoch>>32))
}

// header reads bytes 0..28, believing the magic.
func header(b []byte) Meta {
	return Meta{
		Version:    b[4],
		Codec:      Codec(b[5]),
		TailChunk:  binary.LittleEndian.Uint32(b[6:]),
		TailOffset: binary.LittleEndian.Uint32(b[10:]),
		Length:     binary.LittleEndian.Uint64(b[14:]),
		Epoch: uint64(binary.LittleEndian.Uint32(b[22:])) |
			uint64(binary.LittleEndian.Uint16(b[26:]))<<32,
	}
}

// DecodeMeta reads a meta file of which b is the whole. typedVersion is the
// version of the typed header beside it: version 4 carries no CRC, so it is
// believed only where the other file agrees (FORMAT 2). The codec is reported
// as it stands, even one nobody knows.
func DecodeMeta(b []byte, typedVersion uint8) (Meta, MetaState) {
	if len(b) != MetaSize || string(b[:4]) != metaMagic {
		return Meta{}, MetaInvalid
	}
	m := header(b)
	right := binary.LittleEndian.Uint32(b[headerSize:]) == CRC(b[:headerSize])
	switch {
	case m.Version > metaVersion && right:
		return m, MetaNewer
	case m.Version > metaVersion:
		return m, MetaNewerDamaged
	case m.Version == metaVersion && right:
		return m, MetaValid
	case m.Version == 4 && typedVersion == 1:
		m.Epoch = 0 // bytes 22..32 of version 4 mean nothing
		return m, MetaValid
	}
	return Meta{}, MetaInvalid
}
