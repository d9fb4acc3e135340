"""The benchmarks' validation: whatever a backend gets wrong stops the run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench_lib import backends, check
from bench_lib import data as sets
from bench_lib.backends import ram
from bench_lib.check import WrongAnswerError
from bench_lib.data import DataSet
from bench_lib.hosts import StoreHost, save_source

WANT = np.arange(12, dtype=np.float32).reshape(4, 3)
DENSE = DataSet("d", "images", "uint8", (5,), 50, 8)
RAGGED = DataSet("r", "tokens", "int32", (), 50, 8, True, 1)


def swapped() -> Any:
    return WANT[[0, 2, 1, 3]]


@pytest.mark.parametrize(
    ("got", "text"),
    [
        (WANT.astype(np.float64), "expected dtype float32, got float64"),
        (WANT.astype(">f4"), "expected dtype float32, got >f4"),
        (WANT[:3], r"expected shape \(4, 3\), got \(3, 3\)"),
        (WANT.reshape(3, 4), r"expected shape \(4, 3\), got \(3, 4\)"),
        (swapped(), "wrong values in record 1"),
        (WANT + (WANT == 11), "wrong values in record 3"),
        (WANT.tolist(), "expected an array, got list"),
    ],
)
def test_dense(got: Any, text: str) -> None:
    check.dense("it", WANT.copy(), WANT, "plan 0")
    with pytest.raises(WrongAnswerError, match=f"it, plan 0: {text}"):
        check.dense("it", got, WANT, "plan 0")


def test_values_are_compared_bit_by_bit() -> None:
    zeros = np.zeros(2, np.float32)
    check.dense("it", np.full(2, np.nan), np.full(2, np.nan), "plan 0")
    with pytest.raises(WrongAnswerError, match="record 0"):
        check.dense("it", -zeros, zeros, "plan 0")


def test_ragged() -> None:
    want = [np.arange(n, dtype=np.int32) for n in (3, 1, 4)]
    check.ragged("it", [w.copy() for w in want], want, "plan 0")
    with pytest.raises(WrongAnswerError, match="expected 3 records, got 2"):
        check.ragged("it", want[:2], want, "plan 0")
    with pytest.raises(WrongAnswerError, match=r"record 0: expected shape \(3,\), got \(1,\)"):
        check.ragged("it", [want[1], want[0], want[2]], want, "plan 0")


class Broken(ram.Memmap):
    """A backend that gives the wrong record in one place."""

    place = 0

    def gather(self, index: Any) -> Any:
        index = index.copy()
        index[index == self.place] = (self.place + 1) % self.data.count
        return super().gather(index)


def host(name: str, tmp_path: Path, data: DataSet) -> StoreHost:
    shapes = sets.ragged_shapes(data) if data.ragged else None
    records = sets.ragged_values(data, shapes) if shapes is not None else sets.dense(data)
    source, plans = tmp_path / "source", tmp_path / "plans.npy"
    save_source(source, data, records, shapes)
    np.save(plans, sets.plans(data.count, data.batch, 3))
    return StoreHost(name, str(tmp_path / "store"), data, str(source), str(plans))


@pytest.mark.parametrize("data", [DENSE, RAGGED], ids=["dense", "ragged"])
@pytest.mark.parametrize("name", ["npy_memmap", "loaderx_raw", "loaderx_zstd"])
def test_a_right_backend_passes(name: str, data: DataSet, tmp_path: Path) -> None:
    made = host(name, tmp_path, data)
    assert made.write() >= 0
    assert made.write() >= 0  # a second round replaces the first
    assert made.finish() > 0
    assert made.validate() == 50 + 24
    assert made.open() >= 0
    assert len(made.sample(0)) == 1


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("loaderx_raw_table", DENSE),
        ("loaderx_raw_out", DENSE),
        ("numpy_take", DENSE),
        ("numpy_take_out", DENSE),
        ("loaderx_raw_packed", RAGGED),
        ("ram_list", RAGGED),
    ],
)
def test_variants_pass(name: str, data: DataSet, tmp_path: Path) -> None:
    made = host(name, tmp_path, data)
    made.write()
    made.finish()
    assert made.validate() == 50 + 24
    made.open()
    assert len(made.sample(0)) == 1


@pytest.mark.parametrize("place", [0, 49])
def test_every_record_is_swept(place: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Broken, "place", place)
    monkeypatch.setattr(ram, "Broken", Broken, raising=False)
    monkeypatch.setitem(backends.REGISTRY, "broken", backends.Entry("ram", "Broken"))
    made = host("broken", tmp_path, DENSE)
    made.write()
    made.finish()
    with pytest.raises(WrongAnswerError, match="broken, records 0 to 49: wrong values"):
        made.validate()


def test_a_missing_library_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    made = host("hdf5_raw", tmp_path, DENSE)
    with pytest.raises(ModuleNotFoundError, match="h5py"):
        made.write()


def test_names_are_those_of_a_layout() -> None:
    dense, ragged = backends.names("dense"), backends.names("ragged")
    assert "numpy_take" in dense and "numpy_take" not in ragged
    assert "ram_list" in ragged and "ram_list" not in dense
    assert {"loaderx_1.7.7_raw", "loaderx_2.8.19_raw", "blosc2_zstd"} <= {*dense} & {*ragged}
