package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"

	"loaderx/engine/internal/vfs"
	"loaderx/engine/internal/vfs/faultfs"
	"loaderx/engine/internal/vfs/memfs"
	"loaderx/engine/internal/zstd"
)

const storePath = "/data/store"

// contents is what a store should give back: each record's shape and bytes.
type contents []string

var keySeed = maphash.MakeSeed()

// noStore is the key of a folder that holds no store.
const noStore = 1

// key stands for contents in sets of them.
func (c contents) key() uint64 {
	var h maphash.Hash
	h.SetSeed(keySeed)
	for _, r := range c {
		_, _ = h.WriteString(r)
		_ = h.WriteByte('|')
	}
	return h.Sum64() | 2
}

// without is c after a delete.
func (c contents) without(gone []int64) contents {
	c = append(contents(nil), c...)
	for _, i := range gone { // in descending order
		c[i] = c[len(c)-1]
		c = c[:len(c)-1]
	}
	return c
}

// shaped is a record of the given dimensions.
func shaped(dims []int64, payload []byte) string {
	b := make([]byte, 0, 8*len(dims)+len(payload)+2)
	for _, d := range dims {
		b = binary.LittleEndian.AppendUint64(b, uint64(d))
	}
	return string(append(append(b, byte(len(dims)), ':'), payload...))
}

