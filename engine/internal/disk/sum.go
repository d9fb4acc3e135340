package disk

import "hash/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// CRC is the CRC32C of the pieces laid end to end.
func CRC(pieces ...[]byte) uint32 {
	var c uint32
	for _, p := range pieces {
		c = crc32.Update(c, castagnoli, p)
	}
	return c
}

// AddCRC is the CRC32C of what c is that of, and of p behind it.
func AddCRC(c uint32, p []byte) uint32 { return crc32.Update(c, castagnoli, p) }

// Sum is a record's checksum (FORMAT 5). It covers the lengths but not the
// address, so that compaction may move a record without touching its sum.
func Sum(phys, logic uint32, stored []byte) uint32 {
	return uint32(NewSum(phys, logic).Add(stored))
}

// PartSum is the checksum of a record of which some bytes are still to be added.
type PartSum uint32

// NewSum is the checksum of a record without its bytes.
func NewSum(phys, logic uint32) PartSum {
	// The lengths go through the table by hand: handing eight bytes to
	// crc32.Update would put them on the heap, for every record.
	c := ^uint32(0)
	for lengths, i := uint64(logic)<<32|uint64(phys), 0; i < 8; i++ {
		c = castagnoli[byte(c)^byte(lengths)] ^ c>>8
		lengths >>= 8
	}
	return PartSum(^c)
}

// Add is s with more of the record's bytes.
func (s PartSum) Add(stored []byte) PartSum {
	return PartSum(crc32.Update(uint32(s), castagnoli, stored))
}
