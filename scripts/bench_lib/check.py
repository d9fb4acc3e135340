"""Is what a contender gave exactly what it had to give?

A figure of a contender that gives wrong records means nothing, so everything is
compared before anything is timed: dtype, shape, order and values.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class WrongAnswerError(AssertionError):
    """A contender gave something else than the records it was asked for."""


def _same_values(got: Any, want: Any) -> bool:
    """Compare bit by bit, so that NaN and -0.0 are told apart too."""
    a = np.ascontiguousarray(got).reshape(-1).view(np.uint8)
    b = np.ascontiguousarray(want).reshape(-1).view(np.uint8)
    return bool(np.array_equal(a, b))


def _first_difference(got: Any, want: Any) -> int:
    for place in range(len(want)):
        if not _same_values(got[place], want[place]):
            return place
    raise AssertionError("expected a difference, found none")


def dense(name: str, got: Any, want: Any, where: str) -> None:
    """Compare the result of a dense gather with the records it asked for.

    Raises:
        WrongAnswerError: it differs; the message says in what, and at which place.
    """
    if not isinstance(got, np.ndarray):
        raise WrongAnswerError(f"{name}, {where}: expected an array, got {type(got).__name__}")
    if got.dtype != want.dtype:
        raise WrongAnswerError(f"{name}, {where}: expected dtype {want.dtype}, got {got.dtype}")
    if got.shape != want.shape:
        raise WrongAnswerError(f"{name}, {where}: expected shape {want.shape}, got {got.shape}")
    if not _same_values(got, want):
        place = _first_difference(got, want)
        raise WrongAnswerError(f"{name}, {where}: wrong values in record {place} of the batch")


def ragged(name: str, got: Any, want: list[Any], where: str) -> None:
    """Compare a list of arrays with the records it had to have.

    Raises:
        WrongAnswerError: it differs; the message says in what, and at which place.
    """
    if len(got) != len(want):
        raise WrongAnswerError(f"{name}, {where}: expected {len(want)} records, got {len(got)}")
    for place, record in enumerate(want):
        dense(name, got[place], record, f"{where}, record {place}")
