package engine

import (
	"errors"
	"path/filepath"

	"loaderx/engine/internal/disk"
	"loaderx/engine/internal/vfs"
)

// copyStep bounds a step of a snapshot, in bytes.
const copyStep = 64 << 20

// snapshot copies what a view shows. Appends may go on meanwhile, here or in
// another process: nothing below the view's length and tail changes, since
// deletes and compactions need the store to themselves.
type snapshot struct {
	t    *Task
	s    *Store
	v    *view
	to   vfs.Dir
	meta vfs.File // of the copy: locked until the copy is a store
	jobs []copyJob
	done bool

	// A copy of a version 4 store is upgraded: it could not have an id.
	copied  *Store
	upgrade *Task
}

// copyJob is the head of one file, and how much of it is copied.
type copyJob struct {
	name     string
	size, at int64
}

// Snapshot makes a copy of the store at dest, a new or empty folder. The copy
// is a store of its own: closed, clean, and with an id of its own.
func (s *Store) Snapshot(dest string) (*Task, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	if s.moving {
		return nil, s.beingCompacted("snapshot")
	}
	c := &snapshot{s: s, v: s.view.Load()}
	if err := c.begin(filepath.Clean(dest)); err != nil {
		return nil, err
	}
	s.pins.Add(1)
	return c.t, nil
}

func (c *snapshot) begin(dest string) (err error) {
	if c.to, err = makeFolder(c.s.opts.fs, dest, "copy"); err != nil {
		return err
	}
	if err = c.claim(dest); err == nil {
		if err = c.plan(); err != nil {
			err = errors.Join(err, c.takeAway())
		}
	}
	if err != nil {
		_ = c.to.Close()
		return changeError("starting a snapshot", err)
	}
	c.t = &Task{s: c.s, step: c.step, stop: c.stop}
	for _, j := range c.jobs {
		c.t.total += j.size
	}
	return nil
}

// claim keeps other snapshots and creators out of the folder of the copy, as a
// creation does: with the lock on its meta.zr.
func (c *snapshot) claim(dest string) error {
	if err := c.onlyHolds(dest, ""); err != nil {
		return err
	}
	meta, err := c.to.Open(metaName, vfs.Create)
	if err != nil {
		return err
	}
	if err = acquire(meta, true); err == nil || errors.Is(err, vfs.ErrNoLocks) {
		err = c.onlyHolds(dest, metaName)
	}
	if err != nil {
		_ = meta.Close()
		return err
	}
	c.meta = meta
	return nil
}

// onlyHolds refuses a folder that holds anything but name.
func (c *snapshot) onlyHolds(dest, name string) error {
	names, err := c.to.Names()
	for _, n := range names {
		if n != name {
			return errorf(StatusArgument, dest, "%s: expected a new or an empty folder for the copy, it holds %q", dest, n)
		}
	}
	return err
}

// plan lists the files, tables before chunks, and how much of each is needed.
func (c *snapshot) plan() error {
	s, v := c.s, c.v
	if s.codec == ZstdDict {
		size, err := s.sizeOf(dictName)
		if err != nil {
			return err
		}
		c.jobs = append(c.jobs, copyJob{name: dictName, size: size})
	}
	for first, id := int64(0), 0; first < v.length || id == 0; first, id = first+s.limits.Segment, id+1 {
		n := min(v.length-first, s.limits.Segment)
		c.jobs = append(c.jobs, copyJob{name: numbered(id, tableExt), size: n * disk.EntrySize})
		if v.version == 5 {
			c.jobs = append(c.jobs, copyJob{name: numbered(id, sumExt), size: n * disk.SumSize})
		}
	}
	for id := int64(0); id <= int64(v.tailChunk); id++ {
		size := int64(v.tailOffset)
		if id < int64(v.tailChunk) {
			var err error
			if size, err = s.sizeOf(numbered(int(id), chunkExt)); err != nil {
				return err
			}
		}
		c.jobs = append(c.jobs, copyJob{name: numbered(int(id), chunkExt), size: size})
	}
	return nil
}

// step copies some, or finishes.
func (c *snapshot) step() (bool, error) {
	if err := c.s.enter(); err != nil {
		return false, err
	}
	defer c.s.leave()
	if c.upgrade != nil {
		return c.upgradeSome()
	}
	for left := int64(copyStep); len(c.jobs) > 0 && left > 0; {
		j := &c.jobs[0]
		n := min(left, j.size-j.at)
		if err := c.copy(j, n); err != nil {
			return false, fileError("copying "+j.name, err)
		}
		j.at, left, c.t.at = j.at+n, left-n, c.t.at+n
		if j.at < j.size {
			return false, nil
		}
		c.jobs = c.jobs[1:]
	}
	if len(c.jobs) > 0 {
		return false, nil
	}
	if err := c.finish(); err != nil {
		return false, fileError("finishing a snapshot", err)
	}
	if c.v.version == 4 {
		return false, c.beginUpgrade()
	}
	c.done = true
	return true, nil
}

