"""DataLoader: the right batches in the right order, and what is refused."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import same, same_list

from loaderx import _ring
from loaderx.dataloader import DataLoader
from loaderx.errors import StoreClosedError
from loaderx.zrecord import DenseStore, RaggedStore
from loaderx.zsampler import Sampler

IMAGES = np.random.default_rng(4).integers(0, 255, (500, 6, 7)).astype(np.uint8)
LABELS = np.arange(500, dtype=np.int64)
TOKENS = [np.arange(1 + i % 19, dtype=np.int32) + i for i in range(500)]

Streams = dict[str, Any]


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Streams]:
    folder = tmp_path_factory.mktemp("streams")
    image = DenseStore(folder / "image", np.uint8, (6, 7), codec="raw")
    label = DenseStore(folder / "label", np.int64, ())
    token = RaggedStore(folder / "token", np.int32)
    with image, label, token:
        image.append(IMAGES)
        label.append(LABELS)
        token.append(TOKENS)
        yield {"image": image, "label": label, "token": token}


def check(batch: Any, index: np.ndarray) -> None:
    assert list(batch) == ["image", "label", "token"]
    assert same(batch["image"], IMAGES[index])
    assert same(batch["label"], LABELS[index])
    assert same_list(batch["token"], [TOKENS[i] for i in index])


@pytest.mark.parametrize("ticket_seconds", [0.0, 1e9], ids=["single", "growing"])
@pytest.mark.parametrize("transform", [None, lambda batch: batch], ids=["plain", "transform"])
@pytest.mark.parametrize("workers", [0, 1, 2, 8])
def test_batches_come_in_step_order(
    streams: Streams,
    workers: int,
    transform: Any,
    ticket_seconds: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_ring, "TICKET_SECONDS", ticket_seconds)
    sampler = Sampler(500, 24, seed=8)
    with DataLoader(streams, workers, 24, 3, seed=8, transform=transform) as loader:
        for step in range(120):
            assert loader.step == step
            check(next(loader), sampler.indices_at(step))
        if ticket_seconds and workers:
            assert loader._feed.ring._steps > 1


@pytest.mark.parametrize("mode", list(Sampler.Mode))
def test_modes_and_ranks(streams: Streams, mode: int) -> None:
    for rank in range(3):
        sampler = Sampler(500, 12, mode, 1, rank=rank, world_size=3)
        with DataLoader(streams, 2, 12, 2, mode, 1, rank=rank, world_size=3) as loader:
            for step, batch in enumerate(itertools.islice(loader, 20)):
                check(batch, sampler.indices_at(step))


def test_the_transform_makes_the_batch(streams: Streams) -> None:
    def total(batch: Any) -> int:
        return int(batch["label"].sum())

    sampler = Sampler(500, 10)
    with DataLoader(streams, 3, 10, transform=total) as loader:
        for step, found in enumerate(itertools.islice(loader, 30)):
            assert found == sampler.indices_at(step).sum()


def test_batches_are_the_consumers(streams: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_ring, "TICKET_SECONDS", 1e9)
    sampler = Sampler(500, 16)
    with DataLoader(streams, 2, 16) as loader:
        kept = []
        for batch in itertools.islice(loader, 60):
            kept.append(batch["image"].copy())
            batch["image"][:] = 0
            for tokens in batch["token"]:
                tokens[:] = -1
        assert all(same(k, IMAGES[sampler.indices_at(s)]) for s, k in enumerate(kept))


@pytest.mark.parametrize("batch_size", [16, 10, 33])
def test_batches_start_on_a_line(
    streams: Streams, batch_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_ring, "TICKET_SECONDS", 1e9)
    dense = {name: streams[name] for name in ("image", "label")}  # of 42 and 8 bytes
    sampler = Sampler(500, batch_size)
    with DataLoader(dense, 2, batch_size) as loader:
        batches = list(itertools.islice(loader, 60))
        assert loader._feed.ring._steps > 1
    for step, batch in enumerate(batches):
        assert same(batch["image"], IMAGES[sampler.indices_at(step)])
        for array in batch.values():
            assert array.__array_interface__["data"][0] % 64 == 0
            assert array.flags.c_contiguous and len(array) == batch_size


@pytest.mark.parametrize("workers", [0, 3])
def test_seek_and_batch_at(streams: Streams, workers: int) -> None:
    sampler = Sampler(500, 20)
    with DataLoader(streams, workers, 20) as loader:
        for step in (0, 7, 3, 10**12, 0):
            loader.seek(step)
            assert loader.step == step
            check(loader.batch_at(step + 2), sampler.indices_at(step + 2))
            check(next(loader), sampler.indices_at(step))
            check(next(loader), sampler.indices_at(step + 1))
            assert loader.step == step + 2


class AtStep:
    """A sampler with indices_at(step), its batches of different sizes."""

    def indices_at(self, step: int) -> np.ndarray:
        return (np.arange(1 + step % 5) * 7 + step).astype(np.uint16) % 500


class OnlyNext:
    """A sampler with next() only."""

    def __init__(self, end: int = 10**9) -> None:
        self.step, self.end = 0, end

    def next(self) -> Any:
        if self.step == self.end:
            raise StopIteration
        self.step += 1
        return AtStep().indices_at(self.step - 1).tolist()


@pytest.mark.parametrize("make", [AtStep, OnlyNext])
@pytest.mark.parametrize("workers", [0, 1, 5])
def test_a_custom_sampler(
    streams: Streams, make: Callable[[], Any], workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_ring, "TICKET_SECONDS", 1e9)
    with DataLoader(streams, workers, sampler=make(), transform=lambda b: b) as loader:
        for step, batch in enumerate(itertools.islice(loader, 100)):
            check(batch, AtStep().indices_at(step).astype(int))


@pytest.mark.parametrize("workers", [0, 1, 5])
def test_a_custom_sampler_may_end(streams: Streams, workers: int) -> None:
    loader = DataLoader(streams, workers, sampler=OnlyNext(23), transform=lambda b: b)
    assert len(list(loader)) == 23
    assert loader.closed


def test_a_sampler_with_only_next_has_no_other_steps(streams: Streams) -> None:
    with DataLoader(streams, sampler=OnlyNext()) as loader:
        for use in (loader.seek, loader.batch_at):
            with pytest.raises(TypeError, match=r"indices_at\(step\), got OnlyNext"):
                use(3)
        next(loader)


def test_a_sampler_is_taken_up_at_its_step(streams: Streams) -> None:
    sampler = Sampler(500, 10, seed=77)
    sampler.seek(5)
    with DataLoader(streams, sampler=sampler) as loader:
        assert loader.step == 5
        check(next(loader), sampler.indices_at(5))
    assert sampler.step == 5


BAD: list[tuple[str, Callable[[Streams], Any], type[Exception], str]] = [
    ("list", lambda s: DataLoader([s["image"]]), TypeError, "dict of stores by name, got list"),
    ("store", lambda s: DataLoader(s["image"]), TypeError, "got DenseStore"),
    ("nothing", lambda s: DataLoader({}), ValueError, "at least one store, got an empty dict"),
    (
        "array",
        lambda s: DataLoader({"a": IMAGES}),
        TypeError,
        "'a' to be a DenseStore or RaggedStore, got",
    ),
    ("name", lambda s: DataLoader({5: s["image"]}), TypeError, "names that are str, got int 5"),
    (
        "workers",
        lambda s: DataLoader(s, -1),
        ValueError,
        "num_workers: expected at least 0, got -1",
    ),
    ("workers", lambda s: DataLoader(s, 1.5), TypeError, "num_workers: expected an integer"),
    ("workers", lambda s: DataLoader(s, True), TypeError, "num_workers: expected an integer"),
    ("batch", lambda s: DataLoader(s, batch_size=0), ValueError, "batch_size: expected at least 1"),
    ("batch", lambda s: DataLoader(s, batch_size=501), ValueError, "the length 500 .* got 501"),
    (
        "prefetch",
        lambda s: DataLoader(s, prefetch_size=0),
        ValueError,
        "prefetch_size: expected at least 1",
    ),
    ("mode", lambda s: DataLoader(s, mode=5), ValueError, "mode: expected one of"),
    ("seed", lambda s: DataLoader(s, seed=-1), ValueError, "seed: expected at least 0"),
    (
        "transform",
        lambda s: DataLoader(s, transform=5),
        TypeError,
        "transform: expected a callable",
    ),
    (
        "sampler",
        lambda s: DataLoader(s, sampler=5),
        TypeError,
        "sampler: expected a loaderx Sampler, or",
    ),
    (
        "sampler",
        lambda s: DataLoader(s, sampler=Sampler(499, 5)),
        ValueError,
        "expected one for the streams' length 500, got length 499",
    ),
    (
        "ranks",
        lambda s: DataLoader(s, world_size=3),
        ValueError,
        "multiple of world_size 3, got 256",
    ),
    ("rank", lambda s: DataLoader(s, rank=2, world_size=2), ValueError, "rank: expected at most 1"),
]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [pytest.param(*case[1:], id=f"{n} {case[0]}") for n, case in enumerate(BAD)],
)
def test_bad_arguments(streams: Streams, make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make(streams)


def test_streams_of_unequal_length_are_named(streams: Streams, tmp_path: Path) -> None:
    with RaggedStore(tmp_path / "r", "u1") as short:
        short.append([b"x"])
        with pytest.raises(ValueError, match="'image' has 500, 'short' has 1"):
            DataLoader({"image": streams["image"], "short": short})


def test_empty_and_closed_streams(tmp_path: Path) -> None:
    with DenseStore(tmp_path / "d", "u1", ()) as empty:
        with pytest.raises(ValueError, match="stores that hold records, got: 'a' has 0"):
            DataLoader({"a": empty})
    with pytest.raises(StoreClosedError):
        DataLoader({"a": empty})


def test_it_is_endless_and_has_no_length(streams: Streams) -> None:
    with DataLoader(streams, batch_size=100) as loader:
        assert iter(loader) is loader
        with pytest.raises(TypeError):
            len(loader)
        assert sum(1 for _ in itertools.islice(loader, 20)) == 20


@pytest.mark.parametrize("sampler", [AtStep(), "floats", "outside"])
def test_what_a_custom_sampler_gives_is_checked(streams: Streams, sampler: Any) -> None:
    class Bad:
        def indices_at(self, step: int) -> Any:
            return [0.5] if sampler == "floats" else [0, 500]

    if isinstance(sampler, AtStep):
        DataLoader(streams, sampler=sampler).batch_at(3)
        return
    loader = DataLoader(streams, sampler=Bad())
    error, text = (TypeError, "integers for step 0") if sampler == "floats" else (IndexError, "500")
    with pytest.raises(error, match=text):
        next(loader)


def test_repr_tells_all_of_it(streams: Streams) -> None:
    with DataLoader(streams, 2, 50) as loader:
        next(loader)
        text = repr(loader)
    for part in ("'image'", "'token'", "Sampler(500, 50", "num_workers=2", "step=1"):
        assert part in text
    assert "closed" in repr(loader)
