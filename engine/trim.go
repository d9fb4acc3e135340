package engine

import "loaderx/engine/internal/disk"

// takeAway cuts tables that reach past the length, and checkpoints. Until it is
// synced a power cut can undo the cut, and what comes back would pass for the
// next append: whoever dies in between must not leave a store that looks clean.
// So meta.zr first goes back to the epoch before the checkpoint's, which makes
// it a dirty store of the same records (FORMAT 7.2, "append fails").
func (w *writer) takeAway(long []tableCut) error {
	for _, c := range long { // so that a link or a missing right shows before
		if _, err := w.open(c.name); err != nil {
			return err
		}
	}
	if len(long) > 0 {
		head := w.header()
		head.Epoch--
		b := head.Encode()
		if _, err := w.meta.WriteAt(b[:], 0); err != nil {
			return w.poison(fileError("taking back an append", err))
		}
	}
	if err := w.cutTables(long); err != nil {
		return w.poison(err)
	}
	return w.checkpoint()
}

// tableCut is a file of tables or sums, and how much of it the records need.
type tableCut struct {
	name string
	keep int64
}

// trimTables cuts tables and sums to the length.
func (w *writer) trimTables(names []string) error {
	long, err := w.longTables(names)
	if err != nil {
		return err
	}
	return w.cutTables(long)
}

// longTables finds the tables and sums that reach past the length.
func (w *writer) longTables(names []string) (long []tableCut, err error) {
	limits := w.s.limits
	for _, name := range names {
		size := int64(disk.EntrySize)
		id, ok := numberOf(name, tableExt)
		if !ok {
			size = disk.SumSize
			id, ok = numberOf(name, sumExt)
		}
		if !ok {
			continue
		}
		if id > 0 && id*limits.Segment >= w.s.st.length {
			w.names = true // made by a dead writer, who may not have synced it
		}
		keep := min(max(w.s.st.length-id*limits.Segment, 0), limits.Segment) * size
		have, err := w.s.sizeOf(name)
		if err != nil {
			return nil, err
		}
		if have > keep {
			long = append(long, tableCut{name, keep})
		}
	}
	return long, nil
}

func (w *writer) cutTables(long []tableCut) error {
	for _, c := range long {
		file, err := w.open(c.name)
		if err != nil {
			return err
		}
		if err := file.Truncate(c.keep); err != nil {
			return fileError("trimming a table", err)
		}
		file.touched = true
	}
	return nil
}
