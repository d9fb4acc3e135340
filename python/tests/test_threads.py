"""Many threads on one handle: gathers, appends and close."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loaderx.errors import StoreClosedError
from loaderx.zrecord import DenseStore, RaggedStore


def together(*works: Callable[[], None]) -> None:
    """Run functions in threads of their own; the first exception is raised here."""
    failures: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


@pytest.mark.parametrize("codec", ["raw", "zstd"])
@pytest.mark.parametrize("kind", ["dense", "ragged"])
def test_gather_against_append(tmp_path: Path, codec: str, kind: str) -> None:
    done = threading.Event()
    store: Any
    if kind == "dense":
        store = DenseStore(tmp_path / "s", np.int64, (17,), codec=codec)
    else:
        store = RaggedStore(tmp_path / "s", np.int64, codec=codec)

    def record(i: int) -> np.ndarray:
        return np.full(17 if kind == "dense" else 1 + i % 23, i, np.int64)

    def write() -> None:
        try:
            for start in range(0, 3000, 30):
                assert store.append([record(i) for i in range(start, start + 30)]) == start
        finally:
            done.set()

    def read(seed: int) -> None:
        rng = np.random.default_rng(seed)
        last = False
        while not last:
            last = done.is_set()
            length = len(store)
            if length == 0:
                continue
            index = rng.integers(0, length, 40)
            for i, found in zip(index, store[index]):
                assert found.tobytes() == record(int(i)).tobytes()
            assert store[-1][0] >= length - 1

    with store:
        together(write, *(lambda seed=seed: read(seed) for seed in range(4)))
        assert len(store) == 3000


def test_close_waits_for_running_calls(tmp_path: Path) -> None:
    data = np.random.default_rng(0).integers(0, 9, (2000, 512)).astype(np.uint8)
    with DenseStore(tmp_path / "s", data.dtype, data.shape[1:]) as store:
        store.append(data)
    store = DenseStore(tmp_path / "s")
    started = threading.Barrier(5)

    def read() -> None:
        started.wait()
        try:
            while True:
                assert (store[:] == data).all()
        except StoreClosedError as error:
            assert store.path in str(error)

    def close() -> None:
        started.wait()
        store[:]
        together(store.close, store.close)

    together(close, read, read, read, read)
    assert store.closed


def test_many_handles_in_many_threads(tmp_path: Path) -> None:
    data = np.arange(1000, dtype=np.int32)
    with DenseStore(tmp_path / "s", data.dtype, ()) as store:
        store.append(data)

    def use() -> None:
        for _ in range(20):
            with DenseStore(tmp_path / "s", mode="r") as mine:
                assert (mine[::-1] == data[::-1]).all()

    together(*[use] * 6)
