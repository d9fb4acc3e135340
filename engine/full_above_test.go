package engine

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// aboveLimit makes stores whose files are larger than the child may write, and
// gives what is to be tried with them then. Their redo records fit; what those
// say cannot be carried out, so the changes are done when the child is gone.
func aboveLimit(dir string) (changes []func() error, err error) {
	if os.Getenv(fullLimit) == "" {
		return nil, nil
	}
	const n, width = 20_000, 20
	all := denseRecords(0, n, width)
	gone := bytes.Clone(all)
	copy(gone[15_000*width:15_001*width], gone[(n-1)*width:])
	err = above(filepath.Join(dir, "delete"), width, all, func(s *Store) error {
		changes = append(changes, func() error {
			return refusedAbove(s, s.Delete([]int64{15_000}), gone[:(n-1)*width])
		})
		return nil
	})
	if err != nil {
		return nil, err
	}
	records := noise(1, 200)
	left := bytes.Clone(records)
	copy(left, left[199*fullWidth:])
	left = left[:199*fullWidth]
	return changes, above(filepath.Join(dir, "compact"), fullWidth, records, func(s *Store) error {
		changes = append(changes, func() error {
			return refusedAbove(s, compact(s, -1), left)
		})
		return s.Delete([]int64{0})
	})
}

// above makes a store of records.
func above(path string, width int, records []byte, then func(s *Store) error) error {
	o := denseOptions(width, Raw)
	o.round = 20 * fullWidth
	s, err := Open(path, o)
	if err != nil {
		return err
	}
	b, err := s.Begin()
	if err != nil {
		return err
	}
	if err := b.AppendDense(records, int64(len(records)/width)); err != nil {
		return err
	}
	if _, err := b.Commit(); err != nil {
		return err
	}
	if err := s.Sync(); err != nil {
		return err
	}
	return then(s)
}

// refusedAbove holds a change against what it has to be: one that may have
// happened, and that who opens the store then sees.
func refusedAbove(s *Store, err error, want []byte) error {
	if statusOf(err) != StatusIO {
		return fmt.Errorf("%s: a change of files above the limit: expected status %d, got %d (%w)", s.path, StatusIO, statusOf(err), err)
	}
	if err := s.Close(); err != nil {
		return fmt.Errorf("%s: close: %w", s.path, err)
	}
	r, err := Open(s.path, Options{Kind: Dense, Mode: ModeRead})
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	got := make([]byte, len(want))
	index := make([]int64, len(want)/int(r.typed.Width))
	for i := range index {
		index[i] = int64(i)
	}
	if n, err := r.Len(); err != nil || int(n) != len(index) {
		return fmt.Errorf("%s: expected %d records, got %d (%w)", s.path, len(index), n, err)
	}
	if err := r.GatherDense(index, got, 0); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("%s: records differ", s.path)
	}
	return nil
}
