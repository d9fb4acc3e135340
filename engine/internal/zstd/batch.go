package zstd

/*
#include "verdict.h"
#cgo noescape lx_decode_all
#cgo nocallback lx_decode_all

// One frame of a batch: its content goes to dst + to and takes room bytes; its
// own bytes, size of them, follow those of the frame before it.
typedef struct { size_t to, room, size; } lx_job;

// Returns how many frames were decoded before one that was not, or all.
static size_t lx_decode_all(ZSTD_DCtx *dctx, unsigned id, char *dst, const char *src, const lx_job *jobs, size_t n) {
	for (size_t i = 0; i < n; src += jobs[i++].size)
		if (lx_decode(dctx, id, dst + jobs[i].to, jobs[i].room, src, jobs[i].size).why != lx_ok) return i;
	return n;
}
*/
import "C"

const (
	batchBytes  = 256 << 10 // of frames, in one call of C
	batchFrames = 1024
	batchLeast  = 4 << 10
)

// Batch is frames that are brought together and then decoded in one call: at 2
// KiB a call for each frame costs up to a sixth of the time. The zero Batch is
// empty.
type Batch struct {
	stage []byte // the frames, back to back
	used  int
	jobs  []C.lx_job
}

// Add notes a frame of size bytes whose content, room bytes, goes to dst[to:] of
// the call that decodes it. It returns where the caller has to put the frame, or
// nil when the batch is full and has to be decoded first. An empty batch takes
// any frame.
func (b *Batch) Add(to, room, size int) []byte {
	need := b.used + size
	if len(b.jobs) > 0 && (need > batchBytes || len(b.jobs) == batchFrames) {
		return nil
	}
	if need > len(b.stage) {
		grown := make([]byte, max(need, min(2*len(b.stage), batchBytes), batchLeast))
		copy(grown, b.stage[:b.used])
		b.stage = grown
	}
	b.jobs = append(b.jobs, C.lx_job{to: C.size_t(to), room: C.size_t(room), size: C.size_t(size)})
	place := b.stage[b.used:need:need]
	b.used = need
	return place
}

// Empty forgets the frames, and memory of more than keep bytes.
func (b *Batch) Empty(keep int) {
	b.used, b.jobs = 0, b.jobs[:0]
	if len(b.stage) > keep {
		b.stage = nil
	}
}

// DecodeBatch decodes the frames of b into dst, each as Decode does, and empties
// b. It says false if one of them could not be decoded.
func (z *Decoder) DecodeBatch(b *Batch, dst []byte) bool {
	n := len(b.jobs)
	if n == 0 {
		return true
	}
	for _, j := range b.jobs {
		if uint64(j.to) > uint64(len(dst)) || uint64(j.room) > uint64(len(dst))-uint64(j.to) {
			return false
		}
	}
	done := C.lx_decode_all(z.ctx, z.id, address(dst), address(b.stage), &b.jobs[0], C.size_t(n))
	b.used, b.jobs = 0, b.jobs[:0]
	return int(done) == n
}
