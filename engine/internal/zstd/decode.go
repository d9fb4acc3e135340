package zstd

// #include "verdict.h"
// #cgo noescape lx_decode
// #cgo nocallback lx_decode
import "C"

import (
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
	v := C.lx_decode(z.ctx, z.id, address(dst), C.size_t(len(dst)), address(frame), C.size_t(len(frame)))
	if v.why == C.lx_ok {
		return nil
	}
	return z.objection(v, len(dst), frame)
}

// objection words a verdict.
func (z *Decoder) objection(v C.lx_verdict, room int, frame []byte) error {
	size := len(frame)
	switch v.why {
	case C.lx_magic:
		return fmt.Errorf("zstd: expected a frame with magic %#x, got %d bytes starting % x",
			uint32(frameMagic), size, string(frame[:min(4, size)]))
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
