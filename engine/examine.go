package engine

import (
	"errors"
	"io"
	"strconv"

	"loaderx/engine/internal/disk"
	"loaderx/engine/internal/vfs"
)

// The names of a store's files (FORMAT, "The store on disk").
const (
	typedName   = "store.zr"
	metaName    = "meta.zr"
	dictName    = "dict.zr"
	journalName = "journal.zr"
	newName     = "store.tmp"
	tableExt    = ".loc"
	sumExt      = ".sum"
	chunkExt    = ".chunk"
)

func numbered(id int, ext string) string { return strconv.Itoa(id) + ext }

// state is what a folder says of its store (FORMAT 7.3).
type state struct {
	version    int // of the format
	codec      Codec
	slot       disk.Slot // C, the newest checkpoint; zero in version 4
	meta       disk.Meta // as found in meta.zr
	metaOK     bool
	length     int64 // physical records
	tailChunk  uint32
	tailOffset uint32
	over       *overlay // a delete or a compaction cut short, or nil
	dirty      bool
}

// folder is what an examination looks at. meta.zr is open already, because its
// lock is held.
type folder struct {
	dir    vfs.Dir
	meta   vfs.File
	typed  disk.Typed
	limits Limits
}

// examine decides what the folder says (FORMAT 7.3). It never writes. The
// numbers are the steps of that section.
func (f *folder) examine() (state, error) {
	var st state
	// 1 was done when store.zr was read. 2: meta.zr comes before the slots,
	// since a checkpoint writes its slot first.
	raw, err := readHead(f.meta, disk.MetaSize+1)
	if err != nil {
		return st, err
	}
	meta, found := disk.DecodeMeta(raw, f.typed.Version)
	st.meta, st.metaOK = meta, found == disk.MetaValid
	switch {
	case st.metaOK && meta.Version == 4:
		return f.asVersion4(st)
	case found == disk.MetaNewer:
		return st, newer(f.meta.Path(), meta.Version)
	}
	journal, err := f.dir.Open(journalName, vfs.Read)
	if vfs.IsNotExist(err) && found == disk.MetaNewerDamaged {
		return st, newer(f.meta.Path(), meta.Version)
	}
	if vfs.IsNotExist(err) {
		return st, corrupt(f.dir.Path()+"/"+journalName, "the file is missing, and with it the checkpoints")
	}
	if err != nil {
		return st, oddFile(err)
	}
	defer func() { _ = journal.Close() }()
	if err := f.newestSlot(journal, &st, found); err != nil { // 3
		return st, err
	}
	c := st.slot.Meta
	st.version, st.codec = 5, c.Codec
	if st.codec > ZstdDict {
		return st, errorf(StatusUnsupported, f.meta.Path(), "%s: expected a codec up to zstd_dict, got %v", f.meta.Path(), st.codec)
	}
	if err := f.checkFormula(journal.Path(), st.slot); err != nil {
		return st, err
	}
	if st.metaOK && meta.Codec != c.Codec {
		return st, corrupt(f.meta.Path(), "codec: expected %v as in %s, got %v", c.Codec, journalName, meta.Codec)
	}
	if st.metaOK && meta.Epoch > c.Epoch { // 4
		return st, corrupt(f.meta.Path(), "epoch %d is newer than %d in %s, which is old or was lost", meta.Epoch, c.Epoch, journalName)
	}
	if err := f.checkLength(c.Length); err != nil {
		return st, err
	}
	if st.over, err = f.readChain(journal, &st); err != nil { // 5
		return st, err
	}
	r := c
	if st.over != nil {
		if st.slot.Arithmetic {
			return st, corrupt(journal.Path(), "expected no redo record of checkpoint %d, whose layout is arithmetic, got one", c.Epoch)
		}
		r = st.over.header
	}
	if st.metaOK && meta.Epoch == c.Epoch && meta.Length < r.Length {
		return st, corrupt(f.meta.Path(), "expected at least the %d records that %s counts, got %d", r.Length, journalName, meta.Length)
	}
	st.length, st.tailChunk, st.tailOffset = int64(r.Length), r.TailChunk, r.TailOffset
	if st.over == nil {
		if err := f.acceptTail(&st); err != nil { // 6
			return st, err
		}
	}
	st.dirty = !st.metaOK || meta != c || st.over != nil || f.typed.Version == 1
	return st, f.checkFiles(&st) // 7
}

// asVersion4 takes meta.zr's word: version 4 has no other.
func (f *folder) asVersion4(st state) (state, error) {
	st.version, st.codec = 4, st.meta.Codec
	if st.codec > ZstdDict {
		return st, errorf(StatusUnsupported, f.meta.Path(), "%s: expected a codec up to zstd_dict, got %v", f.meta.Path(), st.codec)
	}
	if err := f.checkLength(st.meta.Length); err != nil {
		return st, err
	}
	st.length, st.tailChunk, st.tailOffset = int64(st.meta.Length), st.meta.TailChunk, st.meta.TailOffset
	return st, f.checkFiles(&st)
}

func newer(path string, version uint8) error {
	return errorf(StatusUnsupported, path, "%s: format version %d is newer than 5, the latest this library reads", path, version)
}

