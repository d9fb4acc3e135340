"""Appending: parts of records to one batch of the engine.

However much is appended, it is one batch, all or nothing. It is handed over in
parts, so memory stays bounded and no native call is long, and any exception on
the way, the caller's iterator's and Ctrl-C included, takes back what the batch
has written.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from loaderx import _native
from loaderx._parts import DensePart, RaggedPart
from loaderx.errors import ZrecordError


class Turn:
    """Lets one change at a time use a store; a waiting thread answers Ctrl-C."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0

    @contextmanager
    def taken(self, path: str) -> Iterator[None]:
        """Hold the turn. Raises ZrecordError where waiting for it would never end."""
        me = threading.get_ident()
        if self._owner == me:
            raise ZrecordError(
                f"{path}: expected the change of the store that is running in this thread to end "
                "first, got another one from within its iterator or progress function",
                path=path,
            )
        with self._lock:
            self._owner = me
            try:
                yield
            finally:
                self._owner = 0


def run_batch(
    store: int,
    parts: Iterable[Any],
    add: Callable[[Any, Any, Any], int],
    failure: Callable[[int, Any], Exception],
) -> int:
    """Append all parts as one batch.

    Args:
        store: the engine's handle.
        parts: at least one, made while the batch is open.
        add: calls the engine with (batch handle, part, error), returns its status.
        failure: makes the exception of a status and an lx_error.

    Returns:
        The index of the first new record.
    """
    ffi, lib = _native.ffi, _native.lib
    # Not the thread's own error: the caller's iterator may use loaderx meanwhile.
    error, batch, first = ffi.new("lx_error *"), ffi.new("lx_handle *"), ffi.new("int64_t *")

    def check(status: int) -> None:
        if status:
            raise failure(status, error)

    try:
        for part in parts:
            if not batch[0]:
                check(lib.lx_append_begin(store, batch, error))
            check(add(batch[0], part, error))
        if not batch[0]:
            raise ValueError("append needs at least one record, got none")
        check(lib.lx_append_commit(batch[0], first, error))
    except BaseException:
        if batch[0] and not _native.forked:
            # The handle may have ended already: then this says so, and does nothing.
            _native.lib.lx_append_abort(batch[0], ffi.NULL)
        raise
    return int(first[0])


def add_dense(batch: Any, part: DensePart, error: Any) -> int:
    """Hand a part to the engine; returns the status."""
    payload = _native.ffi.from_buffer(part.payload)
    return int(_native.lib.lx_append_dense(batch, payload, part.payload_bytes, part.records, error))


def add_ragged(item_bytes: int) -> Callable[[Any, RaggedPart, Any], int]:
    """Make what hands a part to the engine, for elements of that many bytes."""

    def add(batch: Any, part: RaggedPart, error: Any) -> int:
        pointer = _native.ffi.from_buffer
        return int(
            _native.lib.lx_append_ragged(
                batch,
                pointer(part.payload),
                int(part.offsets[-1]),
                pointer(part.offsets),
                pointer(part.dims),
                pointer(part.dim_offsets),
                part.records,
                item_bytes,
                error,
            )
        )

    return add
