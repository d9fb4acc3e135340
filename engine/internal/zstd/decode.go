package zstd

/*
#include "calls.h"
#cgo noescape lx_decode
#cgo nocallback lx_decode

// What lx_decode objects to. `got` belongs to it.
enum { lx_ok, lx_content, lx_dictionary, lx_frames, lx_failed, lx_size };

typedef struct { int why; unsigned long long got; } lx_verdict;

// The frame is looked over first: it must be single, end where src ends, and
// promise exactly `room` bytes. zstd itself would go on to a second frame,
// and skip frames that are to be skipped.
static lx_verdict lx_decode(ZSTD_DCtx *dctx, unsigned id, char *dst, size_t room, const char *src, size_t size) {
	unsigned long long content = ZSTD_getFrameContentSize(src, size);
	if (content != room) return (lx_verdict){lx_content, content};
	unsigned named = ZSTD_getDictID_fromFrame(src, size);
	if (named != 0 && named != id) return (lx_verdict){lx_dictionary, named};
	size_t length = ZSTD_findFrameCompressedSize(src, size);
	if (ZSTD_isError(length)) return (lx_verdict){lx_failed, length};
	if (length != size) return (lx_verdict){lx_frames, length};
	size_t n = ZSTD_decompressDCtx(dctx, dst, room, src, size);
	if (ZSTD_isError(n)) return (lx_verdict){lx_failed, n};
	if (n != room) return (lx_verdict){lx_size, n};
	return (lx_verdict){lx_ok, n};
}
*/
import "C"

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

const (
	frameMagic = 0xFD2FB528

	// What ZSTD_getFrameContentSize gives in place of a size.
	contentUnknown = math.MaxUint64
	contentError   = math.MaxUint64 - 1
)

// Decoder reads frames. It serves one goroutine at a time.
type Decoder struct {
	ctx *C.ZSTD_DCtx
	id  C.uint // of the dictionary, 0 without one
}

// NewDecoder makes a decoder. Without a dictionary it refuses frames that
// name one.
//
// No window limit is set: a whole frame is decoded in one piece straight into
// its destination, so the window a frame claims costs no memory. zstd itself
// refuses claims of more than 2 GiB.
func NewDecoder(d *Dict) (*Decoder, error) {
	ctx := C.ZSTD_createDCtx()
	if ctx == nil {
		return nil, ErrMemory
	}
	z := &Decoder{ctx: ctx}
	if d == nil {
		return z, nil
	}
	z.id = C.uint(d.id)
	if err := failure("set up a decoder", C.ZSTD_DCtx_refDDict(ctx, d.decode)); err != nil {
		z.Close()
		return nil, err
	}
	return z, nil
}

// Decode fills dst with the content of frame, which must be exactly one frame
// of exactly that content. Nothing beyond dst[:len(dst)] is written; after an
// error what lies there is undefined.
func (z *Decoder) Decode(dst, frame []byte) error {
	if len(frame) < 4 || binary.LittleEndian.Uint32(frame) != frameMagic {
		return fmt.Errorf("zstd: expected a frame with magic %#x, got %d bytes starting % x",
			uint32(frameMagic), len(frame), string(frame[:min(4, len(frame))]))
	}
	v := C.lx_decode(z.ctx, z.id, address(dst), C.size_t(len(dst)), address(frame), C.size_t(len(frame)))
	if v.why == C.lx_ok {
		return nil
	}
	return z.objection(v, len(dst), len(frame))
}

// objection words a verdict.
func (z *Decoder) objection(v C.lx_verdict, room, size int) error {
	switch v.why {
	case C.lx_content:
		switch v.got {
		case contentUnknown:
			return fmt.Errorf("zstd: expected a frame of %d bytes of content, got one that does not say", room)
		case contentError:
			return errors.New("zstd: expected a frame, got a damaged frame header")
		}
		return fmt.Errorf("zstd: expected a frame of %d bytes of content, got one of %d", room, v.got)
	case C.lx_dictionary:
		if z.id == 0 {
			return fmt.Errorf("zstd: expected a frame without a dictionary, got one with dictionary %d", v.got)
		}
		return fmt.Errorf("zstd: expected a frame with dictionary %d, got dictionary %d", z.id, v.got)
	case C.lx_frames:
		return fmt.Errorf("zstd: expected one frame of %d bytes, got one that ends after %d", size, v.got)
	case C.lx_size:
		return fmt.Errorf("zstd: expected %d bytes of content, got %d", room, v.got)
	}
	return failure(fmt.Sprintf("expected %d bytes of content from a frame of %d", room, size), C.size_t(v.got))
}

// Close frees z; a second call does nothing.
func (z *Decoder) Close() {
	C.ZSTD_freeDCtx(z.ctx)
	z.ctx = nil
}
