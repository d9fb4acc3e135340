"""Subsets of a store's records, and random splits: indices, and nothing is copied."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Union

import numpy as np

from loaderx import _native
from loaderx._arguments import as_int
from loaderx._steps import INT64_MAX, IndexArray

Subset = Union[range, IndexArray, None]

_EXPECTED = "expected a range or a 1-D array or sequence of integers"


def as_subset(name: str, subset: Any) -> Subset:
    """Take an argument as a subset: a range, an array that nobody else writes to, or None.

    That it lies within the records is the library's to check.

    Raises:
        TypeError: neither a range nor integers.
        ValueError: not 1-D, or numbers that no record can have.
    """
    if subset is None:
        return None
    if isinstance(subset, range):
        for number in (subset.start, subset.stop, subset.step):
            if abs(number) > INT64_MAX:
                raise ValueError(f"{name}: expected a range within 2**63, got {subset}")
        return subset
    found = np.asarray(subset)
    if found.size == 0:
        found = found.astype(np.int64)  # NumPy makes floats of []
    if found.dtype.kind not in "iu":
        raise TypeError(f"{name}: {_EXPECTED}, got {type(subset).__name__} of {found.dtype}")
    if found.ndim != 1:
        raise ValueError(f"{name}: {_EXPECTED}, got an array of shape {found.shape}")
    if found.dtype == np.uint64 and found.size and int(found.max()) > INT64_MAX:
        raise ValueError(f"{name}: expected records below 2**63, got {int(found.max())}")
    copied: IndexArray = np.array(found, np.int64)
    copied.flags.writeable = False
    return copied


def count_of(subset: Subset, length: int) -> int:
    """How many records are chosen of that many."""
    return length if subset is None else len(subset)


def source_of(length: int, mode: int, subset: Subset, weight: float = 1.0) -> Any:
    """An lx_source that says so. It points into the subset, which must outlive it."""
    source = _native.ffi.new("lx_source *")
    source.struct_bytes = _native.ffi.sizeof("lx_source")
    source.length, source.mode, source.weight = length, mode, weight
    if isinstance(subset, range):
        source.subset = _native.lib.LX_RANGE
        source.start, source.stop, source.stride = subset.start, subset.stop, subset.step
    elif subset is not None:
        source.subset = _native.lib.LX_LIST
        source.index, source.count = _native.ffi.from_buffer(subset), len(subset)
    return source


def facts_of(subset: Subset) -> Any:
    """What tells a subset from another one, for the state of a loader."""
    if subset is None:
        return None
    if isinstance(subset, range):
        return {"range": [subset.start, subset.stop, subset.step]}
    return {"count": len(subset), "sha256": digest(subset)}


def digest(numbers: np.ndarray[Any, Any]) -> str:
    """A digest of integers that is the same on every machine."""
    import hashlib  # a third of what importing loaderx would take, for those who have a subset

    ordered = np.ascontiguousarray(numbers, numbers.dtype.newbyteorder("<"))
    return hashlib.sha256(ordered.data).hexdigest()


def described(subset: Subset) -> str:
    """How a repr shows it."""
    if subset is None:
        return ""
    shown = str(subset) if isinstance(subset, range) else f"<{len(subset)} records>"
    return f", subset={shown}"


def split(length: int, fractions: Mapping[str, float], seed: int = 42) -> dict[str, IndexArray]:
    """Cut the records 0 to length - 1 at random into parts, for ``Sampler(subset=...)``.

    The parts have no record in common and leave none out. Their sizes are the
    fractions of length, rounded so that they add up to it. Which record goes
    where depends on the arguments alone, and never changes within a major
    version. When fractions change, records stay where they can: a first part
    that becomes larger keeps all it had, and so does a last one.

    Args:
        length: the number of records, at least 1.
        fractions: of each part by name, above 0, adding up to 1.
        seed: 0 to 2**64 - 1.

    Returns:
        The records of each part by name, ascending: int64, (size,).

    Raises:
        TypeError, ValueError: an argument outside what is described above.
    """
    length = as_int("length", length, 1, INT64_MAX)
    seed = as_int("seed", seed, 0, (1 << 64) - 1)
    if not isinstance(fractions, Mapping):
        raise TypeError(
            f"fractions: expected a dict of fractions by name, got {type(fractions).__name__}"
        )
    shares = as_weights("fractions", fractions)
    sizes, index = np.empty(len(shares), np.int64), np.empty(length, np.int64)
    buffer, error = _native.ffi.from_buffer, _native.scratch.error
    status = _native.lib.lx_split(
        length, buffer(shares), len(shares), seed, buffer(sizes), buffer(index), length, error
    )
    _native.check(status, error)
    ends = np.cumsum(sizes).tolist()
    return {name: index[end - n : end] for name, end, n in zip(fractions, ends, sizes.tolist())}


def as_weights(name: str, weights: Mapping[str, float]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Take numbers by name as an array, in order. That they are above 0 the library checks.

    Raises:
        TypeError: a name that is no str, or what is no number.
        ValueError: none at all.
    """
    if not weights:
        raise ValueError(f"{name}: expected at least one, got an empty dict")
    for key, value in weights.items():
        if not isinstance(key, str):
            raise TypeError(f"{name}: expected names that are str, got {type(key).__name__}")
        if isinstance(value, (bool, str)) or not hasattr(value, "__float__") or np.ndim(value):
            raise TypeError(f"{name}: expected a number for {key!r}, got {value!r}")
    return np.array([float(value) for value in weights.values()])
