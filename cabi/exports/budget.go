package exports

// #include "../loaderx.h"
import "C"

import (
	"unsafe"

	"loaderx/sampler"
)

//export lx_budget_new
func lx_budget_new(lengths unsafe.Pointer, count C.int64_t, lengthBytes C.int32_t, budget, maxRecords, multiple C.int64_t,
	seed C.uint64_t, rank, worldSize C.int32_t, plan *C.lx_handle, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		if plan == nil {
			return badArgument("lx_budget_new: expected a place for the handle, got NULL")
		}
		c := sampler.BudgetConfig{
			Budget: int64(budget), MaxRecords: int64(maxRecords), Multiple: int64(multiple),
			Seed: uint64(seed), Rank: int32(rank), WorldSize: int32(worldSize),
		}
		var b *sampler.Budget
		var err error
		switch lengthBytes {
		case 4:
			b, err = newBudget[uint32](lengths, count, c)
		case 8:
			b, err = newBudget[int64](lengths, count, c)
		default:
			err = badArgument("length_bytes: expected 4 or 8, got %d", int32(lengthBytes))
		}
		if err == nil {
			*plan = newHandle(b)
		}
		return err
	})
}

func newBudget[T uint32 | int64](lengths unsafe.Pointer, count C.int64_t, c sampler.BudgetConfig) (*sampler.Budget, error) {
	of, err := view[T](lengths, count, "lengths")
	if err != nil {
		return nil, err
	}
	return sampler.NewBudget(of, c)
}

//export lx_budget_batches
func lx_budget_batches(plan C.lx_handle, batches *C.int64_t, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		b, err := held[*sampler.Budget](plan, "budget")
		if err != nil {
			return err
		}
		if batches == nil {
			return badArgument("lx_budget_batches: expected a place for the number, got NULL")
		}
		*batches = C.int64_t(b.Batches())
		return nil
	})
}

//export lx_budget_counts
func lx_budget_counts(plan C.lx_handle, step, steps C.int64_t, counts unsafe.Pointer, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		b, err := held[*sampler.Budget](plan, "budget")
		if err != nil {
			return err
		}
		to, err := view[int64](counts, steps, "counts")
		if err != nil {
			return err
		}
		return b.Counts(to, int64(step))
	})
}

//export lx_budget_fill
func lx_budget_fill(plan C.lx_handle, step, steps C.int64_t, index unsafe.Pointer, count C.int64_t, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		b, err := held[*sampler.Budget](plan, "budget")
		if err != nil {
			return err
		}
		to, err := view[int64](index, count, "index")
		if err != nil {
			return err
		}
		return b.Fill(to, int64(step), int64(steps))
	})
}

//export lx_budget_free
func lx_budget_free(plan C.lx_handle, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		_, err := taken[*sampler.Budget](plan, "budget")
		return err
	})
}
