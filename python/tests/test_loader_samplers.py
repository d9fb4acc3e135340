"""Samplers of the caller's: what they give wrong, and what fails around them."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest
from support import same

from loaderx import DataLoader, DenseStore, Sampler, _ring
from loaderx.errors import RecordIndexError

LENGTH = 100


class ByNext:
    """Gives a record a step, in order, and one that is not there at a step."""

    def __init__(self, bad: int) -> None:
        self.bad = bad
        self.drawn = 0

    def next(self) -> list[int]:
        step, self.drawn = self.drawn, self.drawn + 1
        return [LENGTH] if step == self.bad else [step % LENGTH]


class Failing(ByNext):
    """Fails itself at that step."""

    def next(self) -> list[int]:
        if self.drawn == self.bad:
            raise KeyError("mine")
        return super().next()


class ByStep:
    """Asks a function for the indices of a step."""

    def __init__(self, indices_at: Callable[[int], Any]) -> None:
        self.indices_at = indices_at


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with DenseStore(tmp_path / "s", np.int64, (), codec="raw") as store:
        store.append(np.arange(LENGTH))
        yield store


def notes_of(error: BaseException) -> list[str]:
    return [note for note in getattr(error, "__notes__", []) if "step" in note]


@pytest.mark.parametrize("workers", [0, 1, 4])
def test_a_failed_read_loses_no_batch_before_it(store: DenseStore, workers: int) -> None:
    given = []
    with pytest.raises(RecordIndexError) as caught:
        for batch in DataLoader({"a": store}, sampler=ByNext(1000), num_workers=workers):
            given.append(int(batch["a"][0]))
    assert given == [step % LENGTH for step in range(1000)]
    assert any("step 1000" in note for note in notes_of(caught.value))


@pytest.mark.parametrize("workers", [0, 1, 4])
def test_a_failed_draw_is_noted_once(store: DenseStore, workers: int) -> None:
    count = 0
    with pytest.raises(KeyError, match="mine") as caught:
        for _ in DataLoader({"a": store}, sampler=Failing(300), num_workers=workers):
            count += 1
    assert count == 300
    assert notes_of(caught.value) == ["loaderx: while drawing the indices of step 300"]


def test_interrupt_without_workers_leaves_the_step_to_be_made(store: DenseStore) -> None:
    # The signal comes from the transform itself, so it lands in the middle of a step.
    interrupt = iter([False, True, False])

    def transform(batch: Any) -> Any:
        if next(interrupt):
            os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait(60)
        return batch

    loader = DataLoader({"a": store}, sampler=ByNext(-1), num_workers=0, transform=transform)
    next(loader)
    # Jobs in the background are started with the signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            next(loader)
    finally:
        signal.signal(signal.SIGINT, before)
    assert next(loader)["a"].tolist() == [1]


@pytest.mark.parametrize("workers", [0, 2])
def test_an_index_beyond_int64_is_out_of_range(store: DenseStore, workers: int) -> None:
    indices = np.array([2**64 - 1], np.uint64)
    loader = DataLoader({"a": store}, sampler=ByStep(lambda step: indices), num_workers=workers)
    with pytest.raises(RecordIndexError, match="index 18446744073709551615 of step 0"):
        next(loader)


@pytest.mark.parametrize("workers", [0, 2])
def test_stop_iteration_of_indices_at_does_not_end_the_loop(
    store: DenseStore, workers: int
) -> None:
    def indices_at(step: int) -> list[int]:
        return [step] if step < 3 else next(iter([]))

    with pytest.raises(RuntimeError, match="indices_at raised StopIteration for step 3"):
        for _ in DataLoader({"a": store}, sampler=ByStep(indices_at), num_workers=workers):
            pass


class Reusing:
    """Fills the same array for every step."""

    def __init__(self) -> None:
        self.array = np.zeros(4, np.int64)
        self.drawn = 0

    def indices_at(self, step: int) -> np.ndarray:
        self.array[:] = (step * 4 + np.arange(4)) % LENGTH
        return self.array


class ReusingByNext(Reusing):
    """The same for one that cannot go back."""

    indices_at = None  # type: ignore[assignment]

    def next(self) -> np.ndarray:
        self.drawn += 1
        return Reusing.indices_at(self, self.drawn - 1)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("sampler", [Reusing, ReusingByNext])
def test_a_sampler_may_use_its_array_again(
    store: DenseStore, monkeypatch: pytest.MonkeyPatch, sampler: type[Reusing], workers: int
) -> None:
    monkeypatch.setattr(_ring, "TICKET_SECONDS", 1e9)
    with DataLoader({"a": store}, workers, sampler=sampler()) as loader:
        for step in range(200):
            expected = (step * 4 + np.arange(4)) % LENGTH
            assert next(loader)["a"].tolist() == expected.tolist()


def test_a_step_may_have_no_record(store: DenseStore) -> None:
    with DataLoader(
        {"a": store}, 0, sampler=ByStep(lambda step: [1] if step % 2 else [])
    ) as loader:
        assert [next(loader)["a"].tolist() for _ in range(4)] == [[], [1], [], [1]]


def test_floats_are_refused(store: DenseStore) -> None:
    loader = DataLoader({"a": store}, 0, sampler=ByStep(lambda step: [0.5]))
    with pytest.raises(TypeError, match="1-D array of integers for step 0, got .* float64"):
        next(loader)


class Backwards(Sampler):
    """A sampler of the package whose order somebody else has changed."""

    def indices_at(self, step: int) -> Any:
        return np.sort(super().indices_at(step))[::-1]


class NextOnly(Sampler):
    """One whose next() is another than its indices_at()."""

    def next(self) -> Any:
        return super().next()[::-1]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_subclass_is_asked_by_its_own_method(store: DenseStore, workers: int) -> None:
    sampler = Backwards(len(store), 4, seed=5)
    with DataLoader({"a": store}, sampler=sampler, num_workers=workers) as loader:
        for step in range(8):
            assert same(next(loader)["a"], store[sampler.indices_at(step)])
        with pytest.raises(TypeError, match="expected steps"):
            loader.epoch()
        assert len(list(loader.epoch(3))) == 3


def test_a_subclass_with_its_own_next_is_refused(store: DenseStore) -> None:
    with pytest.raises(TypeError, match="NextOnly, which overrides next"):
        DataLoader({"a": store}, sampler=NextOnly(len(store), 4))


@pytest.mark.parametrize("workers", [0, 2])
def test_behind_the_last_step(store: DenseStore, workers: int) -> None:
    """No step has 64 bits; what comes behind the last one is an error at once."""
    with DataLoader({"a": store}, batch_size=4, num_workers=workers) as loader:
        loader.seek((1 << 63) - 2)
        next(loader)
        for _ in range(3):
            with pytest.raises(ValueError, match="the last step is 9223372036854775806"):
                next(loader)
        loader.seek(0)
        next(loader)


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("steps", [5, 300])
def test_what_is_no_exception_arrives_from_a_ticket_of_any_size(
    store: DenseStore, workers: int, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sampler raises it once: the steps of its ticket are not tried again."""
    monkeypatch.setattr(_ring, "TICKET_SECONDS", 1e9)

    class Exits(ByNext):
        def next(self) -> list[int]:
            if self.drawn == steps:
                self.drawn += 1
                raise SystemExit("mine")
            return super().next()

    with DataLoader({"a": store}, sampler=Exits(-1), num_workers=workers) as loader:
        with pytest.raises(SystemExit, match="mine"):
            for _ in range(steps + 100):
                next(loader)
