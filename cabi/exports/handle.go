package exports

// #include "../loaderx.h"
import "C"

import (
	"fmt"
	"sync"
)

// handles gives numbers to what C callers hold. A number is never used twice,
// so a stale one is found out.
var handles = struct {
	sync.RWMutex
	last uint64
	live map[uint64]any
}{live: map[uint64]any{}}

func newHandle(value any) C.lx_handle {
	handles.Lock()
	defer handles.Unlock()
	handles.last++
	handles.live[handles.last] = value
	return C.lx_handle(handles.last)
}

// held is the object of a handle, if it is of type T.
func held[T any](h C.lx_handle, what string) (T, error) {
	handles.RLock()
	value := handles.live[uint64(h)]
	handles.RUnlock()
	return asHeld[T](value, h, what)
}

// taken is held, and ends the handle.
func taken[T any](h C.lx_handle, what string) (T, error) {
	handles.Lock()
	defer handles.Unlock()
	value, err := asHeld[T](handles.live[uint64(h)], h, what)
	if err == nil {
		delete(handles.live, uint64(h))
	}
	return value, err
}

func asHeld[T any](value any, h C.lx_handle, what string) (T, error) {
	object, ok := value.(T)
	if !ok {
		return object, &fault{C.LX_CLOSED, fmt.Sprintf("handle %d is no open %s", uint64(h), what)}
	}
	return object, nil
}
