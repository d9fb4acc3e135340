package vfs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// These hold on every system: the twins for Windows and the others are the same
// to the engine.

// folder is a new one. What is in it goes file by file: wine 8 does not know the
// call that os.RemoveAll makes, and that t.TempDir therefore would.
func folder(t *testing.T) string {
	t.Helper()
	path, err := os.MkdirTemp("", "vfs")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		var all []string
		check(t, "walk", filepath.WalkDir(path, func(name string, _ fs.DirEntry, err error) error {
			all = append(all, name)
			return err
		}))
		for _, name := range slices.Backward(all) {
			check(t, "remove", os.Remove(name))
		}
	})
	return path
}

func openDir(t *testing.T, path string) Dir {
	t.Helper()
	dir, err := OS().OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	return dir
}

func openFile(t *testing.T, dir Dir, name string, flag Flag) File {
	t.Helper()
	file, err := dir.Open(name, flag)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}

func write(t *testing.T, file File, text string, off int64) {
	t.Helper()
	if n, err := file.WriteAt([]byte(text), off); n != len(text) || err != nil {
		t.Fatalf("expected %d bytes written at %d, got %d, %v", len(text), off, n, err)
	}
}

func check(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

func expectText(t *testing.T, file File, want string) {
	t.Helper()
	got := make([]byte, len(want)+10)
	n, err := file.ReadAt(got, 0)
	if string(got[:n]) != want || !errors.Is(err, io.EOF) {
		t.Errorf("expected %q and io.EOF, got %q, %v", want, got[:n], err)
	}
	if size, err := file.Size(); size != int64(len(want)) || err != nil {
		t.Errorf("expected %d bytes, got %d, %v", len(want), size, err)
	}
}

func TestFile(t *testing.T) {
	dir := openDir(t, folder(t))
	file := openFile(t, dir, "0.chunk", Create)
	write(t, file, "0123456789", 0)
	write(t, file, "abc", 4)
	expectText(t, file, "0123abc789")
	if n, err := file.ReadAt(make([]byte, 4), 100); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("behind the end: expected io.EOF, got %d bytes, %v", n, err)
	}
	check(t, "truncate", file.Truncate(5))
	check(t, "reserve", file.Reserve(0, 1<<20))
	check(t, "sync", file.Sync())
	check(t, "drop", file.Drop())
	expectText(t, file, "0123a")
	check(t, "grow", file.Truncate(7))
	expectText(t, file, "0123a\x00\x00")
	again := openFile(t, dir, "0.chunk", Create)
	expectText(t, again, "0123a\x00\x00")
	other := openFile(t, dir, "1.chunk", Create)
	check(t, "copy", other.CopyFrom(file, 1, 3, 0))
	expectText(t, other, "123")
	check(t, "sync the folder", dir.Sync())
	check(t, "writable", dir.Writable())
}

func TestNamesAndSizes(t *testing.T) {
	path := folder(t)
	dir := openDir(t, path)
	write(t, openFile(t, dir, "a", Create), "12345", 0)
	openFile(t, dir, "b", Create)
	check(t, "mkdir", os.Mkdir(filepath.Join(path, "folder"), 0o777))
	names, err := dir.Names()
	slices.Sort(names)
	if !slices.Equal(names, []string{"a", "b", "folder"}) || err != nil {
		t.Errorf("expected a, b and folder, got %q, %v", names, err)
	}
	if size, err := dir.SizeOf("a"); size != 5 || err != nil {
		t.Errorf("expected 5 bytes, got %d, %v", size, err)
	}
	if _, err := dir.SizeOf("missing"); !IsNotExist(err) || PathOf(err) != filepath.Join(path, "missing") {
		t.Errorf("expected a missing file with its path, got %v", err)
	}
	for _, flag := range []Flag{Read, Write, Create} {
		if _, err := dir.Open("folder", flag); !IsNotRegular(err) {
			t.Errorf("flag %d: expected the folder to be refused, got %v", flag, err)
		}
	}
	if _, err := dir.SizeOf("folder"); !IsNotRegular(err) {
		t.Errorf("expected the folder to have no size, got %v", err)
	}
	for _, flag := range []Flag{Read, Write} {
		if _, err := dir.Open("missing", flag); !IsNotExist(err) || Errno(err) != 2 {
			t.Errorf("flag %d: expected a missing file and errno 2, got %v and %d", flag, err, Errno(err))
		}
	}
}

