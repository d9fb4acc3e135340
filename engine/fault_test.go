package engine

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"loaderx/engine/internal/vfs/faultfs"
	"loaderx/engine/internal/vfs/memfs"
)

// Failing disks (RELIABILITY 2, T4). A scripted workload is run again and
// again, and each time another of its file operations fails: once, or from
// then on until the call of the engine returns. The call has to say so, the
// store has to hold what it must, and nothing may be left open. Then a crash
// comes on top.

// breakage is how an operation fails.
type breakage string

const (
	eio       breakage = "EIO"
	enospc    breakage = "ENOSPC"
	eintr     breakage = "EINTR"
	short     breakage = "half a write"
	whole     breakage = "a whole write that fails"
	lostSync  breakage = "a sync that fails"
	lostPages breakage = "a sync that fails and drops the pages"
)

var breakages = []breakage{eio, enospc, eintr, short, whole, lostSync, lostPages}

// fits tells whether an operation can fail like this.
func (b breakage) fits(kind faultfs.Kind) bool {
	switch b {
	case short, whole:
		return kind == faultfs.Write
	case lostSync:
		return kind == faultfs.Sync // a folder would not be good for anything afterwards
	case lostPages:
		return kind == faultfs.Sync || kind == faultfs.SyncDir
	case enospc:
		switch kind {
		case faultfs.Write, faultfs.Reserve, faultfs.Open, faultfs.Copy, faultfs.MakeDirs, faultfs.Rename:
			return true
		}
		return false
	}
	return true
}

// fault is an operation that fails.
type fault struct {
	how     breakage
	at      int // its number
	forever bool
	kind    faultfs.Kind // what it struck first
	name    string
}

func (f *fault) String() string {
	s := fmt.Sprintf("%s of operation %d (%s %s)", f.how, f.at, f.kind, f.name)
	if f.forever {
		s += ", and of all later ones"
	}
	return s
}

// strike fails the operation if it is its turn.
func (f *fault) strike(r *rig, op *faultfs.Op) (bool, error) {
	if f.how == "" || r.ops != f.at && !(f.forever && r.hit) || !f.how.fits(op.Kind) {
		return false, nil
	}
	if !r.hit {
		r.hit, f.kind, f.name = true, op.Kind, op.Name
	}
	switch f.how {
	case enospc:
		return true, syscall.ENOSPC
	case eintr:
		return true, syscall.EINTR
	case short:
		_, _ = op.File.WriteAt(op.Data[:len(op.Data)/2], op.Off)
	case whole:
		_, _ = op.File.WriteAt(op.Data, op.Off)
	case lostSync, lostPages:
		r.lost = true
		loseAt(op, f.how == lostPages)
	}
	return true, syscall.EIO
}

// surfaces tells whether a call of the engine must report the fault. Closing
// and unlocking come after the work is done; a compaction makes do with the
// room that it gets; and what looks wrong is looked at twice (FORMAT 7.3).
func (f *fault) surfaces(call string) bool {
	if f == nil || f.how == enospc && strings.Contains(call, "compact") {
		return false
	}
	switch f.kind {
	case faultfs.Close, faultfs.Unlock, faultfs.Map:
		return false
	case faultfs.OpenDir, faultfs.SyncDir:
		return f.name != "/" || f.forever // it was there: see makeDurable
	case faultfs.Open, faultfs.Size, faultfs.Read, faultfs.Names:
		return f.forever
	}
	return true
}

// faultRun runs the script with a fault.
func faultRun(c setting, ops string, f *fault, seed uint64) (r *run, err error) {
	r = newRun(seed, nil, &counters{}, script{ops: ops, per: 2, deep: never})
	r.setting, r.lossy, r.hard = c, false, true
	r.rng = rand.New(rand.NewPCG(seed, 9))
	r.rig.once = f
	defer func() {
		if p := recover(); p != nil {
			stack := make([]byte, 8<<10)
			err = fmt.Errorf("panic: %v\n%s", p, stack[:runtime.Stack(stack, false)])
		}
		if err != nil {
			err = fmt.Errorf("%v: %v: seed %d: %w", r.setting, f, seed, err)
		}
	}()
	if err := r.begin(); err != nil {
		if !r.rig.hit {
			return r, err
		}
		if err := r.beginAgain(); err != nil {
			return r, fmt.Errorf("after creating failed (%v): %w", err, err)
		}
	} else if r.rig.hit && f.surfaces("create") {
		return r, fmt.Errorf("create: %v did not surface", f)
	}
	if r.rig.hit {
		r.rig.calm()
	}
	if err := r.workOn(0); err != nil {
		return r, err
	}
	if err := r.s.Close(); err != nil && !r.rig.hit {
		return r, fmt.Errorf("close: %w", err)
	} else if err == nil && r.rig.hit && f.surfaces("close") {
		return r, fmt.Errorf("close: %v did not surface", f)
	}
	if open, locks := r.rig.mem.Handles(); open > 0 || locks > 0 {
		return r, fmt.Errorf("%d handles and %d locks were left", open, locks)
	}
	return r, r.afterwards()
}

