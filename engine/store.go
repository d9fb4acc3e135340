package engine

import (
	"bytes"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"

	"loaderx/engine/internal/disk"
	"loaderx/engine/internal/vfs"
	"loaderx/engine/internal/zstd"
)

// Store is an open handle. All its methods may be called from any goroutine.
type Store struct {
	folder
	path     string
	opts     Options
	identity []byte // JSON
	codec    Codec
	dict     *zstd.Dict
	dictCRC  uint32
	lockable bool
	made     bool // by this handle
	coders   coders

	// life is held shared by every running call and exclusively by Close.
	// closing is closed first, so that nobody waits for what will not come.
	life    sync.RWMutex
	closing chan struct{}
	closed  bool
	stuck   error // a change was cut half-way: nothing here can be believed

	view   atomic.Pointer[view]
	pins   atomic.Int64 // running snapshots and verifications
	moving bool         // a compaction is running; changed by who is alone
	tables sources      // N.loc
	sums   sources      // N.sum
	chunks sources      // N.chunk
	pace   pace
	now    cold // what is being read
	later  cold // what will be

	// turn is held by the open batch: appends take turns. mut guards what
	// follows, for the length of one call.
	turn  chan struct{}
	mut   sync.Mutex
	st    state // as examined, and kept up to date by this handle
	w     *writer
	batch *Batch
}

// view is what gathers see: published as a whole, never changed.
type view struct {
	length     int64 // physical records
	tailChunk  uint32
	tailOffset uint32
	over       *overlay
	version    int
	perChunk   uint32 // of an arithmetic layout, else 0
}

// Open opens the store at path, or creates it if o has an identity and there
// is none. The path is used as given; make it absolute if the process may
// change its folder.
func Open(path string, o Options) (*Store, error) {
	if err := o.check(path); err != nil {
		return nil, err
	}
	path = filepath.Clean(path)
	for made := false; ; {
		s, err := openExisting(path, o)
		if err == nil {
			s.made = made
		}
		if !errors.Is(err, errMissing) || o.Identity == nil || o.Mode == ModeRead {
			return s, err
		}
		// create leaves a store there, or finds that another has.
		if made, err = create(path, o); err != nil {
			return nil, err
		}
	}
}

// openExisting opens what is at path and compares it with the options.
func openExisting(path string, o Options) (*Store, error) {
	dir, err := o.fs.OpenDir(path)
	switch {
	case vfs.IsNotExist(err):
		return nil, missing(path, "the folder does not exist")
	case vfs.IsNotDir(err):
		return nil, notFolder(path, err)
	case err != nil:
		return nil, fileError("opening the store", err)
	}
	s := &Store{
		path: path, opts: o, lockable: true,
		closing: make(chan struct{}), turn: make(chan struct{}, 1),
	}
	s.folder = folder{dir: dir, limits: o.Limits}
	if err := s.load(); err != nil {
		s.release()
		return nil, err
	}
	return s, nil
}

// load reads and checks everything that open has to know.
func (s *Store) load() error {
	if err := s.loadTyped(); err != nil {
		return err
	}
	meta, err := s.dir.Open(metaName, vfs.Read)
	if vfs.IsNotExist(err) {
		return corrupt(s.path+"/"+metaName, "the file is missing")
	}
	if err != nil {
		return oddFile(err)
	}
	s.meta = meta
	switch err := acquire(meta, false); {
	case errors.Is(err, vfs.ErrNoLocks):
		s.lockable = false
	case err != nil:
		return err
	}
	st, err := s.settle()
	if err != nil {
		return err
	}
	s.codec = st.codec
	if s.opts.Codec != nil && *s.opts.Codec != s.codec {
		return errorf(StatusMismatch, s.path, "%s: expected codec %v, the store has %v", s.path, *s.opts.Codec, s.codec)
	}
	if err := s.loadDict(st); err != nil {
		return err
	}
	s.coders.init(s.codec, s.dict)
	s.resetSources()
	s.adopt(st)
	return nil
}

