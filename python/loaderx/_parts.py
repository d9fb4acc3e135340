"""Cutting what a caller appends into parts of bounded size for the engine.

A part is a few arrays as the engine takes them. Records of any layout become
bytes in C order here; the dtype has to be the store's, byte order included,
because a store converts nothing. Every mistake is named with the position of
the record that holds it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from loaderx import _native
from loaderx._identity import MAX_RECORD_LEN, has_padding, without_padding_bytes

# Records are gathered up to these before a part is handed over; a record of at
# least LARGE bytes goes alone, uncopied.
PART_BYTES = 16 << 20
PART_RECORDS = 1 << 16
LARGE = 4 << 20

Array = np.ndarray[Any, Any]


class DensePart(NamedTuple):
    """Records of the store's width, one after another."""

    payload: Any
    payload_bytes: int
    records: int


class RaggedPart(NamedTuple):
    """Records of any size: see lx_append_ragged for the arrays."""

    payload: Any
    offsets: Array
    dims: Array
    dim_offsets: Array
    records: int


def dense_parts(
    records: Any, dtype: np.dtype[Any], item_shape: tuple[int, ...]
) -> Iterator[DensePart]:
    """Cut an array (B, *item_shape), or an iterable of records, into parts."""
    width = dtype.itemsize
    for length in item_shape:
        width *= length
    if isinstance(records, np.ndarray) or _is_array_like(records):
        array = as_array(records, dtype, "the records")
        if array.ndim == 0 or array.shape[1:] != item_shape:
            expected = ", ".join(["B", *map(str, item_shape)]) + ("," if not item_shape else "")
            hint = "; append one record as record[None]" if array.shape == item_shape else ""
            raise ValueError(
                f"append: expected an array of shape ({expected}), got {array.shape}{hint}"
            )
        rows = max(1, _native.CALL_BYTES // width)
        for start in range(0, len(array), rows):
            yield _dense_part(array[start : start + rows])
        return
    block = np.empty((max(1, min(PART_BYTES // width, _length_hint(records))), *item_shape), dtype)
    filled = 0
    for position, record in enumerate(_iterate(records)):
        array = as_array(record, dtype, f"record {position}")
        if array.shape != item_shape:
            raise ValueError(
                f"append: expected record {position} to be of shape {item_shape}, got {array.shape}"
            )
        block[filled] = array
        filled += 1
        if filled == len(block):
            yield _dense_part(block)
            filled = 0
    if filled:
        yield _dense_part(block[:filled])


def as_array(record: Any, dtype: np.dtype[Any], what: str) -> Array:
    """Take a record, or an array of them, as an array of exactly the store's dtype.

    Raises:
        TypeError: not an array, or one of another dtype.
    """
    if isinstance(record, np.ma.MaskedArray):
        raise TypeError(f"append: expected {what} without a mask, which a store cannot keep")
    if not isinstance(record, (np.ndarray, np.generic)) and not _is_array_like(record):
        raise TypeError(
            f"append: expected {what} to be an array of dtype {dtype}, got {type(record).__name__}"
        )
    array = np.asarray(record)
    if array.dtype != dtype:
        raise TypeError(
            f"append: expected {what} to be of dtype {_name(dtype)}, got {_name(array.dtype)}"
        )
    return array


def as_bytes(array: Array) -> Array:
    """The bytes of an array in C order, padding zeroed; without a copy where that can be."""
    clean = (
        without_padding_bytes(array) if has_padding(array.dtype) else np.ascontiguousarray(array)
    )
    return clean.reshape(-1).view(np.uint8)


def _dense_part(records: Array) -> DensePart:
    payload = as_bytes(records)
    return DensePart(payload, payload.nbytes, len(records))


def _is_array_like(value: Any) -> bool:
    return hasattr(type(value), "__array__")


def _name(dtype: np.dtype[Any]) -> str:
    return f"{dtype} ({dtype.str})" if dtype.names is None else str(dtype)


def _length_hint(records: Any) -> int:
    return len(records) if hasattr(records, "__len__") else PART_RECORDS


def _iterate(records: Any) -> Iterator[Any]:
    """Iterate over the records, or raise TypeError for what holds none."""
    if isinstance(records, (str, bytes, bytearray, memoryview, dict)):
        raise TypeError(
            f"append: expected an iterable of records, got {type(records).__name__}; "
            "append one record as [record]"
        )
    try:
        return iter(records)
    except TypeError:
        raise TypeError(
            f"append: expected an iterable of records, got {type(records).__name__}"
        ) from None


def ragged_parts(records: Any, dtype: np.dtype[Any], allow_empty: bool) -> Iterator[RaggedPart]:
    """Cut an iterable of records into parts.

    A record is copied as soon as it is yielded, because an iterator may fill
    the same array again for the next one.
    """
    pending: list[bytes] = []
    shapes: list[tuple[int, ...]] = []
    pending_bytes = 0
    for position, record in enumerate(_iterate(records)):
        array = _ragged_record(record, dtype, position)
        if array.nbytes == 0 and not allow_empty:
            raise ValueError(
                f"append: expected record {position} to hold at least one byte, got shape "
                f"{array.shape}; a store created with allow_empty=True takes such records"
            )
        if array.nbytes > MAX_RECORD_LEN:
            raise ValueError(
                f"append: expected record {position} to be of at most {MAX_RECORD_LEN} bytes, "
                f"got {array.nbytes}"
            )
        large = array.nbytes >= LARGE
        if pending and (large or pending_bytes >= PART_BYTES or len(pending) >= PART_RECORDS):
            yield _ragged_part(b"".join(pending), list(map(len, pending)), shapes)
            pending, shapes, pending_bytes = [], [], 0
        if large:
            yield _ragged_part(as_bytes(array), [array.nbytes], [array.shape])
        else:
            pending.append(as_bytes(array).tobytes() if has_padding(dtype) else array.tobytes())
            shapes.append(array.shape)
            pending_bytes += array.nbytes
    if pending:
        yield _ragged_part(b"".join(pending), list(map(len, pending)), shapes)


def _ragged_part(payload: Any, sizes: list[int], shapes: list[tuple[int, ...]]) -> RaggedPart:
    return RaggedPart(
        payload,
        _running_sum(sizes),
        np.array([length for shape in shapes for length in shape], np.int64),
        _running_sum(list(map(len, shapes))),
        len(sizes),
    )


def _running_sum(sizes: list[int]) -> Array:
    out = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=out[1:])
    return out


def _ragged_record(record: Any, dtype: np.dtype[Any], position: int) -> Array:
    """Take a record as an array; bytes and other buffers are uint8 records."""
    if isinstance(record, (np.ndarray, np.generic)) or _is_array_like(record):
        return as_array(record, dtype, f"record {position}")
    try:
        view = memoryview(record)
    except TypeError:
        return as_array(record, dtype, f"record {position}")
    if dtype != np.uint8:
        raise TypeError(
            f"append: expected record {position} to be an array of dtype {dtype}, "
            f"got {type(record).__name__}, which is taken as uint8"
        )
    if view.nbytes == 0:
        return np.empty(0, np.uint8)
    if not view.c_contiguous:
        return np.frombuffer(view.tobytes(), np.uint8)
    return np.frombuffer(view.cast("B"), np.uint8)
