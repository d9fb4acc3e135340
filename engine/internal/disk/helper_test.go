package disk

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"
)

// unhex reads a sample.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// flips calls try with every copy of b that differs in one bit.
func flips(b []byte, try func(bit int, flipped []byte)) {
	for bit := range len(b) * 8 {
		c := append([]byte(nil), b...)
		c[bit/8] ^= 1 << (bit % 8)
		try(bit, c)
	}
}

// wantCorrupt checks that err is a Corrupt that says what and, if offset is
// not negative, where.
func wantCorrupt(t *testing.T, err error, offset int64, say string) {
	t.Helper()
	var c *Corrupt
	if !errors.As(err, &c) {
		t.Fatalf("expected a *Corrupt saying %q, got %v", say, err)
	}
	if !strings.Contains(err.Error(), say) || offset >= 0 && c.Offset != offset {
		t.Errorf("expected %q at offset %d, got %v", say, offset, err)
	}
}

// wantSaying checks an error's text.
func wantSaying(t *testing.T, err error, say string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), say) {
		t.Errorf("expected an error saying %q, got %v", say, err)
	}
}
