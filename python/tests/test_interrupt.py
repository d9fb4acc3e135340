"""Ctrl-C during every long call: it arrives, and nothing is broken by it."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pytest
from support import output_of

from loaderx.zrecord import DenseStore

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "pthread_kill"), reason="no way to send oneself a Ctrl-C on this system"
)

COMMON = """
import os, signal, sys, threading
import numpy as np
from loaderx import DataLoader, DenseStore, RaggedStore, _native
# Bare locks: an Event that the main thread uses can be left locked by an interrupt.
started, arrived = threading.Lock(), threading.Lock()
started.acquire(), arrived.acquire()

def handler(*_):
    if arrived.locked():
        arrived.release()
        raise KeyboardInterrupt

def interrupt():
    started.acquire()
    # Again and again: a signal that comes just before a wait does not end it.
    while arrived.locked():
        os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, handler)

killer = threading.Thread(target=interrupt, daemon=True)
killer.start()
store = DenseStore(sys.argv[1])
"""

GATHER = """
ragged = RaggedStore(sys.argv[1] + "r", np.uint8)
if not len(ragged):
    ragged.append(bytes(1000) for _ in range(1000))
# Small calls and a set that takes hours: only an interrupt between two calls can end it.
_native.CALL_BYTES = 1 << 16
try:
    started.release()
    if sys.argv[2] == "dense":
        index = np.zeros(1 << 14, np.int64)
        while True:
            store[index]
    else:
        index = np.zeros(1 << 14, np.int64)
        while True:
            ragged[index]
except KeyboardInterrupt:
    print(len(store[:]), len(ragged[:2]))
ragged.close()
store.close()
"""

APPEND = """
def records():
    for i in range(1 << 40):
        if i == 5000:
            started.release()
        yield np.full(8, i)
try:
    if sys.argv[2] == "dense":
        store.append(records())
    else:
        started.release()
        store.append(np.broadcast_to(np.arange(8), (1 << 40, 8)))
except KeyboardInterrupt:
    print(len(store), store.append(store[:1]))
store.close()
"""

NEXT = """
gate, first = threading.Lock(), [True]
gate.acquire()
def transform(batch):
    if first.pop() if first else False:
        started.release()
    gate.acquire()
    gate.release()
    return batch
loader = DataLoader({"x": store}, int(sys.argv[2]), 4, mode=0, transform=transform)
try:
    next(loader)
except KeyboardInterrupt:
    gate.release()
    print([int(next(loader)["x"][0, 0]) for _ in range(5)], loader.step)
loader.close()
store.close()
"""

WAIT = """
inside = threading.Event()
go_on = threading.Event()
def slow():
    yield np.arange(8)
    inside.set()
    go_on.wait()
other = threading.Thread(target=lambda: store.append(slow()))
other.start()
inside.wait()
try:
    started.release()
    store.append(store[:1])
except KeyboardInterrupt:
    go_on.set()
    other.join()
    print(len(store))
store.close()
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    with DenseStore(tmp_path / "s", np.int64, (8,)) as store:
        store.append(np.repeat(np.arange(100), 8).reshape(100, 8))
    return str(tmp_path / "s")


@pytest.mark.parametrize("kind", ["dense", "ragged"])
def test_a_long_gather(path: str, kind: str) -> None:
    assert output_of(COMMON + GATHER, path, kind) == "100 2"


@pytest.mark.parametrize("kind", ["dense", "array"])
def test_a_long_append_is_taken_back(path: str, kind: str) -> None:
    assert output_of(COMMON + APPEND, path, kind) == "100 100"


def test_waiting_for_another_append(path: str) -> None:
    assert output_of(COMMON + WAIT, path) == "101"


@pytest.mark.parametrize("num_workers", [0, 1, 3])
def test_next_goes_on_where_it_was(path: str, num_workers: int) -> None:
    assert output_of(COMMON + NEXT, path, num_workers) == "[0, 4, 8, 12, 16] 5"
