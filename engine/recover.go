package engine

import (
	"cmp"
	"slices"

	"loaderx/engine/internal/vfs"
)

// recoverAsWriter takes the writer's role in a dirty store. meta.zr is held
// exclusively, so nobody else has the store open.
func (s *Store) recoverAsWriter() error {
	// Held by another between its EX and SH: give up EX, as after a failed
	// conversion (FORMAT 6.2), and at once, since it waits for its SH.
	w, err := s.lockJournal(tryOnce)
	if err != nil {
		return err
	}
	// What is mapped cannot be dropped from the page cache.
	s.resetSources()
	if err := w.recover(); err != nil {
		w.letGo()
		return err
	}
	s.w = w
	s.resetSources()
	return nil
}

// recover makes a dirty store clean (FORMAT 7.4; the numbers are its steps). A
// crash in between leaves it dirty as before, and the next one repeats it.
func (w *writer) recover() error {
	s := w.s
	// 1: a slot or a record may be in the page cache only, and 6 overwrites
	// the other slot.
	if err := w.journal.Sync(); err != nil {
		return fileError("recovering", err)
	}
	st, err := s.examine()
	if err != nil {
		return err
	}
	// 2: after a failed fsync, cached pages are not what the disk has.
	if err := w.dropCaches(st.slot.Meta.TailChunk); err != nil {
		return err
	}
	if st, err = s.examine(); err != nil { // 3
		return err
	}
	if st.version == 4 { // an upgrade whose commit never reached the disk
		return w.start(st)
	}
	over := st.over
	st.over = nil
	w.slot = st.slot
	if over != nil { // 4
		if err := w.applyOverlay(over); err != nil {
			return err
		}
	}
	s.adopt(st)
	names, err := s.dir.Names()
	if err != nil {
		return fileError("recovering", err)
	}
	if err := w.trimTables(names); err != nil { // 5
		return err
	}
	if err := w.touchTail(over, names); err != nil { // 6
		return err
	}
	w.names = true
	if err := w.checkpoint(); err != nil {
		return err
	}
	if s.typed.Version == 1 { // an upgrade cut short after its commit (FORMAT 8)
		if err := w.retype(); err != nil {
			return err
		}
	}
	s.st.dirty = false
	if err := w.cutTail(names); err != nil { // 7
		return err
	}
	return fileError("reserving the journal", reserveRedo(w.journal))
}

// dropCaches forgets what the page cache holds of the files that a crash can
// have left half-written.
func (w *writer) dropCaches(from uint32) error {
	names, err := w.s.dir.Names()
	if err != nil {
		return fileError("recovering", err)
	}
	for _, name := range names {
		_, table := numberOf(name, tableExt)
		_, sum := numberOf(name, sumExt)
		id, chunk := numberOf(name, chunkExt)
		if !table && !sum && !(chunk && id >= int64(from)) && name != metaName && name != journalName {
			continue
		}
		f, err := w.s.dir.Open(name, vfs.Read)
		if err != nil {
			return oddFile(err)
		}
		err = f.Drop()
		_ = f.Close()
		if err != nil {
			return fileError("recovering", err)
		}
	}
	return nil
}

// touchTail marks as to be synced what the dead writer may have left in the
// page cache: every chunk from the checkpoint's tail on, those that a record
// without images counts on, and the tables and sums from the segment on in
// which the checkpoint ends, or the records do if a delete has cut them.
func (w *writer) touchTail(over *overlay, names []string) error {
	ids := map[int64]bool{}
	for id := int64(w.slot.Meta.TailChunk); id <= int64(w.s.st.tailChunk); id++ {
		ids[id] = true
	}
	if over != nil {
		for _, e := range over.entries {
			ids[int64(e.Entry.Chunk)] = true
		}
	}
	last, _ := w.s.limits.segmentOf(min(int64(w.slot.Meta.Length), w.s.st.length))
	var touch []string
	for _, name := range names {
		chunk, isChunk := numberOf(name, chunkExt)
		table, isTable := numberOf(name, tableExt)
		sum, isSum := numberOf(name, sumExt)
		if isChunk && ids[chunk] || isTable && table >= int64(last) || isSum && sum >= int64(last) {
			touch = append(touch, name)
		}
	}
	return w.touch(touch)
}

// cutTail removes what lies beyond the tail: chunks, the rest of the last one,
// and an unfinished store.tmp. The checkpoint that makes it garbage is durable.
func (w *writer) cutTail(names []string) error {
	s := w.s
	for _, name := range beyond(names, chunkExt, int64(s.st.tailChunk)) {
		if err := w.remove(name); err != nil {
			return fileError("removing what is no longer used", err)
		}
	}
	if slices.Contains(names, newName) {
		if err := w.remove(newName); err != nil {
			return fileError("removing what is no longer used", err)
		}
	}
	if err := w.cut(numbered(int(s.st.tailChunk), chunkExt), int64(s.st.tailOffset)); err != nil {
		return err
	}
	return fileError("removing what is no longer used", s.dir.Sync())
}

// beyond is the files of one kind with a number above last, the highest first.
func beyond(names []string, ext string, last int64) []string {
	var extra []string
	for _, name := range names {
		if id, ok := numberOf(name, ext); ok && id > last {
			extra = append(extra, name)
		}
	}
	slices.SortFunc(extra, func(a, b string) int {
		x, _ := numberOf(a, ext)
		y, _ := numberOf(b, ext)
		return cmp.Compare(y, x)
	})
	return extra
}
