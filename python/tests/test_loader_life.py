"""DataLoader: errors, close, threads, memory and being left alone."""

from __future__ import annotations

import gc
import threading
import traceback
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loaderx import _memory, _ring
from loaderx.dataloader import DataLoader
from loaderx.errors import CorruptRecordError, LoaderClosedError, StoreClosedError, ZrecordError
from loaderx.zrecord import DenseStore, RaggedStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DenseStore]:
    with DenseStore(tmp_path / "s", np.int64, (), codec="raw") as found:
        found.append(np.arange(1000))
        found.sync()
        yield found


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    """Every test ends without a worker, however it treated its loaders."""
    yield
    gc.collect()
    wait_for_workers()


def workers() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == "loaderx worker"]


def wait_for_workers() -> None:
    """Wait for the workers to end by themselves; the limit is only there for hangs."""
    for thread in workers():
        thread.join(60)
        assert not thread.is_alive(), "a worker did not end"


def notes(error: BaseException) -> str:
    return "\n".join(getattr(error, "__notes__", []))


class Mine(Exception):
    """An exception of the user's."""


@pytest.mark.parametrize("growing", [False, True])
@pytest.mark.parametrize("num_workers", [0, 1, 4])
def test_a_transforms_exception_arrives_as_itself_at_its_step(
    store: DenseStore, num_workers: int, growing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_ring, "TICKET_SECONDS", 1e9 if growing else 0.0)
    raised = Mine("no seven")

    def transform(batch: Any) -> Any:
        if batch["x"][0] >= 70:
            raise raised if batch["x"][0] == 70 else Mine("later")
        return batch

    loader = DataLoader({"x": store}, num_workers, 10, mode=0, transform=transform)
    for step in range(7):
        assert next(loader)["x"][0] == step * 10
    with pytest.raises(Mine) as caught:
        next(loader)
    assert caught.value is raised
    assert "transform of step 7" in notes(raised) and "'x'" in notes(raised)
    assert "in transform" in "".join(traceback.format_tb(raised.__traceback__))
    assert loader.closed
    with pytest.raises(LoaderClosedError, match="closed at step 7"):
        next(loader)
    assert len(store) == 1000


@pytest.mark.parametrize("num_workers", [0, 3])
@pytest.mark.parametrize("error", [SystemExit(2), KeyboardInterrupt(), GeneratorExit()])
def test_other_exceptions_of_a_transform_arrive_too(
    store: DenseStore, num_workers: int, error: BaseException
) -> None:
    def transform(batch: Any) -> Any:
        raise error

    with DataLoader({"x": store}, num_workers, 10, transform=transform) as loader:
        with pytest.raises(type(error)) as caught:
            next(loader)
        assert caught.value is error


def test_stop_iteration_in_a_transform_does_not_end_the_loop_silently(store: DenseStore) -> None:
    def transform(batch: Any) -> Any:
        return next(iter(()))

    with pytest.raises(RuntimeError, match="transform raised StopIteration for step 0") as caught:
        list(DataLoader({"x": store}, 2, 10, transform=transform))
    assert "in the transform of step 0, of streams 'x'" in notes(caught.value)


