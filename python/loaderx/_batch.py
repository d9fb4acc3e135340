"""A batch of ragged records in one piece: packed values, offsets and shapes."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any, Union

import numpy as np

from loaderx import _memory
from loaderx._arguments import as_int
from loaderx.errors import RecordIndexError

Array = np.ndarray[Any, Any]
Int64Array = np.ndarray[Any, np.dtype[np.int64]]
Shapes = Union[Int64Array, "list[tuple[int, ...]]"]


class RaggedBatch:
    """Records of different shapes, one after another in one array.

    Record i is ``values[offsets[i]:offsets[i + 1]]`` in the shape ``shapes[i]``.
    All three are the caller's, to keep and to write to; the arrays that
    indexing and ``to_list`` give are views of ``values``.

    Attributes:
        values: the elements of all records, 1-D, of the store's dtype.
        offsets: where each record begins, in elements, and the end: int64, (n + 1,).
        shapes: int64, (n, ndim), when all records have the same number of
            dimensions; otherwise a list of n tuples.
    """

    __slots__ = ("offsets", "shapes", "values")

    def __init__(self, values: Array, offsets: Int64Array, shapes: Shapes) -> None:
        if getattr(values, "ndim", None) != 1:
            raise ValueError(f"values: expected a 1-D array, got {_shape_of(values)}")
        if getattr(offsets, "ndim", None) != 1 or len(offsets) != len(shapes) + 1:
            raise ValueError(
                f"offsets: expected a 1-D array of {len(shapes) + 1} for {len(shapes)} shapes, "
                f"got {_shape_of(offsets)}"
            )
        self.values = values
        self.offsets = offsets
        self.shapes = shapes

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        dtype: np.dtype[Any] = self.values.dtype
        return dtype

    @property
    def lengths(self) -> Int64Array:
        """The number of elements of each record: int64, (n,)."""
        lengths: Int64Array = np.diff(self.offsets)
        return lengths

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[Array]:
        return iter(self.to_list())

    def __getitem__(self, index: Any) -> Any:
        """One record for an integer, a RaggedBatch for a slice.

        Raises:
            RecordIndexError: an index outside the batch.
            TypeError: anything else.
        """
        if isinstance(index, slice):
            return self._slice(*index.indices(len(self)))
        try:
            if isinstance(index, (bool, np.bool_)):
                raise TypeError
            at = operator.index(index)
        except TypeError:
            raise TypeError(
                f"expected an integer or a slice, got {type(index).__name__}, for {self!r}"
            ) from None
        if not -len(self) <= at < len(self):
            raise RecordIndexError(f"index {at} is out of range for {self!r}")
        at %= len(self)
        start, stop = self.offsets[at : at + 2].tolist()
        return self.values[start:stop].reshape(tuple(self.shapes[at]))

    def _slice(self, start: int, stop: int, step: int) -> RaggedBatch:
        if step == 1:
            stop = max(start, stop)
            first, last = int(self.offsets[start]), int(self.offsets[stop])
            values = self.values[first:last]
            return RaggedBatch(
                values, self.offsets[start : stop + 1] - first, self.shapes[start:stop]
            )
        offsets = np.zeros(len(range(start, stop, step)) + 1, np.int64)
        np.cumsum(self.lengths[_as_slice(start, stop, step)], out=offsets[1:])
        values = np.empty(int(offsets[-1]), self.dtype)
        ends = offsets.tolist()
        for a, b, i in zip(ends, ends[1:], range(start, stop, step)):
            values[a:b] = self.values[self.offsets[i] : self.offsets[i + 1]]
        return RaggedBatch(values, offsets, self.shapes[_as_slice(start, stop, step)])

    def to_list(self) -> list[Array]:
        """One array for each record, each of its shape: what ``store[index]`` gives."""
        values, ends = self.values, self.offsets.tolist()
        if isinstance(self.shapes, np.ndarray) and self.shapes.shape[1] == 1:
            return [values[a:b] for a, b in zip(ends, ends[1:])]
        shapes = self.shapes.tolist() if isinstance(self.shapes, np.ndarray) else self.shapes
        return [values[a:b].reshape(tuple(shape)) for a, b, shape in zip(ends, ends[1:], shapes)]

    def pad(
        self, value: Any = 0, multiple_of: int = 1, max_length: int | None = None
    ) -> tuple[Array, Int64Array]:
        """Make one dense array of records that differ in their first axis only.

        Args:
            value: what fills the places behind the end of a record; one that
                the dtype can hold. 0 is zero bytes, whatever the dtype.
            multiple_of: the padded length is rounded up to a multiple of it, at least 1.
            max_length: longer records are cut to it, at least 1; None: none is cut.

        Returns:
            The array (n, length, *rest), and how much of each row is its
            record's, along the first axis: int64, (n,).

        Raises:
            ValueError: records that differ in another axis or in the number of
                dimensions, or that are scalars; an argument out of range.
            TypeError: an argument that is not of its type.
        """
        multiple_of = as_int("multiple_of", multiple_of, 1)
        rows, rest = self._rows()
        if max_length is not None:
            rows = np.minimum(rows, as_int("max_length", max_length, 1))
        fill = _as_value(value, self.dtype)
        longest = int(rows.max()) if len(rows) else 0
        length = -(-longest // multiple_of) * multiple_of
        padded = _memory.empty((len(self), length, *rest), self.dtype)
        padded[...] = fill
        if self.values.size == 0:
            return padded, rows  # records may still have a length, if another axis is 0
        records = self.values.reshape((-1, *rest))
        width = int(np.prod(rest, dtype=np.int64))
        starts = self.offsets[:-1] // width
        for row, start, count in zip(padded, starts.tolist(), rows.tolist()):
            if count:
                row[:count] = records[start : start + count]
        return padded, rows

    def _rows(self) -> tuple[Int64Array, tuple[int, ...]]:
        """The length of each record's first axis, and the other axes, which all share."""
        shapes = self.shapes
        if not isinstance(shapes, np.ndarray):
            numbers = sorted(set(map(len, shapes)))
            raise ValueError(f"pad: expected records of one number of dimensions, got {numbers}")
        if len(shapes) == 0:
            return np.zeros(0, np.int64), tuple([0] * (shapes.shape[1] - 1))
        if shapes.shape[1] == 0:
            raise ValueError("pad: expected records with an axis to pad, got scalars, of shape ()")
        odd = np.flatnonzero((shapes[:, 1:] != shapes[0, 1:]).any(axis=1))
        if len(odd):
            raise ValueError(
                "pad: expected records that differ in the first axis only, got shape "
                f"{tuple(shapes[0].tolist())} at position 0 and "
                f"{tuple(shapes[odd[0]].tolist())} at position {odd[0]}"
            )
        rows: Int64Array = shapes[:, 0].copy()
        return rows, tuple(shapes[0, 1:].tolist())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} records, {len(self.values)} of {self.dtype})"


def _as_slice(start: int, stop: int, step: int) -> slice:
    """The slice of what slice.indices gave: a stop of -1 would be the last element."""
    return slice(start, None if stop < 0 else stop, step)


def _as_value(value: Any, dtype: np.dtype[Any]) -> Array:
    """The padding as an array of no dimensions. A number that would change is refused."""
    if type(value) is int and value == 0:
        return np.zeros((), dtype)  # void and unit-less time take no number, and text takes "0"
    try:
        if dtype.kind in "iu":
            value = operator.index(value)
            if not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
                raise OverflowError
        fill = np.array(value, dtype)
        if fill.ndim:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"value: expected one that an element of {dtype} can be, got {value!r}"
        ) from None
    return fill


def _shape_of(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return type(value).__name__ if shape is None else f"an array of shape {shape}"
