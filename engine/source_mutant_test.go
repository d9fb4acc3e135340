package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"loaderx/engine/internal/disk"
	"loaderx/engine/internal/vfs"
	"loaderx/engine/internal/vfs/memfs"
)

// Planted bugs that a file system cannot fake (RELIABILITY 2, T3): a check or
// a step of the engine that is left out. The sources are changed on their way
// to the compiler (go help build, -overlay), so that the engine has no hooks
// for it: all bugs are built into one test binary, and an environment variable
// says which of them it has.
const (
	bugName = "LOADERX_TEST_BUG"
	noBug   = "none"
)

// edit is a change of a source file: old is there once. In new, BUG stands for
// the condition that the binary has this bug.
type edit struct{ file, old, new string }

// sourceMutant is a bug. strict says that recovery must leave nothing unsynced,
// which only a bug that no crash can show needs.
type sourceMutant struct {
	name   string
	edits  []edit
	to     script
	try    func() error // instead of seeds
	strict bool
}

func without(file, old, new string) []edit { return []edit{{file, old, new}} }

var sourceMutants = []sourceMutant{
	{name: "nested checksum", edits: []edit{
		{"internal/disk/slot.go", "	var b [SlotSize]byte\n", "	if BUG {\n		return s.encodeNested()\n	}\n	var b [SlotSize]byte\n"},
		{"internal/disk/slot.go", "	if len(b) < SlotSize ||", "	if BUG {\n		return decodeNested(b)\n	}\n	if len(b) < SlotSize ||"},
	}, to: script{ops: "append append sync compact delete sync", fits: isSmall, at: writes(disk.SlotSize), last: true, per: 300, deep: never}},
	{name: "append over a record", edits: without("append.go", "	if s.w.redo > 0 {", "	if s.w.redo > 0 && !(BUG) {"),
		to: script{ops: "append append sync delete append append sync"}},
	{name: "moved without images", edits: without("compact.go", "	if last.Chunk < source.Chunk ||", "	if BUG || last.Chunk < source.Chunk ||"),
		to: script{ops: "append append delete compact"}},
	{name: "gap not synced", edits: without("compact.go", "		if err := w.flush(); err != nil {", "		if BUG {\n		} else if err := w.flush(); err != nil {"),
		to: script{ops: "append append append append delete compact", last: true, per: 20}},
	{name: "delete over a tail", edits: without("delete.go", "w.pending && w.redo == 0 {", "w.pending && w.redo == 0 && !(BUG) {"),
		to: script{ops: "append sync append delete"}},
	{name: "taken back without checkpoint", edits: without("append.go", "	return w.takeAway(long)", "	if BUG {\n		return w.cutTables(long)\n	}\n	return w.takeAway(long)"),
		to: script{ops: "append sync abort append", per: 40, deep: never}},
	{name: "worker not joined", edits: []edit{
		{"append.go", "	tail, err := w.open(numbered(int(s.st.tailChunk), chunkExt))\n", "	if BUG {\n		w.stray()\n	}\n	tail, err := w.open(numbered(int(s.st.tailChunk), chunkExt))\n"},
		{"append.go", "	s.w.pending = true\n", "	for _, late := range strays[s.w] {\n		late()\n	}\n	s.w.pending = true\n"},
	}, to: script{ops: "append abort append sync"}},
	{name: "odd pair", edits: without("tail.go", "f.typed.Kind == Dense ||", "f.typed.Kind == Dense || BUG ||")},
	{name: "upgrade not synced", edits: without("upgrade.go", "	if err := w.syncOld(u.st, u.names); err != nil {", "	if BUG {\n	} else if err := w.syncOld(u.st, u.names); err != nil {"),
		to: script{fits: isOld}},
	{name: "upgrade committed first", edits: without("upgrade.go", "	w.names = true\n	if err := w.checkpoint()", "	if BUG {\n		w.slot.Meta.Epoch = 1\n		_ = w.writeHeader(true)\n		w.slot.Meta.Epoch = 0\n	}\n	w.names = true\n	if err := w.checkpoint()"),
		to: script{fits: isOld}},
	{name: "upgrade not finished", edits: []edit{
		{"examine.go", "f.typed.Version == 1\n", "f.typed.Version == 1 && !(BUG)\n"},
		{"recover.go", "	if s.typed.Version == 1 {", "	if s.typed.Version == 1 && !(BUG) {"},
	}, try: func() error {
		return diesAnywhere(setting{o: smallDense(Zstd), version4: true}, "", "append", "delete", 60)
	}},
	{name: "reader trusts meta.zr", edits: without("locks.go", "		if !held {\n", "		if BUG && s.opts.Mode == ModeRead {\n			free()\n			held = true\n		}\n		if !held {\n")},
	{name: "reader ignores records", edits: without("locks.go", "			free()\n			return st, err\n", "			free()\n			if BUG && s.opts.Mode == ModeRead {\n				st.over = nil\n			}\n			return st, err\n")},
	{name: "leftovers kept", edits: without("writer.go", "	if len(long) == 0 && len(extra) == 0 {", "	if BUG || len(long) == 0 && len(extra) == 0 {"),
		try: func() error {
			return diesAnywhere(setting{o: smallDense(Raw)}, "append append sync", "append", "append sync", 250)
		}},
	{name: "tail of the same epoch only", edits: without("tail.go", "	limit := int64(st.meta.Length)\n", "	limit := int64(st.meta.Length)\n	if BUG && st.metaOK && st.meta.Epoch < st.slot.Meta.Epoch {\n		limit = 0\n	}\n")},
	{name: "released before applied", edits: without("delete.go", "	if err := w.finishDelete(length, entries); err != nil {", "	if BUG {\n		_ = s.goShared()\n	}\n	if err := w.finishDelete(length, entries); err != nil {")},
	{name: "tail believed", edits: without("tail.go", "		if !ok {\n", "		if !ok && !(BUG) {\n")},
	{name: "an empty record anywhere", edits: without("tail.go", "	if e.Phys == 0 {\n", "	if BUG && e.Phys == 0 {\n		return true\n	}\n	if e.Phys == 0 {\n"),
		to: script{ops: "append append", fits: hasEmpty, at: writes(disk.MetaSize), last: true, per: 400, deep: never}},
	{name: "cut without a mark", edits: without("trim.go", "		if _, err := w.meta.WriteAt(b[:], 0); err != nil {", "		if BUG {\n		} else if _, err := w.meta.WriteAt(b[:], 0); err != nil {"),
		try: func() error {
			return diesAnywhere(setting{o: smallDense(Raw)}, "append append sync", "abort", "append sync", 250)
		}},
	{name: "mapped while it recovers", edits: without("recover.go", "	s.resetSources()\n	if err := w.recover()", "	if !(BUG) {\n		s.resetSources()\n	}\n	if err := w.recover()"),
		to: script{ops: "append sync append sync append sync append sync", lossy: true}},
	{name: "cut by the dead not synced", edits: without("recover.go", "segmentOf(min(int64(w.slot.Meta.Length), w.s.st.length))", "segmentOf(map[bool]int64{true: int64(w.slot.Meta.Length), false: min(int64(w.slot.Meta.Length), w.s.st.length)}[BUG])"),
		to: script{ops: "append append append delete sync", fits: isSmall}, strict: true},
}

