"""Small calls, opening and importing: the calls' part of bench.py."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bench_lib import check
from bench_lib import data as sets
from bench_lib.backends.base import library
from bench_lib.data import DIGITS
from bench_lib.report import number
from bench_lib.session import Session
from bench_lib.targets import Rule, Verdict, better, judge
from bench_lib.timing import Measured, alternate, repeat
from bench_lib.worker import Worker

DATA = replace(DIGITS, count=1 << 16)
ONE = 77
FIRST = 1000
INNER = 100
IMPORT = """
import time, numpy
begin = time.perf_counter()
import loaderx
alone = time.perf_counter() - begin
from loaderx import DataLoader, DenseStore, RaggedStore
print(alone, time.perf_counter() - begin)
"""

RULES = [
    Rule("calls", "ds[i]", "lmdb get with copy", 1.5, at_most=True),
    Rule("calls", "over the native call", "", 1.5, at_most=True, unit="us"),
    Rule("calls", "ds[a:a+256]", "memcpy", 2, at_most=True),
    Rule("calls", "open", "", 1, at_most=True, unit="ms"),
    Rule("calls", "import", "", 20, at_most=True, unit="ms"),
]


class CallsHost:
    """A store of 784-byte records, LMDB with the same, and the calls on them."""

    def __init__(self, folder: str) -> None:
        from loaderx.zrecord import DenseStore

        self._path = Path(folder)
        self._path.mkdir(parents=True)
        self._records = sets.dense(DATA)
        with DenseStore(self._path / "store", "uint8", DATA.item_shape, "raw") as store:
            store.append(self._records)
        self._store = DenseStore(self._path / "store", mode="r")
        self._index = np.random.default_rng(0).integers(0, DATA.count, DATA.batch)
        self._out = np.zeros((DATA.batch, *DATA.item_shape), np.uint8)
        self._lmdb = library("lmdb").open(str(self._path / "lmdb"), map_size=1 << 28, sync=False)
        with self._lmdb.begin(write=True) as transaction:
            for key, record in enumerate(self._records):
                transaction.put(key.to_bytes(8, "big"), record.tobytes(), append=True)

    def _get(self) -> Any:
        with self._lmdb.begin(buffers=True) as transaction:
            return np.frombuffer(transaction.get(ONE.to_bytes(8, "big")), np.uint8).copy()

    def _native(self) -> Any:
        """The call below ``ds[index]``, with everything that it needs at hand."""
        from loaderx import _native

        index = _native.ffi.from_buffer(self._index)
        out = _native.ffi.from_buffer(self._out)
        call, error = _native.lib.lx_dense_gather, _native.scratch.error
        handle = self._store._handle
        count, nbytes = len(self._index), self._out.nbytes
        return lambda: call(handle, index, count, out, nbytes, 0, error)

    def check(self) -> None:
        """Compare what each call gives with the records."""
        store, records, index = self._store, self._records, self._index
        run = slice(FIRST, FIRST + DATA.batch)
        check.dense("ds[i]", store[ONE], records[ONE], "one record")
        check.dense("lmdb", self._get(), records[ONE], "one record")
        check.dense("ds[array]", store[index], records[index], "an array")
        check.dense("ds[list]", store[index.tolist()], records[index], "a list")
        check.dense("ds[a:b]", store[run], records[run], "a slice")
        if self._native()():
            raise AssertionError("the native call: expected status 0")
        check.dense("the native call", self._out, records[index], "an array")

    def run(self, rounds: int, seconds: float) -> dict[str, Measured]:
        """Measure all calls in turn, in seconds."""
        found = alternate({"open": self._open}, rounds, seconds)
        store, index, out = self._store, self._index, self._out
        listed, source = index.tolist(), self._records[FIRST : FIRST + DATA.batch]
        calls = {
            "ds[i]": lambda: store[ONE],
            "lmdb get with copy": self._get,
            "ds[int64 array of 256]": lambda: store[index],
            "ds[list of 256]": lambda: store[listed],
            "the native call": self._native(),
            "ds[a:a+256]": lambda: store[FIRST : FIRST + 256],
            "memcpy": lambda: np.copyto(out, source),
            "len": lambda: len(store),
        }
        cases = {
            name: lambda seconds, call=call: repeat(call, seconds, INNER)
            for name, call in calls.items()
        }
        return {**found, **alternate(cases, rounds, seconds)}

    def _open(self, seconds: float) -> list[float]:
        """Open the store over and over, and return how long each time took."""
        from loaderx.zrecord import DenseStore

        durations: list[float] = []
        end = time.perf_counter() + seconds
        while not durations or time.perf_counter() < end:
            begin = time.perf_counter()
            opened = DenseStore(self._path / "store", mode="r")
            durations.append(time.perf_counter() - begin)
            opened.close()
        return durations


def import_seconds() -> tuple[float, float]:
    """What ``import loaderx`` takes beyond numpy, and with stores and loader, in seconds."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True, env=env
    )
    alone, whole = map(float, done.stdout.split())
    return alone, whole


def run(session: Session) -> list[Verdict]:
    """Measure the calls, print the table, and judge the targets."""
    session.say("calls")
    effort = session.effort
    arguments = (str(session.folder / "calls"),)
    verdicts: list[Verdict] = []
    python = session.python("main")
    with Worker("calls", python, "bench_lib.calls:CallsHost", arguments) as worker:
        worker.call("check")
        for turn in range(session.args.tries):
            measured = worker.call("run", effort.rounds, effort.seconds)
            found = {name: m.seconds for name, m in measured.items()}
            alone, whole = zip(*(import_seconds() for _ in range(effort.rounds)))
            found["import"], found["import, with stores and loader"] = min(alone), min(whole)
            rates = {**found, "open": found["open"] * 1e3, "import": found["import"] * 1e3}
            over = found["ds[int64 array of 256]"] - found["the native call"]
            rates["over the native call"] = over * 1e6
            judged = judge(RULES, rates)
            verdicts = better(verdicts, judged) if turn else judged
            if all(v.reached for v in verdicts):
                break
    rows = [[name, number(seconds * 1e6)] for name, seconds in found.items()]
    session.show("calls, 784 B records", ["call", "us"], rows)
    session.results["calls"] = {name: {"seconds": s} for name, s in found.items()}
    return verdicts