// What is open here may be renamed over, and removed, as on any system.
func TestRenameAndRemoveOpenFiles(t *testing.T) {
	dir := openDir(t, folder(t))
	old := openFile(t, dir, "store.zr", Create)
	write(t, old, "old", 0)
	check(t, "close", old.Close())
	made := openFile(t, dir, "store.tmp", Create)
	write(t, made, "new", 0)
	check(t, "rename", dir.Rename("store.tmp", "store.zr"))
	check(t, "close", made.Close())
	file := openFile(t, dir, "store.zr", Read)
	expectText(t, file, "new")
	if current, err := file.Current(); !current || err != nil {
		t.Errorf("expected the name to lead to the file, got %v, %v", current, err)
	}
	check(t, "remove", dir.Remove("store.zr"))
	if err := dir.Remove("missing"); !IsNotExist(err) {
		t.Errorf("expected a missing file, got %v", err)
	}
	check(t, "close", file.Close())
	if _, err := dir.Open("store.zr", Read); !IsNotExist(err) {
		t.Errorf("expected the file to be gone, got %v", err)
	}
}

func TestReplacedFileIsNotCurrent(t *testing.T) {
	dir := openDir(t, folder(t))
	file := openFile(t, dir, "meta.zr", Create)
	check(t, "rename away", dir.Rename("meta.zr", "other"))
	if current, err := file.Current(); current || err != nil {
		t.Errorf("no such name: expected false, got %v, %v", current, err)
	}
	openFile(t, dir, "meta.zr", Create)
	if current, err := file.Current(); current || err != nil {
		t.Errorf("another file: expected false, got %v, %v", current, err)
	}
}

func TestLinksAreNotWrittenThrough(t *testing.T) {
	path := folder(t)
	dir := openDir(t, path)
	openFile(t, dir, "a", Create)
	check(t, "link", os.Link(filepath.Join(path, "a"), filepath.Join(path, "b")))
	if _, err := dir.Open("b", Write); !errors.Is(err, ErrLink) || !IsReadOnly(err) {
		t.Errorf("a second name: expected ErrLink, got %v", err)
	}
	openFile(t, dir, "b", Read)
	openFile(t, dir, "c", Create)
	err := os.Symlink("c", filepath.Join(path, "d"))
	if _, statErr := os.Stat(filepath.Join(path, "d")); err != nil || statErr != nil {
		t.Skipf("no symbolic links here: %v, %v", err, statErr)
	}
	openFile(t, dir, "d", Read)
	if _, err := dir.Open("d", Write); !errors.Is(err, ErrLink) {
		t.Errorf("a symbolic link: expected ErrLink, got %v", err)
	}
}

func tryLock(t *testing.T, file File, exclusive, want bool) {
	t.Helper()
	if got, err := file.TryLock(exclusive); got != want || err != nil {
		t.Errorf("lock of %s, exclusive %v: expected %v, got %v, %v", file.Path(), exclusive, want, got, err)
	}
}

func TestLocks(t *testing.T) {
	dir := openDir(t, folder(t))
	a := openFile(t, dir, "meta.zr", Create)
	b := openFile(t, dir, "meta.zr", Read)
	write(t, a, "text", 0)
	tryLock(t, a, false, true)
	tryLock(t, b, false, true)
	tryLock(t, a, true, false) // and may have lost its own
	tryLock(t, a, false, true)
	check(t, "unlock", b.Unlock())
	check(t, "unlock again", b.Unlock())
	tryLock(t, a, true, true)
	tryLock(t, b, false, false)
	expectText(t, b, "text") // what is locked can be read, and written
	write(t, a, "TEXT", 0)
	tryLock(t, a, false, true)
	tryLock(t, b, false, true)
	check(t, "close", a.Close())
	tryLock(t, b, true, true)
}