// readAll is the contents of an open store.
func readAll(s *Store) (contents, error) {
	n, err := s.Len()
	if err != nil {
		return nil, err
	}
	index := make([]int64, n)
	for i := range index {
		index[i] = int64(i)
	}
	c := make(contents, n)
	if s.typed.Kind == Dense {
		w := int(s.typed.Width)
		dst := make([]byte, len(index)*w)
		if err := s.GatherDense(index, dst, 0); err != nil {
			return nil, err
		}
		for i := range c {
			c[i] = shaped(nil, dst[i*w:(i+1)*w])
		}
		return c, nil
	}
	dst := RaggedDst{Offsets: make([]int64, n+1), DimOffsets: make([]int64, n+1)}
	if err := s.GatherRagged(index, 1, dst, 0); errors.Is(err, ErrRoom) {
		dst.Payload, dst.Dims = make([]byte, dst.Offsets[n]), make([]int64, dst.DimOffsets[n])
		err = s.GatherRagged(index, 1, dst, 0)
		if err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	for i := range c {
		c[i] = shaped(dst.Dims[dst.DimOffsets[i]:dst.DimOffsets[i+1]], dst.Payload[dst.Offsets[i]:dst.Offsets[i+1]])
	}
	return c, nil
}

// sound says what verify finds.
func sound(s *Store) error {
	task, err := s.Verify(1)
	if err != nil {
		return err
	}
	if err := task.Run(); err != nil {
		return err
	}
	if bad, err := task.Bad(0); err == nil {
		return fmt.Errorf("verify: %w", bad)
	}
	return nil
}

// testDict is a small trained dictionary.
var testDict = sync.OnceValue(func() []byte {
	var samples []byte
	var sizes []int
	for i := range 400 {
		s := denseRecords(i, 1, 100+i%50)
		samples, sizes = append(samples, s...), append(sizes, len(s))
	}
	dict, err := zstd.Train(samples, sizes, 1024)
	if err != nil {
		panic(err)
	}
	return dict
})

// setting is the store that a workload uses.
type setting struct {
	o        Options
	version4 bool
}

func (c setting) String() string {
	s := fmt.Sprintf("%v %v %+v round %d", c.o.Kind, *c.o.Codec, c.o.Limits, c.o.round)
	if c.o.AllowEmpty {
		s += " with empty records"
	}
	if c.version4 {
		s += " from version 4"
	}
	return s
}

func newSetting(rng *rand.Rand) setting {
	codec := []Codec{Raw, Raw, Zstd, ZstdDict}[rng.IntN(4)]
	o := raggedOptions(codec)
	if rng.IntN(2) == 0 {
		o = denseOptions(12, codec)
	}
	o.Limits = []Limits{{Chunk: 120, Segment: 4, Record: 60}, {Chunk: 300, Segment: 16, Record: 100}, {Chunk: 4096, Segment: 64}}[rng.IntN(3)]
	if codec != Raw {
		o.Limits.Chunk *= 2
	}
	o.round = []int64{60, 200, 0}[rng.IntN(3)]
	if rng.IntN(4) == 0 {
		o.Limits.Checkpoint = 100 // behind the appends
	}
	c := setting{o: o, version4: rng.IntN(4) == 0}
	if rng.IntN(10) == 0 && o.Kind == Dense { // writes of several pages
		c.o = denseOptions(3000, codec)
		c.o.Limits, c.o.round = Limits{Chunk: 16 << 10, Segment: 16}, 8000
	}
	if codec == ZstdDict {
		c.o.Dict = testDict()
	}
	if o.Kind == Ragged && !c.version4 && rng.IntN(3) == 0 {
		c.o.AllowEmpty = true
	}
	return c
}

// item is a new record, its dimensions and its bytes.
type item struct {
	dims    []int64
	payload []byte
}

func (c setting) item(rng *rand.Rand) item {
	if c.o.Kind == Dense {
		return item{nil, denseRecords(rng.IntN(1<<30), 1, int(c.o.Width))}
	}
	shapes := [][]int64{{}, {4}, {7}, {1, 7}, {3, 4}, {2, 9}, {30}, {2, 3, 5}, {0}, {3, 0}}
	if !c.o.AllowEmpty {
		shapes = shapes[:8]
	}
	dims := shapes[rng.IntN(len(shapes))]
	size, _ := shapeBytes(dims, 1)
	return item{dims, denseRecords(rng.IntN(1<<30), 1, int(size))}
}

func (c setting) items(rng *rand.Rand, n int) []item {
	list := make([]item, n)
	for i := range list {
		list[i] = c.item(rng)
	}
	return list
}

func asContents(items []item) contents {
	c := make(contents, len(items))
	for i, it := range items {
		c[i] = shaped(it.dims, it.payload)
	}
	return c
}

// addItems appends records to an open batch as one part.
func addItems(b *Batch, items []item) error {
	var payload []byte
	offsets, dims, dimOffs := []int64{0}, []int64(nil), []int64{0}
	for _, it := range items {
		payload, dims = append(payload, it.payload...), append(dims, it.dims...)
		offsets, dimOffs = append(offsets, int64(len(payload))), append(dimOffs, int64(len(dims)))
	}
	if b.s.typed.Kind == Dense {
		return b.AppendDense(payload, int64(len(items)))
	}
	return b.AppendRagged(payload, offsets, dims, dimOffs, 1)
}

// appendItems is one batch of the given parts. A failed one is taken back.
func appendItems(s *Store, parts ...[]item) error {
	b, err := s.Begin()
	if err != nil {
		return err
	}
	for _, p := range parts {
		if err := addItems(b, p); err != nil {
			return errors.Join(err, b.Abort())
		}
	}
	_, err = b.Commit()
	return err
}

// compact runs a compaction to its end, or for some steps only.
func compact(s *Store, steps int) error {
	task, err := s.Compact()
	if err != nil {
		return err
	}
	for ; steps != 0; steps-- {
		p, err := task.Step()
		if err != nil {
			_ = task.End()
			return err
		}
		if p.Done {
			break
		}
	}
	return task.End()
}

// errKilled is what every operation of a killed process gives.
var errKilled = errors.New("killed")

// rig is a workload's file system: memory, perhaps a planted bug over it, and
// the faults of the moment over that.
type rig struct {
	mem  *memfs.FS
	bug  func(vfs.FS) vfs.FS // or nil
	top  vfs.FS
	kill int  // operations until the process is killed; -1: never
	full int  // writes until the disk is full; -1: never
	lose int  // syncs until one fails; -1: never
	drop bool // that sync loses the cached pages too
	hit  bool // a fault has happened
	mu   sync.Mutex
	once *fault // for the fault tests
	ops  int    // so far
	seen []faultfs.Kind
	idle bool // operations are the test's own
	lost bool // it was a failed sync
}

func newRig(mem *memfs.FS, bug func(vfs.FS) vfs.FS) *rig {
	r := &rig{mem: mem, bug: bug}
	r.calm()
	r.top = &faultfs.FS{Base: buggy(mem, bug), Hook: r.decide}
	return r
}

func buggy(fs vfs.FS, bug func(vfs.FS) vfs.FS) vfs.FS {
	if bug == nil {
		return fs
	}
	return bug(fs)
}

// calm ends all faults.
func (r *rig) calm() { r.kill, r.full, r.lose, r.hit, r.lost = -1, -1, -1, false, false }

func (r *rig) decide(op *faultfs.Op, do func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.idle {
		return do()
	}
	if r.ops++; r.once != nil {
		r.seen = append(r.seen, op.Kind)
		if failed, err := r.once.strike(r, op); failed {
			return err
		}
	}
	changes := false
	switch op.Kind {
	case faultfs.Write, faultfs.Truncate, faultfs.Rename, faultfs.Remove, faultfs.Sync, faultfs.SyncDir:
		changes = true
	}
	switch {
	case r.kill == 0:
		r.hit = true
		return errKilled
	case changes && r.kill > 0:
		if r.kill--; r.kill == 0 {
			r.hit = true
			return errKilled
		}
	case op.Kind == faultfs.Write && r.full >= 0:
		if r.full--; r.full < 0 {
			r.hit = true
			_, _ = op.File.WriteAt(op.Data[:len(op.Data)/2], op.Off)
			return syscall.ENOSPC
		}
	case (op.Kind == faultfs.Sync || op.Kind == faultfs.SyncDir) && r.lose >= 0:
		if r.lose--; r.lose < 0 {
			r.hit, r.lost = true, true
			loseAt(op, r.drop)
			return syscall.EIO
		}
	}
	return do()
}

// loseAt makes a sync a failed one: what it should have saved never reaches the
// disk. drop says that the cache forgets it, too.
func loseAt(op *faultfs.Op, drop bool) {
	var of any = op.File
	if op.Kind == faultfs.SyncDir {
		of = op.Dir
	}
	of.(interface{ Lose(bool) }).Lose(drop)
}

// image4 makes a store as version 1.7.7 leaves one: no checksums, table
// entries behind a delete, junk past the tail.
func image4(mem *memfs.FS, c setting, rng *rand.Rand, items []item) contents {
	_, _ = mem.MakeDirs(storePath)
	mem.Settle()
	m := &maker4{c: c, files: map[string][]byte{"0.loc": nil, "0.chunk": nil}}
	live := m.fill(items, rng)
	meta := make([]byte, 32)
	copy(meta, "ZREC")
	meta[4], meta[5] = 4, byte(*c.o.Codec)
	binary.LittleEndian.PutUint32(meta[6:], m.chunk)
	binary.LittleEndian.PutUint32(meta[10:], m.off)
	binary.LittleEndian.PutUint64(meta[14:], uint64(m.length))
	m.files[metaName] = meta
	m.files[typedName] = m.typed()
	if rng.IntN(3) == 0 { // void in a version 4 store
		m.files[journalName] = []byte(strings.Repeat("ZCKPjunk", 40))
		m.files["0.sum"] = []byte(strings.Repeat("junk", 9))
	}
	if c.o.Dict != nil {
		m.files[dictName] = c.o.Dict
	}
	dir, err := mem.OpenDir(storePath)
	if err != nil {
		panic(err)
	}
	for _, name := range slices.Sorted(maps.Keys(m.files)) {
		f, err := dir.Open(name, vfs.Create)
		if err == nil {
			_, err = f.WriteAt(m.files[name], 0)
		}
		if err != nil {
			panic(err)
		}
		_ = f.Close()
	}
	_ = dir.Close()
	return live
}

// poisoned tells that the handle may not write any more.
func (s *Store) poisoned() bool { return s.stuck != nil || s.closed || s.w != nil && s.w.broken != nil }
