package engine

import (
	"errors"
	"fmt"
	"strings"

	"loaderx/engine/internal/vfs"
	"loaderx/engine/internal/vfs/memfs"
)

// crash crashes every point of the log.
func (r *run) crash() error {
	replay := r.rig.mem.Replay()
	k, lost, first := 0, false, r.steps[0].end
	if r.last && len(r.steps) > 1 {
		first = r.steps[len(r.steps)-2].end
	}
	for {
		p := replay.Pos()
		for k < len(r.steps)-1 && r.steps[k].end < p {
			k++
		}
		s := r.steps[k]
		lost = lost || replay.Last().Kind == memfs.Lose
		if p >= first && r.at(replay.Last()) {
			if err := r.crashAt(replay, k, lost); err != nil {
				return fmt.Errorf("change %d of %d, in %s: %w", p, r.rig.mem.Len(), s.op, err)
			}
		}
		if !replay.Next() {
			return nil
		}
	}
}

// crashAt crashes one point, which lies in step k.
func (r *run) crashAt(replay *memfs.Replay, k int, lost bool) error {
	s, ended := r.steps[k], r.steps[k].end == replay.Pos()
	power := r.allowed(k, s.flight)
	if ended {
		power = r.allowed(k+1, nil)
	}
	kill := map[uint64]bool{s.done[len(s.done)-1]: true}
	cut, aborted := strings.HasPrefix(s.op, "cut"), strings.HasPrefix(s.op, "abort")
	if s.op != "reopen" && (!ended || cut) && k > 0 {
		before := r.steps[k-1].done
		kill[before[len(before)-1]] = true
		if !aborted && len(s.flight) > 0 {
			kill[s.flight[len(s.flight)-1]] = true
		}
	}
	if lost {
		kill = power
	}
	r.count.kill.Add(1)
	if err := r.judge(replay.Kill(), kill, power, lost, !lost && power != nil && r.rng.IntN(r.deep) == 0); err != nil {
		return fmt.Errorf("killed: %w", err)
	}
	for i, fs := range replay.KillInside() {
		r.count.kill.Add(1)
		if err := r.judge(fs, kill, power, lost, false); err != nil {
			return fmt.Errorf("killed inside the change, at its page %d: %w", i+1, err)
		}
	}
	if ended || !cut && !aborted { // it can have left half a header for a moment
		if err := r.beside(replay, kill, lost); err != nil {
			return fmt.Errorf("read beside the writer: %w", err)
		}
	}
	if power == nil {
		return nil
	}
	n := 0
	var err error
	replay.Power(r.rng, r.per, func(fs *memfs.FS) bool {
		n++
		r.count.power.Add(1)
		err = r.judge(fs, power, power, false, r.rng.IntN(r.deep) == 0)
		if err == nil {
			err = r.copies(fs, replay.Pos())
		}
		return err == nil
	})
	if err != nil {
		return fmt.Errorf("power cut %d: %w", n, err)
	}
	return nil
}

// copies holds the finished snapshots against what they were taken of.
func (r *run) copies(fs *memfs.FS, pos int) error {
	for _, c := range r.snaps {
		if pos < c.end || r.rng.IntN(8) > 0 {
			continue
		}
		got, err := look(buggy(fs, r.rig.bug), c.path, r.o)
		if err != nil {
			return fmt.Errorf("snapshot: %w", err)
		}
		if got != c.key {
			return errors.New("snapshot: other records")
		}
	}
	return nil
}

// beside reads while the writer lives: meta.zr is exact unless it holds that
// exclusively.
func (r *run) beside(replay *memfs.Replay, kill map[uint64]bool, lost bool) error {
	if lost || !replay.Locked(storePath+"/"+journalName) || replay.Locked(storePath+"/"+metaName) {
		return nil
	}
	fs := replay.Kill()
	r.setMapping(fs)
	release, ok := fs.Hold(storePath+"/"+journalName, true)
	if !ok {
		return errors.New("no journal to hold")
	}
	defer release()
	r.count.live.Add(1)
	got, err := look(buggy(fs, r.rig.bug), storePath, r.o)
	if err == nil && !kill[got] {
		err = errors.New("unexpected records")
	}
	return err
}

