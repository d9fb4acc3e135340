package disk

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"reflect"
	"testing"
)

// Samples of 1.7.7: a whole store.zr of each kind.
const (
	denseV1  = "4c58535401010000180000000000000019000000000000000000000000000000" + denseF4
	raggedV1 = "4c585354010200000000000000000000" + "0b000000000000000000000000000000" + raggedI4
	denseF4  = "82a56474797065a33c6634aa6974656d5f7368617065920203"
	raggedI4 = "81a56474797065a33c6934"
)

func sampleTyped(t testing.TB) Typed {
	return Typed{Version: 2, Kind: Ragged, Flags: FlagAllowEmpty, StoreID: 0x31323334, Identity: unhex(t, raggedI4)}
}

func TestTypedVersion1(t *testing.T) {
	for sample, want := range map[string]Typed{
		denseV1:  {Version: 1, Kind: Dense, Width: 24, Identity: unhex(t, denseF4)},
		raggedV1: {Version: 1, Kind: Ragged, Identity: unhex(t, raggedI4)},
	} {
		got, err := DecodeTyped(unhex(t, sample))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("expected %+v, got %+v, %v", want, got, err)
		}
		if again := hex.EncodeToString(got.Encode()); again != sample {
			t.Errorf("expected %s, got %s", sample, again)
		}
	}
}

func TestTypedVersion2(t *testing.T) {
	want := sampleTyped(t)
	b := want.Encode()
	const bytes = "4c58535402020100" + "0000000000000000" + "0b00000000000000" + "34333231" + "4e26d6b1" + raggedI4
	if got := hex.EncodeToString(b); got != bytes {
		t.Errorf("expected %s, got %s", bytes, got)
	}
	if got, err := DecodeTyped(b); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("expected %+v, got %+v, %v", want, got, err)
	}
	dense := Typed{Version: 2, Kind: Dense, Width: 1 << 40, StoreID: 1, Identity: make([]byte, MaxIdentity)}
	if got, err := DecodeTyped(dense.Encode()); err != nil || !reflect.DeepEqual(got, dense) {
		t.Errorf("an identity of %d bytes: %v", MaxIdentity, err)
	}
}

func TestTypedFlips(t *testing.T) {
	flips(sampleTyped(t).Encode(), func(bit int, b []byte) {
		if got, err := DecodeTyped(b); err == nil || errors.Is(err, ErrTypedVersion) {
			t.Errorf("bit %d flipped: got %+v, %v", bit, got, err)
		}
	})
}

func TestTypedTruncated(t *testing.T) {
	b := sampleTyped(t).Encode()
	for n := range b {
		_, err := DecodeTyped(b[:n])
		wantCorrupt(t, err, -1, "expected")
	}
	_, err := DecodeTyped(append(b, 0))
	wantCorrupt(t, err, 16, "expected the 12 bytes that follow the header, got 11")
}

func TestTypedNotAStore(t *testing.T) {
	for _, b := range []string{"x", "LXSU", "PK\x03\x04 and more", "lxst"} {
		_, err := DecodeTyped([]byte(b))
		if !errors.Is(err, ErrNotTyped) {
			t.Errorf("%q: expected ErrNotTyped, got %v", b, err)
		}
	}
	_, err := DecodeTyped([]byte("PK\x03\x04"))
	wantSaying(t, err, `expected magic "LXST" at offset 0, got "PK\x03\x04"`)
}

// Fields that are wrong although the CRC is right.
func TestTypedFields(t *testing.T) {
	type change = func(b []byte)
	set := func(at int, value byte) change { return func(b []byte) { b[at] = value } }
	for _, c := range []struct {
		name   string
		change change
		offset int64
		say    string
	}{
		{"kind 0", set(5, 0), 5, "expected 1 (dense) or 2 (ragged), got 0"},
		{"kind 3", set(5, 3), 5, "got 3"},
		{"unknown flag", set(7, 1), 6, "got 0x101"},
		{"flag on a dense store", set(5, 1), 6, "flags of a dense store"},
		{"ragged with a width", set(8, 9), 8, "expected 0, got 9"},
		{"no store id", func(b []byte) { clear(b[24:28]) }, 24, "other than 0"},
		{"version 0", set(4, 0), 4, "got 0"},
		{"length over the limit", func(b []byte) { binary.LittleEndian.PutUint64(b[16:], 1<<64-1) }, 16, "expected at most 65536, got 18446744073709551615"},
	} {
		b := sampleTyped(t).Encode()
		c.change(b)
		binary.LittleEndian.PutUint32(b[28:], CRC(b[:28], b[TypedSize:]))
		_, err := DecodeTyped(b)
		t.Run(c.name, func(t *testing.T) { wantCorrupt(t, err, c.offset, c.say) })
	}
}

func TestTypedReserved(t *testing.T) {
	for at := range TypedSize {
		if at != 6 && at != 7 && at < 24 {
			continue
		}
		b := unhex(t, denseV1)
		b[at] = 1
		_, err := DecodeTyped(b)
		wantCorrupt(t, err, -1, "reserved bytes of version 1")
	}
}

func TestTypedNewer(t *testing.T) {
	b := sampleTyped(t).Encode()
	b[4] = 3
	_, err := DecodeTyped(b)
	wantCorrupt(t, err, 4, "expected 1 or 2, got 3")
	binary.LittleEndian.PutUint32(b[28:], CRC(b[:28], b[TypedSize:]))
	_, err = DecodeTyped(append(bytes.Clone(b), "more than version 2 has"...))
	if !errors.Is(err, ErrTypedVersion) {
		t.Errorf("expected ErrTypedVersion, got %v", err)
	}
	wantSaying(t, err, "expected at most 2 at offset 4, got 3")
}

func FuzzTyped(f *testing.F) {
	f.Add(unhex(f, denseV1))
	f.Add(unhex(f, raggedV1))
	f.Add(sampleTyped(f).Encode())
	f.Add([]byte("LXST"))
	f.Fuzz(func(t *testing.T, b []byte) {
		typed, err := DecodeTyped(b)
		if err == nil && !bytes.Equal(typed.Encode(), b) {
			t.Errorf("%x decodes to %+v, which encodes differently", b, typed)
		}
	})
}
