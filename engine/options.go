package engine

import (
	"math/bits"

	"loaderx/engine/internal/disk"
	"loaderx/engine/internal/fan"
	"loaderx/engine/internal/vfs"
)

// Mode says what a handle may do.
type Mode int32

const (
	// ModeRead never writes and takes no lock that keeps others from it.
	ModeRead Mode = 0
	// ModeAppend may mutate. Nothing is opened for writing before it does.
	ModeAppend Mode = 1
)

// Kind, and the codecs, are those of the format.
type (
	Kind  = disk.Kind
	Codec = disk.Codec
)

const (
	Dense  = disk.Dense
	Ragged = disk.Ragged

	Raw      = disk.Raw
	Zstd     = disk.Zstd
	ZstdDict = disk.ZstdDict
)

// Options say how to open a store.
type Options struct {
	Kind Kind
	Mode Mode
	// Codec is nil for the store's own; a new store then gets Zstd.
	Codec *Codec
	// AllowEmpty demands a store that takes records of zero bytes.
	AllowEmpty bool
	// Identity is JSON, {"dtype": ..., "item_shape": [...]}, without item_shape
	// for ragged stores. Nil opens what is there; otherwise what is missing is
	// created and what differs is refused.
	Identity []byte
	// Width is a new dense store's record width in bytes.
	Width int64
	// Dict is a new ZstdDict store's dictionary.
	Dict []byte
	// Limits are lowered by tests only: a store must be opened with those it
	// was made with.
	Limits Limits

	fs    vfs.FS // nil: the operating system's
	round int64  // bytes in a round of a compaction; 0: roundBytes
}

// Limits of the format. Zero means the format's own.
type Limits struct {
	Chunk   int64 // bytes in a chunk file
	Segment int64 // entries in a table segment, a power of two
	Record  int64 // bytes in a record
	// Checkpoint is how many bytes are appended before a checkpoint runs
	// behind.
	Checkpoint int64
}

const (
	maxChunk   = 1<<32 - 1 // tail_offset is a u32 (FORMAT 2)
	maxSegment = 1 << 28   // FORMAT 3
	// MaxRecord is the largest record in bytes.
	MaxRecord = 1 << 31
	// maxDims is NumPy's limit on dimensions.
	maxDims = 64
	// checkpointBytes is what recovery has to read at most, about.
	checkpointBytes = 4 << 30
)

// full replaces zeros by the format's limits and refuses what is above them.
func (l Limits) full() (Limits, error) {
	for _, f := range []struct {
		name  string
		value *int64
		most  int64
	}{{"chunk", &l.Chunk, maxChunk}, {"segment", &l.Segment, maxSegment}, {"record", &l.Record, MaxRecord}} {
		if *f.value == 0 {
			*f.value = f.most
		}
		if *f.value < 1 || *f.value > f.most {
			return l, errorf(StatusArgument, "", "%s limit: expected 1 to %d, got %d", f.name, f.most, *f.value)
		}
	}
	if l.Checkpoint == 0 {
		l.Checkpoint = checkpointBytes
	}
	if l.Segment&(l.Segment-1) != 0 {
		return l, errorf(StatusArgument, "", "segment limit: expected a power of two, got %d", l.Segment)
	}
	return l, nil
}

// segmentOf splits a physical index into its segment and the entry within it.
func (l Limits) segmentOf(i int64) (segment int, entry int64) {
	return int(i >> bits.TrailingZeros64(uint64(l.Segment))), i & (l.Segment - 1)
}

// check refuses options that no store can be opened with.
func (o *Options) check(path string) error {
	switch {
	case path == "":
		return errorf(StatusArgument, "", "expected the path of a store, got an empty string")
	case o.Kind != Dense && o.Kind != Ragged:
		return errorf(StatusArgument, path, "kind: expected 1 (dense) or 2 (ragged), got %d", o.Kind)
	case o.Mode != ModeRead && o.Mode != ModeAppend:
		return errorf(StatusArgument, path, "mode: expected 0 (read) or 1 (append), got %d", o.Mode)
	case o.Codec != nil && *o.Codec > ZstdDict:
		return errorf(StatusArgument, path, "codec: expected 0 (raw), 1 (zstd) or 2 (zstd_dict), got %d", *o.Codec)
	case o.Kind == Dense && o.AllowEmpty:
		return errorf(StatusArgument, path, "only a ragged store can take records of zero bytes")
	}
	var err error
	o.Limits, err = o.Limits.full()
	if o.fs == nil {
		o.fs = vfs.OS()
	}
	if o.round == 0 {
		o.round = roundBytes
	}
	return err
}

// Info describes an open store.
type Info struct {
	Records    int64 // what a gather may use now
	Width      int64 // dense: bytes in a record
	Identity   []byte
	Kind       Kind
	Mode       Mode
	Codec      Codec
	Version    int // of the format: 4 or 5
	StoreID    uint32
	Epoch      uint64 // of what the handle shows, once it is durable; 0 in version 4
	AllowEmpty bool
	Unsynced   bool // a power cut could lose appended records
	Dirty      bool // a crash left it so; recovery is due
	Lockable   bool // false: the file system has no locks, reading only
}

// Parallelism is how many goroutines the engine uses at most, in all.
func Parallelism() int { return fan.Limit() }

// OnLock sets the function that hears of every lock's descriptor, when it is
// first locked and when it is closed: a forked child has to close them.
func OnLock(hook func(fd int, held bool)) { vfs.OnLock(hook) }
