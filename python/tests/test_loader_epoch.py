"""DataLoader.epoch: finite passes, their tails, ranks, and what they leave alone."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import same, same_list

from loaderx import _ring
from loaderx.dataloader import DataLoader
from loaderx.errors import LoaderClosedError
from loaderx.zrecord import DenseStore
from loaderx.zsampler import Sampler

SEQUENTIAL, IID, CYCLIC = Sampler.Mode


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DenseStore]:
    with DenseStore(tmp_path / "s", np.int64, (), codec="raw") as found:
        found.append(np.arange(103))
        yield found


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    """Every test ends without a worker, however it treated its passes."""
    yield
    gc.collect()
    for thread in threading.enumerate():
        if thread.name == "loaderx worker":
            thread.join(60)
            assert not thread.is_alive(), "a worker did not end"


def values(batches: Any) -> list[np.ndarray]:
    return [batch["x"] for batch in batches]


@pytest.mark.parametrize("growing", [False, True])
@pytest.mark.parametrize("workers", [0, 1, 4])
def test_sequential_walks_through_all_records_once(
    store: DenseStore, workers: int, growing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_ring, "TICKET_SECONDS", 1e9 if growing else 0.0)
    with DataLoader({"x": store}, workers, 2, mode=0, transform=lambda b: b) as loader:
        evaluation = loader.epoch()
        assert len(evaluation) == 52 and evaluation.padding == 0
        for _ in range(2):
            found = values(evaluation)
            assert len(found) == 52
            assert same(np.concatenate(found), np.arange(103))
        assert same_list(values(loader.epoch(number=5)), found)


@pytest.mark.parametrize("workers", [0, 1, 4])
def test_nothing_is_made_beyond_the_end(
    store: DenseStore, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_ring, "TICKET_SECONDS", 1e9)
    made: list[int] = []

    def transform(batch: Any) -> Any:
        made.append(len(batch["x"]))
        return batch

    with DataLoader({"x": store}, workers, 10, mode=0, transform=transform) as loader:
        for steps, lengths in ((None, [10] * 10 + [3]), (37, [10] * 37)):
            made.clear()
            list(loader.epoch(steps))
            assert sorted(made, reverse=True) == lengths


@pytest.mark.parametrize(
    ("tail", "count", "padding", "end"),
    [("keep", 11, 0, [100, 101, 102]), ("drop", 10, 0, None), ("pad", 11, 7, [100, 101, 102, 0])],
)
def test_tails(store: DenseStore, tail: str, count: int, padding: int, end: Any) -> None:
    with DataLoader({"x": store}, 2, 10, mode=0) as loader:
        found = loader.epoch(tail=tail)
        batches = values(found)
        assert len(found) == len(batches) == count and found.padding == padding
        assert all(len(batch) == 10 for batch in batches[:10])
        if end is not None:
            assert batches[-1].tolist()[:4] == end
            assert len(batches[-1]) == 3 + padding
        assert repr(found) == f"Epoch({count} batches, padding={padding})"


def test_a_length_without_a_remainder_needs_no_tail(store: DenseStore) -> None:
    store.append(np.arange(103, 120))
    for tail in ("keep", "drop", "pad"):
        for world_size in (1, 4):
            with DataLoader({"x": store}, 2, 12, mode=0, world_size=world_size) as loader:
                found = loader.epoch(tail=tail)
                assert len(found) == len(values(found)) == 10 and found.padding == 0


@pytest.mark.parametrize(("tail", "count"), [("drop", 8), ("pad", 9)])
@pytest.mark.parametrize("mode", [SEQUENTIAL, IID, CYCLIC])
def test_ranks_get_equally_many_equal_batches(
    store: DenseStore, mode: int, tail: str, count: int
) -> None:
    def parts(world_size: int) -> list[np.ndarray]:
        found = []
        for rank in range(world_size):
            with DataLoader(
                {"x": store}, 2, 12, mode=mode, rank=rank, world_size=world_size
            ) as loader:
                found.append(values(loader.epoch(tail=tail, number=2)))
                assert {len(batch) for batch in found[-1]} == {12 // world_size}
                assert len(found[-1]) == count
        return [np.concatenate(batch) for batch in zip(*found)]

    whole = parts(1)
    for world_size in (2, 3, 6):
        assert same_list(parts(world_size), whole)


@pytest.mark.parametrize("mode", [SEQUENTIAL, CYCLIC])
def test_several_ranks_and_a_remainder_need_a_choice(store: DenseStore, mode: int) -> None:
    with DataLoader({"x": store}, 2, 12, mode=mode, world_size=2) as loader:
        message = 'expected "drop" or "pad", because the 7 records behind .* by 2 ranks'
        with pytest.raises(ValueError, match=message):
            loader.epoch()
        assert len(loader.epoch(steps=3)) == 3


def test_cyclic_gives_a_cycle_and_its_remainder(store: DenseStore) -> None:
    with DataLoader({"x": store}, 2, 10, seed=6) as loader:
        endless = [loader.batch_at(step)["x"] for step in range(40)]
        for number in range(4):
            found = values(loader.epoch(number=number))
            assert same_list(found[:10], endless[number * 10 : number * 10 + 10])
            assert np.sort(np.concatenate(found)).tolist() == list(range(103))
            assert same_list(values(loader.epoch(number=number, tail="drop")), found[:10])
            padded = values(loader.epoch(number=number, tail="pad"))
            assert padded[10].tolist() == found[10].tolist() + found[0][:7].tolist()


def test_iid_draws_as_the_endless_order_does(store: DenseStore) -> None:
    with DataLoader({"x": store}, 2, 10, mode=1) as loader:
        for number in range(3):
            endless = [loader.batch_at(number * 11 + step)["x"] for step in range(11)]
            found = values(loader.epoch(number=number))
            assert same_list(found, [*endless[:10], endless[10][:3]])


@pytest.mark.parametrize("mode", [SEQUENTIAL, IID])
def test_a_batch_larger_than_the_data(store: DenseStore, mode: int) -> None:
    with DataLoader({"x": store}, 2, 250, mode=mode) as loader:
        (kept,) = values(loader.epoch())
        (padded,) = values(loader.epoch(tail="pad"))
        assert len(kept) == 103 and loader.epoch(tail="pad").padding == 147
        assert padded.tolist() == [*kept, *kept, *kept[:44]]
        assert values(loader.epoch(tail="drop")) == []


@pytest.mark.parametrize("mode", [SEQUENTIAL, IID, CYCLIC])
def test_steps_are_those_of_the_endless_order(store: DenseStore, mode: int) -> None:
    with DataLoader({"x": store}, 3, 10, mode=mode) as loader:
        for number in range(3):
            found = loader.epoch(25, number=number)
            assert len(found) == 25
            endless = [loader.batch_at(number * 25 + step)["x"] for step in range(25)]
            assert same_list(values(found), endless)
        assert values(loader.epoch(0)) == []


def test_a_pass_leaves_the_endless_order_alone(store: DenseStore) -> None:
    sampler = Sampler(103, 10)
    with DataLoader({"x": store}, 2, 10) as loader:
        for step in range(6):
            assert same(next(loader)["x"], sampler.indices_at(step))
            for turn, _ in enumerate(loader.epoch()):
                if turn == step:
                    break
            assert loader.step == loader.state_dict()["step"] == step + 1


def test_two_passes_at_once(store: DenseStore) -> None:
    with DataLoader({"x": store}, 2, 10, mode=0) as loader:
        found = loader.epoch()
        for one, two in zip(found, found):
            assert same(one["x"], two["x"])


def test_a_pass_is_over_when_it_is_over(store: DenseStore) -> None:
    with DataLoader({"x": store}, 2, 50, mode=0) as loader:
        found = iter(loader.epoch())
        assert len(list(found)) == 3
        for _ in range(2):
            with pytest.raises(StopIteration):
                next(found)


def test_a_pass_ends_with_its_loader(store: DenseStore) -> None:
    loader = DataLoader({"x": store}, 2, 10)
    found = loader.epoch()
    half = iter(found)
    next(half)
    loader.close()
    with pytest.raises(LoaderClosedError):
        next(half)
    for use in (lambda: iter(found), loader.epoch):
        with pytest.raises(LoaderClosedError):
            use()


def test_a_pass_keeps_what_it_needs(store: DenseStore) -> None:
    found = iter(DataLoader({"x": store}, 2, 10, mode=0).epoch())
    gc.collect()
    assert len(list(found)) == 11


def test_an_error_ends_the_pass_and_not_the_loader(store: DenseStore) -> None:
    def transform(batch: Any) -> Any:
        if batch["x"][0] == 30:
            raise KeyError("thirty")
        return batch

    with DataLoader({"x": store}, 2, 10, mode=0, transform=transform) as loader:
        found = iter(loader.epoch())
        for _ in range(3):
            next(found)
        with pytest.raises(KeyError, match="thirty"):
            next(found)
        with pytest.raises(LoaderClosedError):
            next(found)
        assert next(loader)["x"][0] == 0


class AtStep:
    """A sampler of one's own."""

    def indices_at(self, step: int) -> Any:
        return [step]


