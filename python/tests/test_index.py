"""What may index a store. Needs no store."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import FakeStore

from loaderx._index import normalize, normalize_set
from loaderx.errors import RecordIndexError

STORE = FakeStore(10)
MASK = np.arange(10) % 3 == 0

ONE = [
    (0, 0),
    (-1, -1),
    (np.int64(3), 3),
    (np.uint8(3), 3),
    (np.array(4), 4),
    (np.uint64(5), 5),
    (12, 12),  # the engine's to refuse
]
SETS: list[tuple[Any, list[int]]] = [
    ((0, 5, 2), [0, 5, 2]),
    ([0, -1], [0, -1]),
    ([np.uint64(1), 2], [1, 2]),
    ([np.int8(-1), np.array(7)], [-1, 7]),
    ([], []),
    ((), []),
    ([0, 1, 1, 0], [0, 1, 1, 0]),
    (np.array([3, 1], np.int32), [3, 1]),
    (np.array([3, 1], ">i8"), [3, 1]),
    (np.array([3, 1], np.uint64), [3, 1]),
    (np.arange(20)[::7], [0, 7, 14]),
    (np.array([], np.int64), []),
    (np.array([0, 1, 1], np.uint8), [0, 1, 1]),  # indices, not a mask
    (MASK, [0, 3, 6, 9]),
    (MASK.tolist(), [0, 3, 6, 9]),
    (tuple(MASK), [0, 3, 6, 9]),
    (np.zeros(10, bool), []),
    (slice(None), list(range(10))),
    (slice(2, 5), [2, 3, 4]),
    (slice(None, None, -3), [9, 6, 3, 0]),
    (slice(-3, None), [7, 8, 9]),
    (slice(5, 2), []),
    (slice(0, 1000), list(range(10))),
    (slice(np.int64(1), np.int64(3)), [1, 2]),
    (range(8, 2, -2), [8, 6, 4]),
]
REFUSED: list[tuple[Any, type[Exception], str]] = [
    (1.0, TypeError, "float 1.0"),
    (np.float64(1), TypeError, "got"),
    ("1", TypeError, "str '1'"),
    (b"1", TypeError, "bytes"),
    (None, TypeError, "None"),
    (..., TypeError, "Ellipsis"),
    (True, TypeError, "single bool True"),
    (np.True_, TypeError, "single bool True"),
    (np.array(True), ValueError, r"shape \(\)"),
    ({1: 2}, TypeError, "dict"),
    ({1}, TypeError, "set"),
    ([1, 2.0], TypeError, "float 2.0 at position 1 of 2"),
    ([1, "2"], TypeError, "str '2' at position 1 of 2"),
    ([1, None], TypeError, "None at position 1 of 2"),
    ([[1, 2]], TypeError, "at position 0 of 1"),
    ((1, [2]), TypeError, "at position 1 of 2"),
    ((slice(2), 1), TypeError, "slice"),
    ([5, True], TypeError, "bool True at position 1 of 2"),
    ([False, 0], TypeError, "bool False at position 0 of 2"),
    ([np.True_, 3], TypeError, "at position 0 of 2"),
    (np.array([1.0]), TypeError, "dtype float64"),
    (np.array(["a"]), TypeError, "dtype <U1"),
    (np.array([None]), TypeError, "dtype object"),
    (np.array([], float), TypeError, "dtype float64"),
    (np.ma.array([1, 2], mask=[False, True]), TypeError, "expected an integer, .* a masked array"),
    (np.ma.array(MASK, mask=MASK), TypeError, "got a masked array"),
    (np.ma.array(3), TypeError, "got a masked array"),
    (np.zeros((2, 2), int), ValueError, r"1-D .* shape \(2, 2\)"),
    (np.zeros((10, 1), bool), ValueError, r"shape \(10, 1\)"),
    (np.zeros(9, bool), ValueError, "length 10, .* got length 9"),
    ([True] * 11, ValueError, "length 10, .* got length 11"),
    (slice(1.0, 2), TypeError, "slice indices"),
    (2**63, RecordIndexError, f"index {2**63} is out of range for 10 records"),
    (-(2**64), RecordIndexError, "out of range"),
    ([0, 2**70], RecordIndexError, f"index {2**70} is out of range"),
    (np.array([0, 2**63], np.uint64), RecordIndexError, f"index {2**63} is out of range"),
    (np.uint64(2**63), RecordIndexError, "out of range"),
]


@pytest.mark.parametrize(("index", "expected"), ONE)
def test_one_record(index: Any, expected: int) -> None:
    found = normalize(index, STORE)
    assert type(found) is int
    assert found == expected


@pytest.mark.parametrize(("index", "expected"), SETS)
def test_set_of_records(index: Any, expected: list[int]) -> None:
    found = normalize(index, STORE)
    assert isinstance(found, np.ndarray)
    assert found.dtype == np.int64 and found.dtype.isnative
    assert found.flags.c_contiguous
    assert found.tolist() == expected
    assert normalize_set(index, STORE).tolist() == expected


@pytest.mark.parametrize(("index", "error", "message"), REFUSED)
def test_refused_saying_what_and_where(index: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        normalize(index, STORE)
    assert "/data/fake" in str(caught.value) or isinstance(index, slice)


def test_a_set_is_not_one_record() -> None:
    with pytest.raises(TypeError, match="expected a set of records .* got the single index 3"):
        normalize_set(3, STORE)


def test_array_like_objects_are_taken_as_arrays() -> None:
    class Tensor:
        ndim = 1

        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
            return np.array([4, 2], np.int16)

    assert normalize(Tensor(), STORE).tolist() == [4, 2]


def test_length_is_asked_only_where_needed() -> None:
    class NoLength(FakeStore):
        def __len__(self) -> int:
            raise AssertionError("asked")

    for index in (3, [1, 2], np.array([1])):
        normalize(index, NoLength(0))
    with pytest.raises(AssertionError):
        normalize(slice(None), NoLength(0))


@pytest.mark.parametrize("index", [range(2**70), range(5, 11), range(-11, 0), range(2**40)])
def test_a_range_beyond_the_store_is_refused_by_its_ends(index: range) -> None:
    with pytest.raises(RecordIndexError, match="is out of range for 10 records"):
        normalize(index, STORE)


@pytest.mark.parametrize("index", [[np.array([1])], [np.zeros(2, int)]])
def test_an_array_within_a_list_is_refused_with_its_position(index: Any) -> None:
    with pytest.raises(TypeError, match="expected integers, got .* at position 0 of 1 indices"):
        normalize(index, STORE)
