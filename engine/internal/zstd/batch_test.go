package zstd

import (
	"bytes"
	"testing"
)

func add(t *testing.T, b *Batch, to int, src, frame []byte) bool {
	t.Helper()
	place := b.Add(to, len(src), len(frame))
	if place == nil {
		return false
	}
	if len(place) != len(frame) || cap(place) != len(frame) {
		t.Errorf("expected room for %d bytes, got %d of %d", len(frame), len(place), cap(place))
	}
	copy(place, frame)
	return true
}

// A batch gives what its frames give alone, wherever they are to go, and is used again.
func TestBatch(t *testing.T) {
	e, z := newEncoder(t, 3, nil), newDecoder(t, nil)
	var b Batch
	for round := range 3 {
		want := []byte("begin")
		for i, n := range []int{100, 0, 1, 70_000, 255, 3} {
			src := words(uint64(10*round+i), n)
			if !add(t, &b, len(want), src, encode(t, e, src)) {
				t.Fatal("a small batch was full")
			}
			want = append(append(want, src...), "between"...)
		}
		got := make([]byte, len(want))
		if !z.DecodeBatch(&b, got) {
			t.Fatal("not decoded")
		}
		at := 5
		for _, n := range []int{100, 0, 1, 70_000, 255, 3} {
			if !bytes.Equal(got[at:at+n], want[at:at+n]) {
				t.Errorf("round %d, frame of %d bytes: decoded to something else", round, n)
			}
			at += n + len("between")
		}
	}
}

// A full batch takes no frame, an empty one any.
func TestBatchIsBounded(t *testing.T) {
	e, z := newEncoder(t, 3, nil), newDecoder(t, nil)
	var b Batch
	src := words(1, 10)
	frame := encode(t, e, src)
	n := 0
	for ; add(t, &b, 0, src, frame); n++ {
		if n > batchFrames {
			t.Fatal("more frames than a batch has")
		}
	}
	if n != batchFrames {
		t.Errorf("expected %d frames, got %d", batchFrames, n)
	}
	big := make([]byte, batchBytes+1)
	if b.Add(0, 1, len(big)) != nil {
		t.Error("a batch took more than its bytes")
	}
	if !z.DecodeBatch(&b, make([]byte, 10)) {
		t.Error("a full batch was not decoded")
	}
	if b.Add(0, 1, len(big)) == nil {
		t.Error("an empty batch refused a large frame")
	}
	if b.Empty(batchBytes); len(b.stage) != 0 {
		t.Errorf("%d bytes were kept", len(b.stage))
	}
}

// Whatever is wrong with one frame, or where it is to go, nothing else is written.
func TestBatchRefuses(t *testing.T) {
	e, z := newEncoder(t, 3, nil), newDecoder(t, nil)
	src := words(1, 1000)
	good := encode(t, e, src)
	bad := bytes.Clone(good)
	bad[len(bad)-1] ^= 1
	for name, c := range map[string]struct {
		to, room int
		frame    []byte
	}{
		"damaged": {2000, 1000, bad}, "no frame": {2000, 1000, []byte("something else")},
		"shorter": {2000, 999, good}, "longer": {2000, 1001, good},
		"behind the end": {3001, 1000, good}, "far behind": {1 << 62, 1000, good}, "before": {-1, 1000, good},
	} {
		var b Batch
		whole := bytes.Repeat([]byte{0xEE}, 4100)
		dst := whole[50:4050:4050]
		add(t, &b, 0, src, good)
		place := b.Add(c.to, c.room, len(c.frame))
		copy(place, c.frame)
		if z.DecodeBatch(&b, dst) {
			t.Errorf("%s: was decoded", name)
		}
		around := append(bytes.Clone(whole[:50]), whole[4050:]...)
		if !bytes.Equal(around, bytes.Repeat([]byte{0xEE}, 100)) {
			t.Errorf("%s: bytes beside the destination were written", name)
		}
	}
}
