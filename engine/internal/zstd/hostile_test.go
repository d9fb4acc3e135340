package zstd

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// guarded decodes into the middle of a buffer and checks that the rest of it
// stays as it was.
func guarded(t *testing.T, z *Decoder, n int, frame []byte) ([]byte, error) {
	t.Helper()
	whole := bytes.Repeat([]byte{0xEE}, n+128)
	err := z.Decode(whole[64:64+n:64+n], frame)
	dst := bytes.Clone(whole[64 : 64+n])
	if around := append(whole[:64:64], whole[64+n:]...); !bytes.Equal(around, bytes.Repeat([]byte{0xEE}, 128)) {
		t.Error("bytes beside the destination were written")
	}
	return dst, err
}

// header is the frame header of a single segment: flags, dictionary id of
// one byte if id is not 0, content size of eight bytes.
func header(id byte, content uint64) []byte {
	h := []byte{0xE0}
	if id != 0 {
		h = []byte{0xE1, id}
	}
	return binary.LittleEndian.AppendUint64(h, content)
}

// Rows 30 to 34 of the hostile table.
func TestHostileFrames(t *testing.T) {
	z := newDecoder(t, nil)
	src := words(5, 1000)
	good := encode(t, newEncoder(t, 3, nil), src)
	with := func(tail ...byte) []byte { return append(bytes.Clone(good), tail...) }
	skippable := []byte{0x50, 0x2A, 0x4D, 0x18, 2, 0, 0, 0, 1, 2}
	badSum := with()
	badSum[len(badSum)-1] ^= 1
	expanding := rawFrame(header(0, 3), "abcdefghij")
	short := rawFrame(header(0, 5), "abc")
	rle := append(binary.LittleEndian.AppendUint32(nil, frameMagic), append(header(0, 4), 3|0x1F<<3, 0xFF, 0x0F, 'x')...)

	for _, c := range []struct {
		name  string
		n     int
		frame []byte
		say   string
	}{
		{"empty", 10, nil, "got 0 bytes starting"},
		{"no frame", 10, []byte("not a frame"), "expected a frame with magic 0xfd2fb528, got 11 bytes starting 6e 6f 74 20"},
		{"skippable", 0, skippable, "expected a frame with magic"},
		{"format of zstd 0.7", 0, []byte{0x27, 0xB5, 0x2F, 0xFD, 0, 0, 0, 0}, "expected a frame with magic"},
		{"magic only", 0, good[:4], "damaged frame header"},
		{"content size too large", 999, good, "expected a frame of 999 bytes of content, got one of 1000"},
		{"content size too small", 1001, good, "expected a frame of 1001 bytes of content, got one of 1000"},
		{"content size 2^63", 5, rawFrame(header(0, 1<<63), "abcde"), "got one of 9223372036854775808"},
		{"content size of 2^64-1, which is zstd's word for unknown", 5, rawFrame(header(0, 1<<64-1), "abcde"), "got one that does not say"},
		{"content size absent", 5, rawFrame([]byte{0x00, 0x00}, "abcde"), "got one that does not say"},
		{"window 3.75 TB", 5, rawFrame([]byte{0xC0, 0xFF, 5, 0, 0, 0, 0, 0, 0, 0}, "abcde"), "damaged frame header"},
		{"reserved bit", 5, rawFrame([]byte{0xE8, 5, 0, 0, 0, 0, 0, 0, 0}, "abcde"), "damaged frame header"},
		{"expands past its size", 3, expanding, "expected 3 bytes of content"},
		{"expands past its size by RLE", 4, rle, "expected 4 bytes of content"},
		{"falls short of its size", 5, short, "expected 5 bytes of content"},
		{"two frames", 1000, with(good...), "got one that ends after"},
		{"empty frame behind", 1000, with(rawFrame(header(0, 0), "")...), "got one that ends after"},
		{"skippable behind", 1000, with(skippable...), "got one that ends after"},
		{"trailing byte", 1000, with(0), "got one that ends after"},
		{"bad checksum", 1000, badSum, "checksum"},
		{"names a dictionary", 5, rawFrame(header(7, 5), "abcde"), "expected a frame without a dictionary, got one with dictionary 7"},
	} {
		_, err := guarded(t, z, c.n, c.frame)
		t.Run(c.name, func(t *testing.T) { wantSaying(t, err, c.say) })
	}
	if _, err := guarded(t, z, 1000, good); err != nil {
		t.Errorf("a good frame after bad ones: %v", err)
	}
}

// Version 4 stores hold frames without the checksum.
func TestFrameWithoutChecksum(t *testing.T) {
	dst := make([]byte, 5)
	if err := newDecoder(t, nil).Decode(dst, rawFrame(header(0, 5), "abcde")); err != nil || string(dst) != "abcde" {
		t.Errorf("expected abcde, got %q, %v", dst, err)
	}
}

func TestTruncatedFrame(t *testing.T) {
	z := newDecoder(t, nil)
	frame := encode(t, newEncoder(t, 3, nil), words(5, 300))
	for n := range frame {
		if _, err := guarded(t, z, 300, frame[:n:n]); err == nil {
			t.Errorf("%d of %d bytes: expected an error", n, len(frame))
		}
	}
}

func TestFlippedFrame(t *testing.T) {
	z := newDecoder(t, nil)
	src := words(5, 300)
	frame := encode(t, newEncoder(t, 3, nil), src)
	for bit := range len(frame) * 8 {
		frame[bit/8] ^= 1 << (bit % 8)
		// Some bits of a frame mean nothing; none may change the content.
		if dst, err := guarded(t, z, 300, frame); err == nil && !bytes.Equal(dst, src) {
			t.Errorf("bit %d flipped: got other content", bit)
		}
		frame[bit/8] ^= 1 << (bit % 8)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(uint16(300), encode(f, newEncoder(f, 3, nil), words(5, 300)))
	f.Add(uint16(5), rawFrame(header(0, 5), "abcde"))
	f.Add(uint16(5), rawFrame(header(7, 5), "abcde"))
	z := newDecoder(f, nil)
	f.Fuzz(func(t *testing.T, n uint16, frame []byte) {
		_, _ = guarded(t, z, int(n), frame)
	})
}
