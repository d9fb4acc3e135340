package disk

import (
	"encoding/binary"
	"encoding/hex"
	"testing"
)

var sampleSlot = Slot{
	StoreID: 0x31323334, Meta: sampleMeta,
	Arithmetic: true, PerChunk: 0x41424344, DictCRC: 0x51525354,
}

func TestSlotBytes(t *testing.T) {
	b := sampleSlot.Encode()
	const want = "5a434b50" + "34333231" +
		"5a524543050204030201080706051817161514131211262524232221" +
		"01000000" + "44434241" + "54535251" + "000000000000000000000000" + "efa2276f"
	if got := hex.EncodeToString(b[:]); got != want {
		t.Errorf("expected %s, got %s", want, got)
	}
}

func TestSlotRoundTrip(t *testing.T) {
	for _, s := range []Slot{sampleSlot, {StoreID: 1, Meta: Meta{Version: 5, Epoch: 1<<48 - 1}}} {
		b := s.Encode()
		if got, ok := DecodeSlot(append(b[:], 1, 2, 3)); got != s || !ok {
			t.Errorf("expected %+v, got %+v, %v", s, got, ok)
		}
	}
}

func TestSlotFlips(t *testing.T) {
	good := sampleSlot.Encode()
	flips(good[:], func(bit int, b []byte) {
		if s, ok := DecodeSlot(b); ok {
			t.Errorf("bit %d flipped: got %+v", bit, s)
		}
	})
}

// What no crash makes but a forger can: the CRC is right, a field is not.
func TestSlotFields(t *testing.T) {
	for name, change := range map[string]func(b []byte){
		"magic":                       func(b []byte) { b[0] = 'Y' },
		"header magic":                func(b []byte) { b[8] = 'Y' },
		"header version":              func(b []byte) { b[12] = 4 },
		"unknown flag":                func(b []byte) { b[36] |= 2 },
		"arithmetic, 0 per chunk":     func(b []byte) { clear(b[40:44]) },
		"not arithmetic, but chunked": func(b []byte) { b[36] = 0 },
		"zero bytes, first":           func(b []byte) { b[48] = 1 },
		"zero bytes, last":            func(b []byte) { b[59] = 1 },
	} {
		b := sampleSlot.Encode()
		change(b[:])
		binary.LittleEndian.PutUint32(b[60:], CRC(b[:60]))
		if s, ok := DecodeSlot(b[:]); ok {
			t.Errorf("%s: got %+v", name, s)
		}
	}
	b := sampleSlot.Encode()
	if s, ok := DecodeSlot(b[:63]); ok {
		t.Errorf("63 bytes: got %+v", s)
	}
}

func FuzzSlot(f *testing.F) {
	good := sampleSlot.Encode()
	f.Add(good[:])
	f.Add(make([]byte, SlotSize))
	f.Add([]byte("ZCKP"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, ok := DecodeSlot(b); ok {
			if again := s.Encode(); string(again[:]) != string(b[:SlotSize]) {
				t.Errorf("%x decodes to %+v, which encodes differently", b, s)
			}
		}
	})
}
