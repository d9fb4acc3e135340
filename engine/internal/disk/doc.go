// Package disk holds the blocks a store is made of, as FORMAT lays them out:
// typed header and identity (1), meta (2), table entries (3), checksums (5)
// and checkpoint slots (7). It encodes, decodes and validates bytes; which
// file they lie in, and what to do about a bad one, is the engine's business.
//
// Everything is little-endian. Whatever is decoded may be hostile: no length
// found in a block is believed before it is checked against the bytes at hand.
package disk

import "strconv"

// Sizes and places, in bytes.
const (
	MetaSize  = 32 // FORMAT 2
	EntrySize = 16 // FORMAT 3
	SumSize   = 4  // FORMAT 5
	SlotSize  = 64 // FORMAT 7

	// SlotStride keeps the two slots on separate pages and sectors, so that a
	// torn write of one cannot reach the other.
	SlotStride  = 4096
	RedoStart   = 8192
	RedoReserve = 64 << 10

	TypedSize   = 32       // FORMAT 1, without the identity
	MaxIdentity = 64 << 10 // a wide structured dtype takes a few KiB
)

// Kind says whether all records of a store share one shape.
type Kind uint8

// The kinds of FORMAT 1.
const (
	Dense  Kind = 1
	Ragged Kind = 2
)

// String gives the name used in messages.
func (k Kind) String() string {
	switch k {
	case Dense:
		return "dense"
	case Ragged:
		return "ragged"
	}
	return "kind " + strconv.Itoa(int(k))
}

// Codec says how record bytes are stored.
type Codec uint8

// The codecs of FORMAT 2.
const (
	Raw      Codec = 0
	Zstd     Codec = 1
	ZstdDict Codec = 2
)

// String gives the name used in the Python API and in messages.
func (c Codec) String() string {
	switch c {
	case Raw:
		return "raw"
	case Zstd:
		return "zstd"
	case ZstdDict:
		return "zstd_dict"
	}
	return "codec " + strconv.Itoa(int(c))
}
