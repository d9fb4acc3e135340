package engine

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// enterFull makes the child's world small.
func enterFull(dir string) error {
	if os.Getenv(fullLimit) != "" {
		signal.Ignore(unix.SIGXFSZ) // as Python does
		limit := unix.Rlimit{Cur: 80_000, Max: 80_000}
		return unix.Setrlimit(unix.RLIMIT_FSIZE, &limit)
	}
	return unix.Mount("none", dir, "tmpfs", 0, "size=8m")
}

// squeeze leaves so many bytes free on the disk. Where files are limited it
// does nothing.
func squeeze(dir string, free int64) (int64, error) {
	if os.Getenv(fullLimit) != "" {
		return 80_000, nil
	}
	filler, err := os.OpenFile(filepath.Join(dir, "filler"), os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return 0, err
	}
	defer func() { _ = filler.Close() }()
	var st unix.Statfs_t
	if err := errors.Join(unix.Fstatfs(int(filler.Fd()), &st)); err != nil {
		return 0, err
	}
	size, err := filler.Seek(0, 2)
	if err != nil {
		return 0, err
	}
	size = max(0, size+int64(st.Bavail)*st.Bsize-free)
	if err := filler.Truncate(size); err != nil {
		return 0, err
	}
	if size > 0 {
		err = unix.Fallocate(int(filler.Fd()), 0, 0, size)
	}
	return free, err
}

func TestFullDisk(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), fullDir+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() == fullForbidden) {
		t.Skipf("no file system of our own here: %v %s", err, out)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

func TestFileSizeLimit(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), fullDir+"="+t.TempDir(), fullLimit+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
