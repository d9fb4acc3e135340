"""DataLoader.stats, report and on_step: where the time goes, with a clock of the test's own."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loaderx import _feed, _stats, _ticket
from loaderx.dataloader import DataLoader
from loaderx.errors import LoaderClosedError, ZrecordError
from loaderx.zrecord import DenseStore, RaggedStore


class Clock:
    """A clock that goes on only when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def perf_counter(self) -> float:
        return self.now

    def spend(self, seconds: float, result: Any = None) -> Any:
        self.now += seconds
        return result


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    for module in (_feed, _stats, _ticket):
        monkeypatch.setattr(module, "time", found)
    from_disk = iter(range(1000, 2000, 10))
    monkeypatch.setattr(_stats, "bytes_from_disk", lambda: next(from_disk))
    return found


@pytest.fixture
def streams(tmp_path: Path) -> Iterator[dict[str, Any]]:
    with DenseStore(tmp_path / "d", np.int64, (), codec="raw") as dense:
        dense.append(np.arange(100))
        with RaggedStore(tmp_path / "r", np.uint8) as ragged:
            ragged.append(bytes(3) for _ in range(100))
            yield {"x": dense, "text": ragged}


class Slow:
    """A sampler that takes half a second."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def indices_at(self, step: int) -> Any:
        return self.clock.spend(0.5, [step, step + 1])


def test_every_second_is_counted_where_it_was_spent(
    streams: dict[str, Any], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, seconds in (("x", 0.25), ("text", 2.0)):
        read = streams[name]._read
        monkeypatch.setattr(
            streams[name], "_read", lambda *a, r=read, s=seconds: clock.spend(s, r(*a))
        )
    with DataLoader(
        streams, 0, sampler=Slow(clock), transform=lambda batch: clock.spend(4.0, batch)
    ) as loader:
        for _ in range(3):
            next(loader)
            clock.spend(1.0)
        assert loader.stats() == {
            "steps": 3,
            "seconds": 3 * 6.75 + 2,
            "waiting_for_data": 3 * 6.75,
            "waiting_for_consumer": 2.0,
            "sampling": 1.5,
            "reading": {"x": 0.75, "text": 6.0},
            "transforming": 12.0,
            "bytes": {"x": 3 * 16, "text": 3 * 6},
            "queue_depth": 0.0,
            "cached": 1 - 10 / 66,
        }
        assert loader.report().splitlines() == [
            "3 steps in 22.250 s",
            "  waiting for data             20.250 s",
            "  waiting for the consumer      2.000 s",
            "  workers: sampling             1.500 s",
            "  workers: reading 'x'          0.750 s  48 bytes",
            "  workers: reading 'text'       6.000 s  18 bytes",
            "  workers: transforming        12.000 s",
            "  batches ready when one was asked for: 0.0",
            "  read from memory and not from disk, estimated: 70%",
            "waiting for the transform 91% of the time: add workers or move it off the GIL",
        ]


NUMBERS = {
    "seconds": 10.0,
    "waiting_for_data": 5.0,
    "sampling": 1.0,
    "reading": {"a": 1.0, "b": 1.0},
    "transforming": 1.0,
}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"transforming": 9.0}, "waiting for the transform 50% of the time: add workers"),
        ({"reading": {"a": 1.0, "b": 2.0}}, "waiting for stream 'b' to be read 50% of the time"),
        ({"sampling": 2.0}, "waiting for the sampler 50% of the time: let it"),
        ({"waiting_for_data": 0.9}, "waiting for data 9% of the time: the loop is limited by what"),
        ({"seconds": 0.0}, "no batch was asked for yet"),
    ],
)
def test_the_sentence(changes: dict[str, Any], sentence: str) -> None:
    assert _stats.verdict({**NUMBERS, **changes}).startswith(sentence)


@pytest.mark.parametrize("workers", [1, 3])
def test_workers_are_counted_too(streams: dict[str, Any], workers: int) -> None:
    with DataLoader(streams, workers, 10, transform=lambda batch: batch) as loader:
        for _ in range(30):
            next(loader)
        found = loader.stats()
        assert found["steps"] == 30
        assert found["bytes"]["x"] >= 30 * 80 and found["bytes"]["text"] >= 30 * 30
        assert found["bytes"]["x"] * 3 == found["bytes"]["text"] * 8
        assert found["seconds"] >= found["waiting_for_data"] > 0
        assert min(found["reading"].values()) > 0 and found["sampling"] > 0
        assert loader.report().startswith("30 steps in ")


def test_what_is_ready_is_counted(streams: dict[str, Any]) -> None:
    with DataLoader(streams, 1, 10, prefetch_size=3, transform=lambda batch: batch) as loader:
        next(loader)
        _until_workers_end(loader)
        depth = loader._feed.ring.ready
        assert depth == loader._feed.ring._claimed - 1 >= 3
        next(loader)
        assert loader.stats()["queue_depth"] == depth / 2
        loader.seek(0)
        assert loader._feed.ring.ready == 0


def _until_workers_end(loader: DataLoader) -> None:
    for thread in list(loader._feed.ring._threads):
        thread.join(60)
        assert not thread.is_alive()


def test_passes_are_counted_with_their_loader(streams: dict[str, Any]) -> None:
    with DataLoader(streams, 2, 10) as loader:
        assert loader.report().endswith("no batch was asked for yet")
        list(loader.epoch())
        assert loader.stats()["steps"] == 10
        assert loader.stats()["bytes"] == {"x": 800, "text": 300}


@pytest.mark.parametrize("workers", [0, 2])
def test_on_step_is_told_of_every_batch(streams: dict[str, Any], workers: int) -> None:
    told: list[Any] = []
    with DataLoader(streams, workers, 10, on_step=told.append) as loader:
        loader.seek(7)
        for _ in range(5):
            next(loader)
        list(loader.epoch(3, number=2))
    assert [info.step for info in told] == [7, 8, 9, 10, 11, 6, 7, 8]
    assert all(info.waited > 0 and info.ready >= 0 for info in told)


def test_on_step_is_told_how_long_it_took(streams: dict[str, Any], clock: Clock) -> None:
    told: list[Any] = []
    loader = DataLoader(streams, 0, sampler=Slow(clock), on_step=told.append)
    next(loader)
    assert told == [(0, 0.5, 0)]


@pytest.mark.parametrize("workers", [0, 2])
def test_what_on_step_raises_arrives_and_the_step_is_not_done(
    streams: dict[str, Any], workers: int
) -> None:
    def on_step(info: Any) -> None:
        if info.step == 3:
            raise KeyError("three")

    loader = DataLoader(streams, workers, 10, on_step=on_step)
    for _ in range(3):
        next(loader)
    with pytest.raises(KeyError, match="three") as caught:
        next(loader)
    assert any("on_step of step 3" in note for note in getattr(caught.value, "__notes__", []))
    with pytest.raises(LoaderClosedError, match="closed at step 3"):
        next(loader)
    assert loader.state_dict()["step"] == 3


def test_stop_iteration_in_on_step_does_not_end_the_loop_silently(streams: dict[str, Any]) -> None:
    loader = DataLoader(streams, 2, 10, on_step=lambda info: next(iter(())))
    with pytest.raises(RuntimeError, match="on_step raised StopIteration for step 0"):
        list(loader)


def test_on_step_cannot_wait_for_its_own_loader(streams: dict[str, Any]) -> None:
    loader = DataLoader(streams, 2, 10, on_step=lambda info: next(loader))
    with pytest.raises(ZrecordError, match="on_step, which would wait for itself"):
        next(loader)


def test_on_step_has_to_be_callable(streams: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="on_step: expected a callable or None, got int"):
        DataLoader(streams, on_step=5)  # type: ignore[arg-type]


def test_what_came_from_disk_is_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _stats.cached(100, 50, 75) == 0.75
    assert _stats.cached(100, 50, 50) == 1.0
    assert _stats.cached(100, 50, 1000) == 0.0
    assert _stats.cached(0, 50, 50) is None
    assert _stats.cached(100, None, 50) is None and _stats.cached(100, 50, None) is None
    found = _stats.bytes_from_disk()
    if sys.platform == "linux":
        assert isinstance(found, int) and found >= 0
    monkeypatch.setattr("builtins.open", _refuse)
    assert _stats.bytes_from_disk() is None


def _refuse(*arguments: Any) -> Any:
    raise PermissionError("not here")


def test_a_report_without_an_estimate_has_one_line_less(
    streams: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_stats, "bytes_from_disk", lambda: None)
    with DataLoader(streams, 0, 5) as loader:
        next(loader)
        assert loader.stats()["cached"] is None
        assert "estimated" not in loader.report()


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_of_a_pass_count_however_it_ends(streams: dict[str, Any], workers: int) -> None:
    with DataLoader(streams, batch_size=4, num_workers=workers) as loader:
        for _ in range(3):
            for k, _batch in enumerate(loader.epoch(40)):
                if k == 9:
                    break
        del _batch
        gc.collect()
        under_way = iter(loader.epoch(40))
        for _ in range(7):
            next(under_way)
        assert loader.stats()["steps"] == 37
