"""The published loaderx 2.8.19, in an environment of its own.

It writes a container once, and gives DLPack tensors; a ragged batch is packed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bench_lib.backends.base import Backend, library, split
from bench_lib.data import Array, DataSet, Records


class Reference(Backend):
    """A container of 2.8.19, bound to memory of the processor."""

    def __init__(self, folder: Path, data: DataSet, codec: str) -> None:
        super().__init__(folder, data)
        self.codec = codec

    def write(self, records: Records) -> None:
        """Append everything and publish; before that nothing can be read."""
        stores, data, path = library("loaderx.zrecord"), self.data, str(self.folder / "store")
        dtype = np.dtype(data.dtype)
        if data.ragged:
            writer = stores.RaggedWriter(path, dtype, ndim=data.ndim, codec=self.codec)
            records = stores.RaggedBatch.from_records(records)
        else:
            writer = stores.DenseWriter(path, dtype, data.item_shape, codec=self.codec)
        with writer:
            writer.append(records)

    def open(self) -> None:
        """Open the container and bind it."""
        stores = library("loaderx.zrecord")
        kind = stores.RaggedStore if self.data.ragged else stores.DenseStore
        self._store = kind(str(self.folder / "store"))
        self._allocator = library("loaderx").Allocator("cpu")
        self._view = self._store.bind(self._allocator)

    def gather(self, index: Array) -> Any:
        """A tensor, as an array for which nothing is copied; or a RaggedBatch."""
        result = self._view[index]
        return result if self.data.ragged else np.from_dlpack(result)

    def arrays(self, result: Any, index: Array) -> Any:
        """Cut a RaggedBatch into its records."""
        if not self.data.ragged:
            return result
        shapes = np.from_dlpack(result.shapes).astype(np.int64)
        return split(np.from_dlpack(result.values), [tuple(s) for s in shapes.tolist()])

    def close(self) -> None:
        """Close the container."""
        self._view = None
        self._store.close()
        self._allocator.close()
