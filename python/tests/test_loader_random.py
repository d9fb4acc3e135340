"""Transforms that take (batch, rng): the same randomness for a step, whoever makes it."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import same_list

from loaderx import _ring
from loaderx._random import generator, takes_rng
from loaderx.dataloader import DataLoader
from loaderx.zrecord import DenseStore

GOLDEN = [
    13632926382901916554,
    16018880474610344636,
    8987252606267949508,
    11905432994495971013,
]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DenseStore]:
    with DenseStore(tmp_path / "s", np.int64, (), codec="raw") as found:
        found.append(np.arange(100))
        yield found


def noise(batch: Any, rng: np.random.Generator) -> Any:
    return rng.integers(0, 2**63, 5)


def draws(store: DenseStore, count: int, workers: int = 0, **arguments: Any) -> list[np.ndarray]:
    with DataLoader({"x": store}, workers, 12, transform=noise, **arguments) as loader:
        return [next(loader) for _ in range(count)]


def philox(seed: int, step: int, rank: int) -> np.ndarray:
    key, counter = np.array([seed, step], np.uint64), np.array([0, 0, 0, rank], np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter)).integers(0, 2**63, 5)


@pytest.mark.parametrize("growing", [False, True])
@pytest.mark.parametrize("workers", [0, 1, 2, 8])
def test_the_generator_is_that_of_the_seed_and_the_step(
    store: DenseStore, workers: int, growing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_ring, "TICKET_SECONDS", 1e9 if growing else 0.0)
    for seed in (0, 2**64 - 1):
        expected = [philox(seed, step, 0) for step in range(40)]
        assert same_list(draws(store, 40, workers, seed=seed), expected)


def test_the_numbers_of_a_seed_never_change() -> None:
    assert generator(7, 5, 3).bit_generator.random_raw(4).tolist() == GOLDEN


def test_no_two_steps_seeds_or_ranks_share_their_numbers(store: DenseStore) -> None:
    found = [
        *draws(store, 20, seed=1),
        *draws(store, 20, seed=2),
        *draws(store, 20, seed=1, rank=1, world_size=3),
    ]
    assert len(set(np.concatenate(found).tolist())) == 300
    assert same_list(found[40:], [philox(1, step, 1) for step in range(20)])


def test_a_resumed_loader_and_batch_at_draw_the_same(store: DenseStore) -> None:
    expected = draws(store, 30)
    with DataLoader({"x": store}, 2, 12, transform=noise) as loader:
        loader.load_state_dict({**loader.state_dict(), "step": 17})
        assert same_list([next(loader) for _ in range(13)], expected[17:])
        assert same_list([loader.batch_at(step) for step in range(30)], expected)


def test_passes_draw_by_their_steps(store: DenseStore) -> None:
    with DataLoader({"x": store}, 2, 12, transform=noise, seed=4) as loader:
        for number in (0, 3):
            steps = range(number * 9, number * 9 + 9)
            assert same_list(list(loader.epoch(number=number)), [philox(4, s, 0) for s in steps])


def test_a_sampler_of_ones_own_is_seeded_by_the_argument(store: DenseStore) -> None:
    class Mine:
        rank, world_size = 1, 2

        def indices_at(self, step: int) -> Any:
            return [step]

    arguments = {"sampler": Mine(), "seed": 5, "rank": 1, "world_size": 2, "transform": noise}
    with DataLoader({"x": store}, 2, **arguments) as loader:
        assert same_list([next(loader) for _ in range(9)], [philox(5, s, 1) for s in range(9)])


class Called:
    """A transform that is an object."""

    def __call__(self, batch: Any, rng: Any) -> Any:
        return rng

    def method(self, batch: Any) -> Any:
        return batch


@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        (lambda batch: 0, False),
        (lambda batch, rng: 0, True),
        (lambda batch, generator: 0, True),
        (lambda batch, rng=None: 0, True),
        (lambda batch, scale=2: 0, False),
        (lambda batch, *rest: 0, False),
        (lambda batch, *, rng=None: 0, False),
        (lambda batch, *, rng: 0, True),
        (lambda *arguments: 0, False),
        (functools.partial(noise, rng=5), False),
        (functools.partial(lambda scale, batch, rng: 0, 3), True),
        (Called(), True),
        (Called().method, False),
        (dict, False),
        (len, False),
        (None, False),
    ],
)
def test_which_transforms_get_one(transform: Any, expected: bool) -> None:
    assert takes_rng(transform) is expected


def test_a_generator_is_given_by_keyword_where_it_must_be(store: DenseStore) -> None:
    def transform(batch: Any, *, rng: Any) -> Any:
        return noise(batch, rng)

    with DataLoader({"x": store}, 2, 12, transform=transform, seed=9) as loader:
        assert same_list([next(loader) for _ in range(5)], [philox(9, s, 0) for s in range(5)])
