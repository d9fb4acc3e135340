package exports

// #include "../loaderx.h"
import "C"

import (
	"unsafe"

	"loaderx/engine"
)

//export lx_dense_gather
func lx_dense_gather(store C.lx_handle, index unsafe.Pointer, count C.int64_t, dst unsafe.Pointer, dstBytes C.int64_t,
	maxThreads C.int32_t, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		s, err := held[*engine.Store](store, "store")
		if err != nil {
			return err
		}
		at, err := view[int64](index, count, "index")
		if err != nil {
			return err
		}
		to, err := view[byte](dst, dstBytes, "destination")
		if err != nil {
			return err
		}
		return s.GatherDense(at, to, int(maxThreads))
	})
}

//export lx_dense_one
func lx_dense_one(store C.lx_handle, index C.int64_t, dst unsafe.Pointer, dstBytes C.int64_t, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		s, err := held[*engine.Store](store, "store")
		if err != nil {
			return err
		}
		to, err := view[byte](dst, dstBytes, "destination")
		if err != nil {
			return err
		}
		at := [1]int64{int64(index)}
		return s.GatherDense(at[:], to, 1)
	})
}

//export lx_store_ahead
func lx_store_ahead(store C.lx_handle, index unsafe.Pointer, count C.int64_t, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		s, err := held[*engine.Store](store, "store")
		if err != nil {
			return err
		}
		at, err := view[int64](index, count, "index")
		if err != nil {
			return err
		}
		return s.Ahead(at)
	})
}

//export lx_ragged_gather
func lx_ragged_gather(store C.lx_handle, index unsafe.Pointer, count, itemBytes C.int64_t,
	dst unsafe.Pointer, dstBytes C.int64_t, offsets, dims unsafe.Pointer, dimsRoom C.int64_t,
	dimOffsets unsafe.Pointer, maxThreads C.int32_t, out *C.lx_error) C.int32_t {
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
		if to.Payload, err = view[byte](dst, dstBytes, "destination"); err != nil {
			return err
		}
		if to.Offsets, err = view[int64](offsets, count+1, "offsets"); err != nil {
			return err
		}
		if to.Dims, err = view[int64](dims, dimsRoom, "dims"); err != nil {
			return err
		}
		if to.DimOffsets, err = view[int64](dimOffsets, count+1, "dim_offsets"); err != nil {
			return err
		}
		return s.GatherRagged(at, int64(itemBytes), to, int(maxThreads))
	})
}
