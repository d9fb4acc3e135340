"""The type of a store's records, as JSON for the engine and back.

The engine keeps ``{"dtype": ..., "item_shape": [...]}`` (a ragged store: the
dtype only) as msgpack, byte for byte what earlier versions wrote. A dtype is
its ``numpy.dtype.str``, a structured one its descr list, and an extension
dtype such as bfloat16, for which NumPy has no such string, its ml_dtypes name.

A dtype that does not come back equal from its own description is refused, and
so is one that holds Python objects. What is read from a file is believed only
if it describes itself in the same words.
"""

from __future__ import annotations

import importlib
import json
import math
import operator
import re
from typing import Any

import numpy as np
from numpy.lib import format as npy_format

from loaderx.errors import UnsupportedStoreError

MAX_RECORD_LEN = 1 << 31

_EXTENSION = re.compile(r"bfloat16|float[468]_[a-z0-9]+|u?int[124]")
# Every dtype.str of NumPy that has a fixed size and no objects.
_PLAIN = re.compile(r"[<>|][biufcmMSUV][0-9]{1,10}(\[[0-9a-zA-Zμ/]{1,24}\])?")
# Structures in structures of a file that nobody vouches for.
_MAX_DEPTH = 16


def as_dtype(dtype: Any) -> np.dtype[Any]:
    """Make the dtype of an argument, or raise saying why it cannot be a store's.

    Raises:
        TypeError: not a dtype, or one that holds objects.
        ValueError: one without a size, or that does not survive being written down.
    """
    try:
        found: np.dtype[Any] = np.dtype(dtype)
    except Exception:
        raise TypeError(f"dtype: expected what numpy.dtype takes, got {dtype!r}") from None
    if found.hasobject:
        raise TypeError(f"dtype: expected one without Python objects, got {found!r}")
    if found.itemsize == 0:
        raise ValueError(
            f"dtype: expected a fixed size of at least 1 byte, got {found!r} of 0 bytes"
        )
    try:
        same = _decode_dtype(_describe_dtype(found)) == found
    except Exception:
        same = False
    if not same:
        raise ValueError(
            f"dtype: expected one that NumPy can write down and read back, got {found!r}"
        )
    return found


def as_item_shape(item_shape: Any) -> tuple[int, ...]:
    """Make the shape of an argument: a sequence of positive ints.

    Raises:
        TypeError: not a sequence of ints.
        ValueError: a negative length, or a zero, which makes a record of no bytes.
    """
    try:
        if isinstance(item_shape, (str, bytes, dict, set)):
            raise TypeError
        shape = tuple(_length(n) for n in item_shape)
    except TypeError:
        raise TypeError(
            f"item_shape: expected a sequence of ints, such as (28, 28), got {item_shape!r}"
        ) from None
    if any(n < 1 for n in shape):
        raise ValueError(f"item_shape: expected lengths of at least 1, got {item_shape!r}")
    if len(shape) > 32:
        raise ValueError(f"item_shape: expected at most 32 dimensions, got {len(shape)}")
    return shape


def record_width(dtype: np.dtype[Any], item_shape: tuple[int, ...]) -> int:
    """Bytes in a record. Raises ValueError for more than 2 GiB."""
    width = dtype.itemsize * math.prod(item_shape)
    if width > MAX_RECORD_LEN:
        raise ValueError(
            f"expected a record of at most {MAX_RECORD_LEN} bytes, got {width}: "
            f"dtype {dtype}, item_shape {item_shape}"
        )
    return width


def encode(dtype: np.dtype[Any], item_shape: tuple[int, ...] | None) -> bytes:
    """Write an identity as JSON; item_shape is None for a ragged store."""
    identity: dict[str, Any] = {"dtype": _describe_dtype(dtype)}
    if item_shape is not None:
        identity["item_shape"] = list(item_shape)
    return json.dumps(identity).encode("ascii")


def decode(text: bytes, width: int | None) -> tuple[np.dtype[Any], tuple[int, ...] | None]:
    """Read the identity of a store that exists.

    Args:
        text: its JSON.
        width: bytes in a record of a dense store, None for a ragged one.

    Raises:
        ValueError: it cannot be the identity of a store; the message says why.
        UnsupportedStoreError: it names a dtype that needs ml_dtypes.
    """
    try:
        identity = json.loads(text)
        descr, shape = identity["dtype"], identity.get("item_shape")
        dtype = _decode_dtype(descr)
        if dtype.hasobject or _describe_dtype(dtype) != descr:
            raise ValueError(f"{descr!r} is not a dtype of records")
    except UnsupportedStoreError:
        raise
    except Exception as error:
        raise ValueError(
            f"expected the description of a dtype, got {text[:200]!r}: {error}"
        ) from None
    if not 0 < dtype.itemsize <= MAX_RECORD_LEN:
        raise ValueError(f"expected a dtype of 1 to {MAX_RECORD_LEN} bytes, got {dtype.itemsize}")
    if width is None:
        return dtype, None
    if (
        not isinstance(shape, list)
        or not all(type(n) is int and n >= 0 for n in shape)
        or len(shape) > 32
    ):
        raise ValueError(f"expected at most 32 lengths for an item_shape, got {text[:200]!r}")
    if dtype.itemsize * math.prod(shape) != width:
        raise ValueError(
            f"expected records of {width} bytes, got dtype {dtype} and item_shape "
            f"{tuple(shape)}, which make {dtype.itemsize * math.prod(shape)}"
        )
    return dtype, tuple(shape)


