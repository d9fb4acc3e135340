package exports

// #include "../loaderx.h"
import "C"

import (
	"unsafe"

	"loaderx/engine"
)

//export lx_append_begin
func lx_append_begin(store C.lx_handle, batch *C.lx_handle, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		s, err := held[*engine.Store](store, "store")
		if err != nil {
			return err
		}
		if batch == nil {
			return badArgument("lx_append_begin: expected a place for the handle, got NULL")
		}
		b, err := s.Begin()
		if err == nil {
			*batch = newHandle(b)
		}
		return err
	})
}

//export lx_append_dense
func lx_append_dense(batch C.lx_handle, records unsafe.Pointer, bytes, count C.int64_t, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		b, err := held[*engine.Batch](batch, "batch")
		if err != nil {
			return err
		}
		data, err := view[byte](records, bytes, "records")
		if err != nil {
			return b.Refuse(err)
		}
		return b.AppendDense(data, int64(count))
	})
}

//export lx_append_ragged
func lx_append_ragged(batch C.lx_handle, payload unsafe.Pointer, payloadBytes C.int64_t, offsets,
	dims, dimOffsets unsafe.Pointer, count, itemBytes C.int64_t, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		b, err := held[*engine.Batch](batch, "batch")
		if err != nil {
			return err
		}
		p, err := raggedPart(payload, payloadBytes, offsets, dims, dimOffsets, count)
		if err != nil {
			return b.Refuse(err)
		}
		return b.AppendRagged(p.payload, p.offsets, p.dims, p.dimOffsets, int64(itemBytes))
	})
}

type ragged struct {
	payload                   []byte
	offsets, dims, dimOffsets []int64
}

// raggedPart makes slices of the caller's arrays. How many dims there are is
// the last of their offsets.
func raggedPart(payload unsafe.Pointer, payloadBytes C.int64_t, offsets, dims, dimOffsets unsafe.Pointer, count C.int64_t) (p ragged, err error) {
	if count < 0 {
		return p, badArgument("lx_append_ragged: expected a count of at least 0, got %d", int64(count))
	}
	if p.payload, err = view[byte](payload, payloadBytes, "payload"); err != nil {
		return p, err
	}
	if p.offsets, err = view[int64](offsets, count+1, "offsets"); err != nil {
		return p, err
	}
	if p.dimOffsets, err = view[int64](dimOffsets, count+1, "dim_offsets"); err != nil {
		return p, err
	}
	p.dims, err = view[int64](dims, C.int64_t(p.dimOffsets[count]), "dims")
	return p, err
}

//export lx_append_commit
func lx_append_commit(batch C.lx_handle, first *C.int64_t, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		b, err := taken[*engine.Batch](batch, "batch")
		if err != nil {
			return err
		}
		if first == nil {
			_ = b.Abort()
			return badArgument("lx_append_commit: expected a place for the first index, got NULL; the batch was taken back")
		}
		i, err := b.Commit()
		if err == nil {
			*first = C.int64_t(i)
		}
		return err
	})
}

//export lx_append_abort
func lx_append_abort(batch C.lx_handle, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		b, err := taken[*engine.Batch](batch, "batch")
		if err != nil {
			return err
		}
		return b.Abort()
	})
}
