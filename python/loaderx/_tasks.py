"""Long work on a whole store: tasks of the engine, done in bounded steps.

Between two steps the caller's progress function runs and Ctrl-C is answered.
Whatever ends the work, the task is ended too, so that the store is free for
the next call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loaderx import _native

Progress = Callable[[int, int], object]


def as_progress(progress: Any) -> Progress | None:
    """Check the argument of that name. Raises TypeError."""
    if progress is not None and not callable(progress):
        raise TypeError(
            "progress: expected None or a function of (at, total), "
            f"got {type(progress).__name__} {progress!r}"
        )
    found: Progress | None = progress
    return found


def run(
    begin: Callable[[Any, Any], int],
    failure: Callable[[int, Any], Exception],
    progress: Progress | None,
    collect: Callable[[int, int], Any] | None = None,
) -> Any:
    """Begin a task, do all its steps, and end it.

    Args:
        begin: calls the engine with (cell for the handle, error), returns its status.
        failure: makes the exception of a status and an lx_error.
        progress: called with (at, total) after each step; what it raises ends the task.
        collect: called with (handle, number of bad records) before a finished task ends.

    Returns:
        What collect returned, or None.
    """
    ffi = _native.ffi
    # Not the thread's own error: the progress function may use loaderx meanwhile.
    error, task, state = ffi.new("lx_error *"), ffi.new("lx_handle *"), ffi.new("lx_progress *")

    def check(status: int) -> None:
        if status:
            raise failure(status, error)

    found = None
    try:
        check(begin(task, error))
        while not state.done:
            check(_native.lib.lx_task_step(task[0], state, error))
            if progress is not None:
                progress(int(state.at), int(state.total))
        if collect is not None:
            found = collect(task[0], int(state.bad))
    except BaseException:
        if task[0] and not _native.forked:
            _native.lib.lx_task_end(task[0], ffi.NULL)
        raise
    check(_native.lib.lx_task_end(task[0], error))
    return found
