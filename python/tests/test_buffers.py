"""DataLoader(buffers=...): batches in memory of the caller's, and its release."""

from __future__ import annotations

import copy
import gc
import itertools
import pickle
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support import same, same_list

from loaderx import _ring
from loaderx.dataloader import BufferRing, DataLoader
from loaderx.errors import LoaderClosedError
from loaderx.zrecord import DenseStore, RaggedStore
from loaderx.zsampler import Mix, Sampler, TokenBudget

IMAGES = np.random.default_rng(8).integers(0, 255, (120, 4, 3)).astype(np.uint8)
TEXTS = [np.arange(1 + i % 9, dtype=np.int32) + i for i in range(120)]


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("buffers")
    image = DenseStore(folder / "image", np.uint8, (4, 3), codec="raw")
    label = DenseStore(folder / "label", np.int64, ())
    text = RaggedStore(folder / "text", np.int32)
    with image, label, text:
        image.append(IMAGES)
        label.append(np.arange(120))
        text.append(TEXTS)
        yield {"image": image, "label": label, "text": text}


@pytest.fixture(autouse=True)
def growing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_ring, "TICKET_SECONDS", 1e9)


def arrays(slots: int, records: int = 8) -> list[np.ndarray]:
    return [np.zeros((records, 4, 3), np.uint8) for _ in range(slots)]


def ring_of(owned: list[np.ndarray], **named: Any) -> BufferRing:
    return BufferRing(({"image": array} for array in owned), **named)


@pytest.mark.parametrize("slots", [1, 2, 5])
@pytest.mark.parametrize("workers", [0, 1, 3])
def test_batches_are_in_the_callers_arrays(
    streams: dict[str, Any], workers: int, slots: int
) -> None:
    owned, sampler = arrays(slots), Sampler(120, 8)
    ring = ring_of(owned)
    with DataLoader(streams, workers, 8, buffers=ring, transform=lambda b: b) as loader:
        for step in range(60):
            batch, index = next(loader), sampler.indices_at(step)
            assert any(batch["image"] is array for array in owned)
            assert same(batch["image"], IMAGES[index]) and same(batch["label"], index)
            assert same_list(batch["text"], [TEXTS[i] for i in index])
            assert ring.held == 1
            ring.release()
    assert ring.held == 0


def test_what_is_held_is_not_written_to(streams: dict[str, Any]) -> None:
    ring, sampler = ring_of(arrays(5)), Sampler(120, 8)
    with DataLoader(streams, 2, 8, 20, buffers=ring) as loader:
        for start in range(0, 40, 4):
            held = [next(loader)["image"] for _ in range(4)]
            assert ring.held == 4
            for step, image in enumerate(held, start):
                assert same(image, IMAGES[sampler.indices_at(step)])
            for _ in range(4):
                ring.release()


@pytest.mark.parametrize("workers", [0, 2])
def test_nothing_is_waited_for_longer_than_the_timeout(
    streams: dict[str, Any], workers: int
) -> None:
    ring, sampler = ring_of(arrays(2), timeout=0.01), Sampler(120, 8)
    with DataLoader(streams, workers, 8, buffers=ring) as loader:
        next(loader)
        next(loader)
        with pytest.raises(TimeoutError, match="one of 2 buffers .* within 0.01 s, got 2 held"):
            next(loader)
        ring.release()
        assert loader.step == 2
        assert same(next(loader)["image"], IMAGES[sampler.indices_at(2)])


@pytest.mark.parametrize("workers", [0, 2])
def test_another_thread_may_release(streams: dict[str, Any], workers: int) -> None:
    ring, sampler = ring_of(arrays(2), timeout=60), Sampler(120, 8)
    with DataLoader(streams, workers, 8, buffers=ring) as loader:
        next(loader)
        next(loader)
        other = threading.Timer(0.01, ring.release)
        other.start()
        assert same(next(loader)["image"], IMAGES[sampler.indices_at(2)])
        other.join()


@pytest.mark.parametrize("workers", [0, 2])
def test_close_ends_the_wait(streams: dict[str, Any], workers: int) -> None:
    loader = DataLoader(streams, workers, 8, buffers=ring_of(arrays(1), timeout=60))
    next(loader)
    other = threading.Timer(0.01, loader.close)
    other.start()
    with pytest.raises(LoaderClosedError):
        next(loader)
    other.join()


@pytest.mark.parametrize("workers", [0, 1, 4])
def test_slots_come_back_whatever_happens(streams: dict[str, Any], workers: int) -> None:
    ring = ring_of(arrays(4))

    def fail(batch: Any) -> Any:
        if (batch["label"] == 7).any():
            raise KeyError("seven")
        return batch

    for turn in range(8):
        loader = DataLoader(streams, workers, 8, buffers=ring, seed=turn, transform=fail)
        try:
            for batch in itertools.islice(loader, 1 + turn):
                del batch
                ring.release()
            loader.seek(3)
            next(loader)
            ring.release()
        except KeyError:
            assert loader.closed
        if turn % 2:
            loader.close()
        del loader
        gc.collect()
    for thread in threading.enumerate():
        if thread.name == "loaderx worker":
            thread.join(60)
    assert (ring.free, ring.held) == (4, 0)


