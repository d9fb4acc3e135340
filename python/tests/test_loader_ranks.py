"""Ranks: one global order for any number of them, and finding out which one this is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support import same

from loaderx.dataloader import DataLoader
from loaderx.zrecord import DenseStore
from loaderx.zsampler import Sampler


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DenseStore]:
    with DenseStore(tmp_path / "s", np.int64, (), codec="raw") as found:
        found.append(np.arange(500))
        yield found


@pytest.fixture(autouse=True)
def nothing_says_which_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delitem(sys.modules, "torch.distributed", raising=False)


@pytest.mark.parametrize("mode", list(Sampler.Mode))
def test_every_number_of_ranks_sees_one_global_order(store: DenseStore, mode: int) -> None:
    expected = [Sampler(500, 48, mode, 3).indices_at(step) for step in range(25)]
    for world_size in (1, 2, 3, 8):
        loaders = [
            DataLoader({"x": store}, 1, 48, mode=mode, seed=3, rank=rank, world_size=world_size)
            for rank in range(world_size)
        ]
        for index in expected:
            parts = [next(loader)["x"] for loader in loaders]
            assert {len(part) for part in parts} == {48 // world_size}
            assert same(np.concatenate(parts), index)
        for loader in loaders:
            loader.close()


def test_auto_takes_the_environment(store: DenseStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "3")
    with DataLoader({"x": store}, batch_size=12, rank="auto") as loader:
        assert loader.state_dict()["rank"] == 2 and loader.state_dict()["world_size"] == 3
        assert same(next(loader)["x"], Sampler(500, 12).indices_at(0)[8:])
    with DataLoader({"x": store}, batch_size=12) as loader:
        assert loader.state_dict()["world_size"] == 1, "only when asked for"
    assert repr(Sampler(500, 12, rank="auto")).endswith("rank=2, world_size=3, step=0)")


def torch(available: bool, initialised: bool) -> Any:
    return SimpleNamespace(
        is_available=lambda: available,
        is_initialized=lambda: initialised,
        get_rank=lambda: 1,
        get_world_size=lambda: 4,
    )


def test_auto_takes_torch_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setitem(sys.modules, "torch.distributed", torch(True, True))
    sampler = Sampler(500, 12, rank="auto")
    assert (sampler.rank, sampler.world_size) == (1, 4)
    for unready in (torch(False, True), torch(True, False)):
        monkeypatch.setitem(sys.modules, "torch.distributed", unready)
        sampler = Sampler(500, 12, rank="auto")
        assert (sampler.rank, sampler.world_size) == (0, 2)


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({}, "torch.distributed to be initialised or integers .* got RANK=None, WORLD_SIZE=None"),
        ({"RANK": "1"}, "got RANK='1', WORLD_SIZE=None"),
        ({"RANK": "one", "WORLD_SIZE": "2"}, "got RANK='one', WORLD_SIZE='2'"),
        ({"RANK": "2", "WORLD_SIZE": "2"}, "expected 0 <= RANK < WORLD_SIZE .* got RANK='2'"),
        ({"RANK": "-1", "WORLD_SIZE": "2"}, "expected 0 <= RANK < WORLD_SIZE"),
        ({"RANK": "0", "WORLD_SIZE": "7"}, "expected a multiple of world_size 7, got 12"),
    ],
)
def test_auto_says_what_is_missing(
    environment: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=message):
        Sampler(500, 12, rank="auto")


def test_other_words_are_refused(store: DenseStore) -> None:
    with pytest.raises(ValueError, match="expected an integer or \"auto\", got 'first'"):
        Sampler(500, 12, rank="first")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match='left out beside rank="auto", got 2'):
        DataLoader({"x": store}, batch_size=12, rank="auto", world_size=2)


class Mine:
    """A sampler of one's own, of a rank."""

    def __init__(self, rank: Any = None, world_size: Any = None) -> None:
        if rank is not None:
            self.rank, self.world_size = rank, world_size

    def indices_at(self, step: int) -> Any:
        return [step]


@pytest.mark.parametrize("sampler", [Mine(), Mine(0, 2), Mine(1, 3)])
def test_a_sampler_of_ones_own_has_to_know_its_rank(store: DenseStore, sampler: Mine) -> None:
    with pytest.raises(ValueError, match="rank and world_size are those of the loader, 1 and 2"):
        DataLoader({"x": store}, sampler=sampler, rank=1, world_size=2)
    DataLoader({"x": store}, sampler=sampler).close()
    DataLoader({"x": store}, sampler=Mine(1, 2), rank=1, world_size=2).close()
