"""DataLoader: signal handlers, hooks, forks and the exit come in anywhere, and nothing hangs."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest
from support import output_of

from loaderx import _feed, _ring, _stats
from loaderx._stats import Stats
from loaderx.dataloader import BufferRing, DataLoader
from loaderx.errors import LoaderClosedError, ZrecordError
from loaderx.zrecord import DenseStore, RaggedStore
from loaderx.zsampler import Mix, Sampler, TokenBudget


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DenseStore]:
    with DenseStore(tmp_path / "s", np.int64, (), codec="raw") as found:
        found.append(np.arange(100))
        yield found


def finished(call: Callable[[], Any]) -> Any:
    """What a call gives, made in a thread of its own: the limit is only there for hangs."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(call()), daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), "it waits for itself"
    return found[0]


def interrupted(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, handler: Callable[[], Any]
) -> None:
    """Have a handler run once in the calling thread, as one of a signal, before a method."""
    original, calls = getattr(owner, name), itertools.count()

    def method(*arguments: Any) -> Any:
        if next(calls) == 0:
            handler()
        return original(*arguments)

    monkeypatch.setattr(owner, name, method)


@pytest.mark.parametrize("point", ["_call", "_missing", "_take", "_drop"])
def test_close_in_the_middle_of_next(
    store: DenseStore, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    loader = DataLoader({"x": store}, 2, 10, transform=lambda batch: batch)
    interrupted(monkeypatch, loader._feed.ring, point, loader.close)

    def use() -> int:
        given = 0
        try:
            for _ in range(5):
                next(loader)
                given += 1
            loader.close()
            next(loader)
        except LoaderClosedError:
            return given
        return -1

    assert finished(use) in (range(5, 6) if point == "_drop" else range(0, 2))
    ring = loader._feed.ring
    assert loader.closed and not ring._done and not ring.current.rest and not ring._busy


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("ask", ["stats", "report", "state_dict", "close"])
def test_anything_is_asked_while_batches_are_counted(
    store: DenseStore, monkeypatch: pytest.MonkeyPatch, ask: str, workers: int
) -> None:
    loader = DataLoader({"x": store}, workers, 10)

    class Interrupted(_feed.Feed):
        @property
        def step(self) -> int:
            interrupt = next(turns, None)
            if interrupt is not None:
                interrupt()
            return super().step

    turns = iter([getattr(loader, ask)])
    next(loader)
    loader._feed.__class__ = Interrupted
    finished(loader.stats)
    assert loader.stats()["steps"] == 1
    loader.close()


def test_next_in_a_handler_takes_its_turn_or_is_refused(
    store: DenseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []
    with DataLoader({"x": store}, 2, 10, on_step=lambda info: told.append(info.step)) as loader:
        interrupted(monkeypatch, loader._job.stats, "asked", lambda: next(loader))
        finished(lambda: next(loader))
        assert told == [0, 1]
        interrupted(monkeypatch, loader._feed.ring, "seek", lambda: next(loader))

        def seek() -> str:
            try:
                loader.seek(5)
            except ZrecordError as error:
                return str(error)
            return ""

        assert "a signal handler" in finished(seek)


def test_a_ring_of_buffers_is_released_in_a_release() -> None:
    ring = BufferRing({"x": np.zeros(4)} for _ in range(2))

    class Given(dict):  # type: ignore[type-arg]
        def pop(self, *arguments: Any) -> Any:
            for lease in list(itertools.islice(self, len(self) - 1)):
                super().pop(lease)
            return super().pop(*arguments)

    ring._given = Given()
    for _ in range(2):
        lease = ring.lease()
        assert lease is not None
        ring.give(lease)
        del lease
    ring.release()
    assert (ring.free, ring.held) == (2, 0)


@pytest.mark.parametrize("buffered", [False, True])
@pytest.mark.parametrize("workers", [0, 2])
def test_ctrl_c_in_on_step_leaves_the_batch_to_be_given(
    store: DenseStore, workers: int, buffered: bool
) -> None:
    told: list[int] = []

    def on_step(info: Any) -> None:
        told.append(info.step)
        if len(told) == 3:
            raise KeyboardInterrupt

    ring = BufferRing({"x": np.zeros(10, np.int64)} for _ in range(4)) if buffered else None
    with DataLoader({"x": store}, workers, 10, mode=0, on_step=on_step, buffers=ring) as loader:
        next(loader), next(loader)
        with pytest.raises(KeyboardInterrupt):
            next(loader)
        assert not loader.closed and loader.step == 2
        assert [int(next(loader)["x"][0]) for _ in range(2)] == [20, 30]
        assert told == [0, 1, 2, 2, 3]
        assert ring is None or ring.held == 4


@pytest.mark.parametrize("workers", [0, 2])
def test_a_state_saved_in_on_step_has_the_batch_still_to_come(
    store: DenseStore, workers: int
) -> None:
    saved: list[Any] = []
    loader = DataLoader(
        {"x": store}, workers, 10, on_step=lambda _: saved.append(loader.state_dict())
    )
    with loader:
        for step in range(4):
            given = next(loader)
            assert saved[-1]["step"] == step and loader.step == step + 1
    with DataLoader({"x": store}, 1, 10) as other:
        other.load_state_dict(saved[-1])
        assert (next(other)["x"] == given["x"]).all()


def test_all_are_told_to_stop_before_any_is_waited_for(
    store: DenseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined: list[float] = []
    loaders = [DataLoader({"x": store}, 2, 10) for _ in range(20)]
    for loader in loaders:
        next(loader)

    def join(ring: Any, seconds: float) -> None:
        assert all(loader.closed for loader in loaders)
        joined.append(seconds)

    monkeypatch.setattr(_feed.Ring, "join", join)
    # A clock that goes on by a second at every look: only the first has time to wait.
    clock = itertools.count()
    monkeypatch.setattr(_feed.time, "monotonic", lambda: float(next(clock)))
    _feed._close_open_feeds()
    assert len(joined) >= 20 and max(joined) < 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_forked_child_is_refused_and_does_not_wait(store: DenseStore) -> None:
    code = """
    import os, sys, threading, warnings
    from loaderx import DataLoader, DenseStore
    from loaderx.errors import ForkedProcessError

    loader = DataLoader({"x": DenseStore(sys.argv[1], mode="r")}, 2, 10)
    next(loader)
    held, done = threading.Event(), threading.Event()

    def hold():
        with loader._job.stats._lock, loader._feed.ring._lock, loader._feed._turn:
            held.set()
            done.wait()

    other = threading.Thread(target=hold)
    other.start()
    held.wait()
    warnings.simplefilter("ignore")  # from Python 3.12 on, of forks beside threads
    child = os.fork()
    if child == 0:
        refused = 0
        for ask in (loader.stats, loader.report, loader.state_dict, loader.next):
            try:
                ask()
            except ForkedProcessError:
                refused += 1
        loader.close()
        os._exit(refused)
    print(os.WEXITSTATUS(os.waitpid(child, 0)[1]))
    done.set()
    other.join()
    """
    store.sync()
    assert output_of(code, store.path) == "4"


def test_counting_goes_on_after_an_interrupt(store: DenseStore) -> None:
    stats = Stats(["x"])

    class Feed:
        accounted = 0

        @property
        def step(self) -> int:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stats.given(Feed())
    feed = Feed()
    feed.__class__ = type("Fed", (), {"accounted": 0, "step": 7})
    stats.given(feed)
    assert stats.numbers()["steps"] == 7


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("where", ["Stats.given", "Stats.asked", "Ring._call", "Ring.hire"])
def test_ctrl_c_on_the_way_out_keeps_the_batch(
    store: DenseStore, where: str, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch that did not reach its consumer is the next one again, and in the state."""
    owner, name = where.split(".")
    kind: Any = {"Stats": _stats.Stats, "Ring": _ring.Ring}[owner]
    once = getattr(kind, name)
    armed = False

    def interrupted_once(*arguments: Any) -> Any:
        nonlocal armed
        if armed and threading.current_thread() is threading.main_thread():
            armed = False
            raise KeyboardInterrupt
        return once(*arguments)

    monkeypatch.setattr(kind, name, interrupted_once)
    sampler = Sampler(len(store), 8, seed=3)
    with DataLoader({"x": store}, sampler=sampler, num_workers=workers) as loader:
        for step in range(60):
            armed = step % 3 == 1
            state = loader.state_dict()
            try:
                batch = next(loader)
            except KeyboardInterrupt:
                assert loader.state_dict() == state
                batch = next(loader)
            assert (batch["x"] == store[sampler.indices_at(step)]).all()
            assert loader.step == step + 1


@pytest.mark.parametrize("kind", ["plain", "mix", "budget"])
@pytest.mark.parametrize("depth", [1, 3])
def test_a_sampler_gives_each_batch_once_to_handlers_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, depth: int
) -> None:
    """A signal handler that takes a batch of the sampler it has interrupted."""
    with RaggedStore(tmp_path / "r", np.uint8, codec="raw") as ragged:
        ragged.append([np.ones(1 + k % 7, np.uint8) for k in range(50)])
        sampler: Any = {
            "plain": lambda: Sampler(50, 40, Sampler.Mode.CYCLIC, seed=3),
            "mix": lambda: Mix({"a": 0.5, "b": 0.5}).sampler({"a": 50, "b": 50}, 8, seed=3),
            "budget": lambda: TokenBudget(30, ragged).sampler(seed=3),
        }[kind]()
        point = "fill" if kind == "plain" else "batches"
        work, signals, got = getattr(type(sampler), point), 0, []

        def interrupted(*call: Any) -> Any:
            nonlocal signals
            made = work(sampler, *call)
            if signals:
                signals -= 1
                got.append(sampler.next())
            return made

        want = [sampler.indices_at(step) for step in range(40)]
        monkeypatch.setattr(sampler, point, interrupted)
        while sampler.step < 20:
            signals = depth
            got.append(finished(sampler.next))
        monkeypatch.undo()
        left = [repr(batch) for batch in want[: sampler.step]]
        assert sorted(map(repr, got)) == sorted(left)
