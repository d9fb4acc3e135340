package exports

// #include "../loaderx.h"
import "C"

import (
	"unsafe"

	"loaderx/engine"
)

// begin starts a task of a store and gives it a handle.
func begin(store C.lx_handle, task *C.lx_handle, out *C.lx_error, start func(*engine.Store) (*engine.Task, error)) C.int32_t {
	return call(out, func() error {
		s, err := held[*engine.Store](store, "store")
		if err != nil {
			return err
		}
		if task == nil {
			return badArgument("a task: expected a place for the handle, got NULL")
		}
		t, err := start(s)
		if err == nil {
			*task = newHandle(t)
		}
		return err
	})
}

//export lx_compact_begin
func lx_compact_begin(store C.lx_handle, task *C.lx_handle, out *C.lx_error) C.int32_t {
	return begin(store, task, out, (*engine.Store).Compact)
}

//export lx_verify_begin
func lx_verify_begin(store C.lx_handle, itemBytes C.int64_t, task *C.lx_handle, out *C.lx_error) C.int32_t {
	return begin(store, task, out, func(s *engine.Store) (*engine.Task, error) { return s.Verify(int64(itemBytes)) })
}

//export lx_snapshot_begin
func lx_snapshot_begin(store C.lx_handle, dest C.lx_str, task *C.lx_handle, out *C.lx_error) C.int32_t {
	return begin(store, task, out, func(s *engine.Store) (*engine.Task, error) {
		if dest == nil {
			return nil, badArgument("lx_snapshot_begin: expected a path, got NULL")
		}
		return s.Snapshot(C.GoString(dest))
	})
}

//export lx_upgrade_begin
func lx_upgrade_begin(store C.lx_handle, task *C.lx_handle, out *C.lx_error) C.int32_t {
	return begin(store, task, out, (*engine.Store).Upgrade)
}

//export lx_task_step
func lx_task_step(task C.lx_handle, progress *C.lx_progress, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		t, err := held[*engine.Task](task, "task")
		if err != nil {
			return err
		}
		if progress == nil {
			return badArgument("lx_task_step: expected a place for the progress, got NULL")
		}
		p, err := t.Step()
		if err == nil {
			*progress = C.lx_progress{
				at: C.int64_t(p.At), total: C.int64_t(p.Total), done: flag(p.Done), bad: C.int32_t(p.Bad),
			}
		}
		return err
	})
}

//export lx_task_bad
func lx_task_bad(task C.lx_handle, i C.int64_t, bad, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		t, err := held[*engine.Task](task, "task")
		if err != nil {
			return err
		}
		if bad == nil {
			return badArgument("lx_task_bad: expected a place for the record, got NULL")
		}
		found, err := t.Bad(int64(i))
		if err == nil {
			report(bad, found)
		}
		return err
	})
}

//export lx_task_end
func lx_task_end(task C.lx_handle, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		t, err := taken[*engine.Task](task, "task")
		if err != nil {
			return err
		}
		return t.End()
	})
}

//export lx_train_dict
func lx_train_dict(samples unsafe.Pointer, samplesBytes C.int64_t, sizes unsafe.Pointer, count C.int64_t,
	dict unsafe.Pointer, room C.int64_t, written *C.int64_t, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		from, err := view[byte](samples, samplesBytes, "samples")
		if err != nil {
			return err
		}
		lengths, err := view[int64](sizes, count, "sizes")
		if err != nil {
			return err
		}
		to, err := view[byte](dict, room, "dictionary")
		if err == nil && written == nil {
			err = badArgument("lx_train_dict: expected a place for the size, got NULL")
		}
		if err != nil {
			return err
		}
		n, err := engine.TrainDict(from, lengths, to)
		if err == nil {
			*written = C.int64_t(n)
		}
		return err
	})
}
