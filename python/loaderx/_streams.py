"""The streams of a loader: what they have to be, and how each is read."""

from __future__ import annotations

from typing import Any, Union

import numpy as np

from loaderx import _ragged
from loaderx._batch import RaggedBatch
from loaderx._index import IndexArray
from loaderx.zrecord import DenseStore, RaggedStore

RAGGED = ("list", "packed", "padded")

# What is read of a stream at once, before it is cut into batches.
Values = Union["np.ndarray[Any, Any]", "list[Any]", RaggedBatch]


def as_streams(streams: Any) -> dict[str, DenseStore | RaggedStore]:
    """Check the streams. Raises TypeError and ValueError."""
    if not isinstance(streams, dict):
        raise TypeError(f"streams: expected a dict of stores by name, got {type(streams).__name__}")
    if not streams:
        raise ValueError("streams: expected at least one store, got an empty dict")
    for name, store in streams.items():
        if not isinstance(name, str):
            raise TypeError(
                f"streams: expected names that are str, got {type(name).__name__} {name!r}"
            )
        if not isinstance(store, (DenseStore, RaggedStore)):
            raise TypeError(
                f"streams: expected {name!r} to be a DenseStore or RaggedStore, "
                f"got {type(store).__name__}"
            )
    return dict(streams)


def common_length(streams: dict[str, DenseStore | RaggedStore]) -> int:
    """The one length of all streams. Raises ValueError."""
    lengths = {name: len(store) for name, store in streams.items()}
    named = ", ".join(f"{name!r} has {length}" for name, length in lengths.items())
    if len(set(lengths.values())) != 1:
        raise ValueError(f"streams: expected stores of equal length, got: {named}")
    if 0 in lengths.values():
        raise ValueError(f"streams: expected stores that hold records, got: {named}")
    return next(iter(lengths.values()))


def as_ragged(ragged: Any) -> str:
    """Check how ragged streams are to be given. Raises ValueError."""
    if ragged not in RAGGED:
        raise ValueError(f"ragged: expected one of {', '.join(map(repr, RAGGED))}, got {ragged!r}")
    return str(ragged)


def read(
    store: DenseStore | RaggedStore, ragged: str, index: IndexArray, max_threads: int
) -> Values:
    """Read a set of records: an array, a list, or a RaggedBatch."""
    if ragged == "list" or isinstance(store, DenseStore):
        values: Values = store._read(index, max_threads)
        return values
    store._require_open()
    return _ragged.gather_packed(store._call(max_threads), index)


def nbytes(part: Any) -> int:
    """The memory of what was read, or of what pad() made of it."""
    if isinstance(part, np.ndarray):
        return part.nbytes
    if isinstance(part, RaggedBatch):
        return int(part.values.nbytes)
    return sum(array.nbytes for array in part)
