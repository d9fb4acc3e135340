package engine

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Killed processes (RELIABILITY 2, T5). A child, this binary run again, appends
// in one goroutine, deletes, compacts and gathers in another, and says on a
// pipe what it is about to do and what is done. It is killed at a random
// moment, recovery included. What was done has to be there, what was under way
// may be, whole or not at all, and nothing else.
const (
	victimPath = "LOADERX_TEST_VICTIM"      // of the store: run as the child
	victimBase = "LOADERX_TEST_VICTIM_BASE" // its first record's number
	victimKind = "LOADERX_TEST_VICTIM_KIND"
)

// victimSetting is the store of a child.
func victimSetting(kind string) setting {
	raw, frames := Raw, Zstd
	if kind == "ragged" {
		o := raggedOptions(frames)
		o.Limits, o.round = Limits{Chunk: 4096, Segment: 64, Checkpoint: 2000}, 1000
		return setting{o: o}
	}
	o := denseOptions(16, raw)
	o.Limits, o.round = Limits{Chunk: 600, Segment: 32, Checkpoint: 1000}, 300
	return setting{o: o}
}

// numbered record id: its bytes follow from its number.
func (c setting) numbered(id uint64) item {
	n := 16
	if c.o.Kind == Ragged {
		n = 8 + int(id%23)
	}
	b := binary.LittleEndian.AppendUint64(nil, id)
	rng := rand.New(rand.NewPCG(id, 3))
	for len(b) < n {
		b = append(b, byte(rng.IntN(4)))
	}
	if c.o.Kind == Dense {
		return item{nil, b}
	}
	return item{[]int64{int64(n)}, b}
}

// victim is the child. It ends when it is killed, or when the pipe is closed.
func victim(path string) {
	base, err := strconv.ParseUint(os.Getenv(victimBase), 10, 64)
	say := func(format string, args ...any) {
		if _, err := fmt.Fprintf(os.Stdout, format+"\n", args...); err != nil {
			os.Exit(0)
		}
	}
	fail := func(err error) {
		if err != nil {
			say("failed %v", err)
			os.Exit(1)
		}
	}
	fail(err)
	c := victimSetting(os.Getenv(victimKind))
	say("start")
	s, err := Open(path, c.o)
	fail(err)
	fail(s.Sync())
	rng := rand.New(rand.NewPCG(base, 4))
	go func() {
		other := rand.New(rand.NewPCG(base, 5))
		for {
			fail(s.shrink(other, say))
		}
	}()
	for id := base; ; {
		n := uint64(1 + rng.IntN(6))
		var items []item
		for k := range n {
			items = append(items, c.numbered(id+k))
		}
		say("append %d %d", id, n)
		fail(patiently(func() error { return appendItems(s, items) }))
		say("done %d %d", id, n)
		if id += n; rng.IntN(8) == 0 {
			fail(s.Sync())
		}
	}
}

// patiently repeats what was refused because the other goroutine is busy.
func patiently(call func() error) error {
	for {
		if err := call(); statusOf(err) != StatusBusy {
			return err
		}
	}
}

// shrink reads all, and deletes some or compacts.
func (s *Store) shrink(rng *rand.Rand, say func(string, ...any)) error {
	c, err := readAll(s)
	if err != nil {
		return err
	}
	if len(c) == 0 {
		return nil
	}
	if rng.IntN(6) == 0 {
		return patiently(func() error { return compact(s, -1) })
	}
	// Only this goroutine deletes, so indices stay what they are.
	index := []int64{int64(rng.IntN(len(c)))}
	for range len(c) / 20 {
		index = append(index, int64(rng.IntN(len(c))))
	}
	var ids []string
	for _, i := range index {
		ids = append(ids, strconv.FormatUint(idOf(c[i]), 10))
	}
	list := strings.Join(ids, " ")
	say("delete %s", list)
	if err := patiently(func() error { return s.Delete(index) }); err != nil {
		return err
	}
	say("gone %s", list)
	return nil
}

// idOf is the number of a record, as shaped gives it.
func idOf(r string) uint64 {
	payload := r[2:]
	if r[:2] != "\x00:" {
		payload = r[10:] // one dimension, its count, and a colon
	}
	return binary.LittleEndian.Uint64([]byte(payload))
}

// ledger is what the pipe has said of each record.
type ledger struct {
	sure, maybe map[uint64]bool
	flight      []uint64 // appended at the moment of death
}

func (l *ledger) line(text string) error {
	f := strings.Fields(text)
	if len(f) == 0 {
		return nil
	}
	var n []uint64
	for _, s := range f[1:] {
		k, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return fmt.Errorf("the child said %q", text)
		}
		n = append(n, k)
	}
	switch f[0] {
	case "append":
		l.flight = nil
		for k := range n[1] {
			l.flight = append(l.flight, n[0]+k)
		}
	case "done":
		for _, id := range l.flight {
			if !l.maybe[id] { // it may be on its way out already
				l.sure[id] = true
			}
		}
		l.flight = nil
	case "delete":
		for _, id := range n {
			delete(l.sure, id)
			l.maybe[id] = true
		}
	case "gone":
		for _, id := range n {
			delete(l.sure, id)
			delete(l.maybe, id)
			// It may be gone before its append has said that it is done.
			l.flight = slices.DeleteFunc(l.flight, func(f uint64) bool { return f == id })
		}
	case "start":
	default:
		return fmt.Errorf("the child said %q", text)
	}
	return nil
}

