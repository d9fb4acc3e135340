"""Arrow IPC and Parquet: a column whose values are the records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bench_lib.backends.base import Backend, Sidecar, flat, library, split
from bench_lib.data import Array, DataSet, Records

# What is decompressed as a whole: a record batch of IPC, a row group of Parquet.
GROUP_BYTES = 256 << 10
WHOLE_BYTES = 1 << 30


class Column(Backend):
    """A column of fixed_size_binary for dense records, of large_binary for ragged ones."""

    # How many records each group has, but for the last.
    _each: int

    def __init__(self, folder: Path, data: DataSet, codec: str) -> None:
        super().__init__(folder, data)
        self.codec = codec
        self.path = str(folder / "records")
        self._pa = library("pyarrow")
        self._side = Sidecar(folder, data.dtype)

    def _column(self, records: Records) -> Any:
        """Make the column of records in memory, without copying dense ones."""
        pa = self._pa
        if not self.data.ragged:
            kind = pa.binary(self.data.record_bytes)
            buffers = [None, pa.py_buffer(np.ascontiguousarray(records))]
            return pa.FixedSizeBinaryArray.from_buffers(kind, len(records), buffers)
        self._side.write(records)
        sizes = np.array([r.nbytes for r in records], np.int64)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(flat(records))]
        return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(records), buffers)

    def _rows(self, column: Any, nbytes: int) -> int:
        """How many rows of a column make a group of about so many bytes."""
        count, total = len(column), int(column.nbytes)
        return max(1, min(count, nbytes * count // max(1, total)))

    def _take(self, column: Any, places: Array, index: Array) -> Any:
        """Take rows of a column, and make arrays of them."""
        taken = column.take(self._pa.array(places))
        if hasattr(taken, "combine_chunks"):
            taken = taken.combine_chunks()
        if self.data.ragged:
            offsets = np.frombuffer(taken.buffers()[1], np.int64)
            begin, end = offsets[taken.offset], offsets[taken.offset + len(index)]
            values = np.frombuffer(taken.buffers()[2], np.uint8, end - begin, begin)
            shapes = [self._side.shapes[i] for i in index.tolist()]
            return split(values.view(self.data.dtype), shapes)
        begin = taken.offset * self.data.record_bytes
        nbytes = len(index) * self.data.record_bytes
        raw = np.frombuffer(taken.buffers()[1], np.uint8, nbytes, begin)
        return raw.view(self.data.dtype).reshape(len(index), *self.data.item_shape)

    def open(self) -> None:
        """Open the file."""
        if self.data.ragged:
            self._side.load()
        self._open()

    def _open(self) -> None:
        raise NotImplementedError

    def gather(self, index: Array) -> Any:
        """Read the groups that have the records, then take these."""
        groups, which = np.unique(index // self._each, return_inverse=True)
        places = which * self._each + index % self._each
        return self._take(self._read(groups.tolist()), places, index)

    def _read(self, groups: list[int]) -> Any:
        raise NotImplementedError


class ArrowIpc(Column):
    """An Arrow IPC file, mapped. Raw records are one batch, so that taking copies once."""

    def write(self, records: Records) -> None:
        """Write the column in record batches."""
        pa, column = self._pa, self._column(records)
        codec = None if self.codec == "raw" else pa.Codec("zstd", 3)
        rows = self._rows(column, WHOLE_BYTES if codec is None else GROUP_BYTES)
        options = pa.ipc.IpcWriteOptions(compression=codec)
        table = pa.table({"records": column})
        with pa.OSFile(self.path, "wb") as file:
            with pa.ipc.new_file(file, table.schema, options=options) as writer:
                writer.write_table(table, max_chunksize=rows)

    def _open(self) -> None:
        pa = self._pa
        self._file = pa.ipc.open_file(pa.memory_map(self.path))
        self._each = self._file.get_batch(0).num_rows
        single = self._file.num_record_batches == 1 and self.codec == "raw"
        self._whole = self._file.get_batch(0).column(0) if single else None

    def gather(self, index: Array) -> Any:
        """Take from the one mapped batch, or from the batches that are needed."""
        if self._whole is not None:
            return self._take(self._whole, index, index)
        return super().gather(index)

    def _read(self, groups: list[int]) -> Any:
        batches = [self._file.get_batch(g).column(0) for g in groups]
        return self._pa.concat_arrays(batches)


class Parquet(Column):
    """A Parquet file without dictionary or statistics, in row groups of 256 KiB."""

    def write(self, records: Records) -> None:
        """Write the column in row groups."""
        column = self._column(records)
        library("pyarrow.parquet").write_table(
            self._pa.table({"records": column}),
            self.path,
            row_group_size=self._rows(column, GROUP_BYTES),
            compression="NONE" if self.codec == "raw" else "zstd",
            compression_level=None if self.codec == "raw" else 3,
            use_dictionary=False,
            write_statistics=False,
        )

    def _open(self) -> None:
        self._file = library("pyarrow.parquet").ParquetFile(self.path, memory_map=True)
        self._each = self._file.metadata.row_group(0).num_rows

    def _read(self, groups: list[int]) -> Any:
        column = self._file.read_row_groups(groups).column(0)
        return self._pa.concat_arrays(column.chunks)
