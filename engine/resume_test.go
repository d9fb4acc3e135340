package engine

import (
	"fmt"
	"testing"
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
			before := "append append sync"
			if victim == "create" {
				before = ""
			}
			t.Run(fmt.Sprintf("%v/%s", c, victim), func(t *testing.T) {
				t.Parallel()
				for k := 1; ; k++ {
					died, err := killedThen(c, uint64(k), before, victim, "append sync", k, 4)
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
