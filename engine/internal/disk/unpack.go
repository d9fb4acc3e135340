package disk

import (
	"bytes"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// unpacker reads hostile msgpack: it never allocates by a claimed length that
// the bytes left over cannot bear out, and never recurses without bound.
type unpacker struct {
	*msgpack.Decoder
	rest *bytes.Reader // what the decoder has not consumed
	size int
}

// unpack reads an identity. Keys out of order are refused here, all other
// deviations where the result is encoded again.
func unpack(kind Kind, packed []byte) ([]any, error) {
	u := unpacker{rest: bytes.NewReader(packed), size: len(packed)}
	u.Decoder = msgpack.NewDecoder(u.rest)
	n, err := u.DecodeMapLen()
	want := keys(kind)
	if err != nil || n != len(want) {
		return nil, u.corrupt("a map of %d keys", len(want))
	}
	root := make([]any, 0, len(want))
	for _, k := range want {
		if got, err := u.text(); err != nil || got != k {
			return nil, u.corrupt("the key %q", k)
		}
		v, err := u.value(0)
		if err != nil {
			return nil, err
		}
		root = append(root, v)
	}
	if u.rest.Len() != 0 {
		return nil, u.corrupt("the end of the identity, got %d more bytes", u.rest.Len())
	}
	return root, nil
}

// corrupt reports what was expected about where the decoder stands.
func (u *unpacker) corrupt(format string, args ...any) error {
	return corrupt(u.size-u.rest.Len(), "identity: expected "+format, args...)
}

// value reads a string, a whole number or a list of values.
func (u *unpacker) value(depth int) (any, error) {
	code, err := u.PeekCode()
	if err != nil {
		return nil, u.corrupt("a value, got the end")
	}
	switch {
	case msgpcode.IsString(code):
		return u.text()
	case msgpcode.IsFixedArray(code), code == msgpcode.Array16, code == msgpcode.Array32:
		return u.list(depth)
	}
	n, err := u.DecodeUint64()
	if err != nil {
		return nil, u.corrupt("a string, a whole number or a list, got type byte %#x", code)
	}
	return n, nil
}

func (u *unpacker) list(depth int) (any, error) {
	if depth > maxNesting {
		return nil, u.corrupt("lists no deeper than %d", maxNesting)
	}
	n, err := u.DecodeArrayLen()
	if err != nil || n < 0 || n > u.rest.Len() { // an element takes a byte at least
		return nil, u.corrupt("a list within the %d bytes left, got a length of %d", u.rest.Len(), n)
	}
	list := make([]any, 0, min(n, 16))
	for range n {
		v, err := u.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

func (u *unpacker) text() (string, error) {
	n, err := u.DecodeBytesLen()
	if err != nil || n < 0 || n > u.rest.Len() {
		return "", u.corrupt("a string within the %d bytes left, got a length of %d", u.rest.Len(), n)
	}
	b := make([]byte, n)
	if err := u.ReadFull(b); err != nil || !utf8.Valid(b) {
		return "", u.corrupt("UTF-8 text, got %s", brief(b))
	}
	return string(b), nil
}
