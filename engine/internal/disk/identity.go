package disk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"
)

// An identity is held as a tree of string, uint64 and []any while it is
// translated. Its root is the list [dtype] or, if dense, [dtype, item_shape]:
// the keys are known, so only their values are kept.

const (
	keyDtype = "dtype"
	keyShape = "item_shape"
)

// keys are those of FORMAT 1, in their order.
func keys(kind Kind) []string {
	if kind == Dense {
		return []string{keyDtype, keyShape}
	}
	return []string{keyDtype}
}

// EncodeIdentity turns {"dtype": ..., "item_shape": [...]} (the latter only if
// dense) into the msgpack of FORMAT 1: one identity has one encoding.
func EncodeIdentity(kind Kind, text []byte) ([]byte, error) {
	root, err := readJSON(kind, text)
	if err != nil {
		return nil, err
	}
	if err := checkIdentity(root); err != nil {
		return nil, err
	}
	packed, err := pack(kind, root)
	if err == nil && len(packed) > MaxIdentity {
		return nil, fmt.Errorf("identity: expected at most %d bytes, got %d", MaxIdentity, len(packed))
	}
	return packed, err
}

// DecodeIdentity turns the msgpack of a store back into compact JSON. What was
// read must encode to the same bytes again; that refuses, without a rule for
// each, duplicate and extra keys, needlessly long integers and foreign types.
func DecodeIdentity(kind Kind, packed []byte) ([]byte, error) {
	if len(packed) > MaxIdentity {
		return nil, corrupt(0, "identity: expected at most %d bytes, got %d", MaxIdentity, len(packed))
	}
	root, err := unpack(kind, packed)
	if err != nil {
		return nil, err
	}
	if err := checkIdentity(root); err != nil {
		return nil, corrupt(0, "%v", err)
	}
	again, err := pack(kind, root)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(again, packed) {
		at := 0
		for at < min(len(again), len(packed)) && again[at] == packed[at] {
			at++
		}
		return nil, corrupt(at, "identity: expected the canonical encoding of its %d bytes, got another of %d", len(again), len(packed))
	}
	return writeJSON(kind, root)
}

// readJSON reads an identity given by the layers above.
func readJSON(kind Kind, text []byte) ([]any, error) {
	var fields map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // a float64 would round large dimensions
	if err := d.Decode(&fields); err != nil {
		return nil, fmt.Errorf("identity: expected a JSON object: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("identity: expected one JSON object, got more after byte %d", d.InputOffset())
	}
	want := keys(kind)
	root := make([]any, 0, len(want))
	for _, k := range want {
		v, ok := fields[k]
		if !ok {
			return nil, fmt.Errorf("identity of a %v store: expected the key %q", kind, k)
		}
		v, err := integers(v, 0)
		if err != nil {
			return nil, err
		}
		root = append(root, v)
	}
	if len(fields) != len(want) {
		return nil, fmt.Errorf("identity of a %v store: expected the keys %q only, got %d keys", kind, want, len(fields))
	}
	return root, nil
}

// integers replaces the numbers of a JSON tree by uint64.
func integers(v any, depth int) (any, error) {
	switch v := v.(type) {
	case json.Number:
		var n uint64
		if err := json.Unmarshal([]byte(v), &n); err != nil {
			return nil, fmt.Errorf("identity: expected a whole number from 0 to %d, got %s", math.MaxInt64, v)
		}
		return n, nil
	case []any:
		if depth > maxNesting {
			return nil, errNesting
		}
		for i := range v {
			n, err := integers(v[i], depth+1)
			if err != nil {
				return nil, err
			}
			v[i] = n
		}
	case string:
		// encoding/json reads half a surrogate pair as U+FFFD, which would
		// make two different names one.
		if bytes.ContainsRune([]byte(v), utf8.RuneError) {
			return nil, fmt.Errorf("identity: expected valid Unicode, got %s", brief(v))
		}
	}
	return v, nil
}

// writeJSON is the inverse of readJSON.
func writeJSON(kind Kind, root []any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // "<f4" is to stay readable
	for i, k := range keys(kind) {
		b.WriteByte("{,"[min(i, 1)])
		fmt.Fprintf(&b, "%q:", k)
		if err := e.Encode(root[i]); err != nil {
			return nil, err
		}
		b.Truncate(b.Len() - 1) // Encode ends its text with a newline
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// pack writes the one msgpack encoding of a checked identity.
func pack(kind Kind, root []any) ([]byte, error) {
	var b bytes.Buffer
	e := msgpack.NewEncoder(&b)
	err := e.EncodeMapLen(len(root))
	for i, k := range keys(kind) {
		err = errors.Join(err, e.EncodeString(k), packValue(e, root[i]))
	}
	return b.Bytes(), err
}

func packValue(e *msgpack.Encoder, v any) error {
	switch v := v.(type) {
	case string:
		return e.EncodeString(v)
	case uint64:
		return e.EncodeUint(v)
	case []any:
		err := e.EncodeArrayLen(len(v))
		for _, x := range v {
			err = errors.Join(err, packValue(e, x))
		}
		return err
	}
	return fmt.Errorf("identity: expected a string, a whole number or a list, got %T", v)
}