def test_a_step_that_on_step_refuses_is_not_held(streams: dict[str, Any]) -> None:
    def refuse(step: Any) -> None:
        raise KeyError("no")

    ring = ring_of(arrays(2))
    with DataLoader(streams, 1, 8, buffers=ring, on_step=refuse) as loader:
        with pytest.raises(KeyError):
            next(loader)
    assert ring.held == 0


def test_passes_use_them_and_batch_at_does_not(streams: dict[str, Any]) -> None:
    owned = arrays(2, 50)
    ring = ring_of(owned)
    with DataLoader(streams, 2, 50, mode=0, buffers=ring) as loader:
        assert not any(np.shares_memory(loader.batch_at(0)["image"], array) for array in owned)
        found = []
        for batch in loader.epoch():
            assert any(np.shares_memory(batch["image"], array) for array in owned)
            found.append(batch["image"].copy())
            ring.release()
    assert [len(part) for part in found] == [50, 50, 20]
    assert same(np.concatenate(found), IMAGES)


def test_batches_of_varying_counts_need_room(streams: dict[str, Any]) -> None:
    plan = TokenBudget(40, streams["text"])
    sampler = plan.sampler()
    for records, fits in ((40, True), (4, False)):
        ring = ring_of(arrays(3, records))
        with DataLoader(streams, 2, sampler=plan, buffers=ring) as loader:
            if not fits:
                with pytest.raises(ValueError, match="buffers: expected room for .* got 4"):
                    for _ in loader:
                        ring.release()
                continue
            for step in range(sampler.cycle):
                assert same(next(loader)["image"], IMAGES[sampler.indices_at(step)])
                ring.release()


def test_a_mix_reads_into_them(streams: dict[str, Any]) -> None:
    owned = arrays(2)
    ring, mix = ring_of(owned), Mix({"a": 1, "b": 3})
    sampler = mix.sampler({"a": 120, "b": 120}, 8)
    with DataLoader({"a": streams, "b": streams}, 2, 8, sampler=mix, buffers=ring) as loader:
        for step in range(30):
            image = next(loader)["image"]
            assert any(image is array for array in owned)
            assert same(image, IMAGES[sampler.indices_at(step).record])
            ring.release()


def test_release_needs_something_to_release() -> None:
    with pytest.raises(ValueError, match="release: expected a batch that was given"):
        ring_of(arrays(1)).release()


def test_a_loader_with_buffers_is_not_copied(streams: dict[str, Any]) -> None:
    with DataLoader(streams, 1, 8, buffers=ring_of(arrays(1))) as loader:
        for use in (pickle.dumps, copy.deepcopy):
            with pytest.raises(TypeError, match="buffers are memory of this process"):
                use(loader)
    assert repr(ring_of(arrays(3))) == "BufferRing(3 slots, free=3, held=0)"


BAD: list[tuple[Any, type[Exception], str]] = [
    ([], ValueError, "slots: expected at least one, got none"),
    ([arrays(1)[0]], TypeError, "expected a dict of arrays for slot 0, got ndarray"),
    ([{"image": [1]}], TypeError, "expected an array for 'image' of slot 0, got list"),
    ([{"image": arrays(1)[0][::2]}], ValueError, "'image' of slot 0 to be C-contiguous and"),
    ([{"image": np.broadcast_to(np.uint8(0), (8, 4, 3))}], ValueError, "C-contiguous and writable"),
]


