"""gather(index, out=array): into the caller's memory, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import same

from loaderx import _native
from loaderx.errors import CorruptRecordError, RecordIndexError, StoreClosedError
from loaderx.zrecord import DenseStore

DATA = np.arange(600, dtype=np.int32).reshape(100, 2, 3)


@pytest.fixture(params=["raw", "zstd"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DenseStore]:
    with DenseStore(tmp_path / "s", np.int32, (2, 3), request.param) as made:
        made.append(DATA)
        yield made


@pytest.mark.parametrize("index", [[5, -1, 5], slice(10, 60), np.arange(100) % 3 == 0, (), [99]])
def test_fills_what_it_is_given(store: DenseStore, index: Any) -> None:
    expected = DATA[list(index) if isinstance(index, tuple) else index]
    around = np.full((len(expected) + 2, 2, 3), -7, np.int32)
    out = around[1:-1]
    assert store.gather(index, out) is out
    assert same(out, expected.astype(np.int32))
    assert (around[[0, -1]] == -7).all()
    assert store.gather(index, out=out) is out


def test_takes_memory_of_any_origin(store: DenseStore, tmp_path: Path) -> None:
    unaligned = np.frombuffer(bytearray(3 * 24 + 1), np.uint8)[1:].view(np.int32)
    mapped = np.memmap(tmp_path / "m", np.int32, "w+", shape=(3, 2, 3))
    for out in (unaligned.reshape(3, 2, 3), mapped):
        store.gather([7, 8, 50], out)
        assert (out == DATA[[7, 8, 50]]).all()


@pytest.mark.parametrize("dtype", ["M8[s]", [("a", "u1"), ("b", ">f4")], "S5", "?"])
def test_any_dtype(tmp_path: Path, dtype: Any) -> None:
    data = np.frombuffer(bytes(range(100)) * 40, np.uint8)
    data = (
        np.zeros(20, dtype) if dtype == "?" else data[: 20 * np.dtype(dtype).itemsize].view(dtype)
    )
    with DenseStore(tmp_path / "s", dtype, ()) as store:
        store.append(data)
        out = np.zeros(3, dtype)
        assert store.gather([3, 1, 19], out).tobytes() == data[[3, 1, 19]].tobytes()


def test_large_ones_go_in_pieces(store: DenseStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "CALL_BYTES", 100)
    index = np.random.default_rng(0).integers(-100, 100, 77)
    out = np.empty((77, 2, 3), np.int32)
    assert same(store.gather(index, out), DATA[index])


SHARED = np.zeros(12, np.int64)


@pytest.mark.parametrize(
    ("out", "error", "says"),
    [
        ([0] * 18, TypeError, "got list"),
        (np.zeros((3, 2, 3), np.int64), TypeError, "got dtype int64"),
        (np.zeros((3, 2, 3), ">i4"), TypeError, "got dtype >i4"),
        (np.ma.zeros((3, 2, 3), np.int32), TypeError, "masked array"),
        (np.zeros((2, 2, 3), np.int32), ValueError, "got shape (2, 2, 3)"),
        (np.zeros((3, 6), np.int32), ValueError, "got shape (3, 6)"),
        (np.zeros((3, 3, 2), np.int32).transpose(0, 2, 1), ValueError, "got strides"),
        (np.zeros((6, 2, 3), np.int32)[::2], ValueError, "got strides"),
        (np.broadcast_to(np.int32(1), (3, 2, 3)), ValueError, "got strides"),
        (np.frombuffer(bytes(72), np.int32).reshape(3, 2, 3), ValueError, "read-only"),
        (SHARED.view(np.int32)[:18].reshape(3, 2, 3), ValueError, "overlaps the index"),
    ],
)
def test_refuses_what_it_cannot_fill(store: DenseStore, out: Any, error: type, says: str) -> None:
    before = np.array(out, copy=True)
    with pytest.raises(error) as caught:
        store.gather(SHARED[:3], out)
    message = str(caught.value)
    assert (
        says in message and "expected a writable, C-contiguous array of shape (3, 2, 3)" in message
    )
    assert (np.asarray(out) == before).all()


def test_errors_of_the_gather(store: DenseStore) -> None:
    out = np.empty((1, 2, 3), np.int32)
    with pytest.raises(RecordIndexError):
        store.gather([100], out)
    with pytest.raises(TypeError, match="a set of records"):
        store.gather(5, out)
    chunk = Path(store.path, "0.chunk")
    whole = chunk.read_bytes()
    with DenseStore(store.path, mode="r") as reader:
        chunk.write_bytes(b"")
        with pytest.raises(CorruptRecordError):
            reader.gather([5], out)
    chunk.write_bytes(whole)
    store.close()
    for index in ([5], []):
        with pytest.raises(StoreClosedError):
            store.gather(index, out[: len(index)])
