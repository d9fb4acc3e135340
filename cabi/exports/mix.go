package exports

// #include "../loaderx.h"
import "C"

import (
	"unsafe"

	"loaderx/sampler"
)

//export lx_mix_new
func lx_mix_new(sources *C.lx_source, count, batchSize C.int64_t, seed C.uint64_t, rank, worldSize C.int32_t,
	handle *C.lx_handle, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		if handle == nil {
			return badArgument("lx_mix_new: expected a place for the handle, got NULL")
		}
		of, err := view[C.lx_source](unsafe.Pointer(sources), count, "sources")
		if err != nil {
			return err
		}
		c := sampler.MixConfig{
			BatchSize: int64(batchSize), Seed: uint64(seed), Rank: int32(rank), WorldSize: int32(worldSize),
		}
		for i := range of {
			s, err := sourceOf(&of[i])
			if err != nil {
				return err
			}
			c.Sources = append(c.Sources, s)
		}
		m, err := sampler.NewMix(c)
		if err == nil {
			*handle = newHandle(m)
		}
		return err
	})
}

//export lx_mix_fill
func lx_mix_fill(handle C.lx_handle, step, steps C.int64_t, source, index unsafe.Pointer, count C.int64_t,
	out *C.lx_error) C.int32_t {
	return call(out, func() error {
		m, err := held[*sampler.Mix](handle, "mix")
		if err != nil {
			return err
		}
		from, err := view[int32](source, count, "source")
		if err != nil {
			return err
		}
		to, err := view[int64](index, count, "index")
		if err != nil {
			return err
		}
		return m.Fill(from, to, int64(step), int64(steps))
	})
}

//export lx_mix_drawn
func lx_mix_drawn(handle C.lx_handle, step C.int64_t, drawn unsafe.Pointer, count C.int64_t, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		m, err := held[*sampler.Mix](handle, "mix")
		if err != nil {
			return err
		}
		counts, err := view[int64](drawn, count, "drawn")
		if err != nil {
			return err
		}
		return m.Drawn(counts, int64(step))
	})
}

//export lx_mix_free
func lx_mix_free(handle C.lx_handle, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		_, err := taken[*sampler.Mix](handle, "mix")
		return err
	})
}
