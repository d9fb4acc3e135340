package memfs

import (
	"slices"
	"testing"
)

func TestMappingsFollow(t *testing.T) {
	fs, d := folder(t)
	must(t, d.Sync())
	f := write(t, d, "a", "12345678", 0)
	m, err := f.Map(12)
	must(t, err)
	write(t, d, "a", "xy", 2)
	must(t, f.Truncate(6))
	if got := string(m.Bytes()); got != "12xy56\x00\x00\x00\x00\x00\x00" {
		t.Errorf("mapped %q", got)
	}
	// A lost write stays in the cache as long as it is mapped.
	f.(*file).Lose(true)
	if got := string(fs.ReadFile("/d/a")); got != "12xy56" {
		t.Errorf("a mapped page was dropped: %q", got)
	}
	must(t, m.Close(), f.Drop())
	if got := fs.ReadFile("/d/a"); len(got) > 0 {
		t.Errorf("expected what is on disk, got %q", got)
	}
	fs.Unmappable()
	if _, err := f.Map(1); err == nil {
		t.Error("mapped where nothing can be")
	}
}

func TestFoldersThatFailToSync(t *testing.T) {
	for _, drop := range []bool{false, true} {
		fs, d := folder(t)
		write(t, d, "kept", "x", 0)
		must(t, d.Sync())
		write(t, d, "lost", "x", 0)
		d.(*dir).Lose(drop)
		if got := fs.Names("/d"); drop && !slices.Equal(got, []string{"kept"}) {
			t.Errorf("expected what is on disk, got %q", got)
		}
		if err := d.Sync(); (err == nil) != drop || fs.Stuck("") == drop {
			t.Errorf("dropped: %v, and the next sync: %v", drop, err)
		}
		replay := fs.Replay()
		for replay.Next() {
		}
		left := replay.cut(make([]fate, replay.Pending()))
		if got := left.Names("/d"); !slices.Equal(got, []string{"kept"}) {
			t.Errorf("after a power cut: %q", got)
		}
	}
}
