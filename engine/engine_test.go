package engine

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

var everyCodec = []Codec{Raw, Zstd}

// denseOptions are those of a store of float32 records of shape (w/4,).
func denseOptions(w int, codec Codec) Options {
	return Options{
		Kind: Dense, Mode: ModeAppend, Codec: &codec, Width: int64(w),
		Identity: []byte(`{"dtype":"|u1","item_shape":[` + itoa(w) + `]}`),
	}
}

func itoa(n int) string { return string(appendInt(nil, n)) }

func appendInt(b []byte, n int) []byte {
	if n >= 10 {
		b = appendInt(b, n/10)
	}
	return append(b, byte('0'+n%10))
}

func raggedOptions(codec Codec) Options {
	return Options{Kind: Ragged, Mode: ModeAppend, Codec: &codec, Identity: []byte(`{"dtype":"|u1"}`)}
}

func mustOpen(t *testing.T, path string, o Options) *Store {
	t.Helper()
	s, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// denseRecords are n records of w bytes, each different.
func denseRecords(first, n, w int) []byte {
	b := make([]byte, n*w)
	for i := range n {
		rng := rand.New(rand.NewPCG(uint64(first+i), 1))
		for j := range w {
			b[i*w+j] = byte(rng.IntN(16)) // compressible
		}
	}
	return b
}

func appendDense(t *testing.T, s *Store, data []byte, w int) int64 {
	t.Helper()
	b, err := s.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.AppendDense(data, int64(len(data)/w)); err != nil {
		t.Fatal(err)
	}
	first, err := b.Commit()
	if err != nil {
		t.Fatal(err)
	}
	return first
}

func gatherDense(t *testing.T, s *Store, index []int64, w int) []byte {
	t.Helper()
	dst := make([]byte, len(index)*w)
	if err := s.GatherDense(index, dst, 0); err != nil {
		t.Fatal(err)
	}
	return dst
}

func all(t *testing.T, s *Store) []int64 {
	t.Helper()
	n, err := s.Len()
	if err != nil {
		t.Fatal(err)
	}
	index := make([]int64, n)
	for i := range index {
		index[i] = int64(i)
	}
	return index
}

func TestDenseRoundTrip(t *testing.T) {
	for _, codec := range everyCodec {
		for _, limits := range []Limits{{}, {Chunk: 100, Segment: 4}} {
			dir := filepath.Join(t.TempDir(), "parents", "store")
			o := denseOptions(12, codec)
			o.Limits = limits
			s := mustOpen(t, dir, o)
			var want []byte
			for k := range 5 {
				data := denseRecords(k*7, 7, 12)
				if first := appendDense(t, s, data, 12); first != int64(7*k) {
					t.Errorf("expected first index %d, got %d", 7*k, first)
				}
				want = append(want, data...)
			}
			if got := gatherDense(t, s, all(t, s), 12); !bytes.Equal(got, want) {
				t.Errorf("%v %+v: before closing: records differ", codec, limits)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = mustOpen(t, dir, Options{Kind: Dense, Mode: ModeRead, Limits: limits})
			if got := gatherDense(t, s, all(t, s), 12); !bytes.Equal(got, want) {
				t.Errorf("%v %+v: after reopening: records differ", codec, limits)
			}
			if i, _ := s.Info(); i.Dirty || i.Records != 35 {
				t.Errorf("expected a clean store of 35, got %+v", i)
			}
		}
	}
}

// crashed copies the files of a store that is open, as a killed process would
// leave them.
func crashed(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	names, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		b, err := os.ReadFile(filepath.Join(from, n.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, n.Name()), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

func TestKilledWriterLosesNothing(t *testing.T) {
	for _, codec := range everyCodec {
		dir := t.TempDir()
		s := mustOpen(t, dir, denseOptions(12, codec))
		want := denseRecords(0, 20, 12)
		appendDense(t, s, want[:120], 12)
		if err := s.Sync(); err != nil {
			t.Fatal(err)
		}
		appendDense(t, s, want[120:], 12)
		left := crashed(t, dir)
		r := mustOpen(t, left, Options{Kind: Dense, Mode: ModeRead})
		if i, _ := r.Info(); !i.Dirty || i.Records != 20 {
			t.Errorf("expected a dirty store of 20 records, got %+v", i)
		}
		if got := gatherDense(t, r, all(t, r), 12); !bytes.Equal(got, want) {
			t.Error("records differ")
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		w := mustOpen(t, left, Options{Kind: Dense, Mode: ModeAppend})
		more := denseRecords(20, 1, 12)
		if first := appendDense(t, w, more, 12); first != 20 {
			t.Errorf("expected first 20, got %d", first)
		}
		if got := gatherDense(t, w, all(t, w), 12); !bytes.Equal(got, append(want, more...)) {
			t.Error("records differ after recovery")
		}
	}
}

// A file that was cut in the middle of its last page reads as zeros there.
func TestFileCutUnderMapping(t *testing.T) {
	for _, keep := range []int64{0, 1, 100, 119} {
		dir := t.TempDir()
		s := mustOpen(t, dir, denseOptions(12, Raw))
		appendDense(t, s, bytes.Repeat([]byte{1}, 120), 12)
		_ = gatherDense(t, s, all(t, s), 12) // maps
		if err := os.Truncate(filepath.Join(dir, "0.chunk"), keep); err != nil {
			t.Fatal(err)
		}
		err := s.GatherDense([]int64{9}, make([]byte, 12), 0)
		var e *Error
		if !errors.As(err, &e) || e.Status != StatusCorruptRecord || e.Index != 9 {
			t.Errorf("cut to %d: expected record 9 to be corrupt, got %v", keep, err)
		}
	}
}
