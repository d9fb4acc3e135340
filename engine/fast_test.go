package engine

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"loaderx/engine/internal/move"
)

// raggedRecords appends n records of 0 to 2 dimensions and returns them.
func raggedRecords(t *testing.T, s *Store, n int) (payloads [][]byte, shapes [][]int64) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 4))
	var data []byte
	var dims []int64
	offsets, dimOffsets := []int64{0}, []int64{0}
	for i := range n {
		shape := make([]int64, i%3)
		size := 1
		for d := range shape {
			shape[d] = 1 + r.Int64N(40)
			size *= int(shape[d])
		}
		payload := make([]byte, size)
		for j := range payload {
			payload[j] = byte(r.IntN(9)) // zeros at the end, too
		}
		payloads, shapes = append(payloads, payload), append(shapes, shape)
		data, dims = append(data, payload...), append(dims, shape...)
		offsets, dimOffsets = append(offsets, int64(len(data))), append(dimOffsets, int64(len(dims)))
	}
	b, err := s.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.AppendRagged(data, offsets, dims, dimOffsets, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Commit(); err != nil {
		t.Fatal(err)
	}
	return payloads, shapes
}

// plans are batches of every kind for a store of n records.
func plans(n int64) map[string][]int64 {
	r := rand.New(rand.NewPCG(5, 6))
	p := map[string][]int64{"one": {n / 2}, "last": {-1}}
	for name, size := range map[string]int{"one": 1, "short": 5, "stride": stride, "strides": 5*stride + 7, "ring": ring, "rings": 3*ring + stride + 1} {
		for range size {
			i := r.Int64N(n)
			if r.IntN(3) == 0 {
				i -= n
			}
			p[name] = append(p[name], i)
		}
	}
	for i := range n {
		p["all"] = append(p["all"], i)
		p["all, negative"] = append(p["all, negative"], i-n)
		p["backwards"] = append(p["backwards"], n-1-i)
	}
	p["wraps"] = append(append([]int64{}, p["all"][n-20:]...), p["all"][:30]...)
	p["wraps past zero"] = []int64{-5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8}
	p["runs and strays"] = append(append(append([]int64{}, p["all"][3:17]...), 9, 2, 9), p["all"][1:60]...)
	return p
}

// Each fast way reads what the slow one reads, and does not leave it to the slow one.
func TestFastDenseEqualsSlow(t *testing.T) {
	const n = 500
	sizes := []int{0, move.StreamFrom()} // of batches within the caches, and beyond
	for _, codec := range everyCodec {
		for _, width := range []int{1, 4, 8, 12, 64, 300, 2048, 20_000} {
			for _, deleted := range []bool{false, true} {
				o := denseOptions(width, codec)
				o.Limits.Chunk = int64(width)*200 + 4096
				s := mustOpen(t, t.TempDir(), o)
				data := denseRecords(0, n, width)
				appendDense(t, s, data, width)
				if deleted { // places follow no formula then
					if err := s.Delete([]int64{17, 300}); err != nil {
						t.Fatal(err)
					}
				}
				length := int64(len(all(t, s)))
				for name, index := range plans(length) {
					for _, size := range sizes {
						fast, slow := make([]byte, len(index)*width), make([]byte, len(index)*width)
						err := s.one(s.view.Load(), size, func(c *cursor) error {
							way := c.gatherStaged
							if codec != Raw {
								way = c.gatherFrames
							}
							if !way(index, fast) {
								t.Errorf("%v, %d bytes, deleted %v, %s: the fast way gave up", codec, width, deleted, name)
							}
							return c.each(0, len(index), func(k int) error { return c.dense(index, k, slow) })
						})
						if err != nil || !bytes.Equal(fast, slow) {
							t.Errorf("%v, %d bytes, deleted %v, %s: the fast way read something else (%v)", codec, width, deleted, name, err)
						}
						if !deleted {
							checkRecords(t, fast, data, index, length, width)
						}
					}
				}
			}
		}
	}
}

func checkRecords(t *testing.T, got, data []byte, index []int64, n int64, w int) {
	t.Helper()
	for k, i := range index {
		if i < 0 {
			i += n
		}
		if !bytes.Equal(got[k*w:(k+1)*w], data[int(i)*w:int(i+1)*w]) {
			t.Errorf("place %d is not record %d", k, i)
			return
		}
	}
}