def has_padding(dtype: np.dtype[Any]) -> bool:
    """Whether some bytes of an element belong to no field."""
    return _field_bytes(dtype) != dtype.itemsize


def without_padding_bytes(records: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Copy records so that their padding is zero, and no stray memory reaches a file."""
    clean = np.zeros(records.shape, records.dtype)
    _copy_fields(clean, records)
    return clean


def _length(n: Any) -> int:
    if isinstance(n, (bool, np.bool_)):
        raise TypeError
    return operator.index(n)


def _field_bytes(dtype: np.dtype[Any]) -> int:
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return _field_bytes(base) * math.prod(shape)
    if dtype.fields is None:
        return dtype.itemsize
    assert dtype.names is not None
    return sum(_field_bytes(dtype.fields[name][0]) for name in dtype.names)


def _copy_fields(target: Any, source: Any) -> None:
    if target.dtype.names is None:
        target[...] = source
        return
    for name in target.dtype.names:
        _copy_fields(target[name], source[name])


def _describe_dtype(dtype: np.dtype[Any]) -> Any:
    """The dtype as JSON has it: a string, or lists all the way down."""
    if dtype.names is not None:
        return _as_lists(dtype.descr)
    if dtype.kind == "V" and _EXTENSION.fullmatch(dtype.name) or dtype.isbuiltin == 2:
        return dtype.name
    return dtype.str


def _as_lists(descr: Any) -> Any:
    if isinstance(descr, (list, tuple)):
        return [_as_lists(part) for part in descr]
    if isinstance(descr, str):
        descr.encode("utf-8")  # a lone surrogate could not be written down
    return descr


def _decode_dtype(descr: Any) -> np.dtype[Any]:
    if isinstance(descr, str) and _EXTENSION.fullmatch(descr):
        return _extension_dtype(descr)
    # Some releases of NumPy have types for it, and some have none.
    decode: Any = npy_format.descr_to_dtype
    found: np.dtype[Any] = decode(_as_descr(descr, 0))
    return found


def _extension_dtype(name: str) -> np.dtype[Any]:
    try:
        found = getattr(importlib.import_module("ml_dtypes"), name, None)
    except ImportError:
        raise UnsupportedStoreError(
            f"the records are of dtype {name}: expected the package ml_dtypes to be installed"
        ) from None
    if found is None:
        raise UnsupportedStoreError(
            f"the records are of dtype {name}, which the installed ml_dtypes does not have"
        )
    dtype: np.dtype[Any] = np.dtype(found)
    return dtype


def _as_descr(descr: Any, depth: int) -> Any:
    """Lists to the lists of tuples that NumPy wants, with nothing left to believe."""
    if isinstance(descr, str):
        if not _PLAIN.fullmatch(descr):
            raise ValueError(f"{descr[:40]!r} is not a dtype of records")
        return descr
    if not isinstance(descr, list) or depth >= _MAX_DEPTH:
        raise ValueError("expected strings, and lists of fields that are not too deep")
    return [_as_field(field, depth) for field in descr]


def _as_field(field: Any, depth: int) -> tuple[Any, ...]:
    if not isinstance(field, list) or len(field) not in (2, 3):
        raise ValueError(f"expected a field of 2 or 3 parts, got {str(field)[:40]}")
    name = tuple(field[0]) if isinstance(field[0], list) else field[0]
    parts = name if isinstance(name, tuple) else (name,)
    if len(parts) not in (1, 2) or not all(isinstance(part, str) for part in parts):
        raise ValueError(f"expected the name of a field, got {str(field[0])[:40]}")
    shape = field[2:]
    if shape and not (
        isinstance(shape[0], list) and all(type(n) is int and n >= 0 for n in shape[0])
    ):
        raise ValueError(f"expected the shape of a field, got {str(shape[0])[:40]}")
    return (name, _as_descr(field[1], depth + 1), *map(tuple, shape))
