"""Reading what is not in memory: the page cache is emptied of the files first.

A case drops the pages of its files while nobody has them open, opens them, and
reads some batches of records that no earlier batch read, since reading brings
neighbours into memory too.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench_lib import check
from bench_lib import data as sets
from bench_lib.backends import create
from bench_lib.data import Array, DataSet
from bench_lib.machine import drop_pages
from bench_lib.plot import Panel
from bench_lib.report import number
from bench_lib.session import Session
from bench_lib.targets import Rule, Verdict, better, judge
from bench_lib.timing import Measured, alternate
from bench_lib.worker import Worker

BATCHES = 4
# The most that may still be in memory after it was dropped, as a share.
RESIDENT = 0.05

BOUNDS = {"4096": 3.0, "512,512": 1.5}


def resident(path: Path) -> float:
    """The share of a file's pages that are in memory."""
    size = path.stat().st_size
    if size == 0:
        return 0.0
    libc: Any = ctypes.CDLL(None, use_errno=True)
    with open(path, "rb") as file, mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ) as mapped:
        view = np.frombuffer(mapped, np.uint8)
        pages = -(-size // mmap.PAGESIZE)
        flags = (ctypes.c_ubyte * pages)()
        address = ctypes.c_void_p(view.ctypes.data)
        if libc.mincore(address, ctypes.c_size_t(size), flags):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(path))
        del view
    return float((np.frombuffer(bytes(flags), np.uint8) & 1).mean())


class Pread:
    """Blocking reads, one record after the other: ``os.preadv`` into the batch."""

    def __init__(self, folder: Path, data: DataSet) -> None:
        self._data = data
        self._path = folder / "records.npy"
        self._skip = self._path.stat().st_size - data.count * data.record_bytes

    def open(self) -> None:
        """Open the file, and tell the kernel that it is read at random."""
        self._fd = os.open(self._path, os.O_RDONLY)
        os.posix_fadvise(self._fd, 0, 0, os.POSIX_FADV_RANDOM)

    def gather(self, index: Array) -> Array:
        """Read the records."""
        data, size = self._data, self._data.record_bytes
        out: Array = np.empty((len(index), *data.item_shape), data.dtype)
        rows = out.data.cast("B")
        for place, i in enumerate(index.tolist()):
            row = rows[place * size : (place + 1) * size]
            if os.preadv(self._fd, [row], self._skip + i * size) != size:
                raise OSError(f"{self._path}: expected {size} bytes of record {i}")
        return out

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


READERS = {"loaderx_raw": "loaderx_raw", "pread": "npy_memmap", "npy_memmap": "npy_memmap"}


class ColdHost:
    """Writes the files of all readers, and measures them one after the other."""

    def __init__(self, folder: str, data: DataSet, readers: list[str]) -> None:
        self._data, self._readers = data, readers
        self._records = sets.dense(data)
        self._order = np.random.default_rng((sets.SEED, 5)).permutation(data.count)
        self._at = 0
        self._folders: dict[str, Path] = {}
        self._made: dict[str, Any] = {}
        for reader in readers:
            backend = READERS[reader]
            self._folders[reader] = path = Path(folder) / backend
            if not path.exists():
                path.mkdir(parents=True)
                writer = create(backend, path, data)
                writer.write(self._records)
                writer.finish()
            self._made[reader] = (
                Pread(path, data) if reader == "pread" else create(backend, path, data)
            )

    def _next_plan(self) -> Array:
        batch = self._data.batch
        if self._at + batch > len(self._order):
            self._at = 0
        plan = self._order[self._at : self._at + batch]
        self._at += batch
        return plan

    def _drop(self, reader: str) -> None:
        folder = self._folders[reader]
        drop_pages(folder)
        largest = max((p for p in folder.rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)
        left = resident(largest)
        if left > RESIDENT:
            raise RuntimeError(
                f"{largest}: expected its pages to leave the page cache, {left:.0%} are still "
                f"there: use --dir to put the data on a disk"
            )

    def check(self) -> None:
        """Compare a batch of every reader with the records."""
        for reader, made in self._made.items():
            plan = self._next_plan()
            made.open()
            got = np.asarray(made.gather(plan))
            check.dense(reader, got, self._records[plan], "cold plan")
            del got
            made.close()

    def run(self, rounds: int) -> dict[str, Measured]:
        """Measure all readers in turn."""

        def sampler(reader: str) -> Callable[[float], list[float]]:
            return lambda seconds: self._sample(reader)

        return alternate({r: sampler(r) for r in self._readers}, rounds, 0)

    def _sample(self, reader: str) -> list[float]:
        made, durations = self._made[reader], []
        self._drop(reader)
        made.open()
        for _ in range(BATCHES):
            plan = self._next_plan()
            begin = time.perf_counter()
            made.gather(plan)
            durations.append(time.perf_counter() - begin)
        made.close()
        return durations


def run(session: Session, data: DataSet, only: list[str]) -> list[Verdict]:
    """Measure a set from the disk, print the table, and judge its target."""
    folder = session.folder / ("cold-" + data.name.replace(",", "x"))
    arguments = (str(folder), data, only)
    rule = Rule(f"cold {data.name}", "loaderx_raw", "pread", BOUNDS.get(data.name, 1.0))
    verdicts: list[Verdict] = []
    session.say(f"cold: {data.count} records of {data.name}")
    host = "bench_lib.cold:ColdHost"
    with Worker("cold", session.python("main"), host, arguments) as worker:
        worker.call("check")
        for turn in range(session.args.tries):
            measured = worker.call("run", session.effort.rounds)
            rates = {name: 1 / m.seconds for name, m in measured.items()}
            judged = judge([rule], rates)
            verdicts = better(verdicts, judged) if turn else judged
            if all(v.reached for v in verdicts):
                break
    nbytes = data.batch * data.record_bytes
    rows = [
        [name, number(nbytes / m.seconds / (1 << 20)), number(m.p95 * 1000)]
        for name, m in measured.items()
    ]
    title = f"cold {data.name}: {data.count} records, batches of {data.batch}"
    session.show(title, ["reader", "gather MiB/s", "p95 ms"], rows)
    session.results.setdefault("cold", {})[data.name] = {
        name: {"batch_seconds": m.seconds, "rounds": m.rounds} for name, m in measured.items()
    }
    bars = [
        (name, nbytes / m.seconds / (1 << 20), "ours" if name == "loaderx_raw" else "yardstick")
        for name, m in measured.items()
    ]
    session.panels.append(Panel(title, "MiB/s", bars))
    return verdicts
