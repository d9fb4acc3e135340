"""Recycled memory: alignment, recycling, bounds, and many threads."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from loaderx import _memory
from loaderx.zrecord import DenseStore

BYTE = np.dtype(np.uint8)


@pytest.fixture(autouse=True)
def nothing_idle() -> Iterator[None]:
    """Start every test without idle large blocks."""
    gc.collect()
    _memory.trim()
    yield
    gc.collect()
    _memory.trim()


def address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


@pytest.mark.parametrize("nbytes", [1, 8, 63, 64, 65, 784, 4096, 100_001, 1 << 20, (3 << 20) + 7])
def test_aligned_writable_and_of_the_size(nbytes: int) -> None:
    arrays = [_memory.empty((nbytes,), BYTE) for _ in range(3)]
    for value, array in enumerate(arrays):
        assert address(array) % 64 == 0
        assert array.flags.writeable and array.flags.c_contiguous
        array[:] = value
    assert [int(a.min()) for a in arrays] == [int(a.max()) for a in arrays] == [0, 1, 2]


def test_shape_and_dtype() -> None:
    array = _memory.empty((2, 3), np.dtype(">f8"))
    assert array.shape == (2, 3) and array.dtype == np.dtype(">f8")
    structured = _memory.empty((4,), np.dtype([("a", "u1"), ("b", "<i4")]))
    structured["b"] = 7
    assert structured["b"].tolist() == [7] * 4


@pytest.mark.parametrize("shape", [(0,), (0, 5), (3, 0)])
def test_nothing_needs_no_block(shape: tuple[int, ...]) -> None:
    before = _memory.stats()
    array = _memory.empty(shape, BYTE)
    assert array.shape == shape
    assert _memory.stats() == before


@pytest.mark.parametrize("nbytes", [784, 300_000, 5 << 20])
def test_block_is_used_again_when_the_last_view_dies(nbytes: int) -> None:
    array = _memory.empty((nbytes,), BYTE)
    where = address(array)
    view = array[: nbytes // 2].reshape(2, -1)[1]
    del array
    other = _memory.empty((nbytes,), BYTE)
    assert address(other) != where, "handed out while a view was alive"
    used = _memory.stats()["used_blocks"]
    del view
    assert _memory.stats()["used_blocks"] == used - 1
    assert address(_memory.empty((nbytes,), BYTE)) == where


def test_small_blocks_lying_idle_are_bounded() -> None:
    before = _memory.stats()
    kept = [_memory.empty((1000,), BYTE) for _ in range(5000)]
    assert _memory.stats()["used_blocks"] >= before["used_blocks"] + 5000
    del kept
    after = _memory.stats()
    assert after["used_blocks"] == before["used_blocks"]
    assert after["idle_bytes"] - before["idle_bytes"] <= _memory.SMALL_BYTES


def test_large_blocks_lying_idle_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_memory, "IDLE_BYTES", 10 << 20)
    kept = [_memory.empty((2 << 20,), BYTE) for _ in range(12)]
    del kept
    assert _memory._large_idle() == 10 << 20


def test_a_huge_block_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    # The bound is read when a block comes back, so lowering it now is enough.
    monkeypatch.setattr(_memory, "KEEP_LARGEST", 4 << 20)
    array = _memory.empty((6 << 20,), BYTE)
    del array
    assert _memory._large_idle() == 0


def test_trim_frees_large_blocks_down_to_a_bound() -> None:
    kept = [_memory.empty((size << 20,), BYTE) for size in (2, 4, 8)]
    del kept
    assert _memory._large_idle() == 14 << 20
    _memory.trim(6 << 20)
    assert _memory._large_idle() == 6 << 20
    _memory.trim()
    assert _memory._large_idle() == 0


def test_taking_and_releasing_from_many_threads() -> None:
    used = _memory.stats()["used_blocks"]
    bad: list[str] = []

    def work(number: int) -> None:
        held: list[np.ndarray] = []
        for turn in range(400):
            array = _memory.empty((50 + 13 * (turn % 40),), BYTE)
            array[:] = number
            cycle: list[object] = [array]
            cycle.append(cycle)  # released by the collector, in whatever thread it runs
            held.append(array)
            if len(held) > 8:
                old = held.pop(0)
                if not (old == number).all():
                    bad.append(f"thread {number} lost a block in turn {turn}")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bad == []
    gc.collect()
    assert _memory.stats()["used_blocks"] == used


def test_closing_the_last_store_gives_back_large_blocks(tmp_path: Path) -> None:
    with DenseStore(tmp_path / "a", np.uint8, (1 << 20,), "raw") as store:
        store.append(np.ones((4, 1 << 20), np.uint8))
        with DenseStore(tmp_path / "b", np.uint8, ()) as other:
            store[:4]
            assert not other.closed and _memory._large_idle() >= 4 << 20
        assert _memory._large_idle() >= 4 << 20
    assert _memory._large_idle() == 0


def test_a_block_that_dies_in_a_cycle_is_taken_back_once() -> None:
    before = _memory.stats()
    for nbytes in (100, 3 << 20):
        block = _memory.take(nbytes)
        cycle = [block]
        cycle.append(cycle)
        del block, cycle
        gc.collect()
    assert _memory.stats()["used_blocks"] == before["used_blocks"]
