"""The streams of a loader: what they have to be, and how each is read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol, Union

import numpy as np

from loaderx import _ragged
from loaderx._batch import RaggedBatch
from loaderx._steps import IndexArray, cut
from loaderx.zrecord import DenseStore, RaggedStore

RAGGED = ("list", "packed", "padded")

Stream = Union[DenseStore, RaggedStore]
# What is read of a stream at once, before it is cut into batches.
Values = Union["np.ndarray[Any, Any]", "list[Any]", RaggedBatch]
Out = Union["np.ndarray[Any, Any]", None]


class Reader(Protocol):
    """What a loader reads, from one source or several."""

    names: list[str]
    """The names of the streams."""

    def locate(self, index: IndexArray) -> Any:
        """Find out, once for all streams, where records are."""
        ...

    def read(self, name: str, where: Any, counts: list[int], max_threads: int, out: Out) -> Values:
        """Read the located records of some steps of a stream.

        Args:
            name: the stream.
            where: what locate gave.
            counts: how many records each step has.
            max_threads: of the engine.
            out: where a dense stream is read to, of one step; None: new memory.

        Returns:
            All of it, for rows() or cut().
        """
        ...

    def ask(self, where: Any) -> None:
        """Have located records of all streams brought into memory, in the background."""
        ...

    def beside(self, where: Any) -> dict[str, np.ndarray[Any, Any]]:
        """What a batch has beside its streams."""
        ...

    def first(self) -> Mapping[str, Stream]:
        """The streams by name; of several sources, which are alike, those of one."""
        ...


class Single:
    """The streams of one source: an index is a record of each store."""

    def __init__(self, streams: Mapping[str, Stream], ragged: str) -> None:
        self.names = list(streams)
        self._streams = streams
        self._ragged = ragged

    def locate(self, index: IndexArray) -> IndexArray:
        """Nothing is to be found out."""
        return index

    def read(
        self, name: str, where: IndexArray, counts: list[int], max_threads: int, out: Out
    ) -> Values:
        """Read records of a stream, as Reader.read."""
        store = self._streams[name]
        if len(counts) > 1 and isinstance(store, DenseStore):
            where = spaced(where, counts, store.dtype.itemsize * math.prod(store.item_shape))
        return read(store, self._ragged, where, max_threads, out)

    def ask(self, where: IndexArray) -> None:
        """Have records brought into memory, in the background."""
        for store in self._streams.values():
            store.readahead(where)

    def beside(self, where: IndexArray) -> dict[str, np.ndarray[Any, Any]]:
        """Nothing."""
        return {}

    def first(self) -> Mapping[str, Stream]:
        """The streams by name."""
        return self._streams


def as_streams(streams: Any, whose: str = "streams") -> dict[str, Stream]:
    """Check the streams of a source. Raises TypeError and ValueError."""
    if not isinstance(streams, Mapping):
        raise TypeError(f"{whose}: expected a dict of stores by name, got {type(streams).__name__}")
    if not streams:
        raise ValueError(f"{whose}: expected at least one store, got an empty dict")
    for name, store in streams.items():
        if not isinstance(name, str):
            raise TypeError(
                f"{whose}: expected names that are str, got {type(name).__name__} {name!r}"
            )
        if isinstance(store, Mapping):
            raise TypeError(
                f"{whose}: expected {name!r} to be a store, got a dict; streams of several "
                "sources need sampler=Mix(...)"
            )
        if not isinstance(store, (DenseStore, RaggedStore)):
            raise TypeError(
                f"{whose}: expected {name!r} to be a DenseStore or RaggedStore, "
                f"got {type(store).__name__}"
            )
    return dict(streams)


def common_length(
    streams: Mapping[str, Stream], whose: str = "streams", kept: Mapping[str, int] | None = None
) -> int:
    """The one length of all streams. Raises ValueError.

    Args:
        streams: the stores by name.
        whose: how messages name them.
        kept: the lengths they had, which counts if they have grown since.
    """
    lengths = {name: len(store) for name, store in streams.items()}
    if kept is not None:
        lengths = {name: min(length, kept[name]) for name, length in lengths.items()}
    named = ", ".join(f"{name!r} has {length}" for name, length in lengths.items())
    if len(set(lengths.values())) != 1:
        raise ValueError(f"{whose}: expected stores of equal length, got: {named}")
    if 0 in lengths.values():
        raise ValueError(f"{whose}: expected stores that hold records, got: {named}")
    return next(iter(lengths.values()))


def as_ragged(ragged: Any) -> str:
    """Check how ragged streams are to be given. Raises ValueError."""
    if ragged not in RAGGED:
        raise ValueError(f"ragged: expected one of {', '.join(map(repr, RAGGED))}, got {ragged!r}")
    return str(ragged)


def read(store: Stream, ragged: str, index: IndexArray, max_threads: int, out: Out) -> Values:
    """Read a set of records: an array, which is out if there is one, a list, or a RaggedBatch."""
    if isinstance(store, RaggedStore) and ragged != "list":
        store._require_open()
        return _ragged.gather_packed(store, index, max_threads)
    if out is not None and isinstance(store, DenseStore):
        return store._read_to(index, out, max_threads)
    values: Values = store._read(index, max_threads)
    return values


def spaced(index: IndexArray, counts: list[int], width: int) -> IndexArray:
    """Repeat a record of each step, so that the next begins on a line of 64 bytes.

    Frameworks take memory that is aligned so without a copy. Only for steps of
    one size: others are left as they are.
    """
    count = counts[0]
    spare = -count % (64 // math.gcd(width, 64))
    if not spare or not _alike(counts):
        return index
    wide = np.empty((len(counts), count + spare), np.int64)
    wide[:, :count] = index.reshape(len(counts), count)
    wide[:, count:] = wide[:, :1]
    return wide.reshape(-1)


def rows(values: np.ndarray[Any, Any], counts: list[int]) -> list[np.ndarray[Any, Any]]:
    """Cut an array into the batches of each step, which may have been spaced."""
    if len(counts) == 1:
        return [values]
    if not _alike(counts):
        return cut(values, counts)
    # Batches of one size are rows of an array: NumPy makes those views the fastest.
    batches = values.reshape(len(counts), -1, *values.shape[1:])
    return list(batches if batches.shape[1] == counts[0] else batches[:, : counts[0]])


def _alike(counts: list[int]) -> bool:
    return counts.count(counts[0]) == len(counts)


def nbytes(part: Any) -> int:
    """The memory of what was read, or of what pad() made of it."""
    if isinstance(part, np.ndarray):
        return part.nbytes
    if isinstance(part, RaggedBatch):
        return int(part.values.nbytes)
    return sum(array.nbytes for array in part)
