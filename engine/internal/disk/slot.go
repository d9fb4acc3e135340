package disk

import "encoding/binary"

const (
	slotMagic      = "ZCKP"
	flagArithmetic = 1
)

// Slot is a checkpoint: a state of the store that is wholly on stable
// storage (FORMAT 7).
type Slot struct {
	StoreID    uint32
	Meta       Meta   // header bytes 0..28
	Arithmetic bool   // every table entry follows from its index
	PerChunk   uint32 // records per chunk if Arithmetic, else 0
	DictCRC    uint32 // of dict.zr, or 0
}

// Encode writes s with its CRC.
func (s Slot) Encode() [SlotSize]byte {
	var b [SlotSize]byte
	copy(b[:], slotMagic)
	binary.LittleEndian.PutUint32(b[4:], s.StoreID)
	s.Meta.putHeader(b[8:36])
	if s.Arithmetic {
		binary.LittleEndian.PutUint32(b[36:], flagArithmetic)
		binary.LittleEndian.PutUint32(b[40:], s.PerChunk)
	}
	binary.LittleEndian.PutUint32(b[44:], s.DictCRC)
	binary.LittleEndian.PutUint32(b[60:], CRC(b[:60]))
	return b
}

// DecodeSlot reads the slot at the start of b and says whether it is valid.
// Whose slot it is, and which of two is newer, is for the caller to compare.
func DecodeSlot(b []byte) (Slot, bool) {
	if len(b) < SlotSize || string(b[:4]) != slotMagic ||
		binary.LittleEndian.Uint32(b[60:]) != CRC(b[:60]) {
		return Slot{}, false
	}
	flags := binary.LittleEndian.Uint32(b[36:])
	s := Slot{
		StoreID:    binary.LittleEndian.Uint32(b[4:]),
		Meta:       header(b[8:36]),
		Arithmetic: flags&flagArithmetic != 0,
		PerChunk:   binary.LittleEndian.Uint32(b[40:]),
		DictCRC:    binary.LittleEndian.Uint32(b[44:]),
	}
	// A CRC stops accidents, not forgers. PerChunk is a divisor: it must not
	// be 0 where it is used. Epochs start at 1: a mark is of the one before.
	ok := string(b[8:12]) == metaMagic && s.Meta.Version == metaVersion && s.Meta.Epoch != 0 &&
		flags&^flagArithmetic == 0 && s.Arithmetic == (s.PerChunk != 0) &&
		[12]byte(b[48:60]) == [12]byte{}
	if !ok {
		return Slot{}, false
	}
	return s, true
}
