"""The orders in which a sampler goes through records."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from loaderx._arguments import as_int


class Mode(IntEnum):
    """The orders a Sampler knows."""

    SEQUENTIAL = 0
    IID = 1
    CYCLIC = 2


def as_mode(mode: Any) -> Mode:
    """Take an argument as a Mode. Raises TypeError or ValueError."""
    known = ", ".join(f"{m.name} = {m.value}" for m in Mode)
    try:
        return Mode(as_int("mode", mode, 0, max(Mode)))
    except TypeError:
        raise TypeError(
            f"mode: expected one of {known}, got {type(mode).__name__} {mode!r}"
        ) from None
    except ValueError:
        raise ValueError(f"mode: expected one of {known}, got {mode!r}") from None
