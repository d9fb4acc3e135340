"""Libraries that store one big array in chunks: HDF5, TileDB, Zarr 3, Blosc2.

Ragged records are stretches of an array of one dimension, whose places are known.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bench_lib.backends.base import CHUNK_BYTES, Backend, Sidecar, flat, library, rows_of
from bench_lib.data import Array, DataSet, Records

# Flat values of ragged records are chunked more coarsely than dense records, as
# a chunk cannot be fitted to a record.
FLAT_CHUNK_BYTES = 64 << 10
SHARD_BYTES = 64 << 20


class Chunked(Backend):
    """What the four have in common: an array, chunks, and stretches of it."""

    def __init__(self, folder: Path, data: DataSet, codec: str) -> None:
        super().__init__(folder, data)
        self.codec = codec
        self.path = str(folder / "records")
        self._side = Sidecar(folder, data.dtype)

    def write(self, records: Records) -> None:
        """Write the array of dense records, or the flat values of ragged ones."""
        if self.data.ragged:
            self._side.write(records)
            records = flat(records)
        self._put(records, self._chunk(len(records)))

    def _chunk(self, length: int) -> tuple[int, ...]:
        if self.data.ragged:
            return (min(length, FLAT_CHUNK_BYTES // np.dtype(self.data.dtype).itemsize),)
        return (rows_of(self.data), *self.data.item_shape)

    def open(self) -> None:
        """Open the array."""
        if self.data.ragged:
            self._side.load()
        self._open()

    def gather(self, index: Array) -> Any:
        """Read records of a dense array, or stretches of a flat one."""
        if not self.data.ragged:
            return self._rows(index)
        starts, shapes = self._side.starts, self._side.shapes
        parts = self._stretches([(starts[i], starts[i + 1]) for i in index.tolist()])
        return [
            part.reshape(shapes[i])
            for part, i in zip(parts, index.tolist())  # noqa: B905
        ]

    def _put(self, values: Array, chunk: tuple[int, ...]) -> None:
        raise NotImplementedError

    def _open(self) -> None:
        raise NotImplementedError

    def _rows(self, index: Array) -> Any:
        raise NotImplementedError

    def _stretches(self, bounds: list[tuple[int, int]]) -> list[Any]:
        array = self._array
        return [array[a:b] for a, b in bounds]

    _array: Any


class Hdf5(Chunked):
    """HDF5 through h5py, raw or with gzip at its default level."""

    def _put(self, values: Array, chunk: tuple[int, ...]) -> None:
        compression = None if self.codec == "raw" else "gzip"
        with library("h5py").File(self.path, "w") as file:
            file.create_dataset("records", data=values, chunks=chunk, compression=compression)

    def _open(self) -> None:
        self._file = library("h5py").File(self.path, "r")
        self._array = self._file["records"]

    def _rows(self, index: Array) -> Any:
        # h5py wants a selection in rising order. For small records one selection
        # is faster, for large ones reading each into its place.
        if self.data.record_bytes < CHUNK_BYTES:
            found, places = np.unique(index, return_inverse=True)
            return self._array[found][places]
        out = np.empty((len(index), *self.data.item_shape), self.data.dtype)
        for place, i in enumerate(index.tolist()):
            self._array.read_direct(out, np.s_[i], np.s_[place])
        return out

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class TileDb(Chunked):
    """A dense TileDB array of bytes: a row for each record, tiles of whole records."""

    def _put(self, values: Array, chunk: tuple[int, ...]) -> None:
        tiledb = library("tiledb")
        table = values.reshape(len(values), -1)
        filters = [tiledb.ZstdFilter(level=3)] if self.codec == "zstd" else []
        rows = tiledb.Dim("row", domain=(0, len(table) - 1), tile=chunk[0], dtype=np.int64)
        dims = [rows]
        if not self.data.ragged:
            last = table.shape[1] - 1
            dims.append(tiledb.Dim("column", domain=(0, last), tile=last + 1, dtype=np.int64))
        value = tiledb.Attr("v", dtype=values.dtype, filters=tiledb.FilterList(filters))
        schema = tiledb.ArraySchema(tiledb.Domain(*dims), attrs=[value], sparse=False)
        tiledb.Array.create(self.path, schema)
        with tiledb.open(self.path, "w") as array:
            array[:] = values if self.data.ragged else table

    def _open(self) -> None:
        self._array = library("tiledb").open(self.path)

    def _rows(self, index: Array) -> Any:
        found, places = np.unique(index, return_inverse=True)
        got = self._array.multi_index[found.tolist(), :]["v"]
        return got.reshape(len(found), *self.data.item_shape)[places]

    def _stretches(self, bounds: list[tuple[int, int]]) -> list[Any]:
        # One query for all stretches, which have to rise; a query for each is slower.
        rising = sorted(set(bounds))
        ranges = [slice(a, b - 1) for a, b in rising]
        values, parts, at = self._array.multi_index[ranges]["v"], {}, 0
        for a, b in rising:
            parts[a, b] = values[at : at + b - a]
            at += b - a
        return [parts[bound] for bound in bounds]

    def close(self) -> None:
        """Close the array."""
        self._array.close()


class Zarr3(Chunked):
    """Zarr 3 through TensorStore: chunks in shards, read concurrently."""

    def _put(self, values: Array, chunk: tuple[int, ...]) -> None:
        codecs: list[dict[str, Any]] = [{"name": "bytes"}]
        if self.codec == "zstd":
            codecs.append({"name": "zstd", "configuration": {"level": 3}})
        row = values[0].nbytes if values.ndim > 1 else values.itemsize
        many = max(1, min(SHARD_BYTES // (row * chunk[0]), -(-len(values) // chunk[0])))
        shard = [chunk[0] * many, *values.shape[1:]]
        inner = {"chunk_shape": list(chunk), "codecs": codecs}
        spec = {
            **self._spec(),
            "metadata": {
                "shape": list(values.shape),
                "data_type": values.dtype.name,
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shard}},
                "codecs": [{"name": "sharding_indexed", "configuration": inner}],
            },
        }
        library("tensorstore").open(spec, create=True).result()[...].write(values).result()

    def _spec(self) -> dict[str, Any]:
        return {"driver": "zarr3", "kvstore": {"driver": "file", "path": self.path}}

    def _open(self) -> None:
        self._array = library("tensorstore").open(self._spec(), open=True).result()

    def _rows(self, index: Array) -> Any:
        return self._array[index].read().result()

    def _stretches(self, bounds: list[tuple[int, int]]) -> list[Any]:
        array = self._array
        waiting = [array[a:b].read() for a, b in bounds]
        return [future.result() for future in waiting]


class Blosc2(Chunked):
    """A Blosc2 NDArray on disk, compressed with zstd level 3, which Blosc calls 2."""

    def _put(self, values: Array, chunk: tuple[int, ...]) -> None:
        blosc2 = library("blosc2")
        settings = {"codec": blosc2.Codec.ZSTD, "clevel": 2}
        blosc2.asarray(
            values, urlpath=self.path + ".b2nd", chunks=chunk, cparams=settings, mode="w"
        )

    def _open(self) -> None:
        self._array = library("blosc2").open(self.path + ".b2nd", mode="r")

    def _rows(self, index: Array) -> Any:
        return self._array[index]
