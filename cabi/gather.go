package main

// #include "loaderx.h"
import "C"

import (
	"unsafe"

	"loaderx/engine"
)

//export lx_dense_gather
func lx_dense_gather(store C.lx_handle, index unsafe.Pointer, count C.int64_t, dst unsafe.Pointer, dst_bytes C.int64_t,
	max_threads C.int32_t, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		s, err := held[*engine.Store](store, "store")
		if err != nil {
			return err
		}
		at, err := view[int64](index, count, "index")
		if err != nil {
			return err
		}
		to, err := view[byte](dst, dst_bytes, "destination")
		if err != nil {
			return err
		}
		return s.GatherDense(at, to, int(max_threads))
	})
}

//export lx_ragged_gather
func lx_ragged_gather(store C.lx_handle, index unsafe.Pointer, count, item_bytes C.int64_t,
	dst unsafe.Pointer, dst_bytes C.int64_t, offsets, dims unsafe.Pointer, dims_room C.int64_t,
	dim_offsets unsafe.Pointer, max_threads C.int32_t, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		s, err := held[*engine.Store](store, "store")
		if err != nil {
			return err
		}
		at, err := view[int64](index, count, "index")
		if err != nil {
			return err
		}
		var to engine.RaggedDst
		if to.Payload, err = view[byte](dst, dst_bytes, "destination"); err != nil {
			return err
		}
		if to.Offsets, err = view[int64](offsets, count+1, "offsets"); err != nil {
			return err
		}
		if to.Dims, err = view[int64](dims, dims_room, "dims"); err != nil {
			return err
		}
		if to.DimOffsets, err = view[int64](dim_offsets, count+1, "dim_offsets"); err != nil {
			return err
		}
		return s.GatherRagged(at, int64(item_bytes), to, int(max_threads))
	})
}
