package memfs

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"loaderx/engine/internal/vfs"
)

// folder is a new file system with a folder that is on disk.
func folder(t *testing.T) (*FS, vfs.Dir) {
	t.Helper()
	f := New()
	if _, err := f.MakeDirs("/d"); err != nil {
		t.Fatal(err)
	}
	f.Settle()
	d, err := f.OpenDir("/d")
	if err != nil {
		t.Fatal(err)
	}
	return f, d
}

func write(t *testing.T, d vfs.Dir, name, text string, off int64) vfs.File {
	t.Helper()
	file, err := d.Open(name, vfs.Create)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt([]byte(text), off); err != nil {
		t.Fatal(err)
	}
	return file
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// cuts is what /d/name may hold after a power cut at the end of the log; nil
// stands for no file.
func cuts(f *FS, name string) map[string]bool {
	r := f.Replay()
	for r.Next() {
	}
	seen := map[string]bool{}
	r.Power(rand.New(rand.NewPCG(1, 1)), 400, func(after *FS) bool {
		b := after.ReadFile("/d/" + name)
		if b == nil {
			seen["none"] = true
		} else {
			seen["= "+string(b)] = true
		}
		return true
	})
	return seen
}

func want(t *testing.T, what string, got map[string]bool, all ...string) {
	t.Helper()
	if len(got) != len(all) {
		t.Errorf("%s: expected %q, got %v", what, all, got)
	}
	for _, s := range all {
		if !got[s] {
			t.Errorf("%s: expected %q among %v", what, s, got)
		}
	}
}

func TestPowerCut(t *testing.T) {
	f, d := folder(t)
	a := write(t, d, "a", "old", 0)
	must(t, a.Sync())
	want(t, "bytes without a name", cuts(f, "a"), "none", "= old")
	must(t, d.Sync())
	want(t, "all synced", cuts(f, "a"), "= old")
	write(t, d, "a", "new", 0)
	want(t, "a small write", cuts(f, "a"), "= old", "= new")
	must(t, a.Truncate(1))
	want(t, "two changes in any order", cuts(f, "a"), "= old", "= new", "= o", "= n")
	must(t, a.Sync(), d.Rename("a", "b"))
	want(t, "a rename, the old name", cuts(f, "a"), "= n", "none")
	want(t, "and the new one", cuts(f, "b"), "= n", "none")
	must(t, d.Sync(), d.Remove("b"))
	want(t, "a removal", cuts(f, "b"), "= n", "none")
}

func TestTornAndGrown(t *testing.T) {
	f, d := folder(t)
	a := write(t, d, "a", "", 0)
	must(t, a.Sync(), d.Sync())
	write(t, d, "a", "0123456789abcdefXYZ", 0)
	got := cuts(f, "a")
	for _, s := range []string{"= ", "= 0123456789abcdefXYZ", "= 01234567", "= 0123456789abcdef", "= " + string(make([]byte, 19))} {
		if !got[s] {
			t.Errorf("expected %q among %v", s, got)
		}
	}
}

func TestKillKeepsTheCache(t *testing.T) {
	f, d := folder(t)
	write(t, d, "a", string(bytes.Repeat([]byte{'x'}, 2*page+9)), 5)
	r := f.Replay()
	for r.Next() {
	}
	if got := len(r.Kill().ReadFile("/d/a")); got != 2*page+14 {
		t.Errorf("expected all bytes, got %d", got)
	}
	var sizes []int
	for _, after := range r.KillInside() {
		sizes = append(sizes, len(after.ReadFile("/d/a")))
	}
	if len(sizes) != 2 || sizes[0] != page || sizes[1] != 2*page {
		t.Errorf("expected the write cut at its pages, got sizes %v", sizes)
	}
}

// After a failed sync the cache shows what the disk will never have.
func TestLostSync(t *testing.T) {
	f, d := folder(t)
	a := write(t, d, "a", "old", 0)
	must(t, a.Sync(), d.Sync())
	write(t, d, "a", "new", 0)
	a.(interface{ Lose(bool) }).Lose(false)
	must(t, a.Sync())
	if got := string(f.ReadFile("/d/a")); got != "new" {
		t.Errorf("cached: expected new, got %s", got)
	}
	want(t, "after the sync that came too late", cuts(f, "a"), "= old")
	must(t, a.Drop())
	if got := string(f.ReadFile("/d/a")); got != "old" {
		t.Errorf("reread: expected old, got %s", got)
	}
}

func TestLocks(t *testing.T) {
	f, d := folder(t)
	a, b := write(t, d, "a", "x", 0), write(t, d, "a", "x", 0)
	try := func(file vfs.File, exclusive, want bool) {
		t.Helper()
		if got, err := file.TryLock(exclusive); err != nil || got != want {
			t.Fatalf("expected %v, got %v (%v)", want, got, err)
		}
	}
	try(a, false, true)
	try(b, false, true)
	try(a, true, false) // and has lost its shared lock
	try(b, true, true)
	try(a, false, false)
	must(t, b.Close())
	try(a, true, true)
	must(t, a.Close(), d.Close())
	if open, locks := f.Handles(); open != 0 || locks != 0 {
		t.Errorf("%d handles and %d locks are left", open, locks)
	}
}
