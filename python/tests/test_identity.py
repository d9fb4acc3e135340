"""dtypes to identities and back, and what is refused on the way."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from loaderx import _identity
from loaderx.errors import UnsupportedStoreError

ALIGNED = np.dtype([("a", "u1"), ("b", "<f8"), ("c", [("x", "i2"), ("y", "u1")])], align=True)

GOOD: list[tuple[Any, Any]] = [
    ("f4", "<f4"),
    (float, "<f8"),
    (">i4", ">i4"),
    (bool, "|b1"),
    (np.uint8, "|u1"),
    ("c16", "<c16"),
    ("f2", "<f2"),
    ("S5", "|S5"),
    ("U7", "<U7"),
    ("V3", "|V3"),
    ("M8[ns]", "<M8[ns]"),
    ("m8[25s]", "<m8[25s]"),
    ("M8", "<M8"),
    ([("id", "<i4"), ("w", "<f8")], [["id", "<i4"], ["w", "<f8"]]),
    ([("m", ">f4", (2, 3))], [["m", ">f4", [2, 3]]]),
    ([(("title", "name"), "<i4")], [[["title", "name"], "<i4"]]),
    ([("o", [("i", "u1", (2,))], (3,))], [["o", [["i", "|u1", [2]]], [3]]]),
    (
        ALIGNED,
        [
            ["a", "|u1"],
            ["", "|V7"],
            ["b", "<f8"],
            ["c", [["x", "<i2"], ["y", "|u1"], ["", "|V1"]]],
            ["", "|V4"],
        ],
    ),
]
BAD_DTYPES: list[tuple[Any, type[Exception], str]] = [
    ("nonsense", TypeError, "dtype: expected what numpy.dtype takes, got 'nonsense'"),
    (5, TypeError, "got 5"),
    (object, TypeError, "without Python objects"),
    ([("a", object)], TypeError, "without Python objects"),
    ("S", ValueError, "0 bytes"),
    ([], ValueError, "0 bytes"),
    (("<f4", (2,)), ValueError, "write down and read back"),
    ({"names": ["a", "b"], "formats": ["i4", "i4"], "offsets": [4, 0]}, ValueError, "read back"),
    ({"names": ["a", "b"], "formats": ["i4", "i4"], "offsets": [0, 2]}, ValueError, "read back"),
    ([("\ud800", "i4")], ValueError, "read back"),
]
BAD_SHAPES: list[tuple[Any, type[Exception], str]] = [
    (5, TypeError, "expected a sequence of ints, such as .28, 28., got 5"),
    ("28", TypeError, "got '28'"),
    ((2.0,), TypeError, r"got \(2.0,\)"),
    ((True,), TypeError, "True"),
    ((None,), TypeError, "None"),
    (((2, 3),), TypeError, "sequence of ints"),
    ((0,), ValueError, r"at least 1, got \(0,\)"),
    ((2, -1), ValueError, "at least 1"),
    ((1,) * 33, ValueError, "at most 32 dimensions, got 33"),
]
HOSTILE: list[tuple[bytes, int | None, str]] = [
    (b"", None, "description of a dtype"),
    (b"[]", None, "description of a dtype"),
    (b'{"dtype": 5}', None, "description of a dtype"),
    (b'{"dtype": "|O"}', None, "description of a dtype"),
    (b'{"dtype": "O"}', None, "description of a dtype"),
    (b'{"dtype": "i4,i4"}', None, "description of a dtype"),
    (b'{"dtype": "<i5"}', None, "description of a dtype"),
    (b'{"dtype": "f4"}', None, "description of a dtype"),
    (b'{"dtype": "<u1"}', None, "description of a dtype"),
    (b'{"dtype": [["a", "|i4"]]}', None, "description of a dtype"),
    (b'{"dtype": [["a", "|O"]]}', None, "description of a dtype"),
    (b'{"dtype": [["a", "<i4", [-1]]]}', None, "shape of a field"),
    (b'{"dtype": [["a"]]}', None, "2 or 3 parts"),
    (b'{"dtype": [[5, "<i4"]]}', None, "name of a field"),
    (b'{"dtype": ' + b"[[" * 40 + b"]]" * 40 + b"}", None, "description of a dtype"),
    (b'{"dtype": "|S0"}', None, "1 to 2147483648 bytes, got 0"),
    (b'{"dtype": "|V9999999999"}', None, "description of a dtype"),
    (b'{"dtype": "<f4"}', 4, "item_shape"),
    (b'{"dtype": "<f4", "item_shape": 3}', 12, "item_shape"),
    (b'{"dtype": "<f4", "item_shape": [-3, -1]}', 12, "item_shape"),
    (b'{"dtype": "<f4", "item_shape": [true]}', 4, "item_shape"),
    (b'{"dtype": "<f4", "item_shape": [3]}', 16, "records of 16 bytes, got .* make 12"),
    (b'{"dtype": "<f4", "item_shape": [4611686018427387904, 4]}', 0, "records of 0 bytes"),
]


@pytest.mark.parametrize(("dtype", "described"), GOOD)
def test_comes_back_equal(dtype: Any, described: Any) -> None:
    found = _identity.as_dtype(dtype)
    text = _identity.encode(found, (3, 2))
    assert json.loads(text) == {"dtype": described, "item_shape": [3, 2]}
    back, shape = _identity.decode(text, 6 * found.itemsize)
    assert back == found and back.itemsize == found.itemsize
    assert shape == (3, 2)
    text = _identity.encode(found, None)
    assert json.loads(text) == {"dtype": described}
    assert _identity.decode(text, None) == (found, None)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "int4"])
def test_extension_dtypes_go_by_name(name: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    dtype = _identity.as_dtype(getattr(ml_dtypes, name))
    text = _identity.encode(dtype, ())
    assert json.loads(text)["dtype"] == name
    assert _identity.decode(text, dtype.itemsize) == (dtype, ())


def test_extension_dtype_inside_a_structure_is_refused() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    with pytest.raises(ValueError, match="read back"):
        _identity.as_dtype([("a", ml_dtypes.bfloat16)])


def test_unknown_extension_dtype_says_what_is_missing() -> None:
    with pytest.raises(UnsupportedStoreError, match="float8_nothing"):
        _identity.decode(b'{"dtype": "float8_nothing"}', None)


@pytest.mark.parametrize(("dtype", "error", "message"), BAD_DTYPES)
def test_bad_dtype(dtype: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        _identity.as_dtype(dtype)


@pytest.mark.parametrize(("shape", "error", "message"), BAD_SHAPES)
def test_bad_item_shape(shape: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        _identity.as_item_shape(shape)


def test_item_shape_from_any_sequence_of_ints() -> None:
    for shape in ([2, 3], (np.int64(2), 3), np.array([2, 3]), range(2, 4)):
        assert _identity.as_item_shape(shape) == (2, 3)
    assert _identity.as_item_shape(()) == ()


def test_record_of_more_than_2_gib_is_refused() -> None:
    assert _identity.record_width(np.dtype("u1"), (1 << 31,)) == 1 << 31
    with pytest.raises(ValueError, match="at most 2147483648 bytes, got 2147483649"):
        _identity.record_width(np.dtype("u1"), ((1 << 31) + 1,))


@pytest.mark.parametrize(("text", "width", "message"), HOSTILE)
def test_hostile_identity(text: bytes, width: int | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _identity.decode(text, width)


def test_padding_becomes_zero() -> None:
    assert _identity.has_padding(ALIGNED)
    assert not _identity.has_padding(np.dtype([("a", "u1"), ("b", "<f8", (2,))]))
    dirty = np.frombuffer(bytes(range(1, 49)), ALIGNED)
    clean = _identity.without_padding_bytes(dirty)
    assert (clean == dirty).all()
    raw = clean.view(np.uint8).reshape(2, 24)
    assert not raw[:, 1:8].any() and not raw[:, 19].any() and not raw[:, 20:].any()
    assert raw[:, 8:19].all()