// beginAgain makes the store after the first attempt failed.
func (r *run) beginAgain() (err error) {
	r.rig.calm()
	if open, locks := r.rig.mem.Handles(); open > 0 || locks > 0 {
		return fmt.Errorf("%d handles and %d locks were left", open, locks)
	}
	if r.s, err = Open(storePath, r.options()); err == nil && !r.version4 {
		// It may be there already, and its name not yet durable.
		k := contents{}.key()
		r.note("create", []uint64{noStore, k}, []uint64{k}, 0)
	}
	return err
}

// afterwards crashes the log at a few points, for some of the faults.
func (r *run) afterwards() error {
	rng := rand.New(rand.NewPCG(r.seed, uint64(r.rig.once.at)))
	if rng.IntN(4) > 0 {
		return nil
	}
	r.at = func(op memfs.Op) bool { return op.Kind <= memfs.Sync && rng.IntN(150) == 0 }
	return r.crash()
}

// ours is the number of goroutines that run code of the engine. The runtime
// starts some of its own when it likes.
func ours() (n int, stacks string) {
	b := make([]byte, 256<<10)
	stacks = string(b[:runtime.Stack(b, true)])
	for one := range strings.SplitSeq(stacks, "\n\n") {
		if strings.Contains(one, "loaderx/engine") {
			n++
		}
	}
	return n, stacks
}

func TestFaults(t *testing.T) {
	before, _ := ours()
	raw, frames, dict := Raw, Zstd, ZstdDict
	dense := denseOptions(12, raw)
	dense.Limits, dense.round = Limits{Chunk: 120, Segment: 4, Record: 60}, 60
	ragged := raggedOptions(frames)
	ragged.Limits = Limits{Chunk: 300, Segment: 16, Record: 100}
	withDict := denseOptions(12, dict)
	withDict.Limits, withDict.Dict = Limits{Chunk: 240, Segment: 8}, testDict()
	const ops = "append sync abort delete compact append mixed delete reopen snapshot append"
	for _, c := range []setting{{o: dense}, {o: ragged}, {o: withDict}, {o: dense, version4: true}, {o: ragged, version4: true}} {
		t.Run(c.String(), func(t *testing.T) { everyFault(t, c, ops) })
	}
	for range 1000 { // those that have just returned
		if after, _ := ours(); after <= before {
			return
		}
		runtime.Gosched()
	}
	after, stacks := ours()
	t.Errorf("%d goroutines before, %d after:\n%s", before, after, stacks)
}

// everyFault lets each operation of a script fail in each way.
func everyFault(t *testing.T, c setting, ops string) {
	const seed = 3
	calm := &fault{}
	r, err := faultRun(c, ops, calm, seed)
	if err != nil {
		t.Fatal(err)
	}
	var faults []fault
	for k, kind := range r.rig.seen {
		for _, how := range breakages {
			if how.fits(kind) && (how != eintr || k%4 == 0) {
				faults = append(faults, fault{how: how, at: k + 1}, fault{how: how, at: k + 1, forever: true})
			}
		}
	}
	stride := 1
	if testing.Short() {
		stride = 17
	}
	var next, ran, failed atomic.Int64
	var done sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		done.Go(func() {
			for failed.Load() < 5 {
				k := int(next.Add(1)-1) * stride
				if k >= len(faults) {
					return
				}
				ran.Add(1)
				if _, err := faultRun(c, ops, &faults[k], seed); err != nil {
					failed.Add(1)
					t.Error(err)
				}
			}
		})
	}
	done.Wait()
	t.Logf("%d operations, %d faults", len(r.rig.seen), ran.Load())
}