func TestFastRaggedEqualsAppended(t *testing.T) {
	for _, codec := range everyCodec {
		o := raggedOptions(codec)
		o.Limits.Chunk = 64 << 10
		s := mustOpen(t, t.TempDir(), o)
		payloads, shapes := raggedRecords(t, s, 500)
		for name, index := range plans(500) {
			for k, measured := range []bool{false, true, false, true} {
				dst := raggedRoom(len(index))
				size := k / 2 * move.StreamFrom() // 0, or more than the caches have
				_ = s.one(s.view.Load(), size, func(c *cursor) error {
					if measured && !c.gatherPairs(index, 1, RaggedDst{Offsets: dst.Offsets, DimOffsets: dst.DimOffsets}, false) {
						t.Errorf("%v, %s: the fast way gave up measuring", codec, name)
					}
					if !c.gatherPairs(index, 1, dst, measured) {
						t.Errorf("%v, %s: the fast way gave up", codec, name)
					}
					return nil
				})
				for k, i := range index {
					if i < 0 {
						i += 500
					}
					payload := dst.Payload[dst.Offsets[k]:dst.Offsets[k+1]]
					dims := dst.Dims[dst.DimOffsets[k]:dst.DimOffsets[k+1]]
					if !bytes.Equal(payload, payloads[i]) || !equalDims(dims, shapes[i]) {
						t.Fatalf("%v, %s: place %d is not record %d", codec, name, k, i)
					}
				}
			}
		}
	}
}

func raggedRoom(n int) RaggedDst {
	return RaggedDst{
		Payload: make([]byte, 1600*n), Dims: make([]int64, 2*n),
		Offsets: make([]int64, n+1), DimOffsets: make([]int64, n+1),
	}
}