// resetSources forgets what was mapped and opened: of files that were cut or
// removed, or of none yet. No read may be running.
func (s *Store) resetSources() {
	s.tables.reset(s.dir, tableExt, s.limits.Segment*disk.EntrySize)
	s.sums.reset(s.dir, sumExt, s.limits.Segment*disk.SumSize)
	s.chunks.reset(s.dir, chunkExt, s.limits.Chunk)
}

// loadTyped reads store.zr and holds it against the options.
func (s *Store) loadTyped() error {
	file, err := s.dir.Open(typedName, vfs.Read)
	if vfs.IsNotExist(err) {
		return missing(s.path, "the folder has no "+typedName)
	}
	if err != nil {
		return oddFile(err)
	}
	defer func() { _ = file.Close() }()
	raw, err := readHead(file, disk.TypedSize+disk.MaxIdentity+1)
	if err != nil {
		return err
	}
	s.typed, err = disk.DecodeTyped(raw)
	switch {
	case errors.Is(err, disk.ErrNotTyped):
		return errorf(StatusNotAStore, file.Path(), "%s: not the header of a loaderx store", file.Path())
	case errors.Is(err, disk.ErrTypedVersion):
		return errorf(StatusUnsupported, file.Path(), "%s: %v", file.Path(), err)
	case err != nil:
		return corrupt(file.Path(), "%v", err)
	}
	if s.typed.Kind != s.opts.Kind {
		return errorf(StatusMismatch, s.path, "%s: expected a %v store, the store is %v", s.path, s.opts.Kind, s.typed.Kind)
	}
	if s.identity, err = disk.DecodeIdentity(s.typed.Kind, s.typed.Identity); err != nil {
		return corrupt(file.Path(), "type identity: %v", err)
	}
	if s.typed.Kind == Dense && (s.typed.Width == 0 || s.typed.Width > uint64(s.limits.Record)) {
		return corrupt(file.Path(), "record width: expected 1 to %d bytes, got %d", s.limits.Record, s.typed.Width)
	}
	return s.compare(file.Path())
}

// compare holds the store's type against the one that the caller expects.
func (s *Store) compare(path string) error {
	if s.opts.AllowEmpty && s.typed.Flags&disk.FlagAllowEmpty == 0 {
		return errorf(StatusMismatch, path, "%s: expected a store that takes records of zero bytes, this one was made without", s.path)
	}
	if s.opts.Identity == nil {
		return nil
	}
	want, err := disk.EncodeIdentity(s.opts.Kind, s.opts.Identity)
	if err != nil {
		return errorf(StatusArgument, s.path, "identity: %v", err)
	}
	if !bytes.Equal(want, s.typed.Identity) {
		return errorf(StatusMismatch, path, "%s: expected records of %s, the store has %s", s.path, s.opts.Identity, s.identity)
	}
	return nil
}

// loadDict reads dict.zr, which a zstd_dict store has and no other.
func (s *Store) loadDict(st state) error {
	const maxDict = 1 << 30
	path := s.path + "/" + dictName
	size, err := s.sizeOf(dictName)
	switch {
	case err != nil:
		return err
	case s.codec != ZstdDict && size >= 0:
		return corrupt(path, "a %v store has no dictionary, but the file is there", s.codec)
	case s.codec != ZstdDict:
		return nil
	case size < 0:
		return corrupt(path, "the file is missing; a zstd_dict store cannot be read without it")
	case size > maxDict:
		return corrupt(path, "expected at most %d bytes, got %d", maxDict, size)
	}
	raw, err := s.readSome(dictName, 0, size)
	if err != nil {
		return err
	}
	s.dictCRC = disk.CRC(raw)
	if st.version == 5 && st.slot.DictCRC != s.dictCRC {
		return corrupt(path, "not the dictionary that the store was made with: expected CRC32C %08x, got %08x", st.slot.DictCRC, s.dictCRC)
	}
	if s.dict, err = zstd.NewDict(raw); err != nil {
		return corrupt(path, "%v", err)
	}
	if s.opts.Dict != nil && !bytes.Equal(s.opts.Dict, raw) {
		return errorf(StatusMismatch, path, "%s: expected the dictionary given, the store has another", path)
	}
	return nil
}

