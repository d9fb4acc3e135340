"""loaderx as it is in this checkout, through its public interface."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bench_lib.backends.base import Backend
from bench_lib.data import Array, DataSet, Records


class Loaderx(Backend):
    """A store of this checkout.

    Args:
        folder, data: as Backend.
        codec: "raw", "zstd" or "zstd_dict" (a dictionary of tier "balanced").
        deleted: append one record more and delete it, so that reading goes through
            the table of a store that has known deletes.
        packed: give a ragged batch in one piece.
        reuse: gather dense batches into one array, over and over.
    """

    def __init__(
        self,
        folder: Path,
        data: DataSet,
        codec: str,
        deleted: bool = False,
        packed: bool = False,
        reuse: bool = False,
    ) -> None:
        super().__init__(folder, data)
        self.codec, self.deleted, self.packed, self.reuse = codec, deleted, packed, reuse
        self._out: Any = None
        self._store: Any = None

    def _create(self, dict_bytes: bytes | None) -> Any:
        from loaderx.zrecord import DenseStore, RaggedStore

        path, data = self.folder / "store", self.data
        if data.ragged:
            return RaggedStore(path, data.dtype, self.codec, dict_bytes)
        return DenseStore(path, data.dtype, data.item_shape, self.codec, dict_bytes)

    def write(self, records: Records) -> None:
        """Train the dictionary if there is one, create the store and append."""
        dict_bytes = None
        if self.codec == "zstd_dict":
            from loaderx.utils import train_dict

            dict_bytes = train_dict(records, "balanced")
        self._store = self._create(dict_bytes)
        self._store.append(records)

    def finish(self) -> None:
        """Close the store, which syncs it; before that, delete what is one too many."""
        if self.deleted:
            count = len(self._store)
            self._store.append(self._store[:1])
            self._store.delete(count)
        self._store.close()

    def open(self) -> None:
        """Open the store read-only."""
        from loaderx.zrecord import DenseStore, RaggedStore

        kind = RaggedStore if self.data.ragged else DenseStore
        self._store = kind(self.folder / "store", mode="r")
        if self.reuse:
            self._out = np.zeros((self.data.batch, *self.data.item_shape), self.data.dtype)

    def gather(self, index: Array) -> Any:
        """An array, a list of arrays or a RaggedBatch."""
        if self._out is not None and len(index) == len(self._out):
            return self._store.gather(index, out=self._out)
        return self._store.gather(index) if self.packed else self._store[index]

    def arrays(self, result: Any, index: Array) -> Any:
        """Cut a RaggedBatch into its records."""
        return list(result) if self.packed else result

    def close(self) -> None:
        """Close the store."""
        self._store.close()
