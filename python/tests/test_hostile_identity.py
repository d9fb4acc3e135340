"""Hostile type identities: rows 24 to 28 of the table of hostile inputs.

An identity is msgpack in store.zr that says what the records are. NumPy makes a
dtype of it, so nothing may reach NumPy that could make a pointer of stored
bytes, and nothing may be sized by it before it is held against the files.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import forge
import hostile
import pytest
from hostile import COUNT, forged, opened, refused

from loaderx.errors import CorruptStoreError, UnsupportedStoreError
from loaderx.errors import StoreMismatchError as Mismatch

_guard = hostile.guard

every_kind = pytest.mark.parametrize("kind", hostile.KINDS)
every_version = pytest.mark.parametrize("version", [4, 5])


def with_identity(kind: str, version: int, identity: bytes, path: Path, width: int = 24) -> Path:
    """A store of another identity, its checksum right."""
    store = forged(kind, version=version)
    store.typed.identity = identity
    if kind == "dense":
        store.typed.width = width
    return store.write(path)


def corrupt(kind: str, version: int, identity: bytes, path: Path, width: int = 24) -> None:
    """Opening is refused, whether or not an identity is expected."""
    made = with_identity(kind, version, identity, path, width)
    refused(CorruptStoreError, ".", kind, made, "store.zr", hostile.MODES)
    with hostile.unchanged(made), pytest.raises((CorruptStoreError, Mismatch)):
        opened(kind, made, "create")


def packed(kind: str, dtype: Any, shape: Any = hostile.ITEM) -> bytes:
    identity = {"dtype": dtype, "item_shape": list(shape)}
    if kind == "ragged":
        del identity["item_shape"]
    return forge.pack(identity)


# ---- 24 and 25 ----

SHAPES: dict[str, list[Any]] = {
    "too many elements": [2, 4],
    "too few": [2, 2],
    "none": [],
    "a zero": [2, 3, 0],
    "wraps to 6": [(1 << 63) - 1, (1 << 63) - 1, 6],
    "wraps to 0": [1 << 32, 1 << 32],
    "wraps in bytes": [(1 << 62) + 6],
    "2^63": [1 << 63],
    "all ones": [(1 << 64) - 1],
    "wraps by many": [1 << 40] * 30,
    # 26
    "negative": [-2, -3],
    "one negative": [-6],
    "bool": [True, 6],
    "float": [6.0],
    "text": ["6"],
    "list": [[2, 3]],
    "65 dimensions": [1] * 64 + [6],
    "10000 dimensions": [1] * 10_000 + [6],
    "60000 large dimensions": [127] * 60_000,
}


@every_version
@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_that_does_not_make_the_width(version: int, shape: str, tmp_path: Path) -> None:
    corrupt("dense", version, packed("dense", "<i4", SHAPES[shape]), tmp_path / "s")


@every_version
@pytest.mark.parametrize("width", [0, 1, 23, 25, 1 << 20, (1 << 31) + 1, 1 << 63, (1 << 64) - 24])
def test_a_width_that_is_not_the_shapes(version: int, width: int, tmp_path: Path) -> None:
    corrupt("dense", version, packed("dense", "<i4"), tmp_path / "s", width)


@every_version
def test_a_ragged_store_with_a_width(version: int, tmp_path: Path) -> None:
    store = forged("ragged", version=version)
    store.typed.width = 24
    path = store.write(tmp_path / "s")
    refused(CorruptStoreError, "width of a ragged store", "ragged", path, "store.zr")


@every_version
@pytest.mark.parametrize("dimensions", [33, 64])
def test_more_dimensions_than_an_older_numpy_takes(
    version: int, dimensions: int, tmp_path: Path
) -> None:
    """The format allows 64, this package 32."""
    identity = packed("dense", "<i4", [1] * (dimensions - 1) + [6])
    corrupt("dense", version, identity, tmp_path / "s")


# ---- 27 ----

DTYPES: dict[str, Any] = {
    "object": "O",
    "object with order": "|O",
    "object of 8": "|O8",
    "object by name": "object",
    "object_": "object_",
    "object in a field": [["a", "|O"], ["b", "<i4"]],
    "object deep": [["a", [["b", [["c", "|O"]]]]]],
    "object in an array": [["a", "|O", [2]]],
    "huge": "|V2147483649",
    "huge text": "<U2147483647",
    "larger than an int": "|S99999999999",
    "larger than 64 bits": "|S99999999999999999999999",
    "wraps": "|V4294967320",
    "huge array": [["a", "<f4", [1 << 31]]],
    "huge arrays": [["a", "<f4", [1 << 20, 1 << 20, 1 << 20]]],
    "wrapping arrays": [["a", "<f4", [1 << 32, 1 << 32]]],
    "huge fields": [["a", "|V2147483647"], ["b", "|V2147483647"]],
    "no bytes": "|V0",
    "no fields": [],
    "no text": "",
    "comma": "i4,i4",
    "python": "__import__('os')",
    "a name": "float32",
    "void": "void",
    "int": 4,
    "bool": True,
    "map": {"a": 1},
    "title": [[["a", "b", "c"], "<i4"]],
    "same names": [["a", "<i4"], ["a", "<i4"]],
    "no name": [[4, "<i4"]],
    "one part": [["a"]],
    "four parts": [["a", "<i4", [2], 5]],
    "negative array": [["a", "<i4", [-1]]],
    "many dimensions": [["a", "<i4", [1] * 65]],
    "native order": "=i4",
    "no order": "i4",
    "another width of int": "<i3",
    "spaces": " <i4",
    "newline": "<i4\n",
    "arabic digits": "<i\u0664",
    "dates": "<M8[fortnights]",
}


@every_kind
@every_version
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_dtype_that_is_not_one_of_records(
    kind: str, version: int, dtype: str, tmp_path: Path
) -> None:
    corrupt(kind, version, packed(kind, DTYPES[dtype]), tmp_path / "s")


@every_kind
def test_an_extension_dtype_that_nobody_has(kind: str, tmp_path: Path) -> None:
    path = with_identity(kind, 5, packed(kind, "float8_none"), tmp_path / "s")
    for mode in hostile.MODES:
        with hostile.unchanged(path), pytest.raises(UnsupportedStoreError, match="float8_none"):
            opened(kind, path, mode)


@every_kind
@pytest.mark.parametrize("fields", [2000, 5000])
def test_thousands_of_fields(kind: str, fields: int, tmp_path: Path) -> None:
    """A wide structure is in order as long as it fits: it opens, and not slowly."""
    dtype = [[f"f{i:x}", "|u1"] for i in range(fields)]
    identity = packed(kind, dtype, [])
    assert len(identity) < 1 << 16
    path = with_identity(kind, 5, identity, tmp_path / "s", fields)
    with hostile.unchanged(path), opened(kind, path) as store:
        assert len(store) == COUNT and len(store.dtype.names) == fields


# ---- 28 ----


def deep(levels: int, inside: Any = "<i4") -> Any:
    for _ in range(levels):
        inside = [["a", inside]]
    return inside


def raw_identities(kind: str) -> dict[str, bytes]:
    """Msgpack that is no identity, or not as it is written."""
    good = packed(kind, "<i4")
    keys = 2 if kind == "dense" else 1
    shape = forge.pack("item_shape") + forge.pack(list(hostile.ITEM)) if kind == "dense" else b""
    dtype = forge.pack("dtype")
    nest = b"\x91" * 60_000
    return {
        "empty": b"",
        "nil": b"\xc0",
        "array": b"\x92" + good[1:],
        "array32 of all ones": b"\xdd\xff\xff\xff\xff" + good[1:],
        "map32 of all ones": b"\xdf\xff\xff\xff\xff" + good[1:],
        "map16": struct.pack(">BH", 0xDE, keys) + good[1:],
        "dtype is an array32 of all ones": good[:1] + dtype + b"\xdd\xff\xff\xff\xff",
        "dtype is a str32 of all ones": good[:1] + dtype + b"\xdb\xff\xff\xff\xff<i4",
        "dtype is a bin32 of all ones": good[:1] + dtype + b"\xc6\xff\xff\xff\xff<i4",
        "dtype is bin": good[:1] + dtype + b"\xc4\x03<i4" + shape,
        "dtype is an ext": good[:1] + dtype + b"\xc7\x03\x01<i4" + shape,
        "dtype is a fixext": good[:1] + dtype + b"\xd4\x01x" + shape,
        "dtype is a time": good[:1] + dtype + b"\xd6\xff\0\0\0\0" + shape,
        "dtype is an ext32 of all ones": good[:1] + dtype + b"\xc9\xff\xff\xff\xff\x01",
        "dtype is not UTF-8": good[:1] + dtype + b"\xa3\xff\xfe\xfd" + shape,
        "long form of text": good[:1] + dtype + b"\xd9\x03<i4" + shape,
        "10^5 deep": good[:1] + dtype + nest,
        "10^5 deep, whole": good[:1] + dtype + nest[:30_000] + b"\xa3<i4" + shape,
        "20 deep": packed(kind, deep(20)),
        "9 deep": packed(kind, deep(9)),
        "key twice": bytes([0x80 | keys + 1]) + good[1:] + dtype + forge.pack("<i4"),
        "other key twice": bytes([0x80 | keys + 1]) + dtype + forge.pack("<i8") + good[1:],
        "extra key": bytes([0x80 | keys + 1]) + good[1:] + forge.pack("x") + b"\xc0",
        "missing key": b"\x80",
        "keys in the other order": good[:1] + shape + dtype + forge.pack("<i4"),
        "key in capitals": good.replace(b"dtype", b"DTYPE"),
        "key of bytes": good.replace(b"\xa5dtype", b"\xc4\x05dtype"),
        "trailing zero": good + b"\0",
        "trailing identity": good + good,
        "cut": good[:-1],
        "reserved": b"\xc1" * 8,
        "never used ext": b"\xc7\xff\x05" + good,
    }


@every_kind
@every_version
@pytest.mark.parametrize("which", sorted({*raw_identities("dense"), *raw_identities("ragged")}))
def test_msgpack_that_is_not_an_identity(
    kind: str, version: int, which: str, tmp_path: Path
) -> None:
    identity = raw_identities(kind)[which]
    if which == "keys in the other order" and kind == "ragged":
        return  # it has one
    corrupt(kind, version, identity, tmp_path / "s")


LONG_INTEGERS = {
    "u8": b"\xcc\x02",
    "u16": b"\xcd\0\x02",
    "u32": b"\xce\0\0\0\x02",
    "u64": b"\xcf\0\0\0\0\0\0\0\x02",
    "i8": b"\xd0\x02",
    "i64": b"\xd3\0\0\0\0\0\0\0\x02",
    "float": struct.pack(">Bd", 0xCB, 2.0),
    "array16": b"",
}


@every_version
@pytest.mark.parametrize("form", LONG_INTEGERS)
def test_integers_in_longer_forms(version: int, form: str, tmp_path: Path) -> None:
    """One identity has one encoding."""
    good = packed("dense", "<i4")
    if form == "array16":
        other = good.replace(b"\x92\x02\x03", b"\xdc\0\x02\x02\x03")
    else:
        other = good.replace(b"\x92\x02\x03", b"\x92" + LONG_INTEGERS[form] + b"\x03")
    assert other != good
    corrupt("dense", version, other, tmp_path / "s")


@every_kind
@pytest.mark.parametrize("length", [0, 1, 1 << 16, (1 << 16) + 1, 1 << 32, (1 << 64) - 1])
def test_an_identity_length_that_is_not_there(kind: str, length: int, tmp_path: Path) -> None:
    for version in (4, 5):
        store = forged(kind, version=version)
        store.typed.length = length
        path = store.write(tmp_path / str(version))
        refused(CorruptStoreError, "identity length|CRC", kind, path, "store.zr")


@every_kind
@every_version
@pytest.mark.parametrize("size", [(1 << 16) + 1, 1 << 22])
def test_an_identity_of_more_than_64_kib(
    kind: str, version: int, size: int, tmp_path: Path
) -> None:
    store = forged(kind, version=version)
    typed = store.typed.encode()
    head = typed[:16] + struct.pack("<Q", size) + typed[24:32]
    store.files["store.zr"] = head + b"\xa0" * size
    path = store.write(tmp_path / "s")
    refused(CorruptStoreError, "identity length: expected at most", kind, path, "store.zr")


@every_kind
@every_version
@pytest.mark.parametrize("number", [0, 3, 255])
def test_a_kind_of_no_store(kind: str, version: int, number: int, tmp_path: Path) -> None:
    store = forged(kind, version=version)
    store.typed.kind = number
    path = store.write(tmp_path / "s")
    refused(CorruptStoreError, "kind: expected 1", kind, path, "store.zr")


@every_kind
@pytest.mark.parametrize("flags", [2, 0x8000, 0xFFFF])
def test_flags_of_no_version(kind: str, flags: int, tmp_path: Path) -> None:
    for version in (4, 5):
        store = forged(kind, version=version)
        store.typed.flags = flags
        path = store.write(tmp_path / str(version))
        refused(CorruptStoreError, "at offset 6", kind, path, "store.zr")


@every_kind
def test_no_store_id(kind: str, tmp_path: Path) -> None:
    store = forged(kind)
    store.typed.store_id = 0
    path = store.write(tmp_path / "s")
    refused(CorruptStoreError, "store id", kind, path, "store.zr")
