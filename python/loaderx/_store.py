"""What dense and ragged stores have in common: their life, length and index rules."""

from __future__ import annotations

import atexit
import threading
import warnings
import weakref
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Any, TypeVar

import numpy as np

from loaderx import _memory, _native
from loaderx._append import Turn, run_batch
from loaderx._index import INT64_MAX, IndexArray, normalize, normalize_set
from loaderx._open import Opened, Wanted, open_store
from loaderx.errors import ForkedProcessError, StoreClosedError, StoreIOError, StoreMismatchError

_CLOSED = 3
_ndarray = np.ndarray
_INT64 = np.dtype(np.int64)
# What iteration reads at once.
BLOCK_BYTES = 1 << 20
BLOCK_RECORDS = 1024

Self = TypeVar("Self", bound="Store")


class Store:
    """The base of DenseStore and RaggedStore. Not for use by itself."""

    _handle = 0
    _kind = 0

    def __init__(self, path: str, want: Wanted) -> None:
        self._path = path
        self._mode = want.mode
        self._turn = Turn()
        self._closing = threading.RLock()  # a signal handler may close, too
        opened = open_store(path, want)
        self._handle = opened.handle
        self._dtype = opened.dtype
        self._codec = opened.codec
        self._allow_empty = opened.allow_empty
        self._take(opened)
        _open_stores.add(self)

    def _take(self, opened: Opened) -> None:
        """Keep what the kind of store needs of what was opened."""
        raise NotImplementedError

    def _read(self, index: IndexArray, max_threads: int = 0) -> Any:
        """Read a set of records."""
        raise NotImplementedError

    def _read_one(self, index: int) -> Any:
        """Read one record."""
        raise NotImplementedError

    def _block_records(self) -> int:
        """How many records iteration reads at once."""
        raise NotImplementedError

    # ---- what a store is ----

    @property
    def path(self) -> str:
        """The absolute path of the store's folder."""
        return self._path

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of every record."""
        return self._dtype

    @property
    def codec(self) -> str:
        """How records are stored: "raw", "zstd" or "zstd_dict"."""
        return self._codec

    @property
    def mode(self) -> str:
        """ "a" for reading and appending, "r" for reading."""
        return self._mode

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return not self._handle

    def has_dict(self) -> bool:
        """Whether records are compressed with a dictionary. StoreClosedError after close."""
        self._require_open()
        return self._codec == "zstd_dict"

    def __len__(self) -> int:
        """The number of records."""
        scratch = _native.scratch
        records = scratch.number
        status = _native.lib.lx_store_len(self._handle, records, scratch.error)
        if status:
            raise self._failure(status)
        return records[0]  # type: ignore[no-any-return]

    # ---- reading ----

    def __getitem__(self, index: Any) -> Any:
        """One record for an integer; for a tuple, list, 1-D integer array, slice or
        boolean mask, a set of records. Negative indices count from the end.

        Raises:
            RecordIndexError: an index outside the store.
            TypeError, ValueError: what cannot index a store; see the message.
            CorruptRecordError: a record cannot be read.
            StoreClosedError: after close().
        """
        # The short ways for what is asked most; the long one gives the same.
        kind = type(index)
        if kind is int and -INT64_MAX <= index <= INT64_MAX:
            return self._read_one(index)
        if (
            kind is _ndarray
            and index.dtype is _INT64
            and index.ndim == 1
            and index.flags.c_contiguous
        ):
            return self._read(index)
        found = normalize(index, self)
        return self._read_one(found) if isinstance(found, int) else self._read(found)

    def gather(self, index: Any) -> Any:
        """Read a set of records: as ``store[index]``, but never a single one.

        Raises:
            TypeError: index is an integer; otherwise as ``store[index]``.
        """
        return self._read(normalize_set(index, self))

    def readahead(self, index: Any) -> None:
        """Ask the system to bring records into memory that will be read soon.

        Returns at once, and costs next to nothing where they are there already.

        Args:
            index: as for ``gather``.

        Raises:
            RecordIndexError, TypeError, ValueError: as ``store[index]``.
            StoreClosedError: after close().
        """
        found = normalize_set(index, self)
        status = _native.lib.lx_store_ahead(
            self._handle, _native.ffi.from_buffer(found), len(found), _native.scratch.error
        )
        if status:
            raise self._failure(status)

    def __getitems__(self, index: Any) -> list[Any]:
        """A list of records: what torch's DataLoader fetches a batch with."""
        return list(self.gather(index))

    def __iter__(self) -> Iterator[Any]:
        """Yield the records the store has now, in order, reading them in blocks."""
        start, end = 0, len(self)
        while start < end:
            stop = min(end, start + self._block_records())
            yield from self._read(np.arange(start, stop, dtype=np.int64))
            start = stop

    # ---- writing ----

    def _append(self, parts: Iterable[Any], add: Any) -> int:
        """Append parts as one batch, and return the index of the first record."""
        self._require_open()
        with self._turn.taken(self._path):
            return run_batch(self._handle, parts, add, self._failure)

    def sync(self) -> None:
        """Make every appended record durable: what it returns for survives a power cut.

        Raises:
            StoreIOError: the system could not; what was durable before still is.
            StoreClosedError: after close().
        """
        self._require_open()
        with self._turn.taken(self._path):
            status = _native.lib.lx_store_sync(self._handle, _native.scratch.error)
            if status:
                raise self._failure(status)

    # ---- the end ----

    def close(self) -> None:
        """Make appended records durable and close the store. A second call does nothing.

        Waits for running calls of other threads. In a forked child it only
        forgets the store, which stays the parent's.

        Raises:
            StoreIOError: the records appended since the last sync could not be made
                durable, now or because a write failed earlier. It is closed. Where
                a with statement ends with another exception, this is a warning.
        """
        if _native.forked:
            self._handle = 0
            return
        with self._closing:
            if not self._handle:
                return
            error = _native.ffi.new("lx_error *")
            try:
                status = _native.lib.lx_store_close(self._handle, error)
            finally:
                self._handle = 0
                _open_stores.discard(self)
                if not _open_stores:
                    _memory.trim()  # nobody is left who would use it again
        if status not in (0, _CLOSED):
            raise _native.error_of(status, error, self._path)

    def __enter__(self: Self) -> Self:
        self._require_open()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            self.close()
        except StoreIOError as failed:
            if error is None:
                raise
            # The block's own exception is the one to be seen.
            warnings.warn(f"closing the store failed, too: {failed}", RuntimeWarning, stacklevel=2)

    def __del__(self) -> None:
        self._end()

    def _end(self) -> None:
        """Close a store that nobody closed, with a warning if records could be lost.

        Nobody is there to catch an exception: a close that fails is a warning, too.
        """
        if not self._handle or _native.forked:
            return
        info = _native.ffi.new("lx_store_info *")
        status = _native.lib.lx_store_info_of(self._handle, info, _native.ffi.NULL)
        unsynced = status == 0 and info.unsynced
        try:
            self.close()
        except StoreIOError as failed:
            warnings.warn(
                f"the store {self._path} was not closed, and closing it failed: {failed}",
                RuntimeWarning,
                stacklevel=2,
                source=self,
            )
            return
        if unsynced:
            warnings.warn(
                f"the store {self._path} was not closed and has appended records that were not "
                "synced; they are now: call close(), or use it in a with statement",
                ResourceWarning,
                stacklevel=2,
                source=self,
            )

    # ---- processes ----

    def __reduce__(self) -> tuple[Any, ...]:
        self._require_open()
        return _reopen, (type(self), self._path, self._mode, self._identity())

    def _identity(self) -> dict[str, Any]:
        """What a store opened from a pickle has to have."""
        return {"dtype": self._dtype, "codec": self._codec}

    # ---- failures ----

    def _require_open(self) -> None:
        _native.require_usable()
        if not self._handle:
            raise self._failure(_CLOSED)

    def _failure(self, status: int, error: Any = None) -> Exception:
        """The exception for a status, and the lx_error (None: this thread's) of its call."""
        if status == _CLOSED:
            return StoreClosedError(
                f"expected an open store, got one that was closed: {self._path}", path=self._path
            )
        return _native.error_of(status, error or _native.scratch.error, self._path)

    def __repr__(self) -> str:
        if _native.forked:
            state = "forked"
        elif not self._handle:
            state = "closed"
        else:
            try:
                state = f"records={len(self)}"
            except (StoreClosedError, ForkedProcessError):
                state = "closed"
        facts = ", ".join(f"{name}={value}" for name, value in self._facts())
        return f"{type(self).__name__}({self._path!r}, {facts}, mode={self._mode!r}, {state})"

    def _facts(self) -> list[tuple[str, Any]]:
        return [("dtype", self._dtype), ("codec", repr(self._codec))]


def _reopen(
    cls: type[Store], path: str, mode: str, identity: dict[str, Any]
) -> Store | _native.Forked:
    """Open a pickled store where it is; it must exist and be what it was."""
    if _native.forked:
        return _native.Forked()
    found = cls(path, mode=mode)  # type: ignore[call-arg]
    for name, expected in identity.items():
        got = getattr(found, name)
        if got != expected:
            found.close()
            raise StoreMismatchError(
                f"{path} has changed since it was pickled: expected {name} {expected}, got {got}",
                path=path,
            )
    return found


_open_stores: weakref.WeakSet[Store] = weakref.WeakSet()


def open_stores() -> list[Store]:
    """Every store that this process has open."""
    return [store for store in list(_open_stores) if not store.closed]


@atexit.register
def _end_open_stores() -> None:
    """Close what is open at exit, all of it, while a warning can still be shown."""
    with ExitStack() as stack:
        for store in list(_open_stores):
            stack.callback(store._end)
