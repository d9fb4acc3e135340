package disk

import (
	"runtime"
	"strings"
	"testing"
)

// Row 28 of the hostile table, and its neighbours: every one is Corrupt.
func TestDecodeIdentityHostile(t *testing.T) {
	dtype := func(v string) string { return "81a56474797065" + v } // ragged
	shape := func(v string) string { return "82a56474797065a33c6634aa6974656d5f7368617065" + v }
	for _, c := range []struct {
		name   string
		kind   Kind
		packed string
		say    string
	}{
		{"empty", Ragged, "", "a map of 1 keys"},
		{"a list for the map", Ragged, "91", "a map of 1 keys"},
		{"nil for the map", Ragged, "c0", "a map of 1 keys"},
		{"map32 of 2^32-1", Ragged, "dfffffffff", "a map of 1 keys"},
		{"the other kind", Dense, raggedI4, "a map of 2 keys"},
		{"extra key", Ragged, "82a56474797065a33c6934a178c0", "a map of 1 keys"},
		{"duplicate key", Dense, "82a56474797065a33c6634a56474797065a33c6634", `the key "item_shape"`},
		{"keys in the wrong order", Dense, "82aa6974656d5f736861706590a56474797065a33c6634", `the key "dtype"`},
		{"another key", Ragged, "81a56474797066a33c6934", `the key "dtype"`},
		{"key as bytes", Ragged, "81c4056474797065a33c6934", "canonical encoding"},
		{"nil for the key", Ragged, "81c0a33c6934", `the key "dtype"`},
		{"map16 for a fixmap", Ragged, "de0001a56474797065a33c6934", "canonical encoding"},
		{"str8 for a fixstr", Ragged, dtype("d9033c6934"), "canonical encoding"},
		{"str32 of 2^32-1", Ragged, dtype("dbffffffff3c"), "a string within the 1 bytes left"},
		{"bytes for a string", Ragged, dtype("c4033c6934"), "type byte 0xc4"},
		{"string cut short", Ragged, dtype("a33c69"), "a string within the 2 bytes left, got a length of 3"},
		{"no value", Ragged, dtype(""), "a value, got the end"},
		{"not UTF-8", Ragged, dtype("9192a1ffa33c6634"), "UTF-8"},
		{"ext type", Ragged, dtype("d40100"), "type byte 0xd4"},
		{"timestamp", Ragged, dtype("d6ff00000000"), "type byte 0xd6"},
		{"nil", Ragged, dtype("c0"), "dtype: expected a string or a list"},
		{"bool", Ragged, dtype("c3"), "type byte 0xc3"},
		{"map as dtype", Ragged, dtype("80"), "type byte 0x80"},
		{"object dtype", Ragged, dtype("a27c4f"), `plain bytes such as "<f4"`},
		{"object field", Ragged, dtype("9192a161a27c4f"), "field 0"},
		{"trailing byte", Ragged, raggedI4 + "00", "got 1 more bytes"},
		{"array32 of 2^32-1", Dense, shape("ddffffffff"), "a list within the 0 bytes left, got a length of 4294967295"},
		{"array32 of 2^32-1, some there", Dense, shape("ddffffffff" + strings.Repeat("01", 99)), "a list within the 99 bytes left"},
		{"array16 for a fixarray", Dense, shape("dc000102"), "canonical encoding"},
		{"list cut short", Dense, shape("93"), "a list within the 0 bytes left"},
		{"list cut short inside", Dense, shape("9291"), "a list within the 1 bytes left"},
		{"nil for the shape", Dense, shape("c0"), "item_shape: expected a list"},
		{"long integer", Dense, shape("91cd0002"), "canonical encoding"},
		{"signed integer", Dense, shape("91d002"), "canonical encoding"},
		{"negative fixint", Dense, shape("91ff"), "dimension 0"},
		{"negative int64", Dense, shape("91d38000000000000000"), "dimension 0"},
		{"2^63", Dense, shape("91cf8000000000000000"), "dimension 0"},
		{"float", Dense, shape("91ca40000000"), "type byte 0xca"},
		{"bool dimension", Dense, shape("91c3"), "type byte 0xc3"},
		{"nil dimension", Dense, shape("91c0"), "canonical encoding"},
		{"65 dimensions", Dense, shape("dc0041" + strings.Repeat("01", 65)), "at most 64 dimensions"},
		{"integer cut short", Dense, shape("91cd02"), "type byte 0xcd"},
		{"deep", Ragged, dtype(strings.Repeat("91", 60000)), "lists no deeper than"},
	} {
		_, err := DecodeIdentity(c.kind, unhex(t, c.packed))
		t.Run(c.name, func(t *testing.T) { wantCorrupt(t, err, -1, c.say) })
	}
	_, err := DecodeIdentity(Ragged, make([]byte, MaxIdentity+1))
	wantCorrupt(t, err, 0, "expected at most 65536 bytes, got 65537")
}

// A length that is claimed but not there must not be allocated, and one that
// is there is bounded by MaxIdentity.
func TestDecodeIdentityMemory(t *testing.T) {
	for name, packed := range map[string][]byte{
		"claimed":    unhex(t, "81a56474797065"+strings.Repeat("ddffffffff", 17)),
		"nested":     append(unhex(t, "81a56474797065"+strings.Repeat("dcf000", 16)), make([]byte, 0xf100)...),
		"empty text": append(unhex(t, "81a56474797065dcfff0"), strings.Repeat("\xa0", 0xfff0)...),
		"empty list": append(unhex(t, "81a56474797065dcfff0"), strings.Repeat("\x90", 0xfff0)...),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := DecodeIdentity(Ragged, packed); err == nil {
			t.Errorf("%s: expected an error", name)
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
			t.Errorf("%s: expected at most 8 MiB, got %d bytes", name, n)
		}
	}
}

func TestDecodeIdentityFlips(t *testing.T) {
	for _, c := range identities {
		flips(unhex(t, c.packed), func(_ int, b []byte) {
			checkCanonical(t, c.kind, b)
		})
	}
}

// checkCanonical checks that what decodes encodes to the same bytes.
func checkCanonical(t *testing.T, kind Kind, packed []byte) {
	t.Helper()
	text, err := DecodeIdentity(kind, packed)
	if err != nil || strings.ContainsRune(string(text), '\uFFFD') {
		return // U+FFFD itself is read, but not written: see integers
	}
	again, err := EncodeIdentity(kind, text)
	if err != nil || string(again) != string(packed) {
		t.Errorf("%x decodes to %s, which encodes to %x, %v", packed, text, again, err)
	}
}

func FuzzIdentity(f *testing.F) {
	for _, c := range identities {
		f.Add(uint8(c.kind), unhex(f, c.packed))
	}
	f.Add(uint8(Dense), []byte("\x82\xa5dtype\xdd\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, kind uint8, packed []byte) {
		checkCanonical(t, Dense+Kind(kind&1), packed)
	})
}
