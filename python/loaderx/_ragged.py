"""Reading ragged records: one native call for payloads, offsets and shapes.

The records of a call share its buffer. How large that must be is not known
before: it is guessed from the records read so far, and when the guess was too
small the engine says how much it takes (LX_ROOM), without having copied.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from loaderx import _memory, _native
from loaderx._batch import RaggedBatch

IndexArray = np.ndarray[Any, np.dtype[np.int64]]

# More records than this go in several calls, whatever their size.
CALL_RECORDS = 1 << 16

_ROOM = 14
_INT64 = np.dtype(np.int64)


class Guess:
    """What a record of a store takes, from the last call. A wrong one costs a call."""

    __slots__ = ("nbytes", "ndim")

    def __init__(self) -> None:
        self.nbytes = 0.0
        self.ndim = 1.0

    def room(self, count: int) -> int:
        """Bytes that count records will probably fit into, within one call's bound."""
        return min(int(self.nbytes * count * 1.1) + 64 if self.nbytes else 0, _native.CALL_BYTES)

    def dims(self, count: int) -> int:
        """Dimensions that count records will probably have together."""
        return int(self.ndim * count * 1.1) + 8

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


def gather(call: Call, index: IndexArray) -> list[Any]:
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


def gather_packed(call: Call, index: IndexArray) -> RaggedBatch:
    """Read records into one array, with their offsets and shapes; otherwise as gather."""
    count, guess = len(index), call.guess
    if 0 < count <= CALL_RECORDS:
        room = guess.room(count)
        block = _memory.take(room) if room else _native.ffi.NULL
        answer = _ask(call, index, block, room, guess.dims(count))
        if answer.status == 0:
            return _packed(call, block, answer.offsets, answer.dims, answer.dim_offsets)
    offsets, dim_offsets = sizes(call, index)
    total = int(offsets[-1])
    block = _memory.take(total) if total else _native.ffi.NULL
    base = _native.ffi.cast("char *", block)
    dims = np.empty(int(dim_offsets[-1]), np.int64)
    start = 0
    for part in _cut(index, offsets):
        stop = start + len(part)
        first, last = int(offsets[start]), int(offsets[stop])
        low, high = int(dim_offsets[start]), int(dim_offsets[stop])
        answer = _ask(call, part, base + first, last - first, high - low)
        if answer.status:
            raise call.failure(answer.status)
        dims[low:high] = answer.dims[: high - low]
        start = stop
    return _packed(call, block, offsets, dims, dim_offsets)


def sizes(call: Call, index: IndexArray) -> tuple[IndexArray, IndexArray]:
    """How large records are, without reading them.

    Returns:
        The running sums, from 0, of their bytes and of their numbers of
        dimensions: int64, (n + 1,) each.
    """
    offsets, dim_offsets = (np.zeros(len(index) + 1, np.int64) for _ in range(2))
    for start in range(0, len(index), CALL_RECORDS):
        part = index[start : start + CALL_RECORDS]
        answer = _ask(call, part, _native.ffi.NULL, 0, 0)
        rows = slice(start + 1, start + 1 + len(part))
        np.add(answer.offsets[1:], offsets[start], out=offsets[rows])
        np.add(answer.dim_offsets[1:], dim_offsets[start], out=dim_offsets[rows])
    return offsets, dim_offsets


def _packed(
    call: Call, block: Any, offsets: IndexArray, dims: IndexArray, dim_offsets: IndexArray
) -> RaggedBatch:
    """Make the batch over a block that holds its payload."""
    nbytes, count, item = int(offsets[-1]), len(offsets) - 1, call.dtype.itemsize
    shape = (nbytes // item,)
    values = _memory.array(block, nbytes, shape, call.dtype) if nbytes else np.empty(0, call.dtype)
    # Of no records it is not known how many dimensions they have: one, as most.
    ndim = int(dim_offsets[1]) if count else 1
    shapes: IndexArray | list[tuple[int, ...]]
    if bool((np.diff(dim_offsets) == ndim).all()):
        shapes = dims[: count * ndim].reshape(count, ndim).copy()
    else:
        shapes = _shapes(dims, dim_offsets)
    return RaggedBatch(values, offsets // item, shapes)


def _cut(part: IndexArray, offsets: IndexArray) -> list[IndexArray]:
    """Cut an index where its records reach the bounds of a call: at least one in each piece."""
    pieces, start = [], 0
    while start < len(part):
        bound = int(offsets[start]) + _native.CALL_BYTES
        end = max(start + 1, int(np.searchsorted(offsets, bound, "right")) - 1)
        end = min(end, start + CALL_RECORDS)
        pieces.append(part[start:end])
        start = end
    return pieces


def _gather_once(call: Call, index: IndexArray, room: int) -> tuple[list[Any] | None, IndexArray]:
    """One call of the engine, a second one where only the dimensions lacked room.

    Returns:
        The arrays, or None if room bytes are too few; and the byte offsets.
    """
    block = _memory.take(room) if room else _native.ffi.NULL
    dims_room = call.guess.dims(len(index))
    while True:
        answer = _ask(call, index, block, room, dims_room)
        if answer.status == 0:
            arrays = _arrays(block, answer.offsets, answer.dims, answer.dim_offsets, call.dtype)
            return arrays, answer.offsets
        if int(answer.offsets[-1]) > room:
            return None, answer.offsets
        dims_room = int(answer.dim_offsets[-1])


class _Answer(NamedTuple):
    """What the engine said: LX_OK, or LX_ROOM with the offsets only."""

    status: int
    offsets: IndexArray
    dim_offsets: IndexArray
    dims: IndexArray


def _ask(call: Call, index: IndexArray, block: Any, room: int, dims_room: int) -> _Answer:
    """Call the engine once. A status that is neither LX_OK nor LX_ROOM is raised."""
    ffi, count = _native.ffi, len(index)
    # Offsets, offsets of shapes, and shapes: one array, because each costs a wrapping;
    # and recycled, because a fresh one makes malloc tidy up what the many small
    # arrays of the last batch left.
    size = 2 * (count + 1) + dims_room
    memory = _memory.take(8 * size)
    numbers = _memory.array(memory, 8 * size, (size,), _INT64)
    base = ffi.cast("int64_t *", memory)
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
    if status not in (0, _ROOM):
        raise call.failure(status)
    offsets, dim_offsets = numbers[: count + 1], numbers[count + 1 : 2 * (count + 1)]
    call.guess.learn(count, int(offsets[-1]), int(dim_offsets[-1]))
    return _Answer(status, offsets, dim_offsets, numbers[2 * (count + 1) :])


def _arrays(
    block: Any,
    offsets: IndexArray,
    dims: IndexArray,
    dim_offsets: IndexArray,
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
    return [
        np.ndarray(shape, dtype, buffer, offset)
        for shape, offset in zip(_shapes(dims, dim_offsets), offsets[:-1].tolist())
    ]


def _shapes(dims: IndexArray, dim_offsets: IndexArray) -> list[tuple[int, ...]]:
    """One tuple for each record."""
    lengths, bounds = dims.tolist(), dim_offsets.tolist()
    return [tuple(lengths[a:b]) for a, b in zip(bounds, bounds[1:])]
