"""The published loaderx 1.7.7, in an environment of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench_lib.backends.base import Backend, library
from bench_lib.data import Array, DataSet, Records


class Reference(Backend):
    """A store of 1.7.7, whose interface this checkout keeps."""

    def __init__(self, folder: Path, data: DataSet, codec: str) -> None:
        super().__init__(folder, data)
        self.codec = codec
        self._store: Any = None

    def write(self, records: Records) -> None:
        """Create the store and append."""
        stores, data, path = library("loaderx.zrecord"), self.data, str(self.folder / "store")
        if data.ragged:
            self._store = stores.RaggedStore(path, data.dtype, codec=self.codec)
        else:
            self._store = stores.DenseStore(path, data.dtype, data.item_shape, codec=self.codec)
        self._store.append(records)

    def finish(self) -> None:
        """Close the store."""
        self._store.close()

    def open(self) -> None:
        """Open the store."""
        stores = library("loaderx.zrecord")
        kind = stores.RaggedStore if self.data.ragged else stores.DenseStore
        self._store = kind(str(self.folder / "store"))

    def gather(self, index: Array) -> Any:
        """An array, or a list of arrays."""
        return self._store[index]

    def close(self) -> None:
        """Close the store."""
        self._store.close()
