package engine

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"loaderx/engine/internal/vfs"
	"loaderx/engine/internal/vfs/memfs"
)

// Crash enumeration (RELIABILITY 2, T1 and T2). A seeded workload runs on a
// file system in memory that logs every change. Then each point of the log is
// crashed: as a killed process leaves it, and in many ways as a power cut may.
// What each state shows is held against what FORMAT 7.5 promises.
//
// A part of fixed size runs with the other tests. The soak runs for as long as
// it is told, on seeds that no other run has used:
//
//	go test ./engine -run Soak -timeout 0 -soak 30m
var soak = flag.Duration("soak", 0, "how long the soak tests run")

// TestMain lets garbage lie: the crash tests make a lot of it, all small.
func TestMain(m *testing.M) {
	if path := os.Getenv(victimPath); path != "" {
		victim(path)
		return
	}
	if dir := os.Getenv(fullDir); dir != "" {
		fullChild(dir)
		return
	}
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// step is an operation of a workload, and what crashes may show of it.
type step struct {
	end    int // position in the log when it returned
	op     string
	flight []uint64 // keys that a power cut inside may leave, in order
	done   []uint64 // that a later one may; the last is what is there
	floor  uint64   // durable from here on; 0: nothing new is
	settle []uint64 // of a cut operation: done, once a writer has worked on what it left
	wrote  bool     // a writer did, and lived
}

// counters are the states that were looked at, by kind.
type counters struct{ kill, power, live, again, workloads atomic.Int64 }

func (c *counters) states() int64 {
	return c.kill.Load() + c.power.Load() + c.live.Load() + c.again.Load()
}

func (c *counters) String() string {
	return fmt.Sprintf("%d workloads; states after a kill %d, after a power cut %d, beside a writer %d, after a crash inside recovery %d",
		c.workloads.Load(), c.kill.Load(), c.power.Load(), c.live.Load(), c.again.Load())
}

// run is one workload and its crashes.
type run struct {
	setting
	rng    *rand.Rand
	seed   uint64
	rig    *rig
	s      *Store
	now    contents
	steps  []step
	mapped bool // stores are read through mappings
	lossy  bool // a sync may fail
	hard   bool // a version 4 store is durable
	count  *counters
	per    int // power states per position
	deep   int // one state in so many is crashed again while it recovers
	inner  int // power states per position of such a recovery
	snaps  []snapshotMade
	plan   []string // names of operations to come; else they are drawn
	last   bool     // crash only inside the last operation
	at     func(memfs.Op) bool
	kill   int // the process dies at this change of the operation after which left remain
	left   int
}

// script narrows a workload down to what a certain bug needs.
type script struct {
	ops   string // undisturbed, in this order; "": drawn
	fits  func(setting) bool
	lossy bool
	last  bool // crash only inside the last operation
	per   int
	deep  int
	inner int
	at    func(memfs.Op) bool // crash only after these changes; nil: all
}

// snapshotMade is a finished copy.
type snapshotMade struct {
	path string
	end  int
	key  uint64
}

func newRun(seed uint64, bug func(vfs.FS) vfs.FS, count *counters, to script) *run {
	rng := rand.New(rand.NewPCG(seed, 5))
	r := &run{seed: seed, rng: rng, setting: newSetting(rng), rig: newRig(memfs.New(), bug), count: count}
	for to.fits != nil && !to.fits(r.setting) {
		r.setting = newSetting(rng)
	}
	if r.mapped = rng.IntN(2) == 0; !r.mapped {
		r.rig.mem.Unmappable()
	}
	r.lossy = to.lossy || rng.IntN(5) == 0
	r.plan, r.last = strings.Fields(to.ops), to.last
	r.at = to.at
	if r.at == nil {
		r.at = func(op memfs.Op) bool { return op.Kind != memfs.Lock }
	}
	r.per, r.deep, r.inner = cmp.Or(to.per, 5), cmp.Or(to.deep, 100), cmp.Or(to.inner, 3)
	return r
}

func (r *run) options() Options {
	o := r.o
	o.fs = r.rig.top
	return o
}

// note adds a step that has just ended.
func (r *run) note(op string, flight, done []uint64, floor uint64) {
	wrote := r.s != nil && r.s.w != nil && !strings.HasPrefix(op, "cut")
	r.steps = append(r.steps, step{end: r.rig.mem.Len(), op: op, flight: flight, done: done, floor: floor, wrote: wrote})
}

// begin makes the store.
func (r *run) begin() (err error) {
	if r.version4 {
		items := r.items(r.rng, 1+r.rng.IntN(12))
		r.now = image4(r.rig.mem, r.setting, r.rng, items)
		k, floor := r.now.key(), uint64(0)
		if r.rng.IntN(2) == 0 || r.hard { // else 1.7.7 has just written it
			r.rig.mem.Settle()
			floor = k
		}
		r.note("version 4", []uint64{k}, []uint64{k}, floor)
		r.s, err = Open(storePath, r.options())
		return err
	}
	r.note("start", []uint64{noStore}, []uint64{noStore}, noStore)
	r.s, err = Open(storePath, r.options())
	k := contents{}.key()
	if err == nil {
		r.note("create", []uint64{noStore, k}, []uint64{k}, k)
	}
	return err
}

// prefixes is the keys of c with 1, 2 ... all records of added.
func prefixes(c, added contents) []uint64 {
	var keys []uint64
	for n := range added {
		keys = append(keys, append(c[:len(c):len(c)], added[:n+1]...).key())
	}
	return keys
}

// allowed is what a power cut may leave: the states since the latest durable
// one, and those in flight. It is nil if nothing was ever durable.
func (r *run) allowed(upto int, flight []uint64) map[uint64]bool {
	d := upto - 1
	for d >= 0 && r.steps[d].floor == 0 {
		d--
	}
	if d < 0 {
		return nil
	}
	set := map[uint64]bool{r.steps[d].floor: true}
	for i, s := range r.steps[d:upto] {
		done := s.done
		if s.settle != nil && slices.ContainsFunc(r.steps[d+i:upto], func(later step) bool { return later.wrote }) {
			done = s.settle
		}
		for _, k := range done {
			set[k] = true
		}
	}
	for _, k := range flight {
		set[k] = true
	}
	return set
}

// operation is what a step of a workload is going to do.
type operation struct {
	name   string
	do     func() error
	after  contents // if it works
	flight []uint64
	done   []uint64
	floor  uint64
}

// drawn is the operations with the odds of each in 30.
var drawn = []struct {
	name string
	odds int
}{
	{"append", 10}, {"abort", 2}, {"mixed", 2}, {"delete", 6}, {"compact", 3},
	{"begin-to-compact", 1}, {"sync", 3}, {"snapshot", 1}, {"reopen", 2},
}

// pick chooses the next operation.
func (r *run) pick() operation {
	if len(r.plan) > 0 {
		name := r.plan[0]
		r.plan = r.plan[1:]
		return r.operation(name)
	}
	k := r.rng.IntN(30)
	for _, d := range drawn {
		if k -= d.odds; k < 0 {
			return r.operation(d.name)
		}
	}
	panic("the odds are not 30")
}

// operation makes one of the drawn operations. A store with few records gets
// some instead.
func (r *run) operation(name string) operation {
	if len(r.now) < 3 {
		return r.pickAppend("append")
	}
	switch name {
	case "append", "abort", "mixed":
		return r.pickAppend(name)
	case "delete":
		return r.pickDelete()
	case "compact":
		return r.durable(name, r.now, func() error { return compact(r.s, -1) })
	case "begin-to-compact":
		steps := 1 + r.rng.IntN(3)
		return r.durable(name, r.now, func() error { return compact(r.s, steps) })
	case "sync":
		return r.ifWriter(r.durable(name, r.now, func() error { return r.s.Sync() }))
	case "snapshot":
		return r.pickSnapshot()
	case "reopen":
		return r.ifWriter(r.durable(name, r.now, func() (err error) {
			if err = r.s.Close(); err != nil {
				return err
			}
			s, err := Open(storePath, r.options())
			if err == nil {
				r.s = s
			}
			return err
		}))
	}
	panic("no operation " + name)
}

func (r *run) pickDelete() operation {
	n := len(r.now)
	gone := map[int]bool{}
	var index []int64
	for range 1 + r.rng.IntN(max(1, n/2)) {
		i := r.rng.IntN(n)
		gone[i] = true
		index = append(index, int64(i))
	}
	var order []int64
	for i := n - 1; i >= 0; i-- {
		if gone[i] {
			order = append(order, int64(i))
		}
	}
	return r.durable("delete", r.now.without(order), func() error { return r.s.Delete(index) })
}

// ifWriter takes back the promise that op makes something durable if this
// handle has written nothing: of what others wrote it says nothing.
func (r *run) ifWriter(op operation) operation {
	if r.s.w == nil {
		op.floor = 0
	}
	return op
}

// durable is an operation that is on disk when it returns.
func (r *run) durable(name string, after contents, do func() error) operation {
	k := after.key()
	return operation{name, do, after, []uint64{k}, []uint64{k}, k}
}

func (r *run) pickSnapshot() operation {
	path := fmt.Sprintf("/data/copy%d", len(r.steps))
	op := r.durable("snapshot", r.now, func() error {
		task, err := r.s.Snapshot(path)
		if err != nil {
			return err
		}
		if err := task.Run(); err != nil {
			return err
		}
		r.snaps = append(r.snaps, snapshotMade{path, r.rig.mem.Len(), r.now.key()})
		return nil
	})
	op.floor = 0
	return op
}

func (r *run) pickAppend(name string) operation {
	parts := make([][]item, 1+r.rng.IntN(3))
	var added contents
	for i := range parts {
		parts[i] = r.items(r.rng, 1+r.rng.IntN(6))
		added = append(added, asContents(parts[i])...)
	}
	grown := prefixes(r.now, added)
	before := r.now.key()
	op := operation{name: name, after: append(r.now[:len(r.now):len(r.now)], added...), flight: grown, done: grown}
	op.do = func() error { return appendItems(r.s, parts...) }
	if name == "append" {
		return op
	}
	half := 1 + r.rng.IntN(len(parts))
	op.do = func() error {
		b, err := r.s.Begin()
		if err != nil {
			return err
		}
		for _, p := range parts[:half] {
			if err := addItems(b, p); err != nil {
				return errors.Join(err, b.Abort())
			}
		}
		if name == "abort" {
			return b.Abort()
		}
		if err := r.s.Sync(); err != nil { // beside the open batch
			return errors.Join(err, b.Abort())
		}
		for _, p := range parts[half:] {
			if err := addItems(b, p); err != nil {
				return errors.Join(err, b.Abort())
			}
		}
		_, err = b.Commit()
		return err
	}
	if name == "abort" {
		op.after, op.done = r.now, []uint64{before}
	}
	return op
}

// disturb arms a fault for the next operation.
func (r *run) disturb(name string, scripted bool) {
	g := r.rig
	if r.kill > 0 && len(r.plan) == r.left {
		g.kill = r.kill
	}
	if scripted && !r.lossy {
		return
	}
	switch k := r.rng.IntN(10); {
	case r.lossy && k < 3 && r.allowed(len(r.steps), nil) != nil:
		g.lose, g.drop = r.rng.IntN(6), r.rng.IntN(2) == 0
	case k < 2 || r.version4 && k < 4:
		g.kill = 1 + r.rng.IntN(30)
	case k < 6 && (name == "append" || name == "delete" || name == "compact"):
		g.full = r.rng.IntN(10)
	}
}

// work runs n operations.
func (r *run) work(n int) error {
	if err := r.begin(); err != nil {
		return fmt.Errorf("making the store: %w", err)
	}
	return r.workOn(n)
}

// workOn runs n operations, or those of the plan, on a store that is there.
func (r *run) workOn(n int) error {
	scripted := len(r.plan) > 0
	if scripted {
		n = len(r.plan)
	}
	for range n {
		op := r.pick()
		r.disturb(op.name, scripted)
		err := op.do()
		if r.s != nil {
			r.s.settled()
		}
		hit, killed, lost := r.rig.hit, r.rig.kill == 0, r.rig.lost
		if !killed {
			r.rig.calm()
		}
		switch {
		case err == nil && !killed && hit && r.rig.once.surfaces(op.name):
			return fmt.Errorf("%s: %v did not surface", op.name, r.rig.once)
		case err == nil && !killed && !r.s.poisoned():
			r.now = op.after
			r.note(op.name, op.flight, op.done, op.floor)
		case hit && !killed && !lost && !r.s.poisoned():
			k := r.now.key() // a failed operation changed nothing
			r.note("abort "+op.name, op.flight, []uint64{k}, 0)
		case hit:
			if err := r.again(op, killed, lost); err != nil {
				return err
			}
			if r.rig.mem.Stuck("") { // the machine has to be started anew
				return nil
			}
		default:
			return fmt.Errorf("%s: %w", op.name, err)
		}
		if err := r.same(r.s, op.name); err != nil {
			return err
		}
	}
	return nil
}

// again opens the store after its process was killed or a sync failed, and
// finds out what became of the operation.
func (r *run) again(op operation, killed, lost bool) (err error) {
	if lost {
		if err := r.besidePoisoned(op); err != nil {
			return fmt.Errorf("beside a handle whose sync failed in %s: %w", op.name, err)
		}
	}
	_ = r.s.Close()
	r.rig.calm()
	r.note("cut "+op.name, op.flight, append([]uint64{r.now.key()}, op.flight...), 0)
	if r.s, err = Open(storePath, r.options()); err != nil {
		return fmt.Errorf("open after %s was cut: %w", op.name, err)
	}
	got, err := readAll(r.s)
	if err != nil {
		return fmt.Errorf("read after %s was cut: %w", op.name, err)
	}
	whole := map[uint64]bool{r.now.key(): true, op.after.key(): true}
	if lost {
		whole = r.allowed(len(r.steps), nil)
	}
	if !whole[got.key()] {
		return fmt.Errorf("%s was cut (killed: %v) and left %d records of %d before and %d after", op.name, killed, len(got), len(r.now), len(op.after))
	}
	recovered := false
	if r.rig.mem.Stuck(storePath) {
		if err := r.s.Sync(); err == nil && r.s.w != nil {
			return errors.New("recovery without syncing the folder")
		}
	} else if lost || r.rng.IntN(2) == 0 {
		if err := r.s.Sync(); err != nil {
			return fmt.Errorf("recovery after %s was cut: %w", op.name, err)
		}
		recovered = r.s.w != nil
	}
	if lost && recovered { // it reads the disk anew, and that may have less
		if got, err = readAll(r.s); err != nil {
			return fmt.Errorf("read after recovering %s: %w", op.name, err)
		}
		if !whole[got.key()] {
			return fmt.Errorf("%s failed, and recovery left %d records of %d before and %d after", op.name, len(got), len(r.now), len(op.after))
		}
	}
	cut := &r.steps[len(r.steps)-1]
	cut.settle = []uint64{r.now.key(), got.key()}
	if n := len(r.now); len(got) > n {
		cut.settle = append(cut.settle, prefixes(r.now, got[n:])...)
	}
	r.now = got
	k, floor := got.key(), uint64(0)
	if recovered {
		floor = k
	}
	r.note("reopen", []uint64{k}, []uint64{k}, floor)
	return nil
}

// besidePoisoned reads beside a handle whose sync has failed, and which has
// not been closed yet (FORMAT 6.5). One that is stuck keeps readers out.
func (r *run) besidePoisoned(op operation) error {
	if r.s.stuck != nil || r.s.closed || r.s.w == nil || r.s.w.broken == nil {
		return nil
	}
	r.rig.calm()
	before, _ := r.rig.mem.Handles()
	got, err := look(r.rig.top, storePath, r.o)
	if err == nil && !r.allowed(len(r.steps), op.flight)[got] {
		err = errors.New("unexpected records")
	}
	if after, _ := r.rig.mem.Handles(); err == nil && after != before {
		err = fmt.Errorf("%d handles before, %d after", before, after)
	}
	return err
}

// same holds an open store against the model.
func (r *run) same(s *Store, op string) error {
	r.rig.idle = true
	defer func() { r.rig.idle = false }()
	got, err := readAll(s)
	if err != nil {
		return fmt.Errorf("read after %s: %w", op, err)
	}
	if got.key() != r.now.key() {
		return fmt.Errorf("after %s: %d records, expected %d, or others", op, len(got), len(r.now))
	}
	return nil
}

// one runs a seed. Panics are errors, too, so that they name it.
func one(seed uint64, bug func(vfs.FS) vfs.FS, count *counters, to script) (err error) {
	r := newRun(seed, bug, count, to)
	defer func() {
		if p := recover(); p != nil {
			stack := make([]byte, 8<<10)
			err = fmt.Errorf("panic: %v\n%s", p, stack[:runtime.Stack(stack, false)])
		}
		if r.s != nil {
			_ = r.s.Close()
		}
		if err != nil {
			err = fmt.Errorf("seed %d (%v): %w", seed, r.setting, err)
		}
	}()
	count.workloads.Add(1)
	if err := r.work(2 + r.rng.IntN(7)); err != nil {
		return err
	}
	return r.crash()
}

// sweepSeeds runs seeds from first on, on all cores, while more says so, and
// reports up to a few failures.
func sweepSeeds(t *testing.T, first uint64, more func(n uint64) bool, to script) *counters {
	t.Helper()
	var count counters
	var next atomic.Uint64
	var failed atomic.Int64
	var done sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		done.Go(func() {
			for failed.Load() < 3 {
				n := next.Add(1) - 1
				if !more(n) {
					return
				}
				if err := one(first+n, nil, &count, to); err != nil {
					failed.Add(1)
					t.Error(err)
				}
			}
		})
	}
	done.Wait()
	return &count
}

