package exports

// #include "../loaderx.h"
import "C"

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"unicode/utf8"
	"unsafe"

	"loaderx/engine"
	"loaderx/sampler"
)

// fault is an error found by this layer.
type fault struct {
	status  C.int32_t
	message string
}

func (f *fault) Error() string { return f.message }

func badArgument(format string, args ...any) error {
	return &fault{C.LX_ARGUMENT, fmt.Sprintf(format, args...)}
}

// call runs the work of an export and turns what comes of it into a status. A
// panic becomes one too: let out of an export it would end the process.
func call(out *C.lx_error, work func() error) (status C.int32_t) {
	defer func() {
		if value := recover(); value != nil {
			status = report(out, &fault{C.LX_INTERNAL, fmt.Sprintf("internal error: %v\n%s", value, debug.Stack())})
		}
	}()
	return report(out, work())
}

// report fills the caller's error, if there is one, and returns its status.
func report(out *C.lx_error, err error) C.int32_t {
	if err == nil {
		return C.LX_OK
	}
	// The room is the caller's to give; an error in it would be unread.
	if errors.Is(err, engine.ErrRoom) {
		return C.LX_ROOM
	}
	filled := C.lx_error{status: C.LX_INTERNAL, index: -1, offset: -1}
	var own *fault
	var store *engine.Error
	var argument *sampler.ArgumentError
	path := ""
	switch {
	case errors.As(err, &own):
		filled.status = own.status
	case errors.As(err, &store):
		filled.status = C.int32_t(store.Status)
		filled.os_errno = C.int32_t(store.Errno)
		filled.index, filled.offset = C.int64_t(store.Index), C.int64_t(store.Offset)
		path = store.Path
	case errors.As(err, &argument):
		filled.status = C.LX_ARGUMENT
	}
	if out == nil {
		return filled.status
	}
	putText(filled.path[:], path)
	putText(filled.message[:], err.Error())
	*out = filled
	return filled.status
}

// putText writes a terminated string, cut at a whole character if it is long.
// A path's bytes that are no UTF-8 go through as they are.
func putText(dst []C.char, text string) {
	text = strings.ReplaceAll(text, "\x00", "")
	if room := len(dst) - 1; len(text) > room {
		for room > 0 && !utf8.RuneStart(text[room]) {
			room--
		}
		text = text[:room]
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&dst[0])), len(dst)), text+"\x00")
}