@pytest.mark.parametrize("growing", [False, True])
@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_record_that_cannot_be_read(
    tmp_path: Path, num_workers: int, growing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_ring, "TICKET_SECONDS", 1e9 if growing else 0.0)
    with RaggedStore(tmp_path / "r", "u1", codec="zstd") as ragged:
        ragged.append([bytes([i]) * 50 for i in range(200)])
    chunk = bytearray((tmp_path / "r" / "0.chunk").read_bytes())
    chunk[len(chunk) * 3 // 4] ^= 0xFF
    (tmp_path / "r" / "0.chunk").write_bytes(chunk)
    with RaggedStore(tmp_path / "r", mode="r") as ragged:
        loader = DataLoader({"tokens": ragged}, num_workers, 10, mode=0)
        with pytest.raises(CorruptRecordError) as caught:
            for _ in range(20):
                next(loader)
        assert caught.value.index is not None
        step = caught.value.index // 10
        assert loader.step == step, "the batches before are delivered first"
        assert f"reading stream 'tokens' for step {step}" in notes(caught.value)


def test_a_ticket_that_fails_keeps_the_batches_before(store: DenseStore) -> None:
    class Sampler:
        def indices_at(self, step: int) -> Any:
            return [step, 1000] if step >= 6 else [step]

    with DataLoader({"x": store}, sampler=Sampler()) as loader:
        result = loader._job.run(2, 8, Exception)
    assert [batch["x"].tolist() for batch in result.batches] == [[2], [3], [4], [5]]
    assert isinstance(result.error, IndexError) and "step 6" in notes(result.error)


def test_a_store_closed_under_the_loader(store: DenseStore) -> None:
    loader = DataLoader({"x": store}, 2, 10)
    next(loader)
    store.close()
    with pytest.raises(StoreClosedError):
        for _ in range(1000):
            next(loader)
    assert loader.closed


def test_batch_at_raises_but_does_not_close(store: DenseStore) -> None:
    def transform(batch: Any) -> Any:
        if batch["x"][0] == 30:
            raise Mine
        return batch

    with DataLoader({"x": store}, 2, 10, mode=0, transform=transform) as loader:
        with pytest.raises(Mine) as caught:
            loader.batch_at(3)
        assert "step 3" in notes(caught.value)
        assert next(loader)["x"][0] == 0


def test_close_is_idempotent_and_final(store: DenseStore) -> None:
    loader = DataLoader({"x": store}, 4, 10)
    next(loader)
    loader.close()
    assert workers() == []
    loader.close()
    uses = [
        lambda: next(loader),
        lambda: loader.seek(0),
        lambda: loader.batch_at(0),
        loader.__enter__,
    ]
    for use in uses:
        with pytest.raises(LoaderClosedError, match="expected an open loader"):
            use()
    assert len(store[:]) == 1000, "the stores stay open"


def test_close_wakes_a_consumer_that_waits(store: DenseStore) -> None:
    entered, release, outcome = threading.Event(), threading.Event(), []

    def transform(batch: Any) -> Any:
        entered.set()
        assert release.wait(60)
        return batch

    loader = DataLoader({"x": store}, 1, 10, transform=transform)

    def consume() -> None:
        try:
            next(loader)
        except LoaderClosedError as error:
            outcome.append(error)

    consumer = threading.Thread(target=consume)
    consumer.start()
    assert entered.wait(60)
    loader.close()  # does not wait for the transform for ever
    consumer.join(60)
    assert len(outcome) == 1
    release.set()


def test_a_transform_may_close_its_loader(store: DenseStore) -> None:
    def transform(batch: Any) -> Any:
        loader.close()
        return batch

    loader = DataLoader({"x": store}, 2, 10, transform=transform)
    with pytest.raises(LoaderClosedError):
        next(loader)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_transform_cannot_wait_for_its_own_loader(store: DenseStore, num_workers: int) -> None:
    def transform(batch: Any) -> Any:
        return next(loader) if calls.pop() == "next" else loader.seek(0)

    for call in ("next", "seek"):
        calls = [call] * 10
        with DataLoader({"x": store}, num_workers, 10, transform=transform) as loader:
            with pytest.raises(ZrecordError, match=f"{call}: .* would wait for itself"):
                next(loader)


@pytest.mark.parametrize("num_workers", [1, 4])
def test_a_loader_left_alone_leaves_no_thread(store: DenseStore, num_workers: int) -> None:
    loader = DataLoader({"x": store}, num_workers, 10, transform=lambda b: b)
    next(loader)
    wait_for_workers()  # open, not collected: they end all the same
    for step in range(1, 50):
        assert loader.step == step
        next(loader)
    del loader


def test_breaking_out_and_collection(store: DenseStore) -> None:
    def some() -> None:
        for step, _ in enumerate(DataLoader({"x": store}, 3, 10, transform=lambda b: b)):
            if step == 5:
                break

    some()
    gc.collect()
    wait_for_workers()


def test_a_loader_in_a_cycle_is_collected(store: DenseStore) -> None:
    class Holder:
        def __call__(self, batch: Any) -> Any:
            return batch

    holder: Any = Holder()
    holder.loader = DataLoader({"x": store}, 2, 10, transform=holder)
    next(holder.loader)
    loader = weakref.ref(holder.loader)
    wait_for_workers()
    del holder
    gc.collect()
    assert loader() is None


@pytest.mark.parametrize(("prefetch", "num_workers"), [(1, 1), (1, 4), (4, 2), (7, 3)])
def test_how_far_workers_run_ahead(
    store: DenseStore, prefetch: int, num_workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_ring, "TICKET_SECONDS", 0.0)
    made, lock = [0], threading.Lock()

    def transform(batch: Any) -> Any:
        with lock:
            made[0] += 1
        return batch

    with DataLoader({"x": store}, num_workers, 10, prefetch, transform=transform) as loader:
        for consumed in range(1, 6):
            next(loader)
            wait_for_workers()
            assert made[0] - consumed <= prefetch + num_workers
            assert made[0] > consumed


def test_no_more_workers_than_processors_without_a_transform(store: DenseStore) -> None:
    from loaderx import _native

    with DataLoader({"x": store}, 64, 10) as loader:
        assert loader._feed.ring._workers == min(64, _native.lib.lx_parallelism())
    with DataLoader({"x": store}, 64, 10, transform=lambda b: b) as loader:
        assert loader._feed.ring._workers == 64


def test_buffers_come_back(tmp_path: Path) -> None:
    data = np.zeros((64, 100_000), np.uint8)
    with DenseStore(tmp_path / "s", data.dtype, data.shape[1:], codec="raw") as big:
        big.append(data)
        gc.collect()
        before = _memory.stats()["used_blocks"]
        with DataLoader({"x": big}, 2, 16) as loader:
            most = 0
            for _ in range(60):
                next(loader)
                most = max(most, _memory.stats()["used_blocks"] - before)
            assert most <= 4 + 2 + 2 + 1  # ring, workers, the consumer's, one on its way
        gc.collect()
        assert _memory.stats()["used_blocks"] == before


def test_the_loader_keeps_no_batch_it_has_given(
    store: DenseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_ring, "TICKET_SECONDS", 1e9)
    with DataLoader({"x": store}, 1, 16) as loader:
        for _ in range(60):
            given = weakref.ref(next(loader)["x"])
            assert given() is None
        assert loader._feed.ring._steps > 1


def test_what_was_under_way_before_a_seek_is_dropped(store: DenseStore) -> None:
    entered, release = threading.Event(), threading.Event()

    def transform(batch: Any) -> Any:
        if batch["x"][0] == 10:
            entered.set()
            assert release.wait(60)
        return batch

    with DataLoader({"x": store}, 1, 10, mode=0, transform=transform) as loader:
        next(loader)
        assert entered.wait(60)
        loader.seek(5000)
        release.set()
        assert next(loader)["x"][0] == 0
        wait_for_workers()
        assert min(loader._feed.ring._done) > 5000


def test_two_consumers_share_the_steps(store: DenseStore) -> None:
    found: list[int] = []
    with DataLoader({"x": store}, 2, 10, mode=0) as loader:

        def consume() -> None:
            for _ in range(200):
                found.append(int(next(loader)["x"][0]))

        threads = [threading.Thread(target=consume) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(found) == sorted((step * 10) % 1000 for step in range(800))


def test_two_loaders_zipped(store: DenseStore) -> None:
    one, two = (DataLoader({"x": store}, 4, 10, 1, seed=seed) for seed in (1, 2))
    with one, two:
        kept = [(a["x"].copy(), b["x"].copy(), a, b) for _, a, b in zip(range(50), one, two)]
    assert all((a == c["x"]).all() and (b == d["x"]).all() for a, b, c, d in kept)


def test_a_thousand_loaders_in_a_row(store: DenseStore) -> None:
    kept: list[Any] = []
    for turn in range(1000):
        loader = DataLoader({"x": store}, 1 + turn % 4, 10, seed=turn)
        if turn % 5 == 0:
            for _ in loader:
                break
        elif turn % 5 == 1:
            next(loader)
            loader.close()
        elif turn % 5 == 2:
            for _ in loader.epoch():
                break
        elif turn % 5 == 3:
            assert len(list(loader.epoch(2))) == 2
        else:
            kept.append(loader)  # in a cycle, for the garbage collector
            kept.append(kept)
            next(loader)
            kept = []