func TestCrashes(t *testing.T) {
	if s := os.Getenv("CRASH_SEED"); s != "" { // "SEED", or "SEED soak" for one that the soak printed
		var seed uint64
		var how string
		_, _ = fmt.Sscan(s, &seed, &how)
		to := script{}
		if how == "soak" {
			to = soakScript
		}
		if err := one(seed, nil, &counters{}, to); err != nil {
			t.Fatal(err)
		}
		return
	}
	workloads, states := uint64(110), int64(50_000)
	if testing.Short() {
		workloads, states = 6, 1
	}
	begun := time.Now()
	count := sweepSeeds(t, 0, func(n uint64) bool { return n < workloads }, script{})
	t.Logf("%v; %d in all, %v", count, count.states(), time.Since(begun).Round(time.Millisecond))
	if count.states() < states && !t.Failed() {
		t.Errorf("expected at least %d states, got %d", states, count.states())
	}
}

// soakScript visits more states of each workload: there is time.
var soakScript = script{per: 12}

func TestSoakCrashes(t *testing.T) {
	if *soak == 0 {
		t.Skip("runs only when told for how long: -soak 30m")
	}
	begun := time.Now()
	count := sweepSeeds(t, uint64(begun.UnixNano()), func(uint64) bool { return time.Since(begun) < *soak }, soakScript)
	t.Logf("%v; %d in all, %v", count, count.states(), time.Since(begun).Round(time.Second))
}
