"""Reading ragged records: one native call for payloads, offsets and shapes.

The records of a call share its buffer. How large that must be is not known
before: it is guessed from the records read so far, and when the guess was too
small the engine says how much it takes (LX_ROOM), without having copied.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from loaderx import _memory, _native
from loaderx._batch import RaggedBatch

IndexArray = np.ndarray[Any, np.dtype[np.int64]]

# More records than this go in several calls, whatever their size.
CALL_RECORDS = 1 << 16

_ROOM = 14
# What calls say of their records is kept for the next call up to this many numbers, and
# as many of those; a new one has room for LEAST_NUMBERS.
MOST_NUMBERS = 1 << 17
MOST_KEPT = 8
LEAST_NUMBERS = 1 << 10


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


class Source(Protocol):
    """What is asked of a store: RaggedStore is one."""

    _handle: int
    _dtype: np.dtype[Any]
    _guess: Guess

    def _failure(self, status: int) -> Exception: ...


class Numbers:
    """Where the engine says how large records are: offsets, offsets of shapes, shapes.

    One array for the three, and recycled: to make and to wrap small ones takes longer
    than to fill them.
    """

    __slots__ = ("array", "base", "count")

    def __init__(self, room: int) -> None:
        self.array = np.empty(room, np.int64)
        self.base = _native.ffi.from_buffer("int64_t[]", self.array)
        self.count = 0

    @property
    def nbytes(self) -> int:
        """What the records take together."""
        return self.base[self.count]  # type: ignore[no-any-return]

    @property
    def ndims(self) -> int:
        """The numbers of their dimensions, added up."""
        return self.base[2 * self.count + 1]  # type: ignore[no-any-return]

    def offsets(self) -> IndexArray:
        return self.array[: self.count + 1]

    def dim_offsets(self) -> IndexArray:
        return self.array[self.count + 1 : 2 * self.count + 2]

    def dims(self) -> IndexArray:
        return self.array[2 * self.count + 2 :][: self.ndims]

    def all_1d(self) -> bool:
        """Whether each record has one dimension: the offsets of shapes count up then."""
        n = self.count + 1
        said = _native.ffi.buffer(self.base + n, 8 * n)
        return self.ndims == self.count and said[:] == _counting_up(n)


_kept: list[Numbers] = []
_counts: dict[int, bytes] = {}


def _borrow(size: int) -> Numbers:
    """Numbers with room for size of them, that nobody else has. To be given back."""
    try:
        numbers = _kept.pop()
    except IndexError:
        return Numbers(max(size, LEAST_NUMBERS))
    return numbers if len(numbers.array) >= size else Numbers(size + size // 4)


def _give_back(numbers: Numbers) -> None:
    if len(numbers.array) <= MOST_NUMBERS and len(_kept) < MOST_KEPT:
        _kept.append(numbers)


def _counting_up(n: int) -> bytes:
    """The int64 values 0 to n - 1, kept since most batches have the same size."""
    made = _counts.get(n)
    if made is None:
        made = np.arange(n, dtype=np.int64).tobytes()
        if len(_counts) >= MOST_KEPT:
            _counts.clear()
        if n <= LEAST_NUMBERS:
            _counts[n] = made
    return made


def gather(store: Source, index: IndexArray, max_threads: int = 0) -> list[Any]:
    """Read records.

    Args:
        store: where from. Its guess learns.
        index: int64, contiguous.
        max_threads: what the engine may use, 0: as many as pay.

    Returns:
        One array for each index, each of its record's shape. The arrays of one
        call of the engine, at most CALL_BYTES, share a buffer.

    Raises:
        Exception: as the status says; see loaderx.errors.
    """
    count = len(index)
    if count <= CALL_RECORDS:
        room, dims_room = store._guess.room(count), store._guess.dims(count)
        while room <= _native.CALL_BYTES or count == 1:
            arrays, room, dims_room = _read(store, index, room, dims_room, max_threads)
            if arrays is not None:
                return arrays
    offsets, _ = sizes(store, index)
    out: list[Any] = []
    for part in _cut(index, offsets):
        arrays, room, dims_room = None, 0, 0
        while arrays is None:
            arrays, room, dims_room = _read(store, part, room, dims_room, max_threads)
        out += arrays
    return out


def gather_packed(store: Source, index: IndexArray, max_threads: int = 0) -> RaggedBatch:
    """Read records into one array, with their offsets and shapes; otherwise as gather."""
    count, guess = len(index), store._guess
    if 0 < count <= CALL_RECORDS:
        room = guess.room(count)
        block = _memory.take(room) if room else _native.ffi.NULL
        status, numbers = _ask(store, index, block, room, guess.dims(count), max_threads)
        if status == 0:
            offsets, ndim = numbers.offsets(), 1 if numbers.all_1d() else -1
            batch = _packed(
                store._dtype, block, offsets, numbers.dims(), numbers.dim_offsets(), ndim
            )
            _give_back(numbers)
            return batch
        _give_back(numbers)
    offsets, dim_offsets = sizes(store, index)
    total = int(offsets[-1])
    block = _memory.take(total) if total else _native.ffi.NULL
    base = _native.ffi.cast("char *", block)
    dims = np.empty(int(dim_offsets[-1]), np.int64)
    start = 0
    for part in _cut(index, offsets):
        stop = start + len(part)
        first, last = int(offsets[start]), int(offsets[stop])
        low, high = int(dim_offsets[start]), int(dim_offsets[stop])
        status, numbers = _ask(store, part, base + first, last - first, high - low, max_threads)
        if status:
            raise store._failure(status)
        dims[low:high] = numbers.dims()
        _give_back(numbers)
        start = stop
    return _packed(store._dtype, block, offsets, dims, dim_offsets, -1)


def sizes(store: Source, index: IndexArray) -> tuple[IndexArray, IndexArray]:
    """How large records are, without reading them.

    Returns:
        The running sums, from 0, of their bytes and of their numbers of
        dimensions: int64, (n + 1,) each.
    """
    offsets, dim_offsets = (np.zeros(len(index) + 1, np.int64) for _ in range(2))
    for start in range(0, len(index), CALL_RECORDS):
        part = index[start : start + CALL_RECORDS]
        _, numbers = _ask(store, part, _native.ffi.NULL, 0, 0, 0)
        rows = slice(start + 1, start + 1 + len(part))
        np.add(numbers.offsets()[1:], offsets[start], out=offsets[rows])
        np.add(numbers.dim_offsets()[1:], dim_offsets[start], out=dim_offsets[rows])
        _give_back(numbers)
    return offsets, dim_offsets


def _packed(
    dtype: np.dtype[Any],
    block: Any,
    offsets: IndexArray,
    dims: IndexArray,
    dim_offsets: IndexArray,
    ndim: int,
) -> RaggedBatch:
    """Make the batch over a block that holds its payload.

    ndim is what all records are known to have, or negative. Nothing of the three
    int64 arrays is kept.
    """
    nbytes, count, item = int(offsets[-1]), len(offsets) - 1, dtype.itemsize
    shape = (nbytes // item,)
    values = _memory.array(block, nbytes, shape, dtype) if nbytes else np.empty(0, dtype)
    if ndim < 0:
        # Of no records it is not known how many dimensions they have: one, as most.
        ndim = int(dim_offsets[1]) if count else 1
        if not bool((np.diff(dim_offsets) == ndim).all()):
            return RaggedBatch(values, offsets // item, _shapes(dims, dim_offsets))
    return RaggedBatch(values, offsets // item, dims[: count * ndim].reshape(count, ndim).copy())


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


def _read(
    store: Source, index: IndexArray, room: int, dims_room: int, max_threads: int
) -> tuple[list[Any] | None, int, int]:
    """One call of the engine with room for so many bytes and dimensions.

    Returns:
        The arrays, or None if that was too little; and what they take.
    """
    ffi, dtype = _native.ffi, store._dtype
    block = _memory.take(room) if room else ffi.NULL
    status, numbers = _ask(store, index, block, room, dims_room, max_threads)
    nbytes, ndims = numbers.nbytes, numbers.ndims
    arrays: list[Any] | None = None
    if status == 0:
        # Records without a byte need no block.
        buffer = ffi.buffer(block, nbytes) if nbytes else bytearray()
        if numbers.all_1d():
            # The common case: slices of one array are the cheapest.
            flat: np.ndarray[Any, Any] = np.ndarray((nbytes // dtype.itemsize,), dtype, buffer)
            ends = (numbers.offsets() // dtype.itemsize).tolist()
            arrays = [flat[a:b] for a, b in zip(ends, ends[1:])]
        else:
            shapes = _shapes(numbers.dims(), numbers.dim_offsets())
            arrays = [
                np.ndarray(shape, dtype, buffer, offset)
                for shape, offset in zip(shapes, numbers.offsets().tolist())
            ]
    _give_back(numbers)
    return arrays, nbytes, ndims


def _ask(
    store: Source, index: IndexArray, block: Any, room: int, dims_room: int, max_threads: int
) -> tuple[int, Numbers]:
    """Call the engine once.

    Returns:
        LX_OK or LX_ROOM, another status is raised; and what it said, which is to be
        given back: with LX_ROOM the offsets only.
    """
    count = len(index)
    numbers = _borrow(2 * (count + 1) + dims_room)
    numbers.count, base = count, numbers.base
    status = _native.lib.lx_ragged_gather(
        store._handle,
        _native.ffi.from_buffer(index),
        count,
        store._dtype.itemsize,
        block,
        room,
        base,
        base + 2 * (count + 1),
        dims_room,
        base + (count + 1),
        max_threads,
        _native.scratch.error,
    )
    if status not in (0, _ROOM):
        raise store._failure(status)
    store._guess.learn(count, base[count], base[2 * count + 1])
    return status, numbers


def _shapes(dims: IndexArray, dim_offsets: IndexArray) -> list[tuple[int, ...]]:
    """One tuple for each record."""
    lengths, bounds = dims.tolist(), dim_offsets.tolist()
    return [tuple(lengths[a:b]) for a, b in zip(bounds, bounds[1:])]
