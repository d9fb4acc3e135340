"""The stores: DenseStore for records of one shape, RaggedStore for any shapes.

A store is a folder that holds typed records, always numbered 0 to n - 1::

    with DenseStore("digits", np.uint8, (8, 8)) as store:
        store.append(images)                    # (B, 8, 8)
    DenseStore("digits")[3, 1, 4].shape         # (3, 8, 8)

Any number of threads may read a store while one appends to it. The first use
loads the shared library; importing this module does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from loaderx import _memory, _native, _ragged
from loaderx._append import add_dense, add_ragged
from loaderx._batch import RaggedBatch
from loaderx._identity import MAX_RECORD_LEN
from loaderx._index import IndexArray, normalize, normalize_set
from loaderx._maintain import MaintainedStore, as_set
from loaderx._open import DENSE, RAGGED, Opened, as_path, wanted
from loaderx._out import check_out
from loaderx._parts import dense_parts, ragged_parts
from loaderx._report import BadRecord, VerifyReport
from loaderx._store import BLOCK_BYTES, BLOCK_RECORDS
from loaderx.errors import ZrecordError

__all__ = [
    "DICT_TIERS",
    "DICT_TIER_DEFAULT",
    "MAX_RECORD_LEN",
    "BadRecord",
    "DenseStore",
    "RaggedBatch",
    "RaggedStore",
    "VerifyReport",
    "ZrecordError",
]

# The sizes of a dictionary, and of the sample that trains it, in bytes.
DICT_TIERS = {
    "fast": {"size": 32 << 10, "samples": 4 << 20},
    "balanced": {"size": 128 << 10, "samples": 16 << 20},
    "max": {"size": 1 << 20, "samples": 64 << 20},
}
DICT_TIER_DEFAULT = "balanced"

# How many batch sizes of a store are remembered.
KEEP_BATCHES = 64

_ndarray = np.ndarray


class DenseStore(MaintainedStore):
    """A store whose records all have one dtype and one shape.

    Args:
        path: the folder: str, bytes or path object; made absolute at once. A
            leading ``~`` is refused.
        dtype: of the records. Needed to create a store; for one that exists,
            None takes what is there and anything else must be equal to it.
        item_shape: the shape of one record, a sequence of ints, ``()`` for
            scalars. Given and compared as dtype is.
        codec: "raw", "zstd" (the default of a new store) or "zstd_dict".
        dict_bytes: the dictionary of a new zstd_dict store.
        mode: "a" to read and append, creating what is missing when dtype and
            item_shape are given; "r" to read, which never writes.

    Raises:
        NotAStoreError: nothing there, and no dtype and item_shape to create it.
        StoreMismatchError: a store of another kind, dtype, shape or codec.
        StoreBusyError: a lock that is needed is held elsewhere.
        CorruptStoreError, UnsupportedStoreError, StoreIOError: see the message.
        TypeError, ValueError: an argument outside what is described above.
    """

    _kind = DENSE

    def __init__(
        self,
        path: Any,
        dtype: Any = None,
        item_shape: Any = None,
        codec: str | None = None,
        dict_bytes: bytes | None = None,
        *,
        mode: str = "a",
    ) -> None:
        want = wanted(DENSE, mode, dtype, item_shape, codec, dict_bytes, False)
        super().__init__(as_path(path), want)

    @property
    def item_shape(self) -> tuple[int, ...]:
        """The shape of every record."""
        return self._item_shape

    def append(self, records: Any) -> int:
        """Append records as one batch: all of them, or none when it raises.

        Args:
            records: an array of shape ``(B, *item_shape)``, of any strides,
                memory-mapped ones too, or an iterable of arrays of shape
                ``item_shape``; at least one record, of exactly the store's
                dtype, byte order included. Large arrays are handed over in
                pieces, so the memory needed stays bounded.

        Returns:
            The index of the first new record.

        Raises:
            TypeError: records, or one of them, is not an array of the dtype.
            ValueError: another shape, or no record at all.
            StoreBusyError: another handle is the writer of this store.
            StoreFullError, StoreIOError: the disk; nothing was changed.
            StoreReadOnlyError: opened with mode="r", or files not writable.
            StoreClosedError: after close().
        """
        return self._append(dense_parts(records, self._dtype, self._item_shape), add_dense)

    def gather(self, index: Any, out: Any = None) -> np.ndarray[Any, Any]:
        """Read a set of records: as ``store[index]``, but never a single one.

        Args:
            index: a tuple, list, 1-D integer array, slice or boolean mask of n records.
            out: where the records go: a writable, C-contiguous array of shape
                ``(n, *item_shape)`` and of the store's dtype, which has no memory
                in common with index. When reading fails its contents are undefined.

        Returns:
            ``(n, *item_shape)``: out, or an array of its own.

        Raises:
            TypeError: index is an integer, or out no array of the dtype; otherwise
                as ``store[index]``.
            ValueError: out is of another shape, not contiguous or not writable, or
                overlaps index.
        """
        found = normalize_set(index, self)
        if out is None:
            return self._read(found)
        return self._read_to(found, out, 0)

    def _read_to(self, index: IndexArray, out: Any, max_threads: int) -> np.ndarray[Any, Any]:
        """Read records to ``out``, as gather does."""
        check_out(out, index, self._item_shape, self._dtype)
        if len(index):
            destination = _native.ffi.from_buffer("char[]", out, True)
            self._read_in_pieces(index, destination, max_threads)
        else:
            self._require_open()
        return out  # type: ignore[no-any-return]

    def _take(self, opened: Opened) -> None:
        assert opened.item_shape is not None
        self._item_shape = opened.item_shape
        self._width = opened.width
        self._blocks = _memory.class_of(opened.width)
        self._batches: dict[int, tuple[int, tuple[int, ...], _memory.BlockClass]] = {}

    def _block_records(self) -> int:
        return max(1, min(BLOCK_RECORDS, BLOCK_BYTES // self._width))

    def _read_one(self, index: int) -> Any:
        width, block = self._width, self._blocks.take()
        status = _native.lib.lx_dense_one(self._handle, index, block, width, _native.scratch.error)
        if status:
            raise self._failure(status)
        record = _ndarray(self._item_shape, self._dtype, _native.ffi.buffer(block, width))
        return record if self._item_shape else record[()]

    def _read(self, index: IndexArray, max_threads: int = 0) -> np.ndarray[Any, Any]:
        count = len(index)
        if count == 0:
            self._require_open()
            return np.empty((0, *self._item_shape), self._dtype)
        nbytes, shape, blocks = self._batches.get(count) or self._batch(count)
        block, ffi = blocks.take(), _native.ffi
        if nbytes <= _native.CALL_BYTES:
            status = _native.lib.lx_dense_gather(
                self._handle,
                ffi.from_buffer(index),
                count,
                block,
                nbytes,
                max_threads,
                _native.scratch.error,
            )
            if status:
                raise self._failure(status)
        else:
            self._read_in_pieces(index, ffi.cast("char *", block), max_threads)
        return _ndarray(shape, self._dtype, ffi.buffer(block, nbytes))

    def _batch(self, count: int) -> tuple[int, tuple[int, ...], _memory.BlockClass]:
        """The bytes, shape and blocks of a batch: kept, since most have the same size."""
        nbytes = count * self._width
        made = (nbytes, (count, *self._item_shape), _memory.class_of(nbytes))
        if len(self._batches) >= KEEP_BATCHES:
            self._batches.clear()
        self._batches[count] = made
        return made

    def _read_in_pieces(self, index: IndexArray, destination: Any, max_threads: int) -> None:
        """Read to a ``char *`` with calls that are short enough for Ctrl-C."""
        ffi, width = _native.ffi, self._width
        rows = max(1, _native.CALL_BYTES // width)
        for start in range(0, len(index), rows):
            part = index[start : start + rows]
            status = _native.lib.lx_dense_gather(
                self._handle,
                ffi.from_buffer(part),
                len(part),
                destination + start * width,
                len(part) * width,
                max_threads,
                _native.scratch.error,
            )
            if status:
                raise self._failure(status)

    def _identity(self) -> dict[str, Any]:
        return {**super()._identity(), "item_shape": self._item_shape}

    def _facts(self) -> list[tuple[str, Any]]:
        dtype, *rest = super()._facts()
        return [dtype, ("item_shape", self._item_shape), *rest]


class RaggedStore(MaintainedStore):
    """A store whose records have one dtype, and each its own shape.

    Reading a set of records gives a list of arrays, which share memory;
    ``gather`` gives them in one piece, as a RaggedBatch.

    Args:
        path: the folder: str, bytes or path object; made absolute at once. A
            leading ``~`` is refused.
        dtype: of the records. Needed to create a store; for one that exists,
            None takes what is there and anything else must be equal to it.
        codec: "raw", "zstd" (the default of a new store) or "zstd_dict".
        dict_bytes: the dictionary of a new zstd_dict store.
        mode: "a" to read and append, creating what is missing when dtype is
            given; "r" to read, which never writes.
        allow_empty: create a store that takes records of zero bytes; for one
            that exists, require that it does.

    Raises:
        As DenseStore.
    """

    _kind = RAGGED

    def __init__(
        self,
        path: Any,
        dtype: Any = None,
        codec: str | None = None,
        dict_bytes: bytes | None = None,
        *,
        mode: str = "a",
        allow_empty: bool = False,
    ) -> None:
        self._guess = _ragged.Guess()
        want = wanted(RAGGED, mode, dtype, None, codec, dict_bytes, allow_empty)
        super().__init__(as_path(path), want)

    def append(self, records: Iterable[Any]) -> int:
        """Append records as one batch: all of them, or none when it raises.

        Args:
            records: an iterable, generators included, of arrays or NumPy
                scalars of exactly the store's dtype, each of any shape. bytes
                and other buffers are taken as uint8 records. At least one
                record; each of at least one byte, unless the store was created
                with allow_empty=True, and of at most 2 GiB.

        Returns:
            The index of the first new record.

        Raises:
            TypeError: records is not iterable, or one is not of the dtype.
            ValueError: no record at all, or one that is too small or too large.
            Exception: what the iterable itself raises.
            StoreBusyError, StoreFullError, StoreIOError, StoreReadOnlyError,
            StoreClosedError: as DenseStore.append.
        """
        parts = ragged_parts(records, self._dtype, self._allow_empty)
        return self._append(parts, add_ragged(self._dtype.itemsize))

    def gather(self, index: Any) -> RaggedBatch:
        """Read a set of records in one piece: packed values, offsets and shapes.

        Raises:
            TypeError: index is an integer; otherwise as ``store[index]``.
        """
        found = normalize_set(index, self)
        self._require_open()
        return _ragged.gather_packed(self, found)

    def lengths(self, index: Any = None) -> IndexArray:
        """The number of elements of each record, without reading any.

        Of records of one dimension it is their length; of others the product
        of their shape, as in ``gather(index).lengths``.

        Args:
            index: as ``store[index]``, an integer counting as a set of one;
                None: all records.

        Returns:
            int64, (n,).

        Raises:
            RecordIndexError, TypeError, ValueError: as ``store[index]``.
            StoreClosedError: after close().
        """
        found = as_set(normalize(slice(None) if index is None else index, self))
        self._require_open()
        offsets, _ = _ragged.sizes(self, found)
        lengths: IndexArray = np.diff(offsets) // self._dtype.itemsize
        return lengths

    def __getitems__(self, index: Any) -> list[Any]:
        """A list of records: what torch's DataLoader fetches a batch with."""
        return self._read(normalize_set(index, self))

    @property
    def allow_empty(self) -> bool:
        """Whether the store takes records of zero bytes."""
        return self._allow_empty

    def _take(self, opened: Opened) -> None:
        pass  # nothing beyond what every store has

    def _block_records(self) -> int:
        return max(
            1, min(BLOCK_RECORDS, int(BLOCK_BYTES // (self._guess.nbytes or BLOCK_BYTES / 16)))
        )

    def _read_one(self, index: int) -> Any:
        return self._read(np.array([index], np.int64), 1)[0]

    def _read(self, index: IndexArray, max_threads: int = 0) -> list[Any]:
        if len(index) == 0:
            self._require_open()
            return []
        return _ragged.gather(self, index, max_threads)

    def _facts(self) -> list[tuple[str, Any]]:
        return super()._facts() + ([("allow_empty", True)] if self._allow_empty else [])
