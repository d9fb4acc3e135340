package disk

import (
	"encoding/hex"
	"strings"
	"testing"
)

const (
	longName = "a_field_name_of_more_than_31_bytes" // 34 of them
	// What follows in most dense samples.
	noShape = "aa6974656d5f736861706590"
)

// identities pairs JSON with the msgpack that 1.7.7 writes. The first seven
// encodings are those of its stores.
var identities = []struct {
	kind   Kind
	json   string
	packed string
}{
	{Dense, `{"dtype":"<f4","item_shape":[2,3]}`, denseF4},
	{Ragged, `{"dtype":"<i4"}`, raggedI4},
	{Ragged, `{"dtype":"|u1"}`, "81a56474797065a37c7531"},
	{Dense, `{"dtype":"<i8","item_shape":[]}`, "82a56474797065a33c6938" + noShape},
	{Dense, `{"dtype":"|b1","item_shape":[700]}`, "82a56474797065a37c6231aa6974656d5f736861706591cd02bc"},
	{Dense, `{"dtype":[["id","<i4"],["w","<f8"]],"item_shape":[]}`, "82a564747970659292a26964a33c693492a177a33c6638" + noShape},
	{Dense, `{"dtype":"<f4","item_shape":[70000]}`, "82a56474797065a33c6634aa6974656d5f736861706591ce00011170"},
	{Dense, `{"dtype":[["` + longName + `","<f4"]],"item_shape":[]}`,
		"82a564747970659192d922" + hex.EncodeToString([]byte(longName)) + "a33c6634" + noShape},
	{Dense, `{"dtype":[["m","<f4",[3,4]],["","|V4"]],"item_shape":[]}`, "82a564747970659293a16da33c663492030492a0a37c5634" + noShape},
	{Ragged, `{"dtype":[[["title","n"],"<f4"]]}`, "81a5647479706591" + "9292a57469746c65a16ea33c6634"},
	{Ragged, `{"dtype":[["outer",[["inner","<M8[ns]"]]]]}`, "81a5647479706591" + "92a56f757465729192a5696e6e6572a73c4d385b6e735d"},
	{Ragged, `{"dtype":"bfloat16"}`, "81a56474797065a862666c6f61743136"},
	{Dense, `{"dtype":"<f4","item_shape":[0,127,128,65535,4294967295,4294967296,9223372036854775807]}`,
		"82a56474797065a33c6634aa6974656d5f73686170659700" + "7f" + "cc80" + "cdffff" + "ceffffffff" + "cf0000000100000000" + "cf7fffffffffffffff"},
	{Ragged, `{"dtype":[["größe<&>","<f4"]]}`, "81a564747970659192aa" + hex.EncodeToString([]byte("größe<&>")) + "a33c6634"},
}

func TestIdentity(t *testing.T) {
	for _, c := range identities {
		packed, err := EncodeIdentity(c.kind, []byte(c.json))
		if got := hex.EncodeToString(packed); err != nil || got != c.packed {
			t.Errorf("%s: expected %s, got %s, %v", c.json, c.packed, got, err)
		}
		text, err := DecodeIdentity(c.kind, unhex(t, c.packed))
		if err != nil || string(text) != c.json {
			t.Errorf("%s: expected %s, got %s, %v", c.packed, c.json, text, err)
		}
	}
}

// nested is a dtype of n levels, and what it is in msgpack.
func nested(n int) (json, packed string) {
	return strings.Repeat(`[["a",`, n-1) + `"<f4"` + strings.Repeat(`]]`, n-1),
		strings.Repeat("9192a161", n-1) + "a33c6634"
}

func TestIdentityDepth(t *testing.T) {
	json, packed := nested(maxDescrDepth)
	if got, err := EncodeIdentity(Ragged, []byte(`{"dtype":`+json+`}`)); err != nil || hex.EncodeToString(got) != "81a56474797065"+packed {
		t.Errorf("%d levels: got %x, %v", maxDescrDepth, got, err)
	}
	if _, err := DecodeIdentity(Ragged, unhex(t, "81a56474797065"+packed)); err != nil {
		t.Errorf("%d levels: %v", maxDescrDepth, err)
	}
	json, packed = nested(maxDescrDepth + 1)
	_, err := EncodeIdentity(Ragged, []byte(`{"dtype":`+json+`}`))
	wantSaying(t, err, "nested at most 8 deep")
	_, err = DecodeIdentity(Ragged, unhex(t, "81a56474797065"+packed))
	wantCorrupt(t, err, -1, "nested at most 8 deep")
}

