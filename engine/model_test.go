package engine

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"loaderx/engine/internal/vfs/memfs"
)

// model is a store as a list, which every script is compared with.
type model struct {
	t       *testing.T
	rng     *rand.Rand
	mem     *memfs.FS
	o       Options
	s       *Store
	records [][]byte
	made    int
}

func newModel(t *testing.T, seed uint64) *model {
	rng := rand.New(rand.NewPCG(seed, 7))
	codec := everyCodec[rng.IntN(len(everyCodec))]
	o := raggedOptions(codec)
	if rng.IntN(2) == 0 {
		o = denseOptions(12, codec)
	}
	limits := []Limits{{}, {Chunk: 120, Segment: 4, Record: 60}, {Chunk: 4096, Segment: 64}}
	o.Limits = limits[rng.IntN(len(limits))]
	m := &model{t: t, rng: rng, mem: memfs.New(), o: o}
	m.o.fs = m.mem
	m.s = mustOpen(t, storePath, m.o)
	return m
}

func (m *model) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

// record is a new record's bytes.
func (m *model) record() []byte {
	w := 12
	if m.o.Kind == Ragged {
		w = 1 + m.rng.IntN(30)
	}
	m.made++
	return denseRecords(m.made, 1, w)
}

func (m *model) append(commit bool) {
	b, err := m.s.Begin()
	m.must(err)
	var added [][]byte
	for range m.rng.IntN(3) + 1 {
		n := m.rng.IntN(6) + 1
		var payload []byte
		offsets, dims, dimOffs := []int64{0}, []int64(nil), []int64{0}
		for range n {
			r := m.record()
			added = append(added, r)
			payload = append(payload, r...)
			offsets = append(offsets, int64(len(payload)))
			if len(r)%2 == 0 {
				dims = append(dims, 2, int64(len(r)/2))
			} else {
				dims = append(dims, int64(len(r)))
			}
			dimOffs = append(dimOffs, int64(len(dims)))
		}
		if m.o.Kind == Dense {
			m.must(b.AppendDense(payload, int64(n)))
		} else {
			m.must(b.AppendRagged(payload, offsets, dims, dimOffs, 1))
		}
	}
	if !commit {
		m.must(b.Abort())
		return
	}
	first, err := b.Commit()
	m.must(err)
	if first != int64(len(m.records)) {
		m.t.Fatalf("expected first index %d, got %d", len(m.records), first)
	}
	m.records = append(m.records, added...)
}

func (m *model) delete() {
	if len(m.records) == 0 {
		return
	}
	index := make([]int64, m.rng.IntN(5)+1)
	gone := map[int]bool{}
	for k := range index {
		i := m.rng.IntN(len(m.records))
		gone[i] = true
		index[k] = int64(i)
		if m.rng.IntN(2) == 0 {
			index[k] -= int64(len(m.records))
		}
	}
	m.must(m.s.Delete(index))
	for i := len(m.records) - 1; i >= 0; i-- {
		if gone[i] {
			last := len(m.records) - 1
			m.records[i] = m.records[last]
			m.records = m.records[:last]
		}
	}
}

func (m *model) compact() {
	task, err := m.s.Compact()
	m.must(err)
	if m.rng.IntN(4) == 0 {
		_, err = task.Step()
		m.must(err)
		m.must(task.End())
		return
	}
	m.must(task.Run())
	st, err := m.s.Stats()
	m.must(err)
	if st.Reclaimable != 0 || st.Records != int64(len(m.records)) {
		m.t.Fatalf("after compacting: %+v", st)
	}
}

// crash goes on with the files as a killed process would leave them.
func (m *model) crash() {
	left := m.mem.Clone()
	m.must(m.s.Close())
	m.mem, m.o.fs = left, left
	m.s = mustOpen(m.t, storePath, m.o)
}

func (m *model) reopen() {
	m.must(m.s.Close())
	m.s = mustOpen(m.t, storePath, m.o)
}

// check compares every record, and what verify says.
func (m *model) check(s *Store) {
	m.t.Helper()
	index := all(m.t, s)
	if len(index) != len(m.records) {
		m.t.Fatalf("expected %d records, got %d", len(m.records), len(index))
	}
	want := bytes.Join(m.records, nil)
	if m.o.Kind == Dense {
		if got := gatherDense(m.t, s, index, 12); !bytes.Equal(got, want) {
			m.t.Fatal("records differ")
		}
	} else {
		n := len(index)
		dst := RaggedDst{Payload: make([]byte, len(want)), Offsets: make([]int64, n+1), Dims: make([]int64, 2*n), DimOffsets: make([]int64, n+1)}
		m.must(s.GatherRagged(index, 1, dst, 0))
		if !bytes.Equal(dst.Payload, want) {
			m.t.Fatal("records differ")
		}
	}
	task, err := s.Verify(1)
	m.must(err)
	m.must(task.Run())
	if bad, err := task.Bad(0); err == nil {
		m.t.Fatalf("verify: %v", bad)
	}
}

func TestScripts(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := newModel(t, seed)
			for range 40 {
				switch m.rng.IntN(12) {
				case 0, 1, 2, 3:
					m.append(true)
				case 4:
					m.append(false)
				case 5, 6, 7:
					m.delete()
				case 8:
					m.compact()
				case 9:
					m.crash()
				case 10:
					m.reopen()
				case 11:
					m.must(m.s.Sync())
				}
				m.check(m.s)
			}
		})
	}
}
