"""Arguments that public functions take, checked in one way with one message."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np


def as_int(name: str, value: Any, low: int, high: int | None = None) -> int:
    """Take an argument as an int from low up to high, if there is one; a bool is none here.

    Raises:
        TypeError: not an integer.
        ValueError: out of range.
    """
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise TypeError(
            f"{name}: expected an integer, got {type(value).__name__} {value!r}"
        ) from None
    if number < low or (high is not None and number > high):
        bound = f"at least {low}" if number < low else f"at most {high}"
        raise ValueError(f"{name}: expected {bound}, got {number}")
    return number