func TestMapping(t *testing.T) {
	dir := openDir(t, folder(t))
	file := openFile(t, dir, "0.chunk", Create)
	if _, err := file.Map(0); err == nil {
		t.Error("expected a mapping of nothing to be refused")
	}
	write(t, file, strings.Repeat("0123456789", 1000), 0)
	m, err := file.Map(9990)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, "abc", 0)
	write(t, file, "more", 10_000) // a mapped file can grow
	if got := m.Bytes(); len(got) != 9990 || !bytes.HasPrefix(got, []byte("abc3456789")) {
		t.Errorf("expected 9990 bytes as written, got %d, %.10q", len(got), got)
	}
	// Cut where it is mapped: what is left there is nothing, or zeros.
	check(t, "truncate", file.Truncate(5))
	rest := make([]byte, 20_000)
	n, err := file.ReadAt(rest, 0)
	if !errors.Is(err, io.EOF) || n < 5 || string(rest[:5]) != "abc34" || len(bytes.Trim(rest[5:n], "\x00")) > 0 {
		t.Errorf("expected abc34 and zeros at most, got %d bytes, %.20q, %v", n, rest[:n], err)
	}
	check(t, "unmap", m.Close())
	check(t, "truncate", file.Truncate(5))
	expectText(t, file, "abc34")
	t.Setenv("LOADERX_NO_MMAP", "1")
	if _, err := openFile(t, openDir(t, dir.Path()), "0.chunk", Read).Map(1); !errors.Is(err, ErrNoMapping) {
		t.Errorf("expected ErrNoMapping, got %v", err)
	}
}

// Paths longer than Windows takes without a prefix, and names in any script.
func TestLongAndForeignPaths(t *testing.T) {
	path := filepath.Join(folder(t), "store of Łódź, 東京, 😀")
	for range 12 {
		path = filepath.Join(path, strings.Repeat("long name ", 3)+"x")
	}
	changed, err := OS().MakeDirs(path)
	if err != nil || len(changed) != 13 || changed[0] != filepath.Dir(filepath.Dir(changed[2])) {
		t.Fatalf("expected 13 folders changed from the top, got %d: %q, %v", len(changed), changed, err)
	}
	if changed, err := OS().MakeDirs(path); len(changed) != 0 || err != nil {
		t.Errorf("expected nothing to do, got %q, %v", changed, err)
	}
	dir := openDir(t, path)
	file := openFile(t, dir, "0.chunk", Create)
	write(t, file, "here", 0)
	expectText(t, openFile(t, dir, "0.chunk", Read), "here")
	check(t, "close", file.Close())
	check(t, "rename", dir.Rename("0.chunk", "1.chunk"))
	if names, err := dir.Names(); !slices.Equal(names, []string{"1.chunk"}) || err != nil {
		t.Errorf("expected 1.chunk, got %q, %v", names, err)
	}
	if current, err := file.Current(); current || err == nil {
		t.Errorf("a closed file: expected an error, got %v, %v", current, err)
	}
}

func TestNotAFolder(t *testing.T) {
	path := filepath.Join(folder(t), "file")
	check(t, "write", os.WriteFile(path, []byte("x"), 0o666))
	for name, err := range map[string]error{
		"OpenDir of a file":      second(OS().OpenDir(path)),
		"MakeDirs below a file":  second(OS().MakeDirs(filepath.Join(path, "a", "b"))),
		"MakeDirs right below":   second(OS().MakeDirs(filepath.Join(path, "a"))),
		"OpenDir of what is not": second(OS().OpenDir(path + "x")),
	} {
		want := IsNotDir
		if strings.HasSuffix(name, "is not") {
			want = IsNotExist
		}
		if !want(err) || Errno(err) == 0 {
			t.Errorf("%s: got %v (errno %d)", name, err, Errno(err))
		}
	}
}

func second[T any](_ T, err error) error { return err }
