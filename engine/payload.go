package engine

import (
	"loaderx/engine/internal/disk"
	"loaderx/engine/internal/fan"
	"loaderx/engine/internal/zstd"
)

// writeRaw stores the records of p as they are. Places are taken in index
// order, which arithmetic stores need; the windows are then checksummed and
// written side by side, each while it is in cache.
func (b *Batch) writeRaw(p *part, entries []disk.Entry, sums []uint32) error {
	for i := range entries {
		size := uint32(len(p.record(i)))
		entries[i] = disk.Entry{Phys: size, Logic: size}
	}
	if err := b.at.place(entries); err != nil {
		return err
	}
	if err := b.reserve(entries); err != nil {
		return err
	}
	units := windows(entries)
	start := func() ([]byte, error) { return nil, nil }
	if p.width == 0 {
		start = func() ([]byte, error) { return make([]byte, min(windowBytes, p.size())), nil }
	}
	return fan.Run(0, len(units), start, nil, func(scratch []byte, unit int) error {
		w := units[unit]
		for i := w.lo; i < w.hi; i++ {
			sums[i] = disk.Sum(entries[i].Phys, entries[i].Logic, p.record(i))
		}
		if w.size == 0 {
			return nil
		}
		return b.s.w.writeAt(numbered(int(w.chunk), chunkExt), p.stored(w, scratch), w.off)
	})
}

// reserve asks for the room of a slice before anything of it is written, so
// that a full disk shows first. It is the file system's business to give it
// back when the file is cut.
func (b *Batch) reserve(entries []disk.Entry) error {
	for len(entries) > 0 {
		n, size := extent(entries)
		f, err := b.s.w.open(numbered(int(entries[0].Chunk), chunkExt))
		if err != nil {
			return err
		}
		if size > 0 {
			if err := f.Reserve(int64(entries[0].Offset), size); err != nil {
				return fileError("appending", err)
			}
		}
		entries = entries[n:]
	}
	return nil
}

// writeFrames writes the stored bytes of entries, which lie one after another in
// frames.
func (b *Batch) writeFrames(entries []disk.Entry, frames []byte) error {
	for len(entries) > 0 {
		n, size := extent(entries)
		e := entries[0]
		if err := b.s.w.writeAt(numbered(int(e.Chunk), chunkExt), frames[:size], int64(e.Offset)); err != nil {
			return err
		}
		entries, frames = entries[n:], frames[size:]
	}
	return nil
}

// compressor is a worker's context and the frames of its current run.
type compressor struct {
	enc    *zstd.Encoder
	frames []byte
}

const (
	// frameRun is how much a compressing worker takes at a time.
	frameRun = 256 << 10
	// keepBytes is the largest buffer that is kept for the next call.
	keepBytes = 4 << 20
)

// writeCompressed compresses the records of p, a run to a worker, and stores the
// frames in the order in which runs are done: the table keeps the order of the
// records.
func (b *Batch) writeCompressed(p *part, entries []disk.Entry, sums []uint32) error {
	per := p.perRun(frameRun)
	units := (p.n + per - 1) / per
	c := &b.s.coders
	return fan.Run(0, units, c.borrowEncoder, c.returnEncoder, func(z *compressor, unit int) error {
		lo, hi := unit*per, min((unit+1)*per, p.n)
		if err := b.compress(z, p, lo, entries[lo:hi], sums[lo:hi]); err != nil {
			return err
		}
		if err := b.at.place(entries[lo:hi]); err != nil {
			return err
		}
		return b.writeFrames(entries[lo:hi], z.frames)
	})
}

// compress fills z.frames with the frames of records lo and on, and entries
// and sums with their lengths and checksums.
func (b *Batch) compress(z *compressor, p *part, lo int, entries []disk.Entry, sums []uint32) error {
	bound := 0
	for i := range entries {
		bound += zstd.Bound(len(p.record(lo + i)))
	}
	if len(z.frames) < bound {
		z.frames = make([]byte, bound)
	}
	used := 0
	for i := range entries {
		r := p.record(lo + i)
		n, err := z.enc.Encode(z.frames[used:], r)
		if err != nil {
			return errorf(StatusIO, b.s.path, "%s: compressing: %v", b.s.path, err)
		}
		if int64(n) > b.s.limits.Chunk {
			return errorf(StatusArgument, b.s.path, "%s: a record of %d bytes takes %d compressed, more than the %d of a chunk", b.s.path, len(r), n, b.s.limits.Chunk)
		}
		entries[i] = disk.Entry{Phys: uint32(n), Logic: uint32(len(r))}
		sums[i] = disk.Sum(uint32(n), uint32(len(r)), z.frames[used:used+n])
		used += n
	}
	return nil
}
