package disk

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"testing"
)

func TestEntry(t *testing.T) {
	e := Entry{Offset: 0x01020304, Phys: 0x11121314, Logic: 0x21222324, Chunk: 0x31323334}
	b := bytes.Repeat([]byte{0xEE}, EntrySize+1)
	e.Put(b)
	const want = "04030201" + "14131211" + "24232221" + "34333231" + "ee"
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("expected %s, got %s", want, got)
	}
	if got := DecodeEntry(b); got != e {
		t.Errorf("expected %+v, got %+v", e, got)
	}
}

func TestCRC(t *testing.T) {
	const want = 0xE3069283 // the check value of CRC32C
	if got := CRC([]byte("1234"), nil, []byte("56789")); got != want {
		t.Errorf("expected %#x, got %#x", want, got)
	}
}

func TestSum(t *testing.T) {
	stored := []byte("a record")
	var lengths [8]byte
	binary.LittleEndian.PutUint32(lengths[:], 8)
	binary.LittleEndian.PutUint32(lengths[4:], 0xFFEEDDCC)
	if got, want := Sum(8, 0xFFEEDDCC, stored), CRC(lengths[:], stored); got != want {
		t.Errorf("expected %#x, got %#x", want, got)
	}
	// FORMAT 7.1.3 relies on it: a zero sum fails a zero entry.
	if Sum(0, 0, nil) == 0 {
		t.Error("expected the sum of an empty record to differ from 0")
	}
	if n := testing.AllocsPerRun(100, func() { Sum(8, 8, stored) }); n != 0 {
		t.Errorf("expected no allocation, got %v", n)
	}
}

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		Dense.String(): "dense", Ragged.String(): "ragged", Kind(7).String(): "kind 7",
		Raw.String(): "raw", Zstd.String(): "zstd", ZstdDict.String(): "zstd_dict", Codec(3).String(): "codec 3",
	} {
		if got != want {
			t.Errorf("expected %q, got %q", want, got)
		}
	}
}
