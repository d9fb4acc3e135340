"""Ctrl-C and the end of the interpreter during work on whole stores."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pytest
from support import output_of
from test_interrupt import COMMON

from loaderx.zrecord import DenseStore

# Again and again, which takes for ever: only an interrupt between two steps can end it.
FOR_EVER = {
    "verify": "while True: store.verify()",
    "stats": "while True: store.stats()",
    "refresh": "while True: store.refresh()",
    "delete": "while True: store.append(store[-1:]), store.delete(-1)",
    "compact": "while True: store.append(store[-1:]), store.delete(-1), store.compact()",
    "snapshot": (
        "import shutil\n"
        "    while True:\n"
        "        store.snapshot(sys.argv[1] + '-copy')\n"
        "        shutil.rmtree(sys.argv[1] + '-copy')"
    ),
    "aligned": (
        "from loaderx import delete_aligned\n"
        "    while True: store.append(store[-1:]), delete_aligned([store], -1)"
    ),
}

RUN = """
try:
    store.sync()
    started.release()
    {work}
except KeyboardInterrupt:
    left = len(store)
    assert left in (100, 101), left
    store.append(store[:1])
    store.delete(list(range(100, len(store))))
    store.compact()
    print(len(store), store.verify().ok)
store.close()
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    with DenseStore(tmp_path / "s", np.int64, (8,)) as store:
        store.append(np.repeat(np.arange(100), 8).reshape(100, 8))
    return str(tmp_path / "s")


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no way to send oneself a Ctrl-C")
@pytest.mark.parametrize("work", FOR_EVER)
def test_ctrl_c(path: str, work: str) -> None:
    assert output_of(COMMON + RUN.format(work=FOR_EVER[work]), path) == "100 True"


EXITS = {
    "verify": "store.verify()",
    "compact": "store.append(store[-1:]), store.delete(-1), store.compact()",
    "gather": "store.gather(np.arange(100).repeat(1000))",
    "interrupted": "store.verify(lambda at, total: 1 / 0)",
}


@pytest.mark.parametrize("work", EXITS)
def test_the_interpreter_ends_while_a_thread_works(path: str, work: str) -> None:
    code = f"""
import sys, threading
import numpy as np
from loaderx import DenseStore, StoreClosedError
store, go = DenseStore(sys.argv[1]), threading.Event()
def work():
    try:
        while True:
            try:
                {EXITS[work]}
            except ZeroDivisionError:
                pass
            go.set()
    except StoreClosedError:
        pass
threading.Thread(target=work, daemon=True).start()
go.wait()
print("end")
"""
    assert output_of(code, path) == "end"
    with DenseStore(path) as again:
        assert len(again) in (100, 101) and again.verify().ok
        again.append(again[:1])  # closed well: not locked, and not dirty
