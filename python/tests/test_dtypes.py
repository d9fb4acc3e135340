"""Every dtype of fixed size is kept exactly; those that hold objects are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support import same

from loaderx.zrecord import DenseStore, RaggedStore

NUMBERS = [
    f"{order}{kind}" for order in "<>" for kind in "i2 i4 i8 u2 u4 u8 f2 f4 f8 c8 c16".split()
]
UNITS = "Y M W D h m s ms us ns ps fs as 25s 7D".split()
TIMES = [f"{order}{kind}8[{unit}]" for order, kind in ("<M", ">m") for unit in UNITS]
STRUCTURED: dict[str, Any] = {
    "plain": [("a", "u1"), ("b", "<f4")],
    "big-endian": [("a", ">i2"), ("b", ">M8[s]")],
    "aligned": np.dtype([("a", "u1"), ("b", "<f8"), ("c", "<i2")], align=True),
    "nested": [("a", "u1"), ("in", [("x", "<f4"), ("y", [("z", ">i8")])])],
    "aligned inside": [("a", "u1"), ("in", np.dtype([("x", "u1"), ("y", "<i4")], align=True))],
    "arrays": [("a", "<i4", (2, 3)), ("b", "S3", (2,)), ("c", "u1", 1)],
    "titles": [(("a title", "a"), "u1"), ("b", "<U2")],
    "with gaps": np.dtype({"names": ["a", "b"], "formats": ["u1", "<i4"], "offsets": [3, 8]}),
    "unicode names": [("é", "u1"), ("名", "<i2")],
    "raw bytes": [("a", "V3"), ("b", "?")],
    "array of structures": [("points", [("x", "<f4"), ("y", "<f4")], (3,))],
}
EXTENSION = [
    getattr(ml_dtypes, name)
    for name in (
        "bfloat16",
        "float8_e3m4",
        "float8_e4m3",
        "float8_e4m3b11fnuz",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
    )
]
# long doubles have another size elsewhere: a store holds those of its machine.
ALL = [
    *[
        "?",
        "i1",
        "u1",
        "S1",
        "S7",
        "<U1",
        ">U5",
        "V1",
        "V5",
        "longdouble",
        "clongdouble",
        "M8",
        "m8",
    ],
    *NUMBERS,
    *TIMES,
    *STRUCTURED.values(),
    *EXTENSION,
]
NAMES = [str(d) if isinstance(d, str) else getattr(d, "__name__", "struct") for d in ALL]


def equal(a: Any, b: Any) -> bool:
    """As support.same, but for padding, which is of no matter and differs when NumPy copies."""
    if a.dtype.names is None:
        return same(a, b)
    shapes = a.dtype == b.dtype and a.shape == b.shape
    return shapes and all(equal(a[name], b[name]) for name in a.dtype.names)


def some(dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    """Values of a dtype, made of bytes, with no field left zero and no padding set."""
    rng = np.random.default_rng(3)
    if dtype.names is not None:
        out = np.zeros(shape, dtype)
        for name in dtype.names:
            out[name] = some(out[name].dtype, out[name].shape)
        return out
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind == "U":
        return (
            np.array(["aé名☃"[i] for i in rng.integers(4, size=shape).flat])
            .reshape(shape)
            .astype(dtype)
        )
    if dtype.char in "gG":
        return rng.random(shape).astype(dtype)  # of any bytes, some would be no number
    raw = rng.integers(1, 100, (*shape, dtype.itemsize), np.uint8)
    return raw.view(dtype)[..., 0]


@pytest.mark.parametrize("codec", ["raw", "zstd"])
@pytest.mark.parametrize("dtype", ALL, ids=NAMES)
def test_a_dtype_is_kept(tmp_path: Path, dtype: Any, codec: str) -> None:
    dtype = np.dtype(dtype)
    data = some(dtype, (5, 2, 3))
    # A scalar as an array, because NumPy's own scalars have no byte order.
    records = [data[0], data[1, :, 0], data[2, 0, 0:1].reshape(()), data[3, 1:]]
    with DenseStore(tmp_path / "dense", dtype, (2, 3), codec) as dense:
        dense.append(data)
    with RaggedStore(tmp_path / "ragged", dtype, codec) as ragged:
        ragged.append(records)
    with DenseStore(tmp_path / "dense", dtype) as dense:
        assert dense.dtype == dtype and dense.dtype.isalignedstruct in (
            False,
            dtype.isalignedstruct,
        )
        assert equal(dense[:], data) and equal(dense[3], data[3])
        assert dense.verify().ok
    with RaggedStore(tmp_path / "ragged", dtype) as ragged:
        assert ragged.dtype == dtype
        assert all(map(equal, ragged[:], records)) and equal(ragged[2], records[2])
        batch = ragged.gather([0, 1])
        assert batch.values.dtype == dtype and all(map(equal, batch, records[:2]))
        assert ragged.lengths().tolist() == [6, 2, 1, 3]


@pytest.mark.parametrize(
    "dtype", [STRUCTURED["aligned"], STRUCTURED["with gaps"]], ids=["aligned", "gaps"]
)
def test_no_stray_memory_reaches_a_file(tmp_path: Path, dtype: Any) -> None:
    clean = some(np.dtype(dtype), (4,))
    dirty = np.full(4 * clean.itemsize, 255, np.uint8).view(dtype)
    for name in clean.dtype.names:
        dirty[name] = clean[name]
    assert dirty.tobytes() != clean.tobytes()
    with DenseStore(tmp_path / "d", dtype, (), "raw") as dense:
        dense.append(dirty)
        dense.append(list(dirty))
    with RaggedStore(tmp_path / "r", dtype, "raw") as ragged:
        ragged.append([dirty])
    for store in ("d", "r"):
        content = (tmp_path / store / "0.chunk").read_bytes()
        assert clean.tobytes() in content and b"\xff" not in content


REFUSED: list[tuple[Any, str]] = [
    (object, "without Python objects"),
    ("O", "without Python objects"),
    ([("a", "u1"), ("b", "O")], "without Python objects"),
    ([("a", [("b", "O", (2,))])], "without Python objects"),
    (np.dtype(("O", (3,))), "without Python objects"),
    ("V0", "at least 1 byte"),
    ("S", "at least 1 byte"),
    ("U", "at least 1 byte"),
    ([], "at least 1 byte"),
    ("no such type", "what numpy.dtype takes"),
    (5, "what numpy.dtype takes"),
    ({"names": ["a", "b"], "formats": ["i4", "u1"], "offsets": [0, 2]}, "write down and read back"),
    (np.dtype(("i4", (2,))), "write down and read back"),
]


@pytest.mark.parametrize(("dtype", "message"), REFUSED, ids=[str(d)[:30] for d, _ in REFUSED])
def test_a_dtype_is_refused(tmp_path: Path, dtype: Any, message: str) -> None:
    if dtype == "M8":
        with RaggedStore(
            tmp_path / "s", dtype
        ) as store:  # without a unit it is a dtype like others
            store.append([np.zeros(3, dtype)])
            assert store.dtype == np.dtype("M8")
        return
    for make in (
        lambda: RaggedStore(tmp_path / "s", dtype),
        lambda: DenseStore(tmp_path / "s", dtype, (2,)),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            make()
        assert not (tmp_path / "s").exists()