func equalDims(a, b []int64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// Offsets that were measured are held against the table, which is not ours alone.
func TestMeasuredOffsetsAreChecked(t *testing.T) {
	s := mustOpen(t, t.TempDir(), raggedOptions(Raw))
	raggedRecords(t, s, 100)
	index := all(t, s)
	for _, change := range []func(RaggedDst){
		func(d RaggedDst) { d.Offsets[50]++ },
		func(d RaggedDst) { d.DimOffsets[50]++ },
	} {
		_ = s.one(s.view.Load(), 0, func(c *cursor) error {
			dst := raggedRoom(100)
			if !c.gatherPairs(index, 1, dst, false) {
				t.Fatal("the fast way gave up")
			}
			change(dst)
			if c.gatherPairs(index, 1, dst, true) {
				t.Error("offsets that do not fit the table were taken")
			}
			return nil
		})
	}
}

// Workers that share a gather write what is theirs alone: the race detector looks on.
func TestSharedRaggedEqualsAppended(t *testing.T) {
	for _, codec := range everyCodec {
		s := mustOpen(t, t.TempDir(), raggedOptions(codec))
		payloads, shapes := raggedRecords(t, s, 500)
		index := all(t, s)
		for _, per := range []int{1, 7, 100} {
			dst := raggedRoom(len(index))
			if err := s.shareRagged(s.view.Load(), index, 1, dst, per, 4); err != nil {
				t.Fatal(err)
			}
			for k := range index {
				payload := dst.Payload[dst.Offsets[k]:dst.Offsets[k+1]]
				dims := dst.Dims[dst.DimOffsets[k]:dst.DimOffsets[k+1]]
				if !bytes.Equal(payload, payloads[k]) || !equalDims(dims, shapes[k]) {
					t.Fatalf("%v, %d at a time: place %d is not record %d", codec, per, k, k)
				}
			}
		}
	}
}

// Too little room is not an error: the offsets say what it takes.
func TestRaggedRoom(t *testing.T) {
	s := mustOpen(t, t.TempDir(), raggedOptions(Raw))
	payloads, _ := raggedRecords(t, s, 300)
	index := all(t, s)
	total := 0
	for _, p := range payloads {
		total += len(p)
	}
	for _, room := range []int{0, 100, total - 1} {
		dst := raggedRoom(len(index))
		dst.Payload = dst.Payload[:room:room]
		err := s.GatherRagged(index, 1, dst, 1)
		if !errors.Is(err, ErrRoom) || int(dst.Offsets[300]) != total {
			t.Errorf("room %d of %d: got %v, and offsets up to %d", room, total, err, dst.Offsets[300])
		}
	}
}

// An index outside, however it comes, is the slow way's to name.
func TestFastWaysRefuseBadIndices(t *testing.T) {
	for _, codec := range everyCodec {
		s := mustOpen(t, t.TempDir(), denseOptions(8, codec))
		appendDense(t, s, denseRecords(0, 100, 8), 8)
		for _, bad := range []int64{100, -101, 1 << 62, -1 << 63} {
			for at := range 80 {
				index := make([]int64, 80)
				for k := range index {
					index[k] = int64(k) + 20
				}
				index[at] = bad
				err := s.GatherDense(index, make([]byte, 640), 1)
				var e *Error
				if !errors.As(err, &e) || e.Status != StatusIndex || e.Index != bad {
					t.Fatalf("%v, %d at place %d: got %v", codec, bad, at, err)
				}
			}
		}
	}
}

// A batch takes the same few allocations whatever its size: none for a record.
func TestGatherAllocatesNothingARecord(t *testing.T) {
	for _, codec := range everyCodec {
		dense := mustOpen(t, t.TempDir(), denseOptions(200, codec))
		appendDense(t, dense, denseRecords(1, 2000, 200), 200)
		ragged := mustOpen(t, t.TempDir(), raggedOptions(codec))
		raggedRecords(t, ragged, 2000)
		index := all(t, dense)
		rand.New(rand.NewPCG(1, 1)).Shuffle(len(index), func(i, j int) { index[i], index[j] = index[j], index[i] })
		dst, to := make([]byte, 2000*200), raggedRoom(2000)
		for _, n := range []int{1, 2000} {
			part := RaggedDst{to.Payload, to.Offsets[:n+1], to.Dims, to.DimOffsets[:n+1]}
			for name, read := range map[string]func() error{
				"dense":  func() error { return dense.GatherDense(index[:n], dst[:n*200], 1) },
				"ragged": func() error { return ragged.GatherRagged(index[:n], 1, part, 1) },
			} {
				got := testing.AllocsPerRun(50, func() {
					if err := read(); err != nil {
						t.Error(err)
					}
				})
				if got > 8 {
					t.Errorf("%v, %s, %d records: %v allocations", codec, name, n, got)
				}
			}
		}
	}
}

// A file that is cut under its mapping is an error of the record, whichever way
// reads it: before its end, within its last page, and where it would be a run.
func TestFileCutUnderEveryWay(t *testing.T) {
	for _, width := range []int{4, 200, 5000} {
		for _, codec := range everyCodec {
			for _, keep := range []int64{0, 3, 4096, -1, -2 * int64(width)} { // below 0: from the end
				dir := t.TempDir()
				s := mustOpen(t, dir, denseOptions(width, codec))
				appendDense(t, s, denseRecords(0, 2100, width), width)
				index := all(t, s)
				_ = gatherDense(t, s, index, width) // maps
				cut(t, dir, keep)
				parts := map[string][]int64{"run": index[1900:], "strays": {2099, 5, 2050, 2001}, "one": {2099}}
				if codec != Raw && keep < 0 {
					parts = map[string][]int64{"all": index} // frames lie in the order they were done
				}
				for name, part := range parts {
					err := s.GatherDense(part, make([]byte, len(part)*width), 1)
					wantCorruptRecord(t, err, "%v, %d bytes, cut to %d, %s", codec, width, keep, name)
				}
			}
		}
	}
	for _, codec := range everyCodec {
		for _, keep := range []int64{10_000, -1, -9, -17} {
			dir := t.TempDir()
			s := mustOpen(t, dir, raggedOptions(codec))
			raggedRecords(t, s, 500)
			index := all(t, s)
			if err := s.GatherRagged(index, 1, raggedRoom(500), 1); err != nil {
				t.Fatal(err)
			}
			cut(t, dir, keep)
			err := s.GatherRagged(index, 1, raggedRoom(500), 1)
			wantCorruptRecord(t, err, "ragged, %v, cut to %d", codec, keep)
		}
	}
}

// What lies in a chunk behind its last record is not taken for a record.
func TestRunEndsWithItsChunk(t *testing.T) {
	dir, o := t.TempDir(), denseOptions(100, Raw)
	o.Limits.Chunk = 1000
	s := mustOpen(t, dir, o)
	data := denseRecords(0, 30, 100)
	appendDense(t, s, data, 100)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "0.chunk"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(bytes.Repeat([]byte{0xEE}, 500))
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, dir, o)
	if got := gatherDense(t, s, all(t, s), 100); !bytes.Equal(got, data) {
		t.Error("a run went on behind the end of its chunk")
	}
}

func cut(t *testing.T, dir string, keep int64) {
	t.Helper()
	path := filepath.Join(dir, "0.chunk")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if keep < 0 {
		keep += info.Size()
	}
	if err := os.Truncate(path, keep); err != nil {
		t.Fatal(err)
	}
}

func wantCorruptRecord(t *testing.T, err error, format string, args ...any) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Status != StatusCorruptRecord {
		t.Errorf(format+": expected a corrupt record, got %v", append(args, err)...)
	}
}
