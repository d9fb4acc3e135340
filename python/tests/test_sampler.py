"""Sampler: the order as Python sees it. The order itself is tested in Go."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import numpy as np
import pytest
from support import same

from loaderx import zsampler
from loaderx.zsampler import Sampler

MODES = list(Sampler.Mode)


def test_modes_have_their_numbers() -> None:
    assert (Sampler.Mode.SEQUENTIAL, Sampler.Mode.IID, Sampler.Mode.CYCLIC) == (0, 1, 2)
    assert Sampler(10, 5).mode is Sampler.Mode.CYCLIC


def test_sequential_walks_and_wraps() -> None:
    sampler = Sampler(10, 4, 0)
    assert [sampler.next().tolist() for _ in range(4)] == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
        [8, 9, 0, 1],
        [2, 3, 4, 5],
    ]


def test_cyclic_draws_without_replacement() -> None:
    sampler = Sampler(10, 4, seed=3)
    cycles = [np.concatenate([sampler.next(), sampler.next()]) for _ in range(50)]
    assert all(len(set(cycle.tolist())) == 8 for cycle in cycles)
    assert len({tuple(cycle) for cycle in cycles}) > 40


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("length", "batch_size"), [(1, 1), (100, 7), (1000, 1000), (70_000, 64)])
def test_next_gives_what_indices_at_says(mode: int, length: int, batch_size: int) -> None:
    sampler = Sampler(length, batch_size, mode, 5)
    for step in range(40):
        assert sampler.step == step
        batch = sampler.next()
        assert batch.dtype == np.int64 and batch.shape == (batch_size,)
        assert 0 <= batch.min() and batch.max() < length
        assert same(batch, sampler.indices_at(step))
    twin = Sampler(length, batch_size, mode, 5)
    assert same(np.stack(list(itertools.islice(twin, 40))), twin.fill(0, 40))


def test_seek(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zsampler, "_DRAW", 30)  # three steps at once
    sampler = Sampler(1000, 10, 1)
    for step in (0, 5, 4, 2**40, 2, 1, 0, 2**63 - 2):
        sampler.seek(step)
        assert sampler.step == step
        assert same(sampler.next(), sampler.indices_at(step))
        if step < 2**62:
            assert same(sampler.next(), sampler.indices_at(step + 1))


def test_batches_are_the_callers() -> None:
    sampler = Sampler(100, 10)
    kept = sampler.next()
    expected = kept.copy()
    sampler.next()[:] = -1
    sampler.seek(1)
    assert same(kept, expected) and (sampler.next() >= 0).all()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("world_size", [1, 2, 3, 6])
def test_ranks_share_the_global_batch(mode: int, world_size: int) -> None:
    whole = Sampler(100, 12, mode, 9)
    ranks = [Sampler(100, 12, mode, 9, rank=r, world_size=world_size) for r in range(world_size)]
    for _ in range(20):
        assert same(np.concatenate([rank.next() for rank in ranks]), whole.next())
    assert ranks[-1].rank == world_size - 1 and ranks[-1].world_size == world_size


def test_threads_get_each_batch_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zsampler, "_DRAW", 7)
    sampler, found = Sampler(10**6, 1, 0), []

    def draw() -> None:
        mine = [int(sampler.next()[0]) for _ in range(500)]
        found.extend(mine)

    threads = [threading.Thread(target=draw) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(4000))


def test_seed_matters_and_nothing_else() -> None:
    first = Sampler(1000, 100, seed=1).next()
    assert same(Sampler(1000, 100, seed=np.int64(1)).next(), first)
    assert not same(Sampler(1000, 100, seed=2).next(), first)
    Sampler(1000, 100, seed=2**64 - 1).next()


BAD: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
    ((0, 1), {}, ValueError, "length: expected at least 1, got 0"),
    ((-5, 1), {}, ValueError, "length: expected at least 1, got -5"),
    ((2**63, 1), {}, ValueError, "length: expected at most"),
    ((10.0, 1), {}, TypeError, "length: expected an integer, got float 10.0"),
    ((True, 1), {}, TypeError, "length: expected an integer, got bool True"),
    (("10", 1), {}, TypeError, "length: expected an integer, got str '10'"),
    ((None, 1), {}, TypeError, "length: expected an integer, got NoneType None"),
    ((10, 0), {}, ValueError, "batch_size: expected at least 1, got 0"),
    ((10, 2.5), {}, TypeError, "batch_size: expected an integer"),
    ((10, 11), {}, ValueError, "batch_size: expected at most the length 10 in mode CYCLIC, got 11"),
    (
        (10, 2, 3),
        {},
        ValueError,
        "mode: expected one of SEQUENTIAL = 0, IID = 1, CYCLIC = 2, got 3",
    ),
    ((10, 2, -1), {}, ValueError, "mode: expected one of .* got -1"),
    ((10, 2, "cyclic"), {}, TypeError, "mode: expected one of .* got str 'cyclic'"),
    ((10, 2, True), {}, TypeError, "mode: expected one of .* got bool True"),
    ((10, 2, 2, -1), {}, ValueError, "seed: expected at least 0, got -1"),
    ((10, 2, 2, 2**64), {}, ValueError, "seed: expected at most 18446744073709551615"),
    ((10, 2, 2, 1.0), {}, TypeError, "seed: expected an integer"),
    ((10, 2), {"world_size": 0}, ValueError, "world_size: expected at least 1, got 0"),
    ((10, 2), {"rank": 1}, ValueError, "rank: expected at most 0, got 1"),
    ((10, 2), {"rank": -1, "world_size": 2}, ValueError, "rank: expected at least 0"),
    ((10, 5), {"world_size": 2}, ValueError, "expected a multiple of world_size 2, got 5"),
    ((10, 2), {"rank": False}, TypeError, "rank: expected an integer"),
]


@pytest.mark.parametrize(("arguments", "named", "error", "message"), BAD)
def test_bad_arguments(
    arguments: Any, named: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Sampler(*arguments, **named)


@pytest.mark.parametrize(
    ("step", "error"), [(-1, ValueError), (2**63, ValueError), (1.0, TypeError)]
)
def test_bad_steps(step: Any, error: type[Exception]) -> None:
    sampler = Sampler(10, 2)
    for use in (sampler.seek, sampler.indices_at):
        with pytest.raises(error, match="step: expected"):
            use(step)
    assert sampler.step == 0


def test_batches_beyond_the_length() -> None:
    assert Sampler(3, 7, 0).next().tolist() == [0, 1, 2, 0, 1, 2, 0]
    assert set(Sampler(3, 100, 1).next().tolist()) == {0, 1, 2}


def test_repr_tells_all_of_it() -> None:
    sampler = Sampler(100, 10, 1, 7, rank=1, world_size=2)
    sampler.next()
    assert repr(sampler) == "Sampler(100, 10, mode=IID, seed=7, rank=1, world_size=2, step=1)"
    assert (sampler.length, sampler.batch_size, sampler.seed) == (100, 10, 7)


def test_the_last_step_ends_with_an_error() -> None:
    sampler = Sampler(5, 1)
    sampler.seek(2**63 - 2)
    sampler.next()
    for _ in range(2):
        with pytest.raises(ValueError, match="the last step is 9223372036854775806"):
            sampler.next()


def test_a_batch_that_fits_no_memory_is_refused() -> None:
    with pytest.raises(ValueError, match="batch_size: expected at most"):
        Sampler(2**62, 2**62)
