package engine

import (
	"strings"
	"testing"

	"loaderx/engine/internal/disk"
	"loaderx/engine/internal/vfs"
	"loaderx/engine/internal/vfs/faultfs"
	"loaderx/engine/internal/vfs/memfs"
)

// Planted bugs (RELIABILITY 2, T3). Each is an engine that forgets a sync, or
// does things in another order: a layer between it and its file system makes
// it so. The crash enumeration has to catch every one of them; one that it
// does not catch says that the enumeration is blind there.

// mutant is a planted bug. decide is made anew for every file system.
type mutant struct {
	name   string
	decide func() faultfs.Hook
	to     script
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
		files := map[vfs.File]bool{} // that they are about
		flush := func() error {
			for _, do := range held {
				if err := do(); err != nil {
					return err
				}
			}
			held = nil
			clear(files)
			return nil
		}
		return func(op *faultfs.Op, do func() error) error {
			switch {
			case hold(op):
				file, data, off := op.File, append([]byte(nil), op.Data...), op.Off
				files[file] = true
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
			case changing(op) && (op.Kind != faultfs.Close || files[op.File]):
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
	var slot func() error
	return func(op *faultfs.Op, do func() error) error {
		switch {
		case isSlot(op):
			file, data, off := op.File, append([]byte(nil), op.Data...), op.Off
			slot = func() error {
				if _, err := file.WriteAt(data, off); err != nil {
					return err
				}
				return file.Sync()
			}
			return nil
		case slot == nil:
			return do()
		case op.Kind == faultfs.Sync && op.Name == journalName:
			return nil
		case op.Kind == faultfs.Write && op.Name == metaName:
			return do()
		case op.Kind == faultfs.Sync && op.Name == metaName:
			if err := do(); err != nil {
				return err
			}
		}
		err := slot()
		slot = nil
		return err
	}
}

// lateCheckpoint frees what a compaction left before the checkpoint that says so.
func lateCheckpoint() faultfs.Hook {
	pending := false
	return later(func(op *faultfs.Op) bool {
		pending = pending && !(op.Kind == faultfs.Sync && op.Name == metaName) || isSlot(op)
		return isSlot(op) || pending && op.Name == metaName && op.Kind == faultfs.Write ||
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

func isSmall(c setting) bool { return c.o.Limits.Chunk <= 300 && *c.o.Codec == Raw }

// never is a deep of scripts whose bug shows without crashes in recovery.
const never = 1 << 30

// writes chooses changes that write blocks of a size.
func writes(size int) func(memfs.Op) bool {
	return func(op memfs.Op) bool { return op.Kind == memfs.Write && len(op.Data) == size }
}

func frees(op memfs.Op) bool { return op.Kind == memfs.Unlink || op.Kind == memfs.Truncate }

func isArithmetic(c setting) bool { return c.o.Kind == Dense && *c.o.Codec == Raw }

var mutants = []mutant{
	{"record not synced", journalUnsynced(true), script{}},
	{"slot not synced", journalUnsynced(false), script{}},
	{"tables not synced", unsynced(tableExt), script{}},
	{"sums not synced", unsynced(sumExt), script{}},
	{"chunks not synced", unsynced(chunkExt), script{}},
	{"store.tmp not synced", unsynced(newName), script{}},
	{"dictionary not synced", unsynced(dictName), script{}},
	{"folder not synced", skipping(func(op *faultfs.Op) bool { return op.Kind == faultfs.SyncDir }), script{}},
	{"folder not synced after rename", unsyncedRename, script{}},
	{"tables not cut", skipping(func(op *faultfs.Op) bool { return op.Kind == faultfs.Truncate && isTable(op.Name) }),
		script{ops: "append append sync delete compact", fits: isSmall, at: writes(disk.MetaSize), last: true, per: 15, deep: never}},
	{"header before tables", headerFirst, script{}},
	{"header before slot", metaBeforeSlot, script{}},
	{"change before record", applyFirst, script{}},
	{"freed before checkpoint", lateCheckpoint, script{ops: "append append append delete compact", fits: isSmall, at: frees, last: true, deep: never}},
	{"one slot", oneSlot, script{}},
	{"arithmetic flag kept", flagKept, script{ops: "append append delete append reopen", fits: isArithmetic}},
	{"recovered journal not synced", untouched(func(name string) bool { return name == journalName }),
		script{ops: "append sync append sync", fits: isSmall, at: writes(disk.SlotSize), last: true, per: 1, deep: 1, inner: 60}},
	{"recovered tables not synced", untouched(isTable), script{}},
	{"recovered chunks not synced", untouched(func(name string) bool { return strings.HasSuffix(name, chunkExt) }), script{}},
	{"cache not dropped", skipping(func(op *faultfs.Op) bool { return op.Kind == faultfs.Drop }),
		script{ops: "append sync append sync append sync append sync", fits: isSmall, lossy: true}},
}

// mutantSeeds is more than enough to catch any of them.
const mutantSeeds = 60

func TestPlantedBugs(t *testing.T) {
	if testing.Short() {
		t.Skip("not in short runs: they are for the race detector, which has nothing to see here")
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			var count counters
			for seed := range uint64(mutantSeeds) {
				if err := one(seed, m.plant, &count, m.to); err != nil {
					t.Logf("caught after %d states by %v", count.states(), err)
					return
				}
			}
			t.Errorf("not caught by %d seeds, %d states", mutantSeeds, count.states())
		})
	}
}
