package engine

import (
	"bytes"
	"testing"
)

// A checkpoint that runs behind makes recovery short, and appends, deletes and
// closing go on beside it.
func TestCheckpointBehind(t *testing.T) {
	for _, codec := range everyCodec {
		dir := t.TempDir()
		o := denseOptions(12, codec)
		o.Limits = Limits{Chunk: 200, Checkpoint: 60}
		s := mustOpen(t, dir, o)
		want := denseRecords(0, 120, 12)
		for k := range 20 {
			appendDense(t, s, want[k*72:(k+1)*72], 12)
		}
		s.settled()
		s.mut.Lock()
		covered, pending := s.w.slot.Meta.Length, s.w.pending
		s.mut.Unlock()
		if covered == 0 || covered < 120 && !pending {
			t.Errorf("%v: a checkpoint of %d records, pending %v, after 120", codec, covered, pending)
		}
		left := crashed(t, dir)
		if err := s.Delete([]int64{119}); err != nil {
			t.Fatal(err)
		}
		if got := gatherDense(t, s, all(t, s), 12); !bytes.Equal(got, want[:119*12]) {
			t.Error("records differ after a delete")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		r := mustOpen(t, left, Options{Kind: Dense, Mode: ModeAppend, Limits: o.Limits})
		if err := r.Sync(); err != nil {
			t.Fatal(err)
		}
		if got := gatherDense(t, r, all(t, r), 12); !bytes.Equal(got, want) {
			t.Error("records differ after recovery")
		}
	}
}
