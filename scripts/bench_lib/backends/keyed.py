"""Libraries that keep one value of bytes for each record: LMDB, ArrayRecord, Bagz."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from bench_lib.backends.base import CHUNK_BYTES, Backend, Sidecar, library
from bench_lib.data import Array, DataSet, Records


class Keyed(Backend):
    """What the three have in common: bytes in, bytes out."""

    def __init__(self, folder: Path, data: DataSet, codec: str) -> None:
        super().__init__(folder, data)
        self.codec = codec
        self._side = Sidecar(folder, data.dtype)

    def write(self, records: Records) -> None:
        """Write the bytes of every record, and the shapes beside them if ragged."""
        if self.data.ragged:
            self._side.write(records)
        self._put(memoryview(record).cast("B") for record in records)

    def open(self) -> None:
        """Open what was written."""
        if self.data.ragged:
            self._side.load()
        self._open()

    def gather(self, index: Array) -> Any:
        """Join the bytes of the records to one array, or make an array of each."""
        payloads = self._get(index)
        if self.data.ragged:
            return self._side.from_bytes(payloads, index)
        joined = np.frombuffer(bytearray().join(payloads), self.data.dtype)
        return joined.reshape(len(index), *self.data.item_shape)

    def _put(self, payloads: Iterable[Any]) -> None:
        raise NotImplementedError

    def _open(self) -> None:
        raise NotImplementedError

    def _get(self, index: Array) -> Any:
        raise NotImplementedError


class Lmdb(Keyed):
    """LMDB with eight-byte keys in order, written in one transaction without sync."""

    def _put(self, payloads: Iterable[Any]) -> None:
        env = self._env(readonly=False)
        with env.begin(write=True) as transaction:
            for key, payload in enumerate(payloads):
                transaction.put(key.to_bytes(8, "big"), payload, append=True)
        env.close()

    def _env(self, readonly: bool) -> Any:
        size = 1 << 40  # of the address space, not of the file
        path = str(self.folder / "lmdb")
        return library("lmdb").open(
            path, map_size=size, sync=False, readonly=readonly, lock=False, readahead=not readonly
        )

    def _open(self) -> None:
        self._reader = self._env(readonly=True)

    def gather(self, index: Array) -> Any:
        """Copy the records out within the transaction that maps them."""
        with self._reader.begin(buffers=True) as self._transaction:
            return super().gather(index)

    def _get(self, index: Array) -> Any:
        get = self._transaction.get
        return [get(i.to_bytes(8, "big")) for i in index.tolist()]

    def close(self) -> None:
        """Close the environment."""
        self._reader.close()


class ArrayRecord(Keyed):
    """ArrayRecord; small records in groups that fill a chunk, as it compresses groups."""

    def _put(self, payloads: Iterable[Any]) -> None:
        module = library("array_record.python.array_record_module")
        group = 1 if self.data.ragged else max(1, CHUNK_BYTES // self.data.record_bytes)
        codec = "uncompressed" if self.codec == "raw" else "zstd:3"
        path = str(self.folder / "records.array_record")
        writer = module.ArrayRecordWriter(path, f"group_size:{group},{codec}")
        for payload in payloads:
            writer.write(bytes(payload))
        writer.close()

    def _open(self) -> None:
        module = library("array_record.python.array_record_module")
        # Reading ahead is for sequential reading; at random it is wasted.
        self._reader = module.ArrayRecordReader(
            str(self.folder / "records.array_record"), "readahead_buffer_size:0"
        )

    def _get(self, index: Array) -> Any:
        return self._reader.read(index.tolist())

    def close(self) -> None:
        """Close the reader."""
        self._reader.close()


class Bagz(Keyed):
    """Bagz, compressing each record by itself."""

    def _options(self) -> tuple[Any, Any]:
        bagz = library("bagz")
        compression = bagz.CompressionNone() if self.codec == "raw" else bagz.CompressionZstd(3)
        return bagz, compression

    def _put(self, payloads: Iterable[Any]) -> None:
        bagz, compression = self._options()
        options = bagz.Writer.Options(compression=compression)
        with bagz.Writer(str(self.folder / "records.bag"), options) as writer:
            for payload in payloads:
                writer.write(bytes(payload))

    def _open(self) -> None:
        bagz, compression = self._options()
        options = bagz.Reader.Options(compression=compression)
        self._reader = bagz.Reader(str(self.folder / "records.bag"), options)

    def _get(self, index: Array) -> Any:
        return self._reader.read_indices(index)
