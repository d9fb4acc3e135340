package exports

// #include "../loaderx.h"
import "C"

import (
	"unsafe"

	"loaderx/sampler"
)

//export lx_sampler_new
func lx_sampler_new(mode C.int32_t, length, batchSize C.int64_t, seed C.uint64_t, rank, worldSize C.int32_t,
	handle *C.lx_handle, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		if handle == nil {
			return badArgument("lx_sampler_new: expected a place for the handle, got NULL")
		}
		s, err := sampler.New(sampler.Config{
			Mode: sampler.Mode(mode), Length: int64(length), BatchSize: int64(batchSize), Seed: uint64(seed),
			Rank: int32(rank), WorldSize: int32(worldSize),
		})
		if err == nil {
			*handle = newHandle(s)
		}
		return err
	})
}

//export lx_sampler_fill
func lx_sampler_fill(handle C.lx_handle, step, steps C.int64_t, index unsafe.Pointer, count C.int64_t, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		s, err := held[*sampler.Sampler](handle, "sampler")
		if err != nil {
			return err
		}
		to, err := view[int64](index, count, "index")
		if err != nil {
			return err
		}
		return s.Fill(to, int64(step), int64(steps))
	})
}

//export lx_sampler_free
func lx_sampler_free(handle C.lx_handle, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		_, err := taken[*sampler.Sampler](handle, "sampler")
		return err
	})
}
