package engine

import (
	"encoding/binary"
	"strings"
	"testing"

	"loaderx/engine/internal/disk"
	"loaderx/engine/internal/vfs"
	"loaderx/engine/internal/vfs/faultfs"
)

// Planted bugs (RELIABILITY 2, T3). Each is an engine that forgets a sync, or
// does things in another order: a layer between it and its file system makes
// it so. The crash enumeration has to catch every one of them; one that it
// does not catch says that the enumeration is blind there.

// mutant is a planted bug. decide is made anew for every file system.
type mutant struct {
	name   string
	seeds  uint64 // more than enough to catch it
	decide func() faultfs.Hook
}

func (m mutant) plant(fs vfs.FS) vfs.FS { return &faultfs.FS{Base: fs, Hook: m.decide()} }

// skipping is a hook that pretends to do what is chosen.
func skipping(chosen func(op *faultfs.Op) bool) func() faultfs.Hook {
	return func() faultfs.Hook {
		return func(op *faultfs.Op, do func() error) error {
			if chosen(op) {
				return nil
			}
			return do()
		}
	}
}

// unsynced never syncs files with this ending.
func unsynced(ext string) func() faultfs.Hook {
	return skipping(func(op *faultfs.Op) bool { return op.Kind == faultfs.Sync && strings.HasSuffix(op.Name, ext) })
}

func isTable(name string) bool {
	return strings.HasSuffix(name, tableExt) || strings.HasSuffix(name, sumExt)
}

func isSlot(op *faultfs.Op) bool {
	return op.Kind == faultfs.Write && op.Name == journalName && op.Off < disk.RedoStart
}

func isRedo(op *faultfs.Op) bool {
	return op.Kind == faultfs.Write && op.Name == journalName && op.Off >= disk.RedoStart
}

// changing tells operations that a crash can see.
func changing(op *faultfs.Op) bool {
	switch op.Kind {
	case faultfs.Write, faultfs.Truncate, faultfs.Rename, faultfs.Remove, faultfs.Sync, faultfs.SyncDir, faultfs.Close, faultfs.Unlock:
		return true
	}
	return false
}

// journalUnsynced does not sync the journal after a record, or after a slot.
func journalUnsynced(afterRedo bool) func() faultfs.Hook {
	return func() faultfs.Hook {
		wasRedo := false
		return func(op *faultfs.Op, do func() error) error {
			switch {
			case isRedo(op), isSlot(op):
				wasRedo = isRedo(op)
			case op.Kind == faultfs.Sync && op.Name == journalName && wasRedo == afterRedo:
				return nil
			}
			return do()
		}
	}
}

// untouched does not sync those of the chosen files that were not written
// since they were synced last.
func untouched(chosen func(name string) bool) func() faultfs.Hook {
	return func() faultfs.Hook {
		wrote := map[string]bool{}
		return func(op *faultfs.Op, do func() error) error {
			switch op.Kind {
			case faultfs.Write, faultfs.Truncate:
				wrote[op.Name] = true
			case faultfs.Sync:
				if chosen(op.Name) && !wrote[op.Name] {
					return nil
				}
				delete(wrote, op.Name)
			}
			return do()
		}
	}
}

// later puts off the operations that hold chooses until after the first that
// release chooses; anything else that a crash can see comes after them.
func later(hold, release func(op *faultfs.Op) bool) func() faultfs.Hook {
	return func() faultfs.Hook {
		var held []func() error
		flush := func() error {
			for _, do := range held {
				if err := do(); err != nil {
					return err
				}
			}
			held = nil
			return nil
		}
		return func(op *faultfs.Op, do func() error) error {
			switch {
			case hold(op):
				file, data, off := op.File, append([]byte(nil), op.Data...), op.Off
				switch op.Kind {
				case faultfs.Write:
					held = append(held, func() error { _, err := file.WriteAt(data, off); return err })
				case faultfs.Sync:
					held = append(held, file.Sync)
				}
				return nil
			case len(held) == 0:
				return do()
			case release(op):
				if err := do(); err != nil {
					return err
				}
				return flush()
			case changing(op):
				if err := flush(); err != nil {
					return err
				}
			}
			return do()
		}
	}
}

// headerFirst writes the tables behind the header that counts their entries.
func headerFirst() faultfs.Hook {
	return later(func(op *faultfs.Op) bool { return op.Kind == faultfs.Write && isTable(op.Name) },
		func(op *faultfs.Op) bool { return op.Kind == faultfs.Write && op.Name == metaName })()
}

// metaBeforeSlot makes a checkpoint's header durable before its slot.
func metaBeforeSlot() faultfs.Hook {
	pending, wrote := false, false
	return later(func(op *faultfs.Op) bool {
		if isSlot(op) {
			pending, wrote = true, false
		}
		return pending && (isSlot(op) || op.Kind == faultfs.Sync && op.Name == journalName)
	}, func(op *faultfs.Op) bool {
		if op.Kind == faultfs.Write && op.Name == metaName {
			wrote = true
			return false
		}
		done := wrote && op.Kind == faultfs.Sync && op.Name == metaName
		pending = pending && !done
		return done
	})()
}

