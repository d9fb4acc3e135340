"""Reading ragged records: one native call for payloads, offsets and shapes.

The arrays of a call share its buffer. How large that must be is not known
before: it is guessed from the records read so far, and when the guess was too
small the engine says how much it takes (LX_ROOM), without having copied.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from loaderx import _memory, _native

# More records than this go in several calls, whatever their size.
CALL_RECORDS = 1 << 16

_ROOM = 14


class Guess:
    """What a record of a store takes, from the last call. A wrong one costs a call."""

    __slots__ = ("nbytes", "ndim")

    def __init__(self) -> None:
        self.nbytes = 0.0
        self.ndim = 1.0

    def room(self, count: int) -> int:
        """Bytes that count records will probably fit into, within one call's bound."""
        return min(int(self.nbytes * count * 1.1) + 64 if self.nbytes else 0, _native.CALL_BYTES)

    def learn(self, count: int, nbytes: int, dims: int) -> None:
        self.nbytes = nbytes / count
        self.ndim = dims / count


class Call(NamedTuple):
    """What stays the same through the calls of one gather."""

    store: int
    dtype: np.dtype[Any]
    guess: Guess
    failure: Callable[[int], Exception]
    max_threads: int


def gather(call: Call, index: np.ndarray[Any, Any]) -> list[Any]:
    """Read records.

    Args:
        call: the store, and how to read it. Its guess learns.
        index: int64, contiguous.

    Returns:
        One array for each index, each of its record's shape. The arrays of one
        call of the engine, at most CALL_BYTES, share a buffer.

    Raises:
        Exception: as the status says; see loaderx.errors.
    """
    out: list[Any] = []
    waiting = [index[i : i + CALL_RECORDS] for i in range(0, len(index), CALL_RECORDS)][::-1]
    room = -1
    while waiting:
        part = waiting.pop()
        arrays, sizes = _gather_once(call, part, call.guess.room(len(part)) if room < 0 else room)
        if arrays is not None:
            out += arrays
            room = -1
            continue
        room = int(sizes[-1])
        if room > _native.CALL_BYTES and len(part) > 1:
            waiting += _cut(part, sizes)[::-1]
            room = -1
        else:
            waiting.append(part)
    return out


def _cut(part: np.ndarray[Any, Any], offsets: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """Cut an index where its records reach the bound of a call: at least one in each piece."""
    pieces, start = [], 0
    while start < len(part):
        bound = int(offsets[start]) + _native.CALL_BYTES
        end = max(start + 1, int(np.searchsorted(offsets, bound, "right")) - 1)
        pieces.append(part[start:end])
        start = end
    return pieces


def _gather_once(
    call: Call, index: np.ndarray[Any, Any], room: int
) -> tuple[list[Any] | None, np.ndarray[Any, Any]]:
    """One call of the engine, a second one where only the dimensions lacked room.

    Returns:
        The arrays, or None if room bytes are too few; and the byte offsets.
    """
    ffi, count = _native.ffi, len(index)
    block = _memory.take(room) if room else ffi.NULL
    dims_room = int(call.guess.ndim * count * 1.1) + 8
    while True:
        # Offsets, offsets of shapes, and shapes: one array, because each costs a wrapping.
        numbers = np.empty(2 * (count + 1) + dims_room, np.int64)
        base = ffi.from_buffer("int64_t[]", numbers)
        status = _native.lib.lx_ragged_gather(
            call.store,
            ffi.from_buffer(index),
            count,
            call.dtype.itemsize,
            block,
            room,
            base,
            base + 2 * (count + 1),
            dims_room,
            base + (count + 1),
            call.max_threads,
            _native.scratch.error,
        )
        offsets, dim_offsets = numbers[: count + 1], numbers[count + 1 : 2 * (count + 1)]
        if status not in (0, _ROOM):
            raise call.failure(status)
        call.guess.learn(count, int(offsets[-1]), int(dim_offsets[-1]))
        if status == 0:
            dims = numbers[2 * (count + 1) :]
            return _arrays(block, offsets, dims, dim_offsets, call.dtype), offsets
        if int(offsets[-1]) > room:
            return None, offsets
        dims_room = int(dim_offsets[-1])


def _arrays(
    block: Any,
    offsets: np.ndarray[Any, Any],
    dims: np.ndarray[Any, Any],
    dim_offsets: np.ndarray[Any, Any],
    dtype: np.dtype[Any],
) -> list[Any]:
    """Make one array for each record, over the block that holds them all."""
    nbytes = int(offsets[-1])
    if nbytes == 0:
        buffer = bytearray()  # records without a byte need no block
    else:
        buffer = _native.ffi.buffer(block, nbytes)
    if int(dim_offsets[-1]) == len(offsets) - 1 and bool(
        (dim_offsets[1:] > dim_offsets[:-1]).all()
    ):
        # All of one dimension, the common case: slices of one array are the cheapest.
        flat: np.ndarray[Any, Any] = np.ndarray((nbytes // dtype.itemsize,), dtype, buffer)
        ends = (offsets // dtype.itemsize).tolist()
        return [flat[a:b] for a, b in zip(ends, ends[1:])]
    lengths, bounds = dims.tolist(), dim_offsets.tolist()
    shapes = [tuple(lengths[a:b]) for a, b in zip(bounds, bounds[1:])]
    return [
        np.ndarray(shape, dtype, buffer, offset)
        for shape, offset in zip(shapes, offsets[:-1].tolist())
    ]
