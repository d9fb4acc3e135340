package zstd

import (
	"bytes"
	"encoding/hex"
	"sync"
	"testing"
)

func TestRoundTrip(t *testing.T) {
	dict := newDict(t, trained(t, 1))
	for name, coder := range map[string]struct {
		e *Encoder
		z *Decoder
	}{
		"level 3":               {newEncoder(t, 3, nil), newDecoder(t, nil)},
		"level 19":              {newEncoder(t, 19, nil), newDecoder(t, nil)},
		"dictionary":            {newEncoder(t, 19, dict), newDecoder(t, dict)},
		"plain, read by a dict": {newEncoder(t, 3, nil), newDecoder(t, dict)},
	} {
		for _, n := range []int{0, 1, 100, 255, 256, 70_000, 1 << 20, 3} { // small after big: contexts are reused
			src := words(9, n)
			frame := encode(t, coder.e, src)
			dst := make([]byte, n)
			if err := coder.z.Decode(dst, frame); err != nil || !bytes.Equal(dst, src) {
				t.Errorf("%s, %d bytes: %v", name, n, err)
			}
			if flags := frame[4]; flags&4 == 0 {
				t.Errorf("%s, %d bytes: expected a checksum in the frame, got descriptor %#x", name, n, flags)
			}
		}
	}
}

func TestLevel(t *testing.T) {
	src := words(9, 70_000)
	low, high := encode(t, newEncoder(t, 1, nil), src), encode(t, newEncoder(t, 19, nil), src)
	if len(high) >= len(low) {
		t.Errorf("expected level 19 below the %d bytes of level 1, got %d", len(low), len(high))
	}
}

func TestEmpty(t *testing.T) {
	e, z := newEncoder(t, 3, nil), newDecoder(t, nil)
	for _, src := range [][]byte{nil, {}, make([]byte, 5)[5:]} {
		frame := encode(t, e, src)
		if err := z.Decode(src, frame); err != nil {
			t.Error(err)
		}
	}
}

// The C side must not look at what lies beside a slice.
func TestSliceBesidePointers(t *testing.T) {
	e, z := newEncoder(t, 3, nil), newDecoder(t, nil)
	type record struct {
		name *string
		body [64]byte
	}
	name := "r"
	r := &record{name: &name}
	frame := encode(t, e, r.body[:])
	if err := z.Decode(r.body[:], frame); err != nil {
		t.Error(err)
	}
}

// A frame of level 3 as any other zstd 1.5 makes it: the format on disk must
// not depend on how the library was built.
func TestFrameBytes(t *testing.T) {
	frame := encode(t, newEncoder(t, 3, nil), []byte("abcabcabcabcabcabcabcabcabcabc"))
	const want = "28b52ffd241e4d0000186162630100866e085743ddc7"
	if got := hex.EncodeToString(frame); got != want {
		t.Errorf("expected %s, got %s", want, got)
	}
}

func TestEncodeNoRoom(t *testing.T) {
	_, err := newEncoder(t, 3, nil).Encode(make([]byte, 99), make([]byte, 100))
	wantSaying(t, err, "expected room for 163 bytes, got 99")
}

func TestAllocations(t *testing.T) {
	dict := newDict(t, trained(t, 1))
	for _, d := range []*Dict{nil, dict} {
		e, z := newEncoder(t, 3, d), newDecoder(t, d)
		src := words(3, 1000)
		frame, dst := make([]byte, Bound(len(src))), make([]byte, len(src))
		n := 0
		if got := testing.AllocsPerRun(100, func() { n, _ = e.Encode(frame, src) }); got != 0 {
			t.Errorf("Encode: expected no allocation, got %v", got)
		}
		if got := testing.AllocsPerRun(100, func() { _ = z.Decode(dst, frame[:n]) }); got != 0 {
			t.Errorf("Decode: expected no allocation, got %v", got)
		}
		if !bytes.Equal(dst, src) {
			t.Error("expected the record back")
		}
		if got := testing.AllocsPerRun(100, func() {
			var frame [300]byte // C must not move it to the heap
			var dst [100]byte
			n, _ := e.Encode(frame[:], src[:100])
			_ = z.Decode(dst[:], frame[:n])
		}); got != 0 {
			t.Errorf("on the stack: expected no allocation, got %v", got)
		}
	}
}

func TestSharedDict(t *testing.T) {
	dict := newDict(t, trained(t, 1))
	var workers sync.WaitGroup
	for seed := range uint64(4) {
		z := newDecoder(t, dict)
		workers.Go(func() {
			own, err := NewEncoder(19, dict) // all race for the first use
			if err != nil {
				t.Error(err)
				return
			}
			defer own.Close()
			for i := range 20 {
				src := words(seed, 100+i)
				dst := make([]byte, len(src))
				frame := make([]byte, Bound(len(src)))
				n, err := own.Encode(frame, src)
				if err == nil {
					err = z.Decode(dst, frame[:n])
				}
				if err != nil || !bytes.Equal(dst, src) {
					t.Errorf("worker %d: %v", seed, err)
				}
			}
		})
	}
	workers.Wait()
}

func TestCloseTwice(t *testing.T) {
	d, err := NewDict(trained(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	e, z := newEncoder(t, 3, d), newDecoder(t, d)
	for range 2 {
		e.Close()
		z.Close()
		d.Close()
	}
}

func BenchmarkDecode(b *testing.B) {
	src := words(3, 4096)
	frame := encode(b, newEncoder(b, 3, nil), src)
	z := newDecoder(b, nil)
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		if err := z.Decode(src, frame); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	src := words(3, 4096)
	e := newEncoder(b, 3, nil)
	dst := make([]byte, Bound(len(src)))
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		if _, err := e.Encode(dst, src); err != nil {
			b.Fatal(err)
		}
	}
}