// lateCheckpoint frees what a compaction left before the checkpoint that says so.
func lateCheckpoint() faultfs.Hook {
	return later(func(op *faultfs.Op) bool {
		return isSlot(op) || op.Name == metaName && op.Kind == faultfs.Write ||
			op.Kind == faultfs.Sync && (op.Name == journalName || op.Name == metaName)
	}, func(op *faultfs.Op) bool {
		return op.Kind == faultfs.Remove || op.Kind == faultfs.Truncate && strings.HasSuffix(op.Name, chunkExt)
	})()
}

// applyFirst changes a table before the record of the change is written.
func applyFirst() faultfs.Hook {
	pending := false
	return later(func(op *faultfs.Op) bool {
		if isRedo(op) {
			pending = true
		}
		return pending && (isRedo(op) || op.Kind == faultfs.Sync && op.Name == journalName)
	}, func(op *faultfs.Op) bool {
		applied := op.Kind == faultfs.Write && isTable(op.Name)
		pending = pending && !applied
		return applied
	})()
}

// oneSlot writes every checkpoint over the one before it.
func oneSlot() faultfs.Hook {
	return func(op *faultfs.Op, do func() error) error {
		if isSlot(op) && op.Off == 0 {
			_, err := op.File.WriteAt(op.Data, disk.SlotStride)
			return err
		}
		return do()
	}
}

// flagKept never clears the arithmetic flag.
func flagKept() faultfs.Hook {
	per := uint32(0)
	return func(op *faultfs.Op, do func() error) error {
		if !isSlot(op) {
			return do()
		}
		slot, _ := disk.DecodeSlot(op.Data)
		if per = max(per, slot.PerChunk); per > 0 {
			slot.Arithmetic, slot.PerChunk = true, per
		}
		b := slot.Encode()
		_, err := op.File.WriteAt(b[:], op.Off)
		return err
	}
}

// nested keeps slots on disk that hold all of the header, its CRC included:
// the slot's own CRC is blind to such bytes (FORMAT 7).
func nested() faultfs.Hook {
	return func(op *faultfs.Op, do func() error) error {
		if !isSlot(op) {
			return do()
		}
		b := append([]byte(nil), op.Data...)
		binary.LittleEndian.PutUint32(b[48:], disk.CRC(b[8:36])) // stands at the header's end
		nest(b)
		_, err := op.File.WriteAt(b, op.Off)
		return err
	}
}

// nest computes the CRC of a slot whose header is followed by the header's.
func nest(b []byte) {
	binary.LittleEndian.PutUint32(b[60:], disk.CRC(b[:36], b[48:52], b[36:48], b[52:60]))
}

// noTrim leaves table entries behind, except those that a delete cuts off.
func noTrim() faultfs.Hook {
	redo := false
	return func(op *faultfs.Op, do func() error) error {
		switch {
		case isRedo(op), isSlot(op):
			redo = isRedo(op)
		case op.Kind == faultfs.Truncate && isTable(op.Name) && !redo:
			return nil
		}
		return do()
	}
}

// unsyncedRename forgets the folder after store.zr was put in its place.
func unsyncedRename() faultfs.Hook {
	renamed := false
	return func(op *faultfs.Op, do func() error) error {
		switch op.Kind {
		case faultfs.Rename:
			renamed = true
		case faultfs.SyncDir:
			if renamed {
				renamed = false
				return nil
			}
		}
		return do()
	}
}

var mutants = []mutant{
	{"record not synced", 60, journalUnsynced(true)},
	{"slot not synced", 60, journalUnsynced(false)},
	{"tables not synced", 60, unsynced(tableExt)},
	{"sums not synced", 60, unsynced(sumExt)},
	{"chunks not synced", 60, unsynced(chunkExt)},
	{"store.tmp not synced", 60, unsynced(newName)},
	{"dictionary not synced", 60, unsynced(dictName)},
	{"folder not synced", 60, skipping(func(op *faultfs.Op) bool { return op.Kind == faultfs.SyncDir })},
	{"folder not synced after rename", 60, unsyncedRename},
	{"tables not cut", 60, skipping(func(op *faultfs.Op) bool { return op.Kind == faultfs.Truncate && isTable(op.Name) })},
	{"tables not cut after a failure", 200, noTrim},
	{"header before tables", 60, headerFirst},
	{"header before slot", 200, metaBeforeSlot},
	{"change before record", 60, applyFirst},
	{"freed before checkpoint", 200, lateCheckpoint},
	{"one slot", 60, oneSlot},
	{"arithmetic flag kept", 200, flagKept},
	{"recovered journal not synced", 400, untouched(func(name string) bool { return name == journalName })},
	{"recovered tables not synced", 60, untouched(isTable)},
	{"recovered chunks not synced", 100, untouched(func(name string) bool { return strings.HasSuffix(name, chunkExt) })},
	{"cache not dropped", 400, skipping(func(op *faultfs.Op) bool { return op.Kind == faultfs.Drop })},
}

func TestPlantedBugs(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			var count counters
			for seed := range m.seeds {
				if err := one(seed, m.plant, &count, 3); err != nil {
					t.Logf("caught after %d states by %v", count.states(), err)
					return
				}
			}
			t.Errorf("not caught by %d seeds, %d states", m.seeds, count.states())
		})
	}
}