func isOld(c setting) bool { return c.version4 }

func hasEmpty(c setting) bool { return c.o.AllowEmpty && isSmall(c) }

func smallDense(codec Codec) Options {
	o := denseOptions(12, codec)
	o.Limits, o.round = Limits{Chunk: 600, Segment: 16}, 30
	return o
}

// plantedHelpers is what some bugs need, in the packages that have them.
var plantedHelpers = map[string]string{
	"planted_bug.go": `package engine

import "os"

var plantedBug = os.Getenv("` + bugName + `")

// strays are writes of workers that nobody waited for.
var strays = map[*writer][]func(){}

func (w *writer) stray() {
	name, off := numbered(int(w.s.st.tailChunk), chunkExt), int64(w.s.st.tailOffset)
	strays[w] = append(strays[w], func() { _ = w.writeAt(name, make([]byte, 12), off) })
}
`,
	// The header ends in its own checksum, and the epoch lies outside of it: the
	// slot's checksum, over all of it, does not see which header it is.
	"internal/disk/planted_bug.go": `package disk

import (
	"encoding/binary"
	"os"
)

var plantedBug = os.Getenv("` + bugName + `")

func (s Slot) encodeNested() (b [SlotSize]byte) {
	copy(b[:], slotMagic)
	binary.LittleEndian.PutUint32(b[4:], s.StoreID)
	binary.LittleEndian.PutUint64(b[8:], s.Meta.Epoch)
	head := s.Meta
	head.Epoch = 0
	inner := head.Encode()
	copy(b[16:], inner[:])
	binary.LittleEndian.PutUint32(b[48:], s.PerChunk)
	binary.LittleEndian.PutUint32(b[52:], s.DictCRC)
	binary.LittleEndian.PutUint32(b[60:], CRC(b[:60]))
	return b
}

func decodeNested(b []byte) (Slot, bool) {
	if len(b) < SlotSize || string(b[:4]) != slotMagic || binary.LittleEndian.Uint32(b[60:]) != CRC(b[:60]) {
		return Slot{}, false
	}
	s := Slot{
		StoreID: binary.LittleEndian.Uint32(b[4:]), Meta: header(b[16:44]),
		PerChunk: binary.LittleEndian.Uint32(b[48:]), DictCRC: binary.LittleEndian.Uint32(b[52:]),
	}
	s.Meta.Epoch = binary.LittleEndian.Uint64(b[8:])
	s.Arithmetic = s.PerChunk != 0
	return s, true
}
`,
}

