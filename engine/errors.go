package engine

import (
	"errors"
	"fmt"

	"loaderx/engine/internal/vfs"
)

// Status is the kind of an error. The numbers are those of loaderx.h.
type Status int32

const (
	StatusOK            Status = 0
	StatusIndex         Status = 1
	StatusBusy          Status = 2
	StatusClosed        Status = 3
	StatusNotAStore     Status = 4
	StatusMismatch      Status = 5
	StatusCorruptStore  Status = 6
	StatusCorruptRecord Status = 7
	StatusUnsupported   Status = 8
	StatusFull          Status = 9
	StatusReadOnly      Status = 10
	StatusArgument      Status = 11
	StatusIO            Status = 12
	StatusMemory        Status = 13
)

// Error is what every failing call of this package returns.
type Error struct {
	Status  Status
	Errno   int    // the system's error number, or 0
	Index   int64  // the record concerned, or -1
	Offset  int64  // where in the file, or -1
	Path    string // the file concerned, or ""
	Message string // expected, got, where
	Cause   error  // may be nil
}

func (e *Error) Error() string { return e.Message }
func (e *Error) Unwrap() error { return e.Cause }

// ErrRoom is returned by GatherRagged when the caller's buffers are too small.
// The offsets then say how much is needed.
var ErrRoom = errors.New("the destination is too small")

func errorf(status Status, path, format string, args ...any) *Error {
	return &Error{Status: status, Index: -1, Offset: -1, Path: path, Message: fmt.Sprintf(format, args...)}
}

// errMissing marks that there is no store at a path, so that one may be made.
var errMissing = errors.New("no store there")

func missing(path, why string) error {
	e := errorf(StatusNotAStore, path, "%s: no store there: %s", path, why)
	e.Cause = errMissing
	return e
}

func notFolder(path string, err error) error {
	e := errorf(StatusNotAStore, path, "%s: expected the folder of a store, got a file, or a link to nothing, on the way", path)
	e.Cause, e.Errno = err, vfs.Errno(err)
	return e
}

func corrupt(path, format string, args ...any) *Error {
	return errorf(StatusCorruptStore, path, path+": "+format, args...)
}

// badRecord says that record index, whose bytes are said to lie at offset of
// the file at path, cannot be read; an offset of -1 is not known.
func badRecord(index int64, path string, offset int64, format string, args ...any) *Error {
	where := path
	if offset >= 0 {
		where = fmt.Sprintf("%s, offset %d", path, offset)
	}
	e := errorf(StatusCorruptRecord, path, "record %d (%s): %s", index, where, fmt.Sprintf(format, args...))
	e.Index, e.Offset = index, offset
	return e
}

// fileError gives a failed file operation its status. StatusFull says that
// nothing was changed: what comes after a change asks for an ioError.
func fileError(doing string, err error) error {
	if vfs.IsFull(err) {
		return systemError(StatusFull, doing, err)
	}
	return ioError(doing, err)
}

// changeError is a fileError for the first write to a place, which may not be
// allowed. A right that is missing for reading is no StatusReadOnly.
func changeError(doing string, err error) error {
	if vfs.IsReadOnly(err) {
		return systemError(StatusReadOnly, doing, err)
	}
	return fileError(doing, err)
}

func ioError(doing string, err error) error { return systemError(StatusIO, doing, err) }

// systemError is the error of a system call; one of this package stays as it is.
func systemError(status Status, doing string, err error) error {
	var own *Error
	if err == nil || errors.As(err, &own) {
		return err
	}
	e := errorf(status, vfs.PathOf(err), "%s: %v", doing, err)
	e.Errno, e.Cause = vfs.Errno(err), err
	return e
}

// then is a failure, if there was one, and what failed because of it.
func then(cause, err error) error {
	if cause == nil {
		return err
	}
	return fmt.Errorf("%w; %w", cause, err)
}

// unsettled is the error of a change that may have happened, or may yet. It is
// StatusIO whatever failed: a full disk and a missing right would say that
// nothing was changed.
func unsettled(path string, err error) *Error {
	e := errorf(StatusIO, path, "%s: %v; what was being changed may or may not be: close the store and open it again", path, err)
	e.Errno, e.Cause = vfs.Errno(err), err
	return e
}
