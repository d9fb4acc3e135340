package engine

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// Full file systems (RELIABILITY 2, T6). A child, this binary run again, has a
// small file system to itself, or may not write large files, and appends
// batches of every size around what there is room for. full_linux_test.go
// starts it.
const (
	fullDir   = "LOADERX_TEST_FULL"       // the child's folder
	fullLimit = "LOADERX_TEST_FULL_LIMIT" // set: its files are limited, not its disk
)

// fullChild is the child. It prints what went wrong and fails.
func fullChild(dir string) {
	above, err := aboveLimit(dir)
	if err == nil {
		err = enterFull(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(fullForbidden)
	}
	for _, change := range above {
		err = errors.Join(err, change())
	}
	for _, codec := range []Codec{Raw, Zstd} {
		if err == nil {
			err = fillUp(filepath.Join(dir, codec.String()), dir, codec)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// fullForbidden is the child's exit status where it may not mount anything.
const fullForbidden = 3

const fullWidth = 1000

// noise is n records that do not compress.
func noise(seed uint64, n int) []byte {
	rng := rand.New(rand.NewPCG(seed, 2))
	b := make([]byte, n*fullWidth)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// fillUp leaves less and less room on the disk, and mutates a store on it.
func fillUp(path, dir string, codec Codec) error {
	o := denseOptions(fullWidth, codec)
	o.Limits, o.round = Limits{Chunk: 100 * fullWidth}, 64<<10
	s, err := Open(path, o)
	if err != nil {
		return err
	}
	var want []byte
	refused := 0
	for k := range 60 {
		free, err := squeeze(dir, int64(k)*5000)
		if err != nil {
			return err
		}
		batch := noise(uint64(k), 1+k*2)
		err = appendDenseTo(s, batch)
		switch {
		case err == nil:
			want = append(want, batch...)
		case statusOf(err) == StatusFull:
			refused++
		default:
			return fmt.Errorf("append of %d bytes with %d free: %w", len(batch), free, err)
		}
		if err := holds(s, want); err != nil {
			return fmt.Errorf("after an append of %d bytes with %d free: %w", len(batch), free, err)
		}
		if len(want) > 40*fullWidth { // what gives room back must work without any
			if want, err = giveBack(s, want); err != nil {
				return fmt.Errorf("with %d free: %w", free, err)
			}
		}
		if k%10 == 9 {
			if err := s.Close(); err != nil {
				return fmt.Errorf("close with %d free: %w", free, err)
			}
			if s, err = Open(path, o); err != nil {
				return err
			}
		}
	}
	if refused == 0 || len(want) == 0 {
		return fmt.Errorf("%v: %d batches were refused, %d bytes are left: not much of a test", codec, refused, len(want))
	}
	fmt.Printf("%v: %d of 60 batches refused\n", codec, refused)
	return errors.Join(holds(s, want), sound(s), s.Close(), os.RemoveAll(path))
}

func appendDenseTo(s *Store, data []byte) error {
	b, err := s.Begin()
	if err != nil {
		return err
	}
	for len(data) > 0 { // in parts
		part := data[:min(len(data), 7*fullWidth)]
		if err := b.AppendDense(part, int64(len(part)/fullWidth)); err != nil {
			return errors.Join(err, b.Abort())
		}
		data = data[len(part):]
	}
	_, err = b.Commit()
	return err
}

// giveBack deletes every other record of the first forty and compacts.
func giveBack(s *Store, want []byte) ([]byte, error) {
	var index []int64
	want = bytes.Clone(want)
	for i := 38; i >= 0; i -= 2 {
		index = append(index, int64(i))
		last := len(want) - fullWidth
		copy(want[i*fullWidth:], want[last:])
		want = want[:last]
	}
	if err := s.Delete(index); err != nil {
		return want, fmt.Errorf("delete: %w", err)
	}
	if err := compact(s, -1); err != nil {
		return want, fmt.Errorf("compact: %w", err)
	}
	return want, holds(s, want)
}

// holds compares all records.
func holds(s *Store, want []byte) error {
	c, err := readAll(s)
	if err != nil {
		return err
	}
	var expected contents
	for record := range slices.Chunk(want, fullWidth) {
		expected = append(expected, shaped(nil, record))
	}
	if !slices.Equal(c, expected) {
		return fmt.Errorf("%d records, expected %d, or others", len(c), len(expected))
	}
	return nil
}