// look is the key of what mode "r" shows.
func look(fs vfs.FS, path string, o Options) (uint64, error) {
	o.fs, o.Mode = fs, ModeRead
	s, err := Open(path, o)
	var e *Error
	if errors.As(err, &e) && e.Status == StatusNotAStore {
		return noStore, nil
	}
	if err != nil {
		return 0, err
	}
	c, err := readAll(s)
	if err == nil {
		err = sound(s)
	}
	return c.key(), errors.Join(err, s.Close())
}

// judge reads a crashed store, then recovers it, then uses it. After a lost
// sync, recovery may show other records than the page cache did. power is what
// a power cut may leave before it has recovered.
func (r *run) judge(mem *memfs.FS, allowed, power map[uint64]bool, lost, deep bool) error {
	r.setMapping(mem)
	fs := buggy(mem, r.rig.bug)
	seen, err := look(fs, storePath, r.o)
	if err != nil {
		return fmt.Errorf("mode r: %w", err)
	}
	if mem.Changes() > 0 {
		return errors.New("mode r changed files")
	}
	if !allowed[seen] {
		return errors.New("mode r: unexpected records")
	}
	o := r.o
	o.fs, o.round = fs, 0
	s, err := Open(storePath, o)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer func() { _ = s.Close() }()
	if err := s.Sync(); err != nil {
		return fmt.Errorf("recovery: %w", err)
	}
	if s.w != nil {
		if err := r.settled(mem); err != nil {
			return fmt.Errorf("after recovery: %w", err)
		}
	}
	c, err := readAll(s)
	if err != nil {
		return fmt.Errorf("read after recovery: %w", err)
	}
	if got := c.key(); got != seen && seen != noStore && !(lost && allowed[got]) {
		return errors.New("recovery shows other records than mode r")
	}
	if deep {
		if err := r.crashAgain(mem, power, c.key()); err != nil {
			return fmt.Errorf("crash inside recovery: %w", err)
		}
	}
	if deep || r.rng.IntN(4) == 0 {
		if err := r.use(s, c); err != nil {
			return fmt.Errorf("use after recovery: %w", err)
		}
	}
	if err := s.Close(); err != nil {
		return fmt.Errorf("close after recovery: %w", err)
	}
	if open, locks := mem.Handles(); open > 0 || locks > 0 {
		return fmt.Errorf("%d handles and %d locks were left", open, locks)
	}
	return nil
}

// crashAgain crashes a recovery at each of its changes.
func (r *run) crashAgain(mem *memfs.FS, power map[uint64]bool, got uint64) error {
	may := map[uint64]bool{got: true}
	for k := range power {
		may[k] = true
	}
	end := mem.Len()
	for replay := mem.Replay(); replay.Next(); {
		if !r.at(replay.Last()) {
			continue
		}
		if replay.Pos() == end {
			may = map[uint64]bool{got: true}
		}
		var err error
		replay.Power(r.rng, r.inner, func(fs *memfs.FS) bool {
			r.count.again.Add(1)
			err = r.judge(fs, may, may, false, false)
			return err == nil
		})
		if err != nil {
			return fmt.Errorf("change %d of %d: %w", replay.Pos(), end, err)
		}
	}
	return nil
}

// use appends, deletes, compacts and syncs, and looks at the result.
func (r *run) use(s *Store, c contents) error {
	items := r.items(r.rng, 3)
	if err := appendItems(s, items); err != nil {
		return fmt.Errorf("append: %w", err)
	}
	c = append(c[:len(c):len(c)], asContents(items)...).without([]int64{0})
	if err := s.Delete([]int64{0}); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	if err := compact(s, -1); err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	if err := errors.Join(s.Sync(), s.Close()); err != nil {
		return fmt.Errorf("sync and close: %w", err)
	}
	got, err := look(s.opts.fs, storePath, r.o)
	if err != nil {
		return err
	}
	if got != c.key() {
		return errors.New("unexpected records")
	}
	return nil
}

// setMapping makes a crashed file system map or not, as the workload's did.
func (r *run) setMapping(fs *memfs.FS) {
	if !r.mapped {
		fs.Unmappable()
	}
}

// settled says which headers and tables a power cut may change still. Data files
// may have something past what is used.
func (r *run) settled(mem *memfs.FS) error {
	if r.rig.bug != nil {
		return nil // the crashes have to find it
	}
	for _, change := range mem.Unsynced(storePath) {
		if !strings.HasSuffix(change, chunkExt) && change != "truncate "+journalName {
			return fmt.Errorf("not synced: %s", change)
		}
	}
	return nil
}
