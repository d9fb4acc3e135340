"""Every exception: its built-in, its attributes, its journey through pickle."""

from __future__ import annotations

import errno
import pickle

import pytest

import loaderx
from loaderx import errors

BUILT_IN = {
    "RecordIndexError": IndexError,
    "StoreClosedError": ValueError,
    "LoaderClosedError": ValueError,
    "NotAStoreError": FileNotFoundError,
    "StoreMismatchError": ValueError,
    "StoreFullError": OSError,
    "StoreIOError": OSError,
}
STATUS = {
    1: errors.RecordIndexError,
    2: errors.StoreBusyError,
    3: errors.StoreClosedError,
    4: errors.NotAStoreError,
    5: errors.StoreMismatchError,
    6: errors.CorruptStoreError,
    7: errors.CorruptRecordError,
    8: errors.UnsupportedStoreError,
    9: errors.StoreFullError,
    10: errors.StoreReadOnlyError,
    11: ValueError,
    12: errors.StoreIOError,
    13: MemoryError,
    15: errors.ZrecordError,
}


@pytest.mark.parametrize("name", errors.__all__)
def test_is_an_error_of_stores_and_the_built_in(name: str) -> None:
    cls = getattr(errors, name)
    assert issubclass(cls, errors.ZrecordError)
    assert issubclass(cls, RuntimeError)
    assert issubclass(cls, BUILT_IN.get(name, RuntimeError))
    assert getattr(loaderx, name) is cls
    assert cls.__doc__


@pytest.mark.parametrize("status", STATUS)
def test_status_makes_its_class(status: int) -> None:
    error = errors.from_status(status, "expected 3, got 4", path="/s/0.chunk", index=7, offset=64)
    assert type(error) is STATUS[status]
    assert "expected 3, got 4" in str(error)
    if isinstance(error, errors.ZrecordError):
        assert (error.path, error.index, error.offset) == ("/s/0.chunk", 7, 64)


def test_unknown_status_is_still_an_error_of_stores() -> None:
    assert type(errors.from_status(99, "what")) is errors.ZrecordError


@pytest.mark.parametrize("status", STATUS)
def test_pickles(status: int) -> None:
    error = errors.from_status(status, "text", path="/p", index=0, offset=1, errno=errno.EIO)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)
    assert getattr(copy, "errno", None) == getattr(error, "errno", None)


def test_place_is_none_where_not_known() -> None:
    error = errors.CorruptRecordError("text")
    assert (error.path, error.index, error.offset) == (None, None, None)


def test_errno_is_kept() -> None:
    full = errors.from_status(9, "no room", errno=errno.EDQUOT)
    assert isinstance(full, OSError)
    assert full.errno == errno.EDQUOT
    assert errors.StoreFullError("no room").errno == errno.ENOSPC
    assert errors.NotAStoreError("nothing").errno == errno.ENOENT
    assert errors.StoreIOError("odd").errno is None
