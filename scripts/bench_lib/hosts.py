"""What runs in the process of a storage contender: write, check, open, gather."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench_lib import check
from bench_lib.backends import create
from bench_lib.data import Array, DataSet, Records, cut
from bench_lib.machine import disk_bytes

# The sweep over all records asks for so much at once, at most.
SWEEP_BYTES = 16 << 20
SWEEP_RECORDS = 8192

# For a process whose destinations come from malloc and shall be recycled: one
# arena, nothing mapped by itself, nothing given back.
MALLOC = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
    "MALLOC_TOP_PAD_": str(64 << 20),
}


def save_source(folder: Path, data: DataSet, records: Records, shapes: Array | None) -> None:
    """Keep the records for the processes of the contenders."""
    folder.mkdir(parents=True)
    np.save(folder / "values.npy", records)
    if shapes is not None:
        np.save(folder / "shapes.npy", shapes)


def load_source(folder: Path, data: DataSet) -> Records:
    """Map the records: every contender gets the same pages, which are in memory."""
    values: Any = np.load(folder / "values.npy", mmap_mode="c").view(np.ndarray)
    # Touch every page, so that faults are not counted to who writes first.
    values.reshape(-1).view(np.uint8)[::4096].sum()
    return cut(values, np.load(folder / "shapes.npy")) if data.ragged else values


class StoreHost:
    """One storage contender.

    Args:
        name: of the backend.
        folder: for its files.
        data: what the records are.
        source: the folder of save_source().
        plans: a .npy file of the index plans.
    """

    def __init__(self, name: str, folder: str, data: DataSet, source: str, plans: str) -> None:
        self._folder = Path(folder)
        self._data = data
        self._source = Path(source)
        self._plans = list(np.load(plans))
        self._records: Records = None
        self._at = 0
        self._backend = create(name, self._folder, data)
        self._written = False

    def write(self) -> float:
        """Write all records into an empty folder, and return the seconds it took."""
        if self._records is None:
            self._records = load_source(self._source, self._data)
        if self._written:
            self._backend.finish()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        begin = time.perf_counter()
        self._backend.write(self._records)
        took = time.perf_counter() - begin
        self._written = True
        return took

    def finish(self) -> int:
        """Close what was written, and return the bytes of disk that were allocated."""
        self._backend.finish()
        return disk_bytes(self._folder)

    def validate(self) -> int:
        """Compare every record, and the result of every plan; return how many records.

        Raises:
            WrongAnswerError: something differs.
        """
        self._backend.open()
        count = self._data.count
        mean = max(1, self._total() // count)
        rows = max(1, min(SWEEP_RECORDS, SWEEP_BYTES // mean))
        for start in range(0, count, rows):
            index = np.arange(start, min(start + rows, count))
            self._compare(index, f"records {start} to {index[-1]}")
        for number, plan in enumerate(self._plans):
            self._compare(plan, f"plan {number}")
        self._backend.close()
        return count + sum(len(plan) for plan in self._plans)

    def _total(self) -> int:
        if self._data.ragged:
            return sum(r.nbytes for r in self._records)
        return int(self._records.nbytes)

    def _compare(self, index: Array, where: str) -> None:
        backend = self._backend
        got = backend.arrays(backend.gather(index), index)
        if self._data.ragged:
            check.ragged(backend.name, got, [self._records[i] for i in index.tolist()], where)
        else:
            check.dense(backend.name, got, self._records[index], where)

    def open(self) -> float:
        """Open for reading, in a process that has not written, and return the seconds."""
        backend = self._backend
        if backend.in_memory:
            backend.write(load_source(self._source, self._data))
        begin = time.perf_counter()
        backend.open()
        took = time.perf_counter() - begin
        backend.prepare(self._plans)
        return took

    def sample(self, seconds: float) -> list[float]:
        """Gather plan by plan for so many seconds; return the seconds of each batch."""
        gather, plans = self._backend.gather, self._plans
        clock, durations = time.perf_counter, []
        end = clock() + seconds
        while True:
            plan = plans[self._at % len(plans)]
            batches = self._backend.batches(plan)
            begin = clock()
            gather(plan)
            now = clock()
            durations.append((now - begin) / batches)
            self._at += batches
            if now >= end:
                return durations