// newestSlot finds C. A slot counts if its CRC holds and it is of this store;
// while an upgrade is unfinished store.zr has no id yet (FORMAT 8).
func (f *folder) newestSlot(journal vfs.File, st *state, found disk.MetaState) error {
	seen := false
	for k := range int64(2) {
		raw := make([]byte, disk.SlotSize)
		if _, err := journal.ReadAt(raw, k*disk.SlotStride); err != nil && !errors.Is(err, io.EOF) {
			return fileError("reading the journal", err)
		}
		slot, ok := disk.DecodeSlot(raw)
		if !ok || f.typed.Version == 2 && slot.StoreID != f.typed.StoreID {
			continue
		}
		if !seen || slot.Meta.Epoch > st.slot.Meta.Epoch {
			st.slot, seen = slot, true
		}
	}
	switch {
	case seen:
		return nil
	case found == disk.MetaNewerDamaged:
		return newer(f.meta.Path(), st.meta.Version)
	default:
		return corrupt(journal.Path(), "no valid checkpoint of this store")
	}
}

// checkFormula refuses an arithmetic slot of a store that cannot be one, or whose
// tail is elsewhere than the formula says (FORMAT 7, "Arithmetic").
func (f *folder) checkFormula(path string, s disk.Slot) error {
	if !s.Arithmetic {
		return nil
	}
	if f.typed.Kind != Dense || s.Meta.Codec != Raw {
		kind := "dense"
		if f.typed.Kind != Dense {
			kind = "ragged"
		}
		return corrupt(path, "an arithmetic layout: expected a dense store of codec raw, got a %s one of codec %v", kind, s.Meta.Codec)
	}
	per := uint64(f.limits.Chunk) / max(f.typed.Width, 1)
	if uint64(s.PerChunk) != per {
		return corrupt(path, "an arithmetic layout: expected %d records of %d bytes a chunk, got %d", per, f.typed.Width, s.PerChunk)
	}
	var chunk, offset uint64
	if n := s.Meta.Length; n > 0 {
		chunk, offset = (n-1)/per, ((n-1)%per+1)*f.typed.Width
	}
	if uint64(s.Meta.TailChunk) != chunk || uint64(s.Meta.TailOffset) != offset {
		return corrupt(path, "an arithmetic layout: expected the tail of %d records at chunk %d, offset %d, got chunk %d, offset %d",
			s.Meta.Length, chunk, offset, s.Meta.TailChunk, s.Meta.TailOffset)
	}
	return nil
}

// checkLength refuses lengths that the table files cannot hold before anything
// is sized by them.
func (f *folder) checkLength(length uint64) error {
	switch {
	case length > 1<<62:
		return corrupt(f.meta.Path(), "length %d is beyond any store", length)
	case f.typed.Kind == Ragged && length%2 != 0:
		return corrupt(f.meta.Path(), "a ragged store has two physical records each, got the odd length %d", length)
	}
	return nil
}

// checkFiles holds a state against the files: every chunk is there, the last
// one holds the tail, and the tables reach the length (FORMAT 7.3.7).
func (f *folder) checkFiles(st *state) error {
	names, err := f.dir.Names()
	if err != nil {
		return fileError("listing the store", err)
	}
	there := make(map[string]bool, len(names))
	for _, name := range names {
		there[name] = true
	}
	for id := int64(0); id <= int64(st.tailChunk); id++ {
		if name := numbered(int(id), chunkExt); !there[name] {
			return corrupt(f.dir.Path()+"/"+name, "the file is missing; the store holds chunks 0 to %d", st.tailChunk)
		}
	}
	if err := f.holds(numbered(int(st.tailChunk), chunkExt), int64(st.tailOffset)); err != nil {
		return err
	}
	exts, sizes := []string{tableExt}, []int64{disk.EntrySize}
	if st.version == 5 {
		exts, sizes = append(exts, sumExt), append(sizes, disk.SumSize)
	}
	for first, id := int64(0), 0; first < st.length; first, id = first+f.limits.Segment, id+1 {
		n := min(st.length-first, f.limits.Segment)
		for k, ext := range exts {
			if err := f.holds(numbered(id, ext), n*sizes[k]); err != nil {
				return err
			}
		}
	}
	return nil
}

// holds says that a file is there and has at least size bytes.
func (f *folder) holds(name string, size int64) error {
	got, err := f.sizeOf(name)
	if err != nil {
		return err
	}
	if got < size {
		return corrupt(f.dir.Path()+"/"+name, "expected at least %d bytes, got %d", size, got)
	}
	return nil
}

// sizeOf is a file's size, or -1 if there is none.
func (f *folder) sizeOf(name string) (int64, error) {
	size, err := f.dir.SizeOf(name)
	if vfs.IsNotExist(err) {
		return -1, nil
	}
	if err != nil {
		return 0, oddFile(err)
	}
	return size, nil
}

// oddFile turns a folder or a pipe in place of a file into a corrupt store.
func oddFile(err error) error {
	if vfs.IsNotRegular(err) {
		return corrupt(vfs.PathOf(err), "expected a regular file")
	}
	return fileError("opening a file of the store", err)
}

// readHead reads up to n bytes from the start of a file. Its size bounds what
// is asked for.
func readHead(file vfs.File, n int) ([]byte, error) {
	size, err := file.Size()
	if err != nil {
		return nil, fileError("reading "+file.Path(), err)
	}
	b := make([]byte, min(int64(n), size))
	got, err := file.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fileError("reading "+file.Path(), err)
	}
	return b[:got], nil
}
