"""DataLoader: the records of steps to come are asked for, while data come from the disk."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import same

from loaderx import _ahead
from loaderx.dataloader import DataLoader
from loaderx.zrecord import DenseStore, RaggedStore
from loaderx.zsampler import Mix, Sampler


class Disk:
    """A count of bytes from the disk that grows at every look, or does not."""

    def __init__(self, cold: bool) -> None:
        self.bytes, self.cold = 0, cold

    def __call__(self) -> int | None:
        self.bytes += self.cold
        return self.bytes


@pytest.fixture
def streams(tmp_path: Path) -> Iterator[dict[str, Any]]:
    with DenseStore(tmp_path / "x", np.int64, (), codec="raw") as dense:
        dense.append(np.arange(300))
        with RaggedStore(tmp_path / "t", np.int32) as ragged:
            ragged.append(np.full(1 + i % 5, i, np.int32) for i in range(300))
            yield {"x": dense, "t": ragged}


@pytest.fixture(params=[True, False], ids=["cold", "warm"])
def cold(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(_ahead, "bytes_from_disk", Disk(request.param))
    monkeypatch.setattr(_ahead, "LOOK_SECONDS", 0.0)
    return bool(request.param)


def spied(streams: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Any]]:
    """The indices that each store is asked for."""
    asked: dict[str, list[Any]] = {name: [] for name in streams}
    for name, store in streams.items():
        monkeypatch.setattr(store, "readahead", asked[name].append)
    return asked


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_what_is_asked_for_is_what_comes(
    streams: dict[str, Any], workers: int, cold: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampler, asked = Sampler(300, 8), spied(streams, monkeypatch)
    with DataLoader(streams, workers, 8, transform=lambda b: b) as loader:
        for step in range(40):
            assert same(next(loader)["x"], sampler.indices_at(step))
    table = sampler.fill(0, 4000)  # workers of 40 steps come nowhere near its end
    for indices in asked.values():
        assert bool(indices) == cold
        for index in indices:
            step = int(np.flatnonzero((table == index[:8]).all(axis=1))[0])
            assert step >= 2 and same(table[step : step + len(index) // 8].reshape(-1), index)


def test_nothing_is_drawn_twice(
    streams: dict[str, Any], cold: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampler, drawn = Sampler(300, 8), []
    draw = sampler.draw
    monkeypatch.setattr(sampler, "draw", lambda *a: drawn.append(a) or draw(*a))
    with DataLoader(streams, 0, sampler=sampler) as loader:
        for _ in range(20):
            next(loader)
    assert len(drawn) == len(set(drawn)) == (22 if cold else 20)


def test_nothing_beyond_the_end_of_a_pass(
    streams: dict[str, Any], cold: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = spied(streams, monkeypatch)
    with DataLoader(streams, 0, 7, mode=0) as loader:
        assert len(list(loader.epoch())) == 43
        assert len(list(loader.epoch(5))) == 5
    expected = [*range(14, 300), *range(14, 35)] if cold else []
    assert [i for index in asked["x"] for i in index.tolist()] == expected


def test_sources_are_asked_for_their_own(
    streams: dict[str, Any], cold: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, mix = spied(streams, monkeypatch), Mix({"a": 1, "b": 2})
    drawn = mix.sampler({"a": 300, "b": 300}, 9).indices_at(2)
    with DataLoader({"a": streams, "b": streams}, 0, 9, sampler=mix) as loader:
        next(loader)
    parts = [drawn.record[drawn.source == source].tolist() for source in (0, 1)]
    assert [index.tolist() for index in asked["t"]] == (parts if cold else [])


@pytest.mark.parametrize("workers", [0, 2])
def test_a_failure_to_ask_is_none(
    streams: dict[str, Any], workers: int, cold: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(index: Any) -> None:
        raise OSError("no")

    monkeypatch.setattr(streams["x"], "readahead", fail)
    with DataLoader(streams, workers, 8) as loader:
        assert len(list(itertools.islice(loader, 20))) == 20


def test_samplers_of_ones_own_are_not_asked_early(
    streams: dict[str, Any], cold: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class AtStep:
        seen: list[int] = []

        def indices_at(self, step: int) -> Any:
            self.seen.append(step)
            return [step, 0]

    asked = spied(streams, monkeypatch)
    with DataLoader(streams, 0, sampler=AtStep()) as loader:
        for _ in range(5):
            next(loader)
    assert AtStep.seen == list(range(5)) and not asked["x"]


def test_old_draws_are_forgotten(
    streams: dict[str, Any], cold: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_ahead, "_MOST", 5)
    with DataLoader(streams, 0, 8) as loader:
        for step in range(0, 400, 20):
            loader.seek(step)
            assert same(next(loader)["x"], loader.batch_at(step)["x"])
            assert len(loader._feed._job._ahead._kept) <= 5