@pytest.mark.parametrize(("slots", "error", "message"), BAD)
def test_bad_slots(slots: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        BufferRing(slots)


def test_bad_timeout() -> None:
    with pytest.raises(ValueError, match="timeout: expected seconds above 0, got 0"):
        ring_of(arrays(1), timeout=0)


FITS: list[tuple[Any, type[Exception], str]] = [
    ([1], TypeError, "buffers: expected a BufferRing or None, got list"),
    (BufferRing([{"x": arrays(1)[0]}]), ValueError, "'x' of slot 0 to be a dense stream, one of"),
    (BufferRing([{"text": arrays(1)[0]}]), ValueError, "'text' of slot 0 to be a dense stream"),
    (BufferRing([{"label": arrays(1)[0]}]), ValueError, "of dtype int64, got uint8"),
    (
        BufferRing([{"label": np.zeros((8, 1), int)}]),
        ValueError,
        r"shape \('n',\), got \(8, 1\)",
    ),
    (ring_of(arrays(1, 7)), ValueError, "slot 0 to be for 8 records, got 7"),
]


@pytest.mark.parametrize(("buffers", "error", "message"), FITS)
def test_what_does_not_fit_the_streams(
    streams: dict[str, Any], buffers: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        DataLoader(streams, 1, 8, buffers=buffers)


@pytest.mark.parametrize("slots", [1, 2, 4])
@pytest.mark.parametrize("workers", [0, 1, 3])
def test_a_pass_gets_the_slots_of_what_was_made_ahead(
    streams: dict[str, Any], workers: int, slots: int
) -> None:
    ring, sampler = ring_of(arrays(slots), timeout=60), Sampler(120, 8)
    with DataLoader(streams, workers, 8, buffers=ring) as loader:
        for step in range(3):
            assert same(next(loader)["image"], IMAGES[sampler.indices_at(step)])
            ring.release()
            if workers:
                until_full(loader)
            assert len([ring.release() for _ in loader.epoch(4)]) == 4
    assert ring.held == 0


def until_full(loader: DataLoader) -> None:
    """Wait until the workers have nothing left to do."""
    for thread in list(loader._feed.ring._threads):
        thread.join(60)


@pytest.mark.parametrize("slots", [1, 3])
@pytest.mark.parametrize("workers", [(1, 1), (0, 2), (3, 3)])
def test_loaders_share_a_ring(streams: dict[str, Any], workers: Any, slots: int) -> None:
    ring = ring_of(arrays(slots), timeout=60)
    samplers = [Sampler(120, 8, seed=seed) for seed in (1, 2)]
    loaders = [
        DataLoader(streams, count, 8, seed=seed, buffers=ring)
        for count, seed in zip(workers, (1, 2))
    ]
    for step in range(20):
        for loader, sampler in zip(loaders, samplers):
            assert same(next(loader)["image"], IMAGES[sampler.indices_at(step)])
            ring.release()
            if step < 3:
                until_full(loader)
    for loader in loaders:
        loader.close()


def test_loaders_of_two_threads_share_a_ring(streams: dict[str, Any]) -> None:
    ring, turn = ring_of(arrays(4), timeout=60), threading.Lock()
    loaders = [DataLoader(streams, 2, 8, seed=seed, buffers=ring) for seed in (1, 2)]
    wrong: list[int] = []

    def consume(loader: DataLoader, sampler: Sampler) -> None:
        for step in range(100):
            with turn:  # release() gives back the oldest
                image = next(loader)["image"]
                if not same(image, IMAGES[sampler.indices_at(step)]):
                    wrong.append(step)
                ring.release()

    threads = [
        threading.Thread(target=consume, args=(loader, Sampler(120, 8, seed=seed)), daemon=True)
        for loader, seed in zip(loaders, (1, 2))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert not wrong
    for loader in loaders:
        loader.close()


def test_slots_have_memory_of_their_own() -> None:
    block = np.zeros((20, 4, 3), np.uint8)
    for slots in (
        [{"image": block}, {"image": block}],
        [{"image": block[:8]}, {"image": block[7:15]}],
        [{"image": block[:8], "mask": block[4:12]}],
    ):
        with pytest.raises(ValueError, match="expected memory of its own for .* got that of"):
            BufferRing(slots)
    assert len(BufferRing([{"image": block[:10]}, {"image": block[10:]}])) == 2


@pytest.mark.parametrize("timeout", ["a", None, True])
def test_a_timeout_is_a_number(timeout: Any) -> None:
    with pytest.raises(TypeError, match="timeout: expected a number of seconds, got"):
        ring_of(arrays(1), timeout=timeout)


@pytest.mark.parametrize("way", ["rebound", "pass left", "two passes"])
def test_slots_of_a_loader_that_was_let_go_come_back(streams: dict[str, Any], way: str) -> None:
    """Also while somebody waits for them, who must not keep them alive."""
    for _ in range(8):
        ring = ring_of(arrays(3), timeout=5)
        loader = DataLoader(streams, 2, 8, buffers=ring)
        if way == "rebound":
            for _ in range(20):
                next(loader)
                ring.release()
            loader = DataLoader(streams, 2, 8, buffers=ring, seed=2)
        for _ in range(2 if way == "two passes" else way == "pass left"):
            next(iter(loader.epoch()))
            ring.release()
        next(loader)
        ring.release()
        loader.close()


@pytest.mark.parametrize("slots,workers", [(2, 1), (2, 4), (3, 2)])
def test_a_seek_while_every_free_slot_is_being_filled(
    streams: dict[str, Any], slots: int, workers: int
) -> None:
    """A worker takes the slot that comes back, for the very batch that is waited for."""
    first = Sampler(120, 8).indices_at(0)
    for _ in range(5):
        gate = threading.Event()

        def transform(batch: Any, gate: Any = gate) -> Any:
            if not np.array_equal(batch["label"], first):
                gate.wait(60)
            return batch

        ring = ring_of(arrays(slots), timeout=3)
        with DataLoader(streams, workers, 8, buffers=ring, transform=transform) as loader:
            next(loader)
            spin(lambda ring=ring: not ring.free)
            loader.seek(50)

            def open_gate(gate: Any = gate, ring: BufferRing = ring) -> None:
                spin(lambda: ring._awaiting)
                gate.set()

            opener = threading.Thread(target=open_gate, daemon=True)
            opener.start()
            next(loader)
            assert loader.step == 51
            opener.join(60)


def spin(done: Any) -> None:
    """Wait for something that another thread does at once."""
    deadline = time.monotonic() + 30
    while not done():
        assert time.monotonic() < deadline
