"""Yardsticks: records in private memory, and NumPy's own files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bench_lib.backends.base import Backend, Sidecar, flat
from bench_lib.data import Array, DataSet, Records


class Take(Backend):
    """``ndarray.take`` on an array in memory, into a new array or a reused one."""

    in_memory = True

    def __init__(self, folder: Path, data: DataSet, reuse: bool = False) -> None:
        super().__init__(folder, data)
        self._reuse = reuse
        self._out: Array | None = None

    def write(self, records: Records) -> None:
        """Copy the array."""
        self.records = records.copy()

    def open(self) -> None:
        """Make the destination, if it is reused."""
        if self._reuse:
            self._out = np.zeros((self.data.batch, *self.data.item_shape), self.data.dtype)

    def gather(self, index: Array) -> Array:
        """Take the records."""
        if self._out is None or len(index) != len(self._out):
            return np.asarray(self.records.take(index, axis=0))
        # mode="wrap" lets NumPy write into out directly; "raise" goes through a copy.
        return np.asarray(self.records.take(index, axis=0, out=self._out, mode="wrap"))


class RamList(Backend):
    """Copies of arrays from a list in memory, each allocated by itself."""

    in_memory = True

    def write(self, records: Records) -> None:
        """Copy each array."""
        self.records = [r.copy() for r in records]

    def open(self) -> None:
        """There is nothing to open."""

    def gather(self, index: Array) -> list[Array]:
        """Copy the arrays."""
        records = self.records
        return [records[i].copy() for i in index.tolist()]


class Memmap(Backend):
    """.npy files: one of the records, or one of all values and one of the shapes."""

    def __init__(self, folder: Path, data: DataSet) -> None:
        super().__init__(folder, data)
        self._side = Sidecar(folder, data.dtype)

    def write(self, records: Records) -> None:
        """Write with np.save."""
        if self.data.ragged:
            self._side.write(records)
            records = flat(records)
        np.save(self.folder / "records.npy", records)

    def open(self) -> None:
        """Map the file."""
        self._mapped: Any = np.load(self.folder / "records.npy", mmap_mode="r")
        if self.data.ragged:
            self._side.load()

    def gather(self, index: Array) -> Any:
        """Index the mapped array, or copy slices of it."""
        if not self.data.ragged:
            return self._mapped[index]
        side, values = self._side, self._mapped.view(np.ndarray)
        starts, shapes = side.starts, side.shapes
        return [values[starts[i] : starts[i + 1]].reshape(shapes[i]).copy() for i in index.tolist()]

    def arrays(self, result: Any, index: Array) -> Any:
        """A plain array of the memmap that indexing gives."""
        return result if self.data.ragged else np.asarray(result)

    def close(self) -> None:
        """Let go of the mapping."""
        self._mapped = None
