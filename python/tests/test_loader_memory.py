"""DataLoader: ragged streams as lists, packed or padded, and max_memory."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import same, same_list

from loaderx import _ring
from loaderx._stats import Stats
from loaderx._streams import Single
from loaderx._ticket import Job, Result
from loaderx.dataloader import DataLoader
from loaderx.zrecord import DenseStore, RaggedBatch, RaggedStore
from loaderx.zsampler import Sampler

TOKENS = [np.arange(i % 9, i % 9 + 1 + i % 7, dtype=np.int32) for i in range(200)]


@pytest.fixture
def streams(tmp_path: Path) -> Iterator[dict[str, Any]]:
    with DenseStore(tmp_path / "d", np.int64, (), codec="raw") as dense:
        dense.append(np.arange(200))
        with RaggedStore(tmp_path / "r", np.int32) as ragged:
            ragged.append(TOKENS)
            yield {"x": dense, "text": ragged}


@pytest.fixture(params=[0.0, 1e9], ids=["single", "growing"], autouse=True)
def ticket_seconds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_ring, "TICKET_SECONDS", request.param)


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_packed(streams: dict[str, Any], workers: int) -> None:
    sampler = Sampler(200, 8)
    with DataLoader(streams, workers, 8, ragged="packed") as loader:
        for step in range(60):
            batch, index = next(loader), sampler.indices_at(step)
            assert same(batch["x"], index)
            assert isinstance(batch["text"], RaggedBatch)
            assert batch["text"].offsets[0] == 0
            assert same_list(batch["text"].to_list(), [TOKENS[i] for i in index])


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_padded(streams: dict[str, Any], workers: int) -> None:
    sampler = Sampler(200, 8)
    with DataLoader(streams, workers, 8, ragged="padded") as loader:
        for step in range(60):
            array, lengths = next(loader)["text"]
            expected = [TOKENS[i] for i in sampler.indices_at(step)]
            assert lengths.tolist() == list(map(len, expected))
            assert array.shape == (8, max(lengths))
            for row, length, record in zip(array, lengths, expected):
                assert same(row[:length], record) and not row[length:].any()


def test_a_pass_and_a_copy_are_as_their_loader(streams: dict[str, Any]) -> None:
    with DataLoader(streams, 2, 64, mode=0, ragged="packed", max_memory=5000) as loader:
        assert [len(batch["text"]) for batch in loader.epoch()] == [64, 64, 64, 8]
        twin = copy.deepcopy(loader)
        assert isinstance(next(twin)["text"], RaggedBatch)
        assert twin._feed.ring._max_memory == 5000
        for store in twin._streams.values():
            store.close()


def test_records_that_cannot_be_padded_are_named(streams: dict[str, Any], tmp_path: Path) -> None:
    with RaggedStore(tmp_path / "odd", np.uint8) as odd:
        odd.append(np.zeros((2, 2 + (i == 20)), np.uint8) for i in range(200))
        loader = DataLoader({"odd": odd}, 2, 8, mode=0, ragged="padded")
        next(loader), next(loader)
        with pytest.raises(ValueError, match="pad: expected records that differ") as caught:
            next(loader)
        notes = getattr(caught.value, "__notes__", [])
        assert any("reading stream 'odd' for step 2" in note for note in notes)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"ragged": "rows"}, ValueError, "ragged: expected one of 'list', .* got 'rows'"),
        ({"ragged": None}, ValueError, "ragged: expected one of .* got None"),
        ({"max_memory": 0}, ValueError, "max_memory: expected at least 1, got 0"),
        ({"max_memory": 1e6}, TypeError, "max_memory: expected an integer"),
    ],
)
def test_bad_arguments(
    streams: dict[str, Any], arguments: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        DataLoader(streams, batch_size=8, **arguments)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize(("max_memory", "most"), [(1, 1), (80, 1), (400, 5), (239, 2)])
def test_no_more_is_made_ahead_than_max_memory(
    streams: dict[str, Any], max_memory: int, most: int, workers: int
) -> None:
    made, lock = [0], threading.Lock()

    def transform(batch: Any) -> Any:
        with lock:
            made[0] += 1
        return batch

    x = {"x": streams["x"]}  # 80 bytes a batch
    with DataLoader(x, workers, 10, 50, transform=transform, max_memory=max_memory) as loader:
        ring = loader._feed.ring
        for consumed in range(1, 13):
            next(loader)
            for thread in list(ring._threads):
                thread.join(60)
                assert not thread.is_alive()
            assert made[0] - consumed <= most


def test_the_batches_of_a_ticket_count_until_all_are_taken() -> None:
    job = Job(Single({}, "list"), None, None, None, 1, Stats([]), "list")
    ring = _ring.Ring(job, 1, 4, 0, max_memory=400)

    def put(steps: int) -> None:
        claimed = ring.claim()
        assert claimed is not None and claimed.steps == steps
        result = Result(claimed.step)
        result.batches, result.nbytes = [None] * steps, 80 * steps  # so 5 may be held
        ring.put(claimed, result)

    put(1)
    ring.take()
    ring._steps = 2
    put(2)
    ring._steps = 4
    ring.take()
    assert ring.consumed == 2 and not ring._has_room(), "2 are held, and 4 would make 6"
    ring.take()
    assert ring._has_room()
    put(4)


def test_without_max_memory_it_runs_ahead_by_prefetch_size(streams: dict[str, Any]) -> None:
    with DataLoader(streams, 1, 10, 50, transform=lambda batch: batch) as loader:
        next(loader)
        for thread in list(loader._feed.ring._threads):
            thread.join(60)
        assert loader._feed.ring.ready >= 50


@pytest.mark.parametrize("workers", [1, 4])
def test_a_loader_that_may_hold_little_still_gives_all(
    streams: dict[str, Any], workers: int
) -> None:
    sampler = Sampler(200, 10)
    for max_memory in (1, 100, 300, 2000):
        with DataLoader(streams, workers, 10, max_memory=max_memory) as loader:
            for step in range(100):
                assert same(next(loader)["x"], sampler.indices_at(step))
            assert len(list(loader.epoch())) == 20


@pytest.mark.parametrize("workers", [1, 3])
def test_batches_that_become_large_exceed_it_by_one_for_each_worker(
    tmp_path: Path, workers: int
) -> None:
    sizes = [10] * 100 + [1000] * 30
    with RaggedStore(tmp_path / "v", np.uint8, codec="raw") as store:
        store.append(np.zeros(size, np.uint8) for size in sizes)
        held, most, lock = [0], [0], threading.Lock()

        def transform(batch: Any) -> Any:
            with lock:
                held[0] += batch["v"][0].nbytes
                most[0] = max(most[0], held[0])
            return batch

        with DataLoader(
            {"v": store}, workers, 1, 64, 0, transform=transform, max_memory=2500
        ) as loader:
            for size in sizes:
                batch = next(loader)
                for thread in list(loader._feed.ring._threads):
                    thread.join(60)
                with lock:
                    assert batch["v"][0].nbytes == size
                    held[0] -= size
        assert 1000 <= most[0] <= 2500 + (workers + 1) * 1000  # one is the consumer's


def test_what_is_held_counts_as_it_was_read() -> None:
    job = Job(Single({}, "list"), None, None, None, 1, Stats([]), "list")
    ring = _ring.Ring(job, 2, 20, 0, max_memory=1000)

    def put(nbytes: int, claimed: Any = None) -> None:
        claimed = claimed or ring.claim()
        assert claimed is not None and claimed.steps == 1
        result = Result(claimed.step)
        result.batches, result.nbytes, result.seconds = [None], nbytes, 1e10
        ring.put(claimed, result)

    put(400), put(50), put(50)
    assert ring._has_room(), "500 are held, and another may take 400"
    under_way = ring.claim()
    assert not ring._has_room(), "another could make 1300"
    put(50, under_way)
    assert ring._has_room(), "550 are held"
    put(100)
    assert not ring._has_room(), "650 are held"
    ring.take()
    assert ring._has_room(), "250 are held"
