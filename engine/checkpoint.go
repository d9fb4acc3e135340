package engine

import (
	"loaderx/engine/internal/disk"
	"loaderx/engine/internal/vfs"
)

// Sync makes every committed record durable, and recovers a dirty store. It may
// run beside an open batch, whose records it leaves out.
func (s *Store) Sync() error {
	dirty, err := s.syncWriter()
	if err != nil || !dirty || s.opts.Mode == ModeRead {
		return err
	}
	if err := s.takeTurn(); err != nil {
		return err
	}
	defer s.endTurn()
	return s.ready()
}

// syncWriter checkpoints what this handle wrote, and says whether the store
// awaits recovery.
func (s *Store) syncWriter() (dirty bool, err error) {
	if err := s.enter(); err != nil {
		return false, err
	}
	defer s.leave()
	s.settled()
	s.mut.Lock()
	defer s.mut.Unlock()
	if s.w == nil {
		return s.st.dirty, nil
	}
	if err := s.w.usable(); err != nil || !s.w.pending {
		return false, err
	}
	return false, s.w.checkpoint()
}

// checkpoint makes the current state durable (FORMAT 7.2): the data files,
// the folder if names changed, then the slot of the next epoch, then meta.zr.
// The caller excludes mutations.
func (w *writer) checkpoint() error {
	if err := w.flush(); err != nil {
		return w.poison(fileError("making the store durable", err))
	}
	if err := w.publishSlot(w.header()); err != nil {
		return err
	}
	w.pending, w.since, w.redo, w.seq = false, 0, 0, 0
	return w.cutJournal()
}

// publishSlot makes a state that is on stable storage the newest checkpoint,
// and meta.zr one of its epoch, with what is committed by now.
func (w *writer) publishSlot(at disk.Meta) error {
	next := w.slot
	next.Meta = at
	next.Meta.Epoch = w.slot.Meta.Epoch + 1
	if err := writeSlot(w.journal, next); err != nil {
		return w.poison(fileError("writing a checkpoint", err))
	}
	w.slot, w.s.st.slot = next, next
	if err := w.writeHeader(true); err != nil {
		return w.poison(fileError("writing a checkpoint", err))
	}
	return nil
}

// cutJournal gives back the room of a redo record that was larger than the
// area kept for them: after a checkpoint all records are void.
func (w *writer) cutJournal() error {
	const size = disk.RedoStart + disk.RedoReserve
	have, err := w.journal.Size()
	if err == nil && have > size {
		err = w.journal.Truncate(size)
	}
	if err != nil {
		return w.poison(fileError("cutting the journal", err))
	}
	return nil
}

// touch marks files as written, so that the next checkpoint syncs what another
// process may have left in the page cache.
func (w *writer) touch(names []string) error {
	for _, name := range names {
		f, err := w.open(name)
		if err != nil {
			return err
		}
		f.touched = true
		if err := w.rest(); err != nil {
			return err
		}
	}
	return nil
}

// flush syncs what was written, and the folder if names were added. What a
// checkpoint behind has begun to sync it waits for: those files are not marked
// any more, and a sync that fails tells only the first who asks.
func (w *writer) flush() error {
	if b := w.behind; b != nil {
		<-b.synced
		if b.err != nil {
			return b.err
		}
	}
	for _, name := range w.sorted() {
		f := w.files[name]
		if !f.touched {
			continue
		}
		if err := f.Sync(); err != nil {
			return err
		}
		f.touched = false
	}
	if w.names {
		if err := w.s.dir.Sync(); err != nil {
			return err
		}
		w.names = false
	}
	return nil
}

// header is meta.zr for the current state, in the epoch of the slot.
func (w *writer) header() disk.Meta {
	st := &w.s.st
	return disk.Meta{
		Version: 5, Codec: st.codec, TailChunk: st.tailChunk, TailOffset: st.tailOffset,
		Length: uint64(st.length), Epoch: w.slot.Meta.Epoch,
	}
}

func (w *writer) writeHeader(sync bool) error {
	head := w.header().Encode()
	if _, err := w.meta.WriteAt(head[:], 0); err != nil {
		return err
	}
	if sync {
		return w.meta.Sync()
	}
	return nil
}

// writeSlot writes a checkpoint to the slot of its epoch: A holds the even
// ones, B the odd ones, so the older one is overwritten (FORMAT 7).
func writeSlot(journal vfs.File, slot disk.Slot) error {
	b := slot.Encode()
	if _, err := journal.WriteAt(b[:], int64(slot.Meta.Epoch%2)*disk.SlotStride); err != nil {
		return err
	}
	return journal.Sync()
}
