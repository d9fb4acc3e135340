package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"loaderx/engine/internal/vfs/memfs"
)

// A process dies at change 1, 2, 3 ... of an operation, until none is left to
// die at. The next one appends and syncs, and the power fails around that: what
// it has synced must not depend on what the dead one left unsynced.
func TestKilledThenSynced(t *testing.T) {
	if testing.Short() {
		t.Skip("not in short runs: they are for the race detector, which has nothing to see here")
	}
	raw, frames := Raw, Zstd
	dense := denseOptions(12, raw)
	dense.Limits, dense.round = Limits{Chunk: 600, Segment: 4}, 30
	ragged := raggedOptions(frames)
	ragged.Limits = Limits{Chunk: 2000, Segment: 4, Record: 100}
	for _, c := range []setting{{o: dense}, {o: ragged}, {o: dense, version4: true}} {
		for _, victim := range []string{"create", "append", "abort", "delete", "compact", "sync", "mixed"} {
			if victim == "create" && c.version4 {
				continue
			}
			t.Run(fmt.Sprintf("%v/%s", c, victim), func(t *testing.T) {
				t.Parallel()
				for k := 1; ; k++ {
					died, err := killedThenSynced(c, victim, k)
					if err != nil {
						t.Fatalf("killed at change %d: %v", k, err)
					}
					if !died {
						t.Logf("died %d times", k-1)
						return
					}
				}
			})
		}
	}
}

// killedThenSynced tells whether the operation had a k-th change to die at.
func killedThenSynced(c setting, victim string, k int) (died bool, err error) {
	ops := "append append sync " + victim + " append sync"
	if victim == "create" {
		ops = "append sync"
	}
	r := newRun(uint64(k), nil, &counters{}, script{ops: ops, per: 4, deep: never})
	r.setting, r.lossy, r.hard = c, false, true
	r.kill, r.left = k, 2
	if victim == "create" {
		r.left = -1
		r.rig.kill = k
	}
	if err := r.begin(); err != nil {
		if !errors.Is(err, errKilled) {
			return false, err
		}
		died = true
		if err := r.beginAgain(); err != nil {
			return died, err
		}
	}
	r.rig.calm()
	if err := r.workOn(0); err != nil {
		return died, err
	}
	for _, s := range r.steps {
		died = died || strings.HasPrefix(s.op, "cut")
	}
	if err := r.s.Close(); err != nil {
		return died, err
	}
	from, n := r.steps[max(0, len(r.steps)-4)].end, 0
	r.at = func(op memfs.Op) bool {
		n++
		return op.Kind != memfs.Lock && n >= from
	}
	return died, r.crash()
}
