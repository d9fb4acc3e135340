"""Sampler(subset=...) and split: parts of a store's records, without a copy of them."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support import same

import loaderx
from loaderx.dataloader import DataLoader
from loaderx.zrecord import DenseStore
from loaderx.zsampler import Sampler, split

MODES = list(Sampler.Mode)
ODD = np.arange(1, 100, 2)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "subset",
    [range(10, 40), range(90, 3, -3), ODD, ODD.tolist(), ODD.astype(np.uint8), tuple(ODD[:9])],
    ids=["range", "backwards", "array", "list", "uint8", "tuple"],
)
def test_an_order_over_a_subset_is_the_order_over_its_places(mode: int, subset: Any) -> None:
    records = np.asarray(subset)
    sampler = Sampler(100, 6, mode, 3, rank=1, world_size=2, subset=subset)
    places = Sampler(len(records), 6, mode, 3, rank=1, world_size=2)
    assert (sampler.length, sampler.records) == (100, len(records))
    for step in range(40):
        expected = records[places.indices_at(step)]
        assert same(sampler.indices_at(step), expected.astype(np.int64))
        assert same(sampler.next(), expected.astype(np.int64))


def test_the_subset_is_kept_from_its_owner() -> None:
    mine = ODD.copy()
    sampler = Sampler(100, 5, 0, subset=mine)
    mine[:] = 0
    assert sampler.next().tolist() == [1, 3, 5, 7, 9]
    assert isinstance(sampler.subset, np.ndarray)
    with pytest.raises(ValueError, match="read-only"):
        sampler.subset[0] = 5


@pytest.mark.parametrize("subset", [range(3, 80), ODD])
@pytest.mark.parametrize("how", ["pickle", "deepcopy"])
def test_copies_keep_the_subset(subset: Any, how: str) -> None:
    sampler = Sampler(100, 8, 2, 9, rank=1, world_size=4, subset=subset)
    sampler.seek(5)
    twin = pickle.loads(pickle.dumps(sampler)) if how == "pickle" else copy.deepcopy(sampler)
    assert repr(twin) == repr(sampler) and twin.step == 5
    for _ in range(20):
        assert same(twin.next(), sampler.next())


def test_repr_tells_of_it() -> None:
    assert "subset=range(3, 9), seed" in repr(Sampler(10, 2, subset=range(3, 9)))
    assert "subset=<50 records>" in repr(Sampler(100, 2, subset=ODD))
    assert "subset" not in repr(Sampler(100, 2))


BAD: list[tuple[Any, type[Exception], str]] = [
    ([], ValueError, "subset: expected at least 1 record, got none"),
    (range(5, 5), ValueError, "subset: expected at least 1 record, got none"),
    ([1, 10], ValueError, "subset: expected records of 0 to 9, got 10 at place 1"),
    ([1, -1], ValueError, "subset: expected records of 0 to 9, got -1 at place 1"),
    (range(0, 12, 3), None, ""),
    (range(0, 13, 3), ValueError, "subset: expected records of 0 to 9, got 12 at place 4"),
    (range(0, 2**70), ValueError, r"subset: expected a range within 2\*\*63"),
    ([0.5], TypeError, "subset: expected a range or a 1-D array .* got list of float64"),
    ([True, False] * 5, TypeError, "subset: expected a range .* got list of bool"),
    ("01", TypeError, "subset: expected a range .* got str"),
    (5, ValueError, r"subset: expected a range .* of shape \(\)"),
    ([[1, 2]], ValueError, r"subset: expected a range .* of shape \(1, 2\)"),
    (slice(0, 5), TypeError, "subset: expected a range .* got slice"),
    (np.array([2**63], np.uint64), ValueError, "subset: expected records below"),
]


@pytest.mark.parametrize(("subset", "error", "message"), BAD)
def test_bad_subsets(subset: Any, error: type[Exception] | None, message: str) -> None:
    if error is None:
        Sampler(10, 2, subset=subset)
        return
    with pytest.raises(error, match=message):
        Sampler(10, 2, 0, subset=subset)


def test_cyclic_needs_a_subset_of_at_least_a_batch() -> None:
    with pytest.raises(ValueError, match="at most the subset's length 5 in mode CYCLIC, got 6"):
        Sampler(100, 6, subset=range(5))
    Sampler(100, 6, 1, subset=range(5))


@pytest.mark.parametrize("length", [1, 2, 10, 1000, 70_001])
def test_a_split_leaves_nothing_out_and_takes_nothing_twice(length: int) -> None:
    parts = split(length, {"train": 0.7, "val": 0.2, "test": 0.1}, seed=4)
    assert list(parts) == ["train", "val", "test"]
    together = np.concatenate(list(parts.values()))
    assert same(np.sort(together), np.arange(length))
    for name, fraction in (("train", 0.7), ("val", 0.2), ("test", 0.1)):
        assert abs(len(parts[name]) - fraction * length) < 1
        assert (np.diff(parts[name]) > 0).all()


def test_a_split_is_a_pure_function() -> None:
    fractions = {"train": 0.9, "val": 0.1}
    parts = loaderx.split(1000, fractions, 7)
    assert all(same(a, b) for a, b in zip(parts.values(), split(1000, fractions, 7).values()))
    assert not same(parts["val"], split(1000, fractions, 8)["val"])
    assert split(20, {"train": 0.75, "val": 0.25}, 1)["val"].tolist() == GOLDEN
    more = split(1000, {"train": 0.95, "val": 0.05}, 7)
    assert set(parts["train"].tolist()) < set(more["train"].tolist())


GOLDEN = [3, 13, 17, 18, 19]


BAD_SPLITS: list[tuple[tuple[Any, ...], type[Exception], str]] = [
    ((0, {"a": 1.0}), ValueError, "length: expected at least 1, got 0"),
    ((10, {"a": 0.5, "b": 0.4}), ValueError, "fractions: expected a sum of 1, got 0.9"),
    ((10, {"a": 1.5, "b": -0.5}), ValueError, "fractions: expected finite numbers above 0"),
    ((10, {}), ValueError, "fractions: expected at least one, got an empty dict"),
    ((10, [0.5, 0.5]), TypeError, "fractions: expected a dict of fractions by name, got list"),
    ((10, {"a": "1"}), TypeError, "fractions: expected a number for 'a', got '1'"),
    ((10, {1: 1.0}), TypeError, "fractions: expected names that are str, got int"),
    ((10, {"a": 1.0}, -1), ValueError, "seed: expected at least 0, got -1"),
    ((1.0, {"a": 1.0}), TypeError, "length: expected an integer"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), BAD_SPLITS)
def test_bad_splits(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        split(*arguments)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DenseStore]:
    with DenseStore(tmp_path_factory.mktemp("subset") / "s", np.int64, (), codec="raw") as found:
        found.append(np.arange(100))
        yield found


def test_a_loader_over_a_part(store: DenseStore) -> None:
    parts = split(100, {"train": 0.8, "val": 0.2}, 1)
    train = Sampler(100, 16, subset=parts["train"])
    with DataLoader({"x": store}, 2, sampler=train) as loader:
        for number in (0, 3):
            found = np.concatenate([batch["x"] for batch in loader.epoch(number=number)])
            assert same(np.sort(found), parts["train"])
        assert same(next(loader)["x"], train.indices_at(0))
    val = Sampler(100, 16, 0, subset=parts["val"], rank=1, world_size=2)
    with DataLoader({"x": store}, 1, sampler=val) as loader:
        with pytest.raises(ValueError, match="the 4 records behind the last full batch of 16"):
            loader.epoch()
        padded = [batch["x"].tolist() for batch in loader.epoch(tail="pad")]
        assert padded == [parts["val"][8:16].tolist(), parts["val"][4:12].tolist()]


def test_a_state_knows_the_subset(store: DenseStore) -> None:
    with DataLoader({"x": store}, sampler=Sampler(100, 5, subset=ODD)) as loader:
        state = json.loads(json.dumps(loader.state_dict()))
        loader.load_state_dict({**state, "step": 3})
    changed = np.append(ODD[:-1], 2)
    for other in (None, range(1, 100, 2), changed, ODD[:-1]):
        with DataLoader({"x": store}, sampler=Sampler(100, 5, subset=other)) as loader:
            with pytest.raises(ValueError, match="state: expected subset to be this loader's"):
                loader.load_state_dict(state)
