package engine

import "testing"

func epochOf(t *testing.T, s *Store) uint64 {
	t.Helper()
	info, err := s.Info()
	if err != nil {
		t.Fatal(err)
	}
	return info.Epoch
}

// The epoch of what a handle shows stays what it was when it becomes durable, and
// tells it from what the store held before and holds after.
func TestEpochNamesWhatIsShown(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, denseOptions(8, Raw))
	appendDense(t, s, denseRecords(0, 10, 8), 8)
	seen := map[uint64]bool{}
	for _, change := range []func() error{
		func() error { return nil },
		func() error { return s.Delete([]int64{3}) },
		func() error { appendDense(t, s, denseRecords(20, 1, 8), 8); return nil },
		func() error { return s.Delete([]int64{2, 4}) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		shown := epochOf(t, s)
		if seen[shown] {
			t.Errorf("epoch %d again after a change", shown)
		}
		seen[shown] = true
		for range 2 {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = mustOpen(t, dir, denseOptions(8, Raw))
			if got := epochOf(t, s); got != shown {
				t.Errorf("expected epoch %d after closing and opening, got %d", shown, got)
			}
		}
	}
}

// A reader that sees the unsynced appends of another says the same of them.
func TestEpochBesideAWriter(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, denseOptions(8, Raw))
	appendDense(t, s, denseRecords(0, 10, 8), 8)
	o := denseOptions(8, Raw)
	o.Mode = ModeRead
	if got, want := epochOf(t, mustOpen(t, dir, o)), epochOf(t, s); got != want {
		t.Errorf("expected epoch %d, got %d", want, got)
	}
}
