package engine

import (
	"errors"
	"math/rand/v2"

	"loaderx/engine/internal/disk"
	"loaderx/engine/internal/vfs"
	"loaderx/engine/internal/zstd"
)

// create makes an empty store at path (FORMAT 7.2, "create"). It says false if
// one has appeared there meanwhile.
func create(path string, o Options) (made bool, err error) {
	typed, codec, err := o.newType(path)
	if err != nil {
		return false, err
	}
	dir, err := makeFolder(o.fs, path, "store")
	if err != nil {
		return false, err
	}
	defer func() { _ = dir.Close() }()
	c := creation{dir: dir, o: o, typed: typed, codec: codec}
	if err := c.refuseForeign(); err != nil {
		return false, err
	}
	c.meta, err = dir.Open(metaName, vfs.Create)
	if err != nil {
		return false, notWritable(path, err)
	}
	defer func() { _ = c.meta.Close() }()
	if done, err := c.lock(); done || err != nil {
		return false, err
	}
	defer func() { _ = c.meta.Unlock() }()
	if err := c.clear(); err != nil {
		return false, err
	}
	if err := c.publish(); err != nil {
		return false, changeError("creating the store", err)
	}
	return true, nil
}

// newType checks what only a new store needs.
func (o *Options) newType(path string) (disk.Typed, Codec, error) {
	codec := Zstd
	if o.Codec != nil {
		codec = *o.Codec
	}
	t := disk.Typed{Version: 2, Kind: o.Kind}
	var err error
	switch t.Identity, err = disk.EncodeIdentity(o.Kind, o.Identity); {
	case err != nil:
		return t, codec, errorf(StatusArgument, path, "identity: %v", err)
	case o.Kind == Dense && (o.Width < 1 || o.Width > o.Limits.Record || o.Width > o.Limits.Chunk):
		return t, codec, errorf(StatusArgument, path, "record width: expected 1 to %d bytes, got %d", min(o.Limits.Record, o.Limits.Chunk), o.Width)
	case codec == ZstdDict && len(o.Dict) == 0:
		return t, codec, errorf(StatusArgument, path, "a new zstd_dict store needs its dictionary, got none")
	case codec != ZstdDict && o.Dict != nil:
		return t, codec, errorf(StatusArgument, path, "a %v store takes no dictionary, got one of %d bytes", codec, len(o.Dict))
	}
	if codec == ZstdDict {
		dict, err := zstd.NewDict(o.Dict)
		if err != nil {
			return t, codec, errorf(StatusArgument, path, "dictionary: %v", err)
		}
		dict.Close()
	}
	if o.Kind == Dense {
		t.Width = uint64(o.Width)
	}
	if o.AllowEmpty {
		t.Flags = disk.FlagAllowEmpty
	}
	t.StoreID = newID()
	return t, codec, nil
}

// newID is a random store id, never 0.
func newID() uint32 {
	for {
		if id := rand.Uint32(); id != 0 {
			return id
		}
	}
}

// creation is a store in the making.
type creation struct {
	dir   vfs.Dir
	o     Options
	typed disk.Typed
	codec Codec
	meta  vfs.File
}

// ownName tells the names of a store's files.
func ownName(name string) bool {
	switch name {
	case typedName, metaName, dictName, journalName, newName:
		return true
	}
	return dataName(name)
}

func dataName(name string) bool {
	for _, ext := range []string{tableExt, sumExt, chunkExt} {
		if _, ok := numberOf(name, ext); ok {
			return true
		}
	}
	return false
}

// refuseForeign keeps a store out of a folder that holds anything else.
func (c *creation) refuseForeign() error {
	names, err := c.dir.Names()
	if err != nil {
		return fileError("listing the folder of the store", err)
	}
	for _, name := range names {
		if !ownName(name) {
			return errorf(StatusNotAStore, c.dir.Path(), "%s: expected an empty folder for a new store, it holds %q", c.dir.Path(), name)
		}
	}
	return nil
}

