package zstd

/*
#include "calls.h"
#cgo noescape lx_encode
#cgo nocallback lx_encode

static size_t lx_encode(ZSTD_CCtx *cctx, char *dst, size_t capacity, const char *src, size_t size) {
	return ZSTD_compress2(cctx, dst, capacity, src, size);
}
*/
import "C"

import "fmt"

// Encoder makes frames. It serves one goroutine at a time.
type Encoder struct {
	ctx *C.ZSTD_CCtx
}

// NewEncoder makes an encoder of the given level or, with a dictionary, of
// the dictionary's. Frames always carry content size and checksum (FORMAT 4).
func NewEncoder(level int, d *Dict) (*Encoder, error) {
	ctx := C.ZSTD_createCCtx()
	if ctx == nil {
		return nil, ErrMemory
	}
	e := &Encoder{ctx}
	for _, p := range [...]struct{ parameter, value C.int }{
		{C.lx_level, C.int(level)}, {C.lx_content_size, 1}, {C.lx_checksum, 1},
	} {
		if err := failure("set up an encoder", C.ZSTD_CCtx_setParameter(ctx, p.parameter, p.value)); err != nil {
			e.Close()
			return nil, err
		}
	}
	if d == nil {
		return e, nil
	}
	digested := d.forEncoding()
	if digested == nil {
		e.Close()
		return nil, ErrMemory
	}
	if err := failure("set up an encoder", C.ZSTD_CCtx_refCDict(ctx, digested)); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// Encode writes src as one frame to dst, which must hold Bound(len(src))
// bytes, and returns the size of the frame.
func (e *Encoder) Encode(dst, src []byte) (int, error) {
	if need := Bound(len(src)); len(dst) < need {
		return 0, fmt.Errorf("zstd: expected room for %d bytes, got %d", need, len(dst))
	}
	n := C.lx_encode(e.ctx, address(dst), C.size_t(len(dst)), address(src), C.size_t(len(src)))
	return int(n), failure("encode", n)
}

// Close frees e; a second call does nothing.
func (e *Encoder) Close() {
	C.ZSTD_freeCCtx(e.ctx)
	e.ctx = nil
}