func TestEncodeIdentityRefuses(t *testing.T) {
	for _, c := range []struct {
		kind      Kind
		json, say string
	}{
		{Dense, ``, "expected a JSON object"},
		{Dense, `[]`, "expected a JSON object"},
		{Dense, `null`, `expected the key "dtype"`},
		{Dense, `{"dtype":"<f4"}`, `expected the key "item_shape"`},
		{Ragged, `{"item_shape":[]}`, `expected the key "dtype"`},
		{Ragged, `{"dtype":"<f4","item_shape":[]}`, `the keys ["dtype"] only, got 2 keys`},
		{Ragged, `{"dtype":"<f4"} {}`, "got more after byte"},
		{Ragged, `{"dtype":null}`, "expected a string or a list of fields"},
		{Ragged, `{"dtype":{}}`, "expected a string or a list of fields"},
		{Ragged, `{"dtype":4}`, "expected a string or a list of fields, got 4"},
		{Ragged, `{"dtype":[]}`, "at least one field"},
		{Ragged, `{"dtype":["<f4"]}`, `field 0: expected [name, dtype] or [name, dtype, shape], got "<f4"`},
		{Ragged, `{"dtype":[["a"]]}`, "field 0: expected [name, dtype]"},
		{Ragged, `{"dtype":[["a","<f4",[1],2]]}`, "field 0: expected [name, dtype]"},
		{Ragged, `{"dtype":[["ok","<f4"],[1,"<f4"]]}`, "field 1: expected a name or [title, name], got 1"},
		{Ragged, `{"dtype":[[["t","n","x"],"<f4"]]}`, "expected a name or [title, name]"},
		{Ragged, `{"dtype":[["a","<f4",3]]}`, "expected a list of at most 64 dimensions, got 3"},
		{Ragged, `{"dtype":[["\ud800","<f4"]]}`, "valid Unicode"},
		{Dense, `{"dtype":"<f4","item_shape":3}`, "item_shape: expected a list of at most 64 dimensions, got 3"},
		{Dense, `{"dtype":"<f4","item_shape":[-1]}`, "got -1"},
		{Dense, `{"dtype":"<f4","item_shape":[1.5]}`, "got 1.5"},
		{Dense, `{"dtype":"<f4","item_shape":[true]}`, "dimension 0: expected a whole number"},
		{Dense, `{"dtype":"<f4","item_shape":["2"]}`, "dimension 0: expected a whole number"},
		{Dense, `{"dtype":"<f4","item_shape":[9223372036854775808]}`, "got 9223372036854775808"},
		{Dense, `{"dtype":"<f4","item_shape":[1` + strings.Repeat(",1", 64) + `]}`, "at most 64 dimensions"},
		{Ragged, `{"dtype":[["` + strings.Repeat("n", MaxIdentity) + `","<f4"]]}`, "expected at most 65536 bytes, got 65"},
		{Ragged, `{"dtype":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`, "nested at most 8 deep"},
	} {
		_, err := EncodeIdentity(c.kind, []byte(c.json))
		if err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%.80s: expected an error saying %q, got %v", c.json, c.say, err)
		}
		if err != nil && len(err.Error()) > 300 {
			t.Errorf("%.80s: a message of %d bytes", c.json, len(err.Error()))
		}
	}
}

func TestTypeStrings(t *testing.T) {
	for s, ok := range map[string]bool{
		"<f4": true, ">i8": true, "|b1": true, "|S10": true, "<U7": true, "|V3": true, "<c16": true, "f4": true,
		"<M8[ns]": true, "<m8[25s]": true, "<M8": true, "bfloat16": true, "float8_e4m3fn": true, "int4": true,
		"": false, "|": false, "|O": false, "O": false, "|O8": false, "<<f4": false, "object": false, "objekt": true,
		"|T16": false, "<f4,<f4": false, "(2,)f4": false, "<bfloat16": false, "_x_": false, "<f4 ": false, "<f4\x00": false,
		strings.Repeat("a", 65): false,
	} {
		if err := checkTypeString(s); (err == nil) != ok {
			t.Errorf("%q: expected accepted %v, got %v", s, ok, err)
		}
	}
}
