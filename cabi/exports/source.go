package exports

// #include "../loaderx.h"
import "C"

import (
	"unsafe"

	"loaderx/sampler"
)

// sourceOf translates a source. Its list is copied by the sampler.
func sourceOf(c *C.lx_source) (sampler.Source, error) {
	s := sampler.Source{Mode: sampler.Mode(c.mode), Length: int64(c.length), Weight: float64(c.weight)}
	if c.struct_bytes != C.sizeof_lx_source {
		return s, badArgument("lx_source: expected struct_bytes %d, got %d", int64(C.sizeof_lx_source), int64(c.struct_bytes))
	}
	switch c.subset {
	case C.LX_ALL:
		return s, nil
	case C.LX_LIST:
		list, err := view[int64](c.index, c.count, "index")
		if err == nil {
			s.Subset = sampler.List(list)
		}
		return s, err
	case C.LX_RANGE:
		var err error
		s.Subset, err = sampler.Range(int64(c.start), int64(c.stop), int64(c.stride))
		return s, err
	}
	return s, badArgument("subset: expected LX_ALL, LX_LIST or LX_RANGE, got %d", int32(c.subset))
}

//export lx_sampler_new_of
func lx_sampler_new_of(source *C.lx_source, batchSize C.int64_t, seed C.uint64_t, rank, worldSize C.int32_t,
	handle *C.lx_handle, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		if source == nil || handle == nil {
			return badArgument("lx_sampler_new_of: expected a source and a place for the handle, got NULL")
		}
		of, err := sourceOf(source)
		if err != nil {
			return err
		}
		s, err := sampler.New(sampler.Config{
			Mode: of.Mode, Length: of.Length, Subset: of.Subset, BatchSize: int64(batchSize), Seed: uint64(seed),
			Rank: int32(rank), WorldSize: int32(worldSize),
		})
		if err == nil {
			*handle = newHandle(s)
		}
		return err
	})
}

//export lx_split
func lx_split(length C.int64_t, fractions unsafe.Pointer, parts C.int64_t, seed C.uint64_t,
	sizes, index unsafe.Pointer, count C.int64_t, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		of, err := view[float64](fractions, parts, "fractions")
		if err != nil {
			return err
		}
		each, err := view[int64](sizes, parts, "sizes")
		if err != nil {
			return err
		}
		all, err := view[int64](index, count, "index")
		if err != nil {
			return err
		}
		var got []int64
		if count == 0 {
			got, err = sampler.SplitSizes(int64(length), of)
		} else {
			got, err = sampler.Split(all, int64(length), of, uint64(seed))
		}
		copy(each, got)
		return err
	})
}