// settle holds what is in the store against the ledger, which it then equals.
func (l *ledger) settle(c setting, got contents) error {
	there := map[uint64]bool{}
	for _, r := range got {
		id := idOf(r)
		if it := c.numbered(id); r != shaped(it.dims, it.payload) {
			return fmt.Errorf("record %d: other bytes than were appended", id)
		}
		if there[id] {
			return fmt.Errorf("record %d is there twice", id)
		}
		there[id] = true
	}
	for id := range l.sure {
		if !there[id] {
			return fmt.Errorf("record %d was appended and is lost", id)
		}
	}
	landed := 0
	for _, id := range l.flight {
		if there[id] || l.maybe[id] {
			landed++
		}
		l.maybe[id] = true
	}
	if landed != 0 && landed != len(l.flight) {
		return fmt.Errorf("%d of the %d records of an append are there", landed, len(l.flight))
	}
	for id := range there {
		if !l.sure[id] && !l.maybe[id] {
			return fmt.Errorf("record %d is there, but was deleted or never appended", id)
		}
	}
	l.sure, l.maybe, l.flight = there, map[uint64]bool{}, nil
	return nil
}

// onceKilled runs a child and kills it after some lines and a moment more.
func onceKilled(path, kind string, life int, rng *rand.Rand, l *ledger) error {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), victimPath+"="+path, victimKind+"="+kind, fmt.Sprintf("%s=%d", victimBase, (life+1)*1000000))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	kill := func() { _ = cmd.Process.Kill() }
	late := time.AfterFunc(10*time.Second, kill) // a machine that is busy
	defer late.Stop()
	lines, moment := 1+rng.IntN(60), time.Duration(rng.IntN(3000))*time.Microsecond
	in := bufio.NewReader(pipe)
	for n := 1; ; n++ {
		text, readErr := in.ReadString('\n')
		if readErr != nil { // a line cut short was not said
			if readErr != io.EOF {
				err = readErr
			}
			break
		}
		if lineErr := l.line(text); lineErr != nil && err == nil {
			err = lineErr
		}
		if n == lines {
			time.AfterFunc(moment, kill)
		}
	}
	_ = cmd.Wait()
	if stderr.Len() > 0 {
		err = errors.Join(err, errors.New(stderr.String()))
	}
	return err
}

// killMany kills children one after another on one store, while more says so.
func killMany(t *testing.T, kind string, seed uint64, more func(n int) bool) int {
	t.Helper()
	c := victimSetting(kind)
	dir := quickDir(t)
	rng := rand.New(rand.NewPCG(seed, 6))
	l := &ledger{sure: map[uint64]bool{}, maybe: map[uint64]bool{}}
	for life := 0; more(life); life++ {
		err := onceKilled(dir, kind, life, rng, l)
		if err == nil {
			err = l.check(dir, c)
		}
		if err != nil {
			t.Fatalf("%s, seed %d, life %d: %v", kind, seed, life, err)
		}
	}
	return len(l.sure)
}

// check reads the store as the dead child has left it.
func (l *ledger) check(dir string, c setting) error {
	o := c.o
	o.Mode = ModeRead
	s, err := Open(dir, o)
	if statusOf(err) == StatusNotAStore && len(l.sure) == 0 {
		return nil // killed while it was created
	}
	if err != nil {
		return err
	}
	got, err := readAll(s)
	if err == nil {
		err = sound(s)
	}
	if err = errors.Join(err, s.Close()); err != nil {
		return err
	}
	return l.settle(c, got)
}

// quickDir is a folder in memory where there is one: a killed process does not
// depend on the disk, and syncing one takes most of the time.
func quickDir(t *testing.T) string {
	const memory = "/dev/shm"
	if info, err := os.Stat(memory); err == nil && info.IsDir() {
		if dir, err := os.MkdirTemp(memory, "loaderx-test"); err == nil {
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			return dir
		}
	}
	return t.TempDir()
}

func TestKilledProcesses(t *testing.T) {
	lives := 100
	if testing.Short() {
		lives = 5
	}
	for _, kind := range []string{"dense", "ragged"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			n := killMany(t, kind, 1, func(n int) bool { return n < lives })
			t.Logf("%d kills, %d records at the end", lives, n)
		})
	}
}

func TestSoakKilledProcesses(t *testing.T) {
	if *soak == 0 {
		t.Skip("runs only when told for how long: -soak 30m")
	}
	begun := time.Now()
	var wait sync.WaitGroup
	for _, kind := range []string{"dense", "ragged"} {
		wait.Go(func() {
			kills := 0
			killMany(t, kind, uint64(begun.UnixNano()), func(n int) bool { kills = n; return time.Since(begun) < *soak })
			t.Logf("%s: %d kills", kind, kills)
		})
	}
	wait.Wait()
}
