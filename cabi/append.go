package main

// #include "loaderx.h"
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
			return err
		}
		return b.AppendDense(data, int64(count))
	})
}

//export lx_append_ragged
func lx_append_ragged(batch C.lx_handle, payload unsafe.Pointer, payload_bytes C.int64_t, offsets,
	dims, dim_offsets unsafe.Pointer, count, item_bytes C.int64_t, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		b, err := held[*engine.Batch](batch, "batch")
		if err != nil {
			return err
		}
		if count < 0 {
			return badArgument("lx_append_ragged: expected a count of at least 0, got %d", int64(count))
		}
		data, err := view[byte](payload, payload_bytes, "payload")
		if err != nil {
			return err
		}
		starts, err := view[int64](offsets, count+1, "offsets")
		if err != nil {
			return err
		}
		dimStarts, err := view[int64](dim_offsets, count+1, "dim_offsets")
		if err != nil {
			return err
		}
		shapes, err := view[int64](dims, C.int64_t(dimStarts[count]), "dims")
		if err != nil {
			return err
		}
		return b.AppendRagged(data, starts, shapes, dimStarts, int64(item_bytes))
	})
}

//export lx_append_commit
func lx_append_commit(batch C.lx_handle, first *C.int64_t, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		if first == nil {
			return badArgument("lx_append_commit: expected a place for the first index, got NULL")
		}
		b, err := taken[*engine.Batch](batch, "batch")
		if err != nil {
			return err
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
