package zstd

import (
	"bytes"
	"testing"
)

func TestDict(t *testing.T) {
	b := trained(t, 1)
	d := newDict(t, b)
	clear(b) // the caller's bytes are its own again
	src := words(1, 120)
	small := encode(t, newEncoder(t, 3, d), src)
	plain := encode(t, newEncoder(t, 19, nil), src)
	if len(small) >= len(plain) {
		t.Errorf("expected fewer than %d bytes with the dictionary, got %d", len(plain), len(small))
	}
	// The level is the dictionary's, whatever the encoder's.
	if again := encode(t, newEncoder(t, 19, d), src); !bytes.Equal(again, small) {
		t.Errorf("expected the same frame, got %x and %x", small, again)
	}
}

func TestFrameOfAnotherDict(t *testing.T) {
	one, two := newDict(t, trained(t, 1)), newDict(t, trained(t, 2))
	if one.ID() == two.ID() {
		t.Fatalf("expected two ids, got %d twice", one.ID())
	}
	src := words(1, 120)
	frame := encode(t, newEncoder(t, 3, one), src)
	dst := make([]byte, len(src))
	wantSaying(t, newDecoder(t, two).Decode(dst, frame), "got dictionary")
	wantSaying(t, newDecoder(t, nil).Decode(dst, frame), "without a dictionary")
	if err := newDecoder(t, one).Decode(dst, frame); err != nil || !bytes.Equal(dst, src) {
		t.Error(err)
	}
}

func TestNotADict(t *testing.T) {
	good := trained(t, 1)
	noID := bytes.Clone(good)
	clear(noID[4:8])
	for _, c := range []struct {
		name string
		b    []byte
		say  string
	}{
		{"empty", nil, "expected magic 0xec30a437 at offset 0"},
		{"short", good[:7], "expected magic"},
		{"raw content", words(1, 1000), "expected magic 0xec30a437 at offset 0, got"},
		{"id 0", noID, "an id other than 0"},
		{"header only", good[:8], "damaged"},
		{"cut in the tables", good[:20], "damaged"},
	} {
		d, err := NewDict(c.b)
		t.Run(c.name, func(t *testing.T) { wantSaying(t, err, c.say) })
		if d != nil {
			t.Errorf("%s: expected no dictionary", c.name)
		}
	}
}

func TestTrainRefuses(t *testing.T) {
	sizes := func(n, each int) []int {
		s := make([]int, n)
		for i := range s {
			s[i] = each
		}
		return s
	}
	for _, c := range []struct {
		name     string
		samples  []byte
		sizes    []int
		capacity int
		say      string
	}{
		{"none", nil, nil, 4096, "at least 7 samples to train a dictionary, got 0"},
		{"six", words(1, 600), sizes(6, 100), 4096, "at least 7 samples to train a dictionary, got 6"},
		{"sizes short of the samples", words(1, 1000), sizes(9, 100), 4096, "adding up to 1000 bytes, got 900"},
		{"sizes past the samples", words(1, 1000), sizes(11, 100), 4096, "sample 10: expected a size within the 0 bytes left, got 100"},
		{"negative size", words(1, 1000), append(sizes(10, 100), -1), 4096, "sample 10: expected a size within the 0 bytes left, got -1"},
		{"no capacity", words(1, 1000), sizes(10, 100), 255, "at least 256 bytes, got 255"},
		{"empty samples", nil, sizes(10, 0), 4096, "no dictionary of 4096 bytes from 10 samples of 0 bytes"},
	} {
		_, err := Train(c.samples, c.sizes, c.capacity)
		t.Run(c.name, func(t *testing.T) { wantSaying(t, err, c.say) })
	}
}
