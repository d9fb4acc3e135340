"""The benchmarks' records and plans: deterministic, of the shapes they say, and as described."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from bench_lib import data as sets
from bench_lib import dense, loader, ragged
from bench_lib.data import DataSet


def small(data: DataSet, count: int = 40) -> DataSet:
    return DataSet(
        data.name,
        data.kind,
        data.dtype,
        data.item_shape,
        count,
        8,
        data.ragged,
        data.ndim,
    )


DENSE = {**dense.SETS, **{f"loader {s.name}": s for s in loader.SETS}}


@pytest.mark.parametrize("name", DENSE)
def test_dense_is_deterministic_and_as_declared(name: str) -> None:
    data = small(DENSE[name])
    records = sets.dense(data)
    assert records.dtype == data.dtype
    assert records.shape == (40, *data.item_shape)
    assert records.tobytes() == sets.dense(data).tobytes()
    assert not np.array_equal(records[0], records[1])


def test_blocks_do_not_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    data = small(dense.SETS["784"])
    monkeypatch.setattr(sets, "BLOCK_BYTES", 10 * 784)
    records = sets.dense(data)
    assert len(np.unique(records, axis=0)) == 40


@pytest.mark.parametrize("name", ["512,512", "tokens", "ntu"])
def test_dense_is_mildly_compressible(name: str) -> None:
    records = sets.dense(small(dense.SETS[name], 8))
    ratio = records.nbytes / len(zlib.compress(records.tobytes(), 6))
    assert 1.2 < ratio < 5


def test_skeletons_are_zero_behind_their_end() -> None:
    records = sets.dense(small(dense.SETS["ntu"]))
    absent = (records[..., 1] == 0).all(axis=(1, 2, 3))
    assert 0.5 < absent.mean() < 1
    assert (records[:, :, :64, :, 0] != 0).all()
    assert (records[:, :, -1, :, 0] == 0).all(axis=(1, 2)).mean() > 0.9


@pytest.mark.parametrize("name", ragged.SETS)
def test_ragged_is_deterministic_and_as_declared(name: str) -> None:
    data = small(ragged.SETS[name])
    shapes = sets.ragged_shapes(data)
    values = sets.ragged_values(data, shapes)
    assert shapes.shape == (40, data.ndim)
    assert values.dtype == data.dtype
    assert len(values) == shapes.prod(axis=1).sum()
    assert (shapes == sets.ragged_shapes(data)).all()
    assert (values == sets.ragged_values(data, shapes)).all()
    records = sets.cut(values, shapes)
    assert [r.shape for r in records] == [tuple(s) for s in shapes.tolist()]
    assert (np.concatenate([r.ravel() for r in records]) == values).all()


def test_ragged_sizes_are_those_of_the_docstring() -> None:
    tokens = sets.ragged_shapes(small(ragged.SETS["tokens"], 20_000))
    assert tokens.min() == 16 and tokens.max() == 512
    assert 125 <= np.median(tokens) <= 133
    images = sets.ragged_shapes(small(ragged.SETS["images"], 20_000))
    assert (images[:, 0] == 3).all()
    assert images[:, 1:].min() >= 64 and images[:, 1:].max() <= 512
    assert 155 <= np.median(images[:, 1:]) <= 165


def test_plans() -> None:
    plans = sets.plans(100, 8, 5)
    assert plans.dtype == np.int64 and plans.shape == (5, 8)
    assert 0 <= plans.min() and plans.max() < 100
    assert (plans == sets.plans(100, 8, 5)).all()
    cover = sets.covering_plans(100, 8)
    assert cover.shape == (12, 8)
    assert len(set(cover.ravel().tolist())) == 96
    assert (cover == sets.covering_plans(100, 8)).all()
