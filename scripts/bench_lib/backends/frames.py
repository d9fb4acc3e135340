"""The yardstick of compression: zstd alone, on frames in private memory.

Writing compresses each record at level 3 with one thread; reading decodes the
same frames with so many threads as there are processors, or one. Nothing of a
store is there: no files, no table, no Python object for each record.

python-zstandard starts its threads anew in every call. Small batches are
therefore decoded several plans in one call, and the time of a batch is its share
of it. The process that runs this is started with malloc told to keep what is
freed, so that the destination's memory is recycled (MALLOC in hosts.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bench_lib.backends.base import Backend, Sidecar, library
from bench_lib.data import Array, DataSet, Records
from bench_lib.timing import cores

LEVEL = 3
CALL_BYTES = 8 << 20


class Frames(Backend):
    """Frames in memory, decoded by python-zstandard's threads."""

    def __init__(self, folder: Path, data: DataSet, threads: int = 0) -> None:
        super().__init__(folder, data)
        self._zstd = library("zstandard")
        self._threads = threads or cores()
        self._decoder = self._zstd.ZstdDecompressor()
        self._side = Sidecar(folder, data.dtype)
        self._calls: dict[bytes, tuple[Any, Array, int]] = {}

    def write(self, records: Records) -> None:
        """Compress each record by itself, with one thread."""
        if self.data.ragged:
            self._side.write(records)
        compress = self._zstd.ZstdCompressor(LEVEL).compress
        self._frames = [compress(record) for record in records]

    def finish(self) -> None:
        """Keep the frames for the process that reads."""
        np.save(self.folder / "sizes.npy", np.array([len(f) for f in self._frames], np.int64))
        (self.folder / "frames").write_bytes(b"".join(self._frames))

    def open(self) -> None:
        """Read the frames into memory."""
        blob = (self.folder / "frames").read_bytes()
        ends = np.cumsum(np.load(self.folder / "sizes.npy")).tolist()
        starts = [0, *ends]
        self._frames = [blob[starts[i] : ends[i]] for i in range(len(ends))]
        if self.data.ragged:
            self._side.load()

    def prepare(self, plans: list[Array]) -> None:
        """Pack the frames of plans that are decoded in one call."""
        nbytes = sum(self.sizes_of(plans[0]))
        together = max(1, CALL_BYTES // max(1, nbytes))
        for at in range(0, len(plans), together):
            group = plans[at : at + together]
            self._calls[group[0].tobytes()] = self._pack(np.concatenate(group), len(group))

    def sizes_of(self, index: Array) -> list[int]:
        """The decoded bytes of records."""
        frames, read = self._frames, self._zstd.frame_content_size
        return [read(frames[i]) for i in index.tolist()]

    def _pack(self, index: Array, together: int) -> tuple[Any, Array, int]:
        parts = [self._frames[i] for i in index.tolist()]
        sizes = np.array([len(p) for p in parts], np.uint64)
        segments = np.zeros((len(parts), 2), np.uint64)
        segments[1:, 0], segments[:, 1] = np.cumsum(sizes)[:-1], sizes
        packed = self._zstd.BufferWithSegments(b"".join(parts), segments.tobytes())
        return packed, np.array(self.sizes_of(index), np.uint64), together

    def batches(self, index: Array) -> int:
        """How many plans are decoded with this one."""
        found = self._calls.get(index.tobytes())
        return found[2] if found else 1

    def gather(self, index: Array) -> Any:
        """Decode the frames of a plan, and with it those of the plans behind it."""
        found = self._calls.get(index.tobytes())
        packed, sizes, _ = found if found else self._pack(index, 1)
        return self._decoder.multi_decompress_to_buffer(
            packed, decompressed_sizes=sizes.tobytes(), threads=self._threads
        )

    def arrays(self, result: Any, index: Array) -> Any:
        """The batch of the plan itself, which was decoded first."""
        parts = [result[k] for k in range(len(index))]
        if self.data.ragged:
            return self._side.from_bytes(parts, index)
        joined = np.frombuffer(b"".join(parts), self.data.dtype)
        return joined.reshape(len(index), *self.data.item_shape)
