package disk

import (
	"reflect"
	"testing"
)

func sampleRedo() Redo {
	return Redo{
		StoreID: 0x01020304,
		Meta:    Meta{Version: 5, Codec: Zstd, TailChunk: 1, TailOffset: 99, Length: 7, Epoch: 1 << 40},
		Seq:     3,
		Entries: []RedoEntry{
			{Index: 5, Entry: Entry{1, 20, 30, 0}, Sum: 0xabcdef01},
			{Index: 2, Entry: Entry{40, 10, 30, 1}, Sum: 0x10fedcba, Image: true},
		},
	}
}

func TestRedoRoundTrip(t *testing.T) {
	for _, want := range []Redo{sampleRedo(), {StoreID: 1, Meta: Meta{Version: 5}, Entries: []RedoEntry{}}} {
		b := want.Encode()
		h, ok := DecodeRedoHead(b)
		if !ok || h.Size() != int64(len(b)) || h.ImageBytes != want.ImageBytes() {
			t.Fatalf("head of %+v: got %+v, %v", want, h, ok)
		}
		got, ok := DecodeRedo(b)
		if !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("expected %+v, got %+v, %v", want, got, ok)
		}
	}
}

func TestRedoFindsEveryBit(t *testing.T) {
	whole := sampleRedo().Encode()
	for bit := range len(whole) * 8 {
		b := append([]byte(nil), whole...)
		b[bit/8] ^= 1 << (bit % 8)
		if _, ok := DecodeRedo(b); ok {
			t.Errorf("bit %d flipped: the record still counts", bit)
		}
	}
	for n := range len(whole) {
		if _, ok := DecodeRedo(whole[:n]); ok {
			t.Errorf("cut to %d of %d bytes: the record still counts", n, len(whole))
		}
	}
}

func FuzzRedo(f *testing.F) {
	f.Add(sampleRedo().Encode())
	f.Add([]byte(redoMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, ok := DecodeRedo(b); ok && !reflect.DeepEqual(r.Encode(), b) {
			t.Errorf("a record that counts does not encode to its own bytes: %x", b)
		}
	})
}