def test_a_sampler_of_ones_own_needs_steps(store: DenseStore) -> None:
    with DataLoader({"x": store}, 2, sampler=AtStep()) as loader:
        found = loader.epoch(20, number=2)
        assert np.concatenate(values(found)).tolist() == list(range(40, 60))
        with pytest.raises(TypeError, match="epoch: expected steps, .* got None for AtStep"):
            loader.epoch()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"tail": "wrap"}, ValueError, "tail: expected one of 'keep', 'drop', 'pad', got 'wrap'"),
        ({"tail": None, "steps": 4}, ValueError, "tail: expected one of .* got None"),
        ({"steps": -1}, ValueError, "steps: expected at least 0, got -1"),
        ({"steps": 2.0}, TypeError, "steps: expected an integer"),
        ({"number": -1}, ValueError, "number: expected at least 0, got -1"),
        ({"number": "1"}, TypeError, "number: expected an integer"),
        ({"number": 2**62}, ValueError, "number: expected a pass within"),
        ({"number": 2**62, "steps": 4}, ValueError, "number: expected at most"),
    ],
)
def test_bad_arguments(
    store: DenseStore, arguments: Any, error: type[Exception], message: str
) -> None:
    with DataLoader({"x": store}, 2, 10) as loader:
        with pytest.raises(error, match=message):
            loader.epoch(**arguments)


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_threads_may_share_a_pass(workers: int, tmp_path: Path) -> None:
    """Each batch goes to one of them, and each of them sees the end."""
    with DenseStore(tmp_path / "s", np.int64, ()) as store:
        store.append(np.arange(12))
        with DataLoader({"a": store}, batch_size=2, mode=0, num_workers=workers) as loader:
            for _ in range(20):
                batches = iter(loader.epoch())
                taken: list[list[int]] = []
                errors: list[BaseException] = []

                def take(batches: Any = batches, taken: Any = taken, errors: Any = errors) -> None:
                    try:
                        for batch in batches:
                            taken.append(batch["a"].tolist())
                    except BaseException as error:
                        errors.append(error)

                threads = [threading.Thread(target=take, daemon=True) for _ in range(4)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join(60)
                    assert not thread.is_alive()
                assert not errors
                assert sorted(taken) == [[k, k + 1] for k in range(0, 12, 2)]