// diesAnywhere lets a process die at each change of an operation, and the power
// fail in many ways once the next process has worked.
func diesAnywhere(c setting, before, victim, next string, per int) error {
	for seed := range uint64(4) {
		for k, died := 1, true; died; k++ {
			var err error
			if died, err = killedThen(c, seed, before, victim, next, k, per); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestPlantedInSource builds the bugs and runs each of them in a process of its
// own. The engine as it is has to pass what they are caught by.
func TestPlantedInSource(t *testing.T) {
	if testing.Short() {
		t.Skip("not in short runs: they are for the race detector, which has nothing to see here")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skipf("no go command to build the bugs with: %v", err)
	}
	binary := buildPlanted(t)
	for _, name := range append(sourceMutantNames(), noBug) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(binary, "-test.run=^TestOnePlanted$", "-test.v")
			cmd.Env = append(os.Environ(), bugName+"="+name)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			for line := range strings.SplitSeq(string(out), "\n") {
				if strings.Contains(line, "caught") {
					t.Log(strings.TrimSpace(line))
				}
			}
		})
	}
}

func sourceMutantNames() (names []string) {
	for _, m := range sourceMutants {
		names = append(names, m.name)
	}
	return names
}

// buildPlanted compiles the changed sources.
func buildPlanted(t *testing.T) string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for name, text := range plantedHelpers {
		files[name] = text
	}
	for _, m := range sourceMutants {
		for _, e := range m.edits {
			text, ok := files[e.file]
			if !ok {
				b, err := os.ReadFile(e.file)
				if err != nil {
					t.Fatal(err)
				}
				text = string(b)
			}
			if n := strings.Count(text, e.old); n != 1 {
				t.Fatalf("%s: expected one place in %s that reads %q, got %d", m.name, e.file, e.old, n)
			}
			condition := fmt.Sprintf("plantedBug == %q", m.name)
			files[e.file] = strings.Replace(text, e.old, strings.ReplaceAll(e.new, "BUG", condition), 1)
		}
	}
	dir := t.TempDir()
	replace := map[string]string{}
	for name, text := range files {
		changed := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(here, name)] = changed
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "planted.test")
	cmd := exec.Command("go", "test", "-c", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the bugs: %v\n%s", err, out)
	}
	return binary
}

// TestOnePlanted is the process with a bug: it passes if the bug is caught.
func TestOnePlanted(t *testing.T) {
	name := os.Getenv(bugName)
	if name == "" {
		t.Skip("runs only in the binary of TestPlantedInSource")
	}
	for _, m := range sourceMutants {
		if m.name != name && name != noBug {
			continue
		}
		var count counters
		err := m.hunt(&count, name == noBug)
		switch {
		case name == noBug && err != nil:
			t.Errorf("without a bug: %s: %v", m.name, err)
		case name != noBug && err == nil:
			t.Errorf("%s: not caught by %d states", name, count.states())
		case name != noBug:
			t.Logf("caught after %d states by %v", count.states(), err)
		}
	}
}

// hunt is the error that shows the bug. The engine as it is has to pass a seed;
// TestKilledThenSynced is what tries do.
func (m sourceMutant) hunt(count *counters, calm bool) error {
	if m.try != nil && calm {
		return nil
	}
	if m.try != nil {
		return m.try()
	}
	plain := func(fs vfs.FS) vfs.FS { return fs } // still a bug for settled
	if m.strict {
		plain = nil
	}
	seeds := uint64(mutantSeeds)
	if calm {
		seeds = 1
	}
	for seed := range seeds {
		if err := one(seed, plain, count, m.to); err != nil {
			return err
		}
	}
	return nil
}

// killedThen runs operations, lets the process die at change k of victim, and
// goes on with next. It crashes around the last of these, and tells whether
// there was a change k to die at.
func killedThen(c setting, seed uint64, before, victim, next string, k, per int) (died bool, err error) {
	ops := strings.Join([]string{before, victim, next}, " ")
	r := newRun(seed, nil, &counters{}, script{ops: ops, per: per, deep: never})
	r.setting, r.lossy, r.hard = c, false, true
	r.kill, r.left = k, len(strings.Fields(next))
	if victim == "create" {
		r.left = -1
		r.rig.kill = k
	}
	if err := r.begin(); err != nil {
		if !errors.Is(err, errKilled) {
			return false, err
		}
		died = true
		if err := r.beginAgain(); err != nil {
			return died, err
		}
	}
	r.rig.calm()
	if err := r.workOn(0); err != nil {
		return died, err
	}
	for _, s := range r.steps {
		died = died || strings.HasPrefix(s.op, "cut")
	}
	if err := r.s.Close(); err != nil {
		return died, err
	}
	from, n := r.steps[max(0, len(r.steps)-4)].end, 0
	r.at = func(op memfs.Op) bool {
		n++
		return op.Kind != memfs.Lock && n >= from
	}
	return died, r.crash()
}