func (c *snapshot) beginUpgrade() (err error) {
	o := Options{Kind: c.s.typed.Kind, Mode: ModeAppend, Limits: c.s.limits, fs: c.s.opts.fs}
	if c.copied, err = openExisting(c.to.Path(), o); err != nil {
		return err
	}
	c.upgrade, err = c.copied.Upgrade()
	return err
}

func (c *snapshot) upgradeSome() (bool, error) {
	p, err := c.upgrade.Step()
	if err != nil || !p.Done {
		return false, err
	}
	c.done = true
	return true, c.closeCopy()
}

// closeCopy ends what an upgrade of the copy needs.
func (c *snapshot) closeCopy() error {
	var err error
	if c.upgrade != nil {
		err = c.upgrade.End()
		c.upgrade = nil
	}
	if c.copied != nil {
		err = errors.Join(err, c.copied.Close())
		c.copied = nil
	}
	return err
}

func (c *snapshot) copy(j *copyJob, n int64) error {
	to, err := c.to.Open(j.name, vfs.Create)
	if err != nil {
		return err
	}
	defer func() { _ = to.Close() }()
	if n > 0 {
		from, err := c.s.dir.Open(j.name, vfs.Read)
		if err != nil {
			return err
		}
		defer func() { _ = from.Close() }()
		if err := to.CopyFrom(from, j.at, n, j.at); err != nil {
			return err
		}
	}
	if j.at+n < j.size {
		return nil
	}
	return to.Sync()
}

// finish writes the headers, in the order of a creation.
func (c *snapshot) finish() error {
	s := c.s
	if err := c.overlay(); err != nil {
		return err
	}
	make := creation{dir: c.to, o: s.opts, typed: s.typed, codec: s.codec, meta: c.meta}
	var err error
	if c.v.version == 4 {
		make.typed.Version, make.typed.StoreID = 1, 0
		err = c.headVersion4(make.meta)
	} else {
		make.typed.Version, make.typed.StoreID = 2, newID()
		err = c.head(&make)
	}
	if err != nil {
		return err
	}
	if err := publishTyped(c.to, make.typed); err != nil {
		return err
	}
	return c.meta.Unlock() // from now on it is a store like any other
}

// headVersion4 writes the header of the view: another handle may have upgraded
// the store meanwhile.
func (c *snapshot) headVersion4(meta vfs.File) error {
	v := c.v
	head := disk.Meta{Codec: c.s.codec, TailChunk: v.tailChunk, TailOffset: v.tailOffset, Length: uint64(v.length)}
	old := head.EncodeVersion4()
	if _, err := meta.WriteAt(old[:], 0); err != nil {
		return err
	}
	return errors.Join(meta.Sync(), c.to.Sync())
}

// head writes the first checkpoint of the copy.
func (c *snapshot) head(make *creation) error {
	v := c.v
	slot := disk.Slot{
		StoreID: make.typed.StoreID, Arithmetic: v.perChunk > 0, PerChunk: v.perChunk, DictCRC: c.s.dictCRC,
		Meta: disk.Meta{
			Version: 5, Codec: c.s.codec, TailChunk: v.tailChunk, TailOffset: v.tailOffset,
			Length: uint64(v.length), Epoch: 1,
		},
	}
	journal, err := c.to.Open(journalName, vfs.Create)
	if err != nil {
		return err
	}
	defer func() { _ = journal.Close() }()
	return make.checkpoint(journal, slot)
}

// overlay applies a redo chain to the copy, for a store that awaits recovery.
func (c *snapshot) overlay() error {
	if c.v.over == nil {
		return nil
	}
	w := &writer{s: &Store{folder: folder{dir: c.to, limits: c.s.limits}}, files: map[string]*outFile{}}
	defer func() {
		for _, f := range w.files {
			_ = f.Close()
		}
	}()
	if err := w.applyOverlay(c.v.over); err != nil {
		return err
	}
	return w.flush()
}

// stop takes an unfinished copy away.
func (c *snapshot) stop() error {
	c.s.pins.Add(-1)
	defer func() { _ = c.to.Close() }()
	if c.done {
		return c.meta.Close()
	}
	_ = c.closeCopy() // it goes with the rest
	return c.takeAway()
}

// takeAway removes what there is of the copy, meta.zr last, whose lock keeps
// others out.
func (c *snapshot) takeAway() error {
	names, err := c.to.Names()
	for _, name := range names {
		if ownName(name) && name != metaName {
			err = errors.Join(err, c.to.Remove(name))
		}
	}
	return errors.Join(err, c.to.Remove(metaName), c.meta.Close())
}
