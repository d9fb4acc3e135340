"""What may index a store, and its translation to indices for the engine.

A store is a collection of records, not an ndarray: an integer is one record,
everything else is a set of records. Whether an index lies inside the store is
the engine's to say, and negative ones are its to wrap; what has no meaning as
an index is refused here, with what was expected, what was got and where.
"""

from __future__ import annotations

import operator
import struct
from typing import Any

import numpy as np

from loaderx.errors import RecordIndexError

IndexArray = np.ndarray[Any, np.dtype[np.int64]]

_EXPECTED = "expected an integer, or a tuple, list, 1-D integer array, slice or boolean mask"
_INT64, _UINT64 = np.dtype(np.int64), np.dtype(np.uint64)
_least = np.minimum.reduce
INT64_MAX = (1 << 63) - 1


def normalize(index: Any, store: Any) -> int | IndexArray:
    """Translate an index.

    Args:
        index: whatever stands between the brackets.
        store: what is indexed; its ``len()`` is asked for slices and masks only,
            its ``path`` is for messages.

    Returns:
        An int for one record, or an int64 array, contiguous, for a set.

    Raises:
        TypeError: not an index at all.
        ValueError: a mask of the wrong length, or an array that is not 1-D.
        RecordIndexError: an integer that no store can have.
    """
    kind = type(index)
    if kind is int:
        return _one(index, store)
    if kind is np.ndarray:
        return _from_array(index, store)
    if kind is slice:
        start, stop, step = index.indices(len(store))
        return np.arange(start, stop, step, _INT64)
    if isinstance(index, (list, tuple)):
        return _from_sequence(index, store)
    if isinstance(index, range):
        return _from_range(index, store)
    if isinstance(index, (bool, np.bool_)):
        raise TypeError(f"{_EXPECTED}, got the single bool {index}, for {store.path}")
    if isinstance(index, np.ma.MaskedArray):
        raise TypeError(f"{_EXPECTED}, got a masked array, for {store.path}")
    if hasattr(kind, "__array__") and getattr(index, "ndim", 0) != 0:
        return _from_array(np.asarray(index), store)
    try:
        return _one(operator.index(index), store)
    except TypeError:
        raise TypeError(f"{_EXPECTED}, got {_describe(index)}, for {store.path}") from None


def normalize_set(index: Any, store: Any) -> IndexArray:
    """Translate an index that must be a set of records; otherwise as normalize."""
    found = normalize(index, store)
    if isinstance(found, int):
        raise TypeError(
            f"expected a set of records (a tuple, list, array, slice or mask), "
            f"got the single index {found}, for {store.path}"
        )
    return found


def within(index: IndexArray, store: Any) -> IndexArray:
    """Wrap negative indices here, where the engine is not asked to.

    Raises:
        RecordIndexError: an index outside the store.
    """
    length = len(store)
    outside = np.flatnonzero((index < -length) | (index >= length))
    if len(outside):
        raise _outside(int(index[outside[0]]), store)
    return np.where(index < 0, index + length, index)


def _one(index: int, store: Any) -> int:
    if not -INT64_MAX <= index <= INT64_MAX:
        raise _outside(index, store)
    return index


def _from_range(index: range, store: Any) -> IndexArray:
    """Refused by its ends, before an array of that length is asked for."""
    length = len(store)
    for end in (index[0], index[-1]) if index else ():
        if not -length <= end < length:
            raise _outside(end, store)
    return np.arange(index.start, index.stop, index.step, dtype=np.int64)


def _from_array(index: np.ndarray[Any, Any], store: Any) -> int | IndexArray:
    kind = index.dtype.kind
    if kind not in "iub":
        raise TypeError(f"{_EXPECTED}, got an array of dtype {index.dtype}, for {store.path}")
    if index.ndim == 0 and kind != "b":
        return _one(int(index), store)
    if index.ndim != 1:
        raise ValueError(
            f"expected a 1-D array of indices, got one of shape {index.shape}, for {store.path}"
        )
    if kind == "b":
        return _from_mask(index, store)
    if kind == "u" and index.dtype.itemsize == 8 and index.size and int(index.max()) > INT64_MAX:
        raise _outside(int(index.max()), store)
    return np.ascontiguousarray(index, _INT64)


def _from_mask(mask: np.ndarray[Any, Any], store: Any) -> IndexArray:
    length = len(store)
    if len(mask) != length:
        raise ValueError(
            f"expected a boolean mask of length {length}, one element for each record, "
            f"got length {len(mask)}, for {store.path}"
        )
    return np.flatnonzero(mask).astype(_INT64, copy=False)


def _from_sequence(index: Any, store: Any) -> IndexArray:
    """Element by element: NumPy makes floats of ``[np.uint64(1), 2]`` and of ``[]``."""
    if len(index) and isinstance(index[0], np.bool_):
        return _element_by_element(index, store)  # older NumPy takes it for an integer, and warns
    try:
        # The fast way to apply operator.index to every element, and to refuse floats.
        packed = np.frombuffer(struct.pack(f"{len(index)}q", *index), _UINT64)
    except (struct.error, TypeError):
        return _element_by_element(index, store)
    # Only an element that came out as 0 or 1 can have been a bool.
    if len(packed) and _least(packed) <= 1 and any(map(_is_bool_type, set(map(type, index)))):
        return _element_by_element(index, store)
    return packed.view(_INT64)


def _is_bool(element: Any) -> bool:
    return isinstance(element, (bool, np.bool_))


def _is_bool_type(kind: type) -> bool:
    return kind is bool or kind is np.bool_


def _element_by_element(index: Any, store: Any) -> IndexArray:
    """The slow way, which knows the position of what it refuses."""
    if all(map(_is_bool, index)):
        return _from_mask(np.array(index, bool), store)
    out = np.empty(len(index), _INT64)
    for position, element in enumerate(index):
        try:
            if _is_bool(element):
                raise TypeError
            out[position] = _one(operator.index(element), store)
        except TypeError:
            raise TypeError(
                f"expected integers, got {_describe(element)} at position {position} "
                f"of {len(index)} indices, for {store.path}"
            ) from None
    return out


def _outside(index: int, store: Any) -> RecordIndexError:
    return RecordIndexError(
        f"index {index} is out of range for {len(store)} records of {store.path}",
        path=store.path,
        index=index,
    )


def _describe(value: Any) -> str:
    """A short description for messages: the type, and the value where that is short."""
    if value is None or value is Ellipsis:
        return str(value)
    text = repr(value)
    name = type(value).__name__
    return f"{name} {text}" if len(text) <= 40 else f"a {name}"