// adopt makes a state the handle's own and shows it to gathers.
func (s *Store) adopt(st state) {
	s.st = st
	s.publish()
}

func (s *Store) publish() {
	s.view.Store(&view{
		length: s.st.length, tailChunk: s.st.tailChunk, tailOffset: s.st.tailOffset,
		over: s.st.over, version: s.st.version, perChunk: s.st.slot.PerChunk,
	})
}

// enter begins a call; the caller must leave.
func (s *Store) enter() error {
	s.life.RLock()
	err := s.open()
	if err != nil {
		s.life.RUnlock()
	}
	return err
}

func (s *Store) leave() { s.life.RUnlock() }

// alone runs a call while no other of this handle is running.
func (s *Store) alone(call func() error) error {
	s.life.Lock()
	defer s.life.Unlock()
	if err := s.open(); err != nil {
		return err
	}
	return call()
}

// open says why the handle cannot be used.
func (s *Store) open() error {
	if s.closed {
		return errorf(StatusClosed, s.path, "%s: the store is closed", s.path)
	}
	return s.stuck
}

// perRecord is the number of physical records in one of the user's.
func (s *Store) perRecord() int64 {
	if s.typed.Kind == Ragged {
		return 2
	}
	return 1
}

// Len is the number of records that a gather may use now.
func (s *Store) Len() (int64, error) {
	if err := s.enter(); err != nil {
		return 0, err
	}
	defer s.leave()
	return s.view.Load().length / s.perRecord(), nil
}

// Info describes the store.
func (s *Store) Info() (Info, error) {
	if err := s.enter(); err != nil {
		return Info{}, err
	}
	defer s.leave()
	s.mut.Lock()
	defer s.mut.Unlock()
	return Info{
		Records: s.view.Load().length / s.perRecord(), Width: int64(s.typed.Width),
		Identity: s.identity, Kind: s.typed.Kind, Mode: s.opts.Mode, Codec: s.codec,
		Version: s.st.version, StoreID: s.typed.StoreID, Epoch: s.epoch(),
		AllowEmpty: s.typed.Flags&disk.FlagAllowEmpty != 0,
		Unsynced:   s.w != nil && s.w.unsynced(), Dirty: s.st.dirty, Lockable: s.lockable,
	}, nil
}

// epoch is that of the checkpoint that makes what the handle shows durable: the
// newest, or the one that is due. The caller holds s.mut.
func (s *Store) epoch() uint64 {
	if s.st.version < 5 {
		return 0
	}
	due := uint64(0)
	// Of another writer this handle may see records that its checkpoint lacks.
	more := uint64(s.st.length) > s.st.slot.Meta.Length
	if s.st.dirty || more || s.w != nil && s.w.pending {
		due = 1
	}
	return uint64(s.st.slot.Meta.Epoch) + due
}

// Close waits for running calls, takes back an open batch, checkpoints what
// was appended, and ends the handle, whatever it returns. A second Close does
// nothing.
func (s *Store) Close() error {
	s.mut.Lock()
	select {
	case <-s.closing:
	default:
		close(s.closing)
	}
	s.mut.Unlock()
	s.life.Lock()
	defer s.life.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.settled()
	var err error
	if s.batch != nil {
		err = s.batch.rollBack()
	}
	if s.w != nil {
		err = errors.Join(err, s.w.close())
	}
	s.release()
	return err
}

// release lets go of everything that reading uses. The lock on meta.zr goes
// last of the files, with its descriptor.
func (s *Store) release() {
	s.coders.close()
	s.tables.close()
	s.sums.close()
	s.chunks.close()
	if s.dict != nil {
		s.dict.Close()
	}
	if s.meta != nil {
		if s.lockable {
			_ = s.meta.Unlock()
		}
		_ = s.meta.Close()
	}
	_ = s.dir.Close()
}
