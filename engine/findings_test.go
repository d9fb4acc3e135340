package engine

import (
	"math/rand/v2"
	"runtime"
	"testing"
)

// What is kept of a record that is bad gives the error back, and is small: a
// store can have millions of them.
func TestFindings(t *testing.T) {
	var f findings
	rng := rand.New(rand.NewPCG(1, 1))
	var want []*Error
	for i := range int64(10_000) {
		offset := rng.Int64N(100) - 1
		want = append(want, badRecord(i, "store/"+numbered(rng.IntN(3), chunkExt), offset, "expected %d, got %%d", rng.IntN(8_000)))
		f.add(want[i])
	}
	for i, w := range want {
		g := f.at(int64(i))
		if g.Message != w.Message || g.Path != w.Path || g.Index != w.Index || g.Offset != w.Offset || g.Status != w.Status {
			t.Fatalf("expected %+v, got %+v", w, g)
		}
	}
}

func TestFindingsAreSmall(t *testing.T) {
	const count = 200_000
	var before, after runtime.MemStats
	task := &Task{step: func() (bool, error) { return false, nil }}
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range int64(count) {
		task.bad = append(task.bad, badRecord(i, "store/"+numbered(0, chunkExt), 8*i, "its checksum is wrong"))
		if len(task.bad) == 1000 {
			if _, err := task.Step(); err != nil {
				t.Fatal(err)
			}
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if each := int64(after.HeapAlloc-before.HeapAlloc) / count; each > 40 {
		t.Errorf("expected at most 40 bytes a bad record, got %d", each)
	}
	if p, err := task.Step(); err != nil || p.Bad != count {
		t.Errorf("expected %d bad records, got %d (%v)", count, p.Bad, err)
	}
}
