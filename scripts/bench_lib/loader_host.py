"""What runs in the process of a loader: write, start, check, and take batches."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench_lib import check
from bench_lib.backends.base import library
from bench_lib.data import DataSet
from bench_lib.hosts import load_source
from bench_lib.loaders import create
from bench_lib.loaders.base import augment

# Batches taken before the clock starts, and for half the time at least: what was
# made ahead while others were measured would count as made in no time.
WARM = 24


class LoaderHost:
    """One loader.

    Args:
        name: of the contender.
        folder: for its files.
        data: what the images are.
        source: the folder of hosts.save_source().
        codec: of the stores.
        augmented: whether the transform is applied.
    """

    def __init__(
        self, name: str, folder: str, data: DataSet, source: str, codec: str, augmented: bool
    ) -> None:
        self._name, self._data, self._source = name, data, Path(source)
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._contender = create(name, self._folder, data, codec, augmented)
        self._augmented = augmented
        self._iterator: Iterator[Any]

    def write(self) -> None:
        """Write the files."""
        records = load_source(self._source, self._data)
        self._contender.write(records, np.arange(self._data.count, dtype=np.int64))

    def start(self) -> float:
        """Begin, and return the seconds until the first batch was there."""
        for module in self._contender.modules:
            library(module)
        begin = time.perf_counter()
        self._iterator = self._contender.start()
        next(self._iterator)
        return time.perf_counter() - begin

    def check(self, batches: int) -> None:
        """Compare so many batches with the records that their labels say.

        Raises:
            WrongAnswerError: something differs.
        """
        records, data = load_source(self._source, self._data), self._data
        for number in range(batches):
            image, label = self._contender.arrays(next(self._iterator))
            where = f"batch {number}"
            if label.dtype != np.int64 or label.shape != (data.batch,):
                raise check.WrongAnswerError(
                    f"{self._name}, {where}: expected int64 labels of shape {(data.batch,)}, "
                    f"got {label.dtype} of {label.shape}"
                )
            want = {"image": records[label], "label": label}
            if self._augmented:
                augment(want)
            check.dense(self._name, np.asarray(image), want["image"], where)

    def sample(self, seconds: float) -> list[float]:
        """Take batches for so many seconds, and return the seconds between them."""
        iterator, clock = self._iterator, time.perf_counter
        warm, taken = clock() + seconds / 2, 0
        while taken < WARM or clock() < warm:
            next(iterator)
            taken += 1
        durations = []
        before = clock()
        end = before + seconds
        while True:
            next(iterator)
            now = clock()
            durations.append(now - before)
            before = now
            if now >= end:
                return durations

    def close(self) -> None:
        """Stop the loader."""
        self._contender.close()