// lock takes meta.zr for creating. done says that a store has appeared: others
// create too, and who is first wins.
func (c *creation) lock() (done bool, err error) {
	err = acquire(c.meta, true)
	if errors.Is(err, vfs.ErrNoLocks) {
		return false, errorf(StatusReadOnly, c.dir.Path(), "%s: the file system has no locks, so stores there can only be read", c.dir.Path())
	}
	// Whatever bears the name: opening it will tell.
	if _, sizeErr := c.dir.SizeOf(typedName); !vfs.IsNotExist(sizeErr) {
		_ = c.meta.Unlock()
		return true, nil
	}
	return false, err
}

// clear removes what an interrupted creation left, and refuses what cannot be
// one: bytes in the data files, or a header that counts records.
func (c *creation) clear() error {
	names, err := c.dir.Names()
	if err != nil {
		return fileError("listing the folder of the store", err)
	}
	if err := c.refuseRecords(); err != nil {
		return err
	}
	f := folder{dir: c.dir}
	var old []string
	for _, name := range names {
		if name == metaName {
			continue
		}
		size, err := f.sizeOf(name)
		if err != nil {
			return err
		}
		if size > 0 && dataName(name) {
			return corrupt(c.dir.Path(), "%s is missing, but %s holds %d bytes: not creating over a damaged store", typedName, name, size)
		}
		old = append(old, name)
	}
	for _, name := range old {
		if err := c.dir.Remove(name); err != nil {
			return changeError("clearing an unfinished creation", err)
		}
	}
	return nil
}

func (c *creation) refuseRecords() error {
	raw, err := readHead(c.meta, disk.MetaSize+1)
	if err != nil {
		return err
	}
	if len(raw) > disk.MetaSize {
		return corrupt(c.meta.Path(), "expected at most %d bytes, got more: not a header to create over", disk.MetaSize)
	}
	length := uint64(0)
	for _, typedVersion := range []uint8{1, 2} {
		if m, found := disk.DecodeMeta(raw, typedVersion); found == disk.MetaValid {
			length = max(length, m.Length)
		}
	}
	f := folder{dir: c.dir}
	for k := range int64(2) {
		raw, err := f.readSome(journalName, k*disk.SlotStride, disk.SlotSize)
		if err != nil {
			return err
		}
		if slot, ok := disk.DecodeSlot(raw); ok {
			length = max(length, slot.Meta.Length)
		}
	}
	if length > 0 {
		return corrupt(c.dir.Path(), "%s is missing, but the store counted %d records: not creating over a damaged store", typedName, length)
	}
	return nil
}

// publish writes the empty store: every name, the first checkpoint, and last
// of all store.zr, which makes it one.
func (c *creation) publish() error {
	slot := disk.Slot{StoreID: c.typed.StoreID, Meta: disk.Meta{Version: 5, Codec: c.codec, Epoch: 1}}
	if c.codec == Raw && c.typed.Kind == Dense {
		slot.Arithmetic, slot.PerChunk = true, uint32(c.o.Limits.Chunk/int64(c.typed.Width))
	}
	names := []string{numbered(0, chunkExt), numbered(0, tableExt), numbered(0, sumExt)}
	for _, name := range names {
		if err := c.write(name, nil, false); err != nil {
			return err
		}
	}
	if c.codec == ZstdDict {
		slot.DictCRC = disk.CRC(c.o.Dict)
		if err := c.write(dictName, c.o.Dict, true); err != nil {
			return err
		}
	}
	journal, err := c.dir.Open(journalName, vfs.Create)
	if err != nil {
		return err
	}
	defer func() { _ = journal.Close() }()
	if err := c.checkpoint(journal, slot); err != nil {
		return err
	}
	return publishTyped(c.dir, c.typed)
}

// checkpoint writes the first one. The folder is synced before it: a valid
// slot says that the files it counts on are there.
func (c *creation) checkpoint(journal vfs.File, slot disk.Slot) error {
	if err := c.dir.Sync(); err != nil {
		return err
	}
	if err := writeSlot(journal, slot); err != nil {
		return err
	}
	head := slot.Meta.Encode()
	if _, err := c.meta.WriteAt(head[:], 0); err != nil {
		return err
	}
	return c.meta.Sync()
}

func (c *creation) write(name string, content []byte, sync bool) error {
	f, err := c.dir.Open(name, vfs.Create)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if _, err := f.WriteAt(content, 0); err != nil {
		return err
	}
	if sync {
		return f.Sync()
	}
	return nil
}
