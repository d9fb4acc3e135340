"""What the benchmarks ask of a backend."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np

from bench_lib.data import Array, DataSet, Records, cut

# Where a library stores records in chunks, and compresses or reads a chunk as a
# whole, a chunk is one record, or as many small ones as fit into this.
CHUNK_BYTES = 16 << 10


def library(name: str) -> Any:
    """Import the library of a backend, which type checkers need not have."""
    return importlib.import_module(name)


def rows_of(data: DataSet, nbytes: int = CHUNK_BYTES) -> int:
    """How many dense records make a chunk of about so many bytes, at least one."""
    return max(1, min(data.count, nbytes // data.record_bytes))


class Backend:
    """One way to keep records on disk and to read batches of them.

    Args:
        folder: where the files go; there, and empty before write().
        data: what the records are.
    """

    name = ""
    # Whether gather() needs self.records, the records in private memory.
    in_memory = False

    def __init__(self, folder: Path, data: DataSet) -> None:
        self.folder = folder
        self.data = data
        self.records: Records = None

    def write(self, records: Records) -> None:
        """Write all records, until another process could read them. This is timed."""
        raise NotImplementedError

    def finish(self) -> None:
        """Close what write() left open, durably where the library does so. Not timed."""

    def open(self) -> None:
        """Open for reading what write() wrote."""
        raise NotImplementedError

    def gather(self, index: Array) -> Any:
        """Read records, as the library gives them. This is timed."""
        raise NotImplementedError

    def arrays(self, result: Any, index: Array) -> Any:
        """What gather() gave as an array, or a list of arrays if ragged. Not timed."""
        return result

    def prepare(self, plans: list[Array]) -> None:
        """Hear which plans will be gathered over and over, after open(). Not timed."""

    def batches(self, index: Array) -> int:
        """How many batches one gather() of this plan stands for."""
        return 1

    def close(self) -> None:
        """Close what open() opened."""


class Sidecar:
    """The shapes of ragged records, for libraries that know bytes or flat arrays only.

    They are kept in memory while reading, which costs the library nothing.
    """

    def __init__(self, folder: Path, dtype: str) -> None:
        self.path = folder / "shapes.npy"
        self.dtype = np.dtype(dtype)

    def write(self, records: list[Array]) -> None:
        """Keep the shapes of the records."""
        np.save(self.path, np.array([r.shape for r in records], np.int64))

    def load(self) -> None:
        """Read the shapes, and compute where each record begins in a flat array."""
        shapes = np.load(self.path)
        ends = np.cumsum(shapes.prod(axis=1))
        self.shapes = [tuple(s) for s in shapes.tolist()]
        self.starts: list[int] = [0, *ends.tolist()]

    def from_bytes(self, payloads: Any, index: Array) -> list[Array]:
        """Make writable arrays of the records' bytes."""
        dtype, shapes = self.dtype, self.shapes
        return [
            np.frombuffer(bytearray(payload), dtype).reshape(shapes[i])
            for payload, i in zip(payloads, index.tolist())  # noqa: B905
        ]


def flat(records: list[Array]) -> Array:
    """Put the values of all records one behind the other."""
    return np.concatenate([r.ravel() for r in records])


def split(values: Array, shapes: list[tuple[int, ...]]) -> list[Array]:
    """Cut packed values of a batch into its records."""
    return cut(values, np.array(shapes, np.int64))
