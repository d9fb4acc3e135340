package zstd

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// words is n bytes that compress about as text does; the seed picks them.
func words(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	var b []byte
	for len(b) < n {
		b = fmt.Appendf(b, "%s=%d;", [...]string{"width", "height", "label", "split", "path"}[r.IntN(5)], r.IntN(5000))
	}
	return b[:n]
}

// trained is a dictionary for words.
func trained(t testing.TB, seed uint64) []byte {
	t.Helper()
	var samples []byte
	var sizes []int
	for i := range 400 {
		s := words(seed<<32+uint64(i), 100+i%50)
		samples, sizes = append(samples, s...), append(sizes, len(s))
	}
	b, err := Train(samples, sizes, 4096)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func newDict(t testing.TB, b []byte) *Dict {
	t.Helper()
	d, err := NewDict(b)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

func newEncoder(t testing.TB, level int, d *Dict) *Encoder {
	t.Helper()
	e, err := NewEncoder(level, d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func newDecoder(t testing.TB, d *Dict) *Decoder {
	t.Helper()
	z, err := NewDecoder(d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(z.Close)
	return z
}

// encode is src as a frame.
func encode(t testing.TB, e *Encoder, src []byte) []byte {
	t.Helper()
	dst := make([]byte, Bound(len(src)))
	n, err := e.Encode(dst, src)
	if err != nil {
		t.Fatal(err)
	}
	return dst[:n:n]
}

// rawFrame builds a frame by hand (RFC 8878, 3.1.1): a header without
// checksum, then data as one raw block.
func rawFrame(header []byte, data string) []byte {
	b := binary.LittleEndian.AppendUint32(nil, frameMagic)
	b = append(b, header...)
	block := 1 | len(data)<<3 // last block, raw
	b = append(b, byte(block), byte(block>>8), byte(block>>16))
	return append(b, data...)
}

// wantSaying checks an error's text.
func wantSaying(t *testing.T, err error, say string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), say) {
		t.Errorf("expected an error saying %q, got %v", say, err)
	}
}
