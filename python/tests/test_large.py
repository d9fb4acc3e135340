"""Large appends take little memory; large records and open files have their limits."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import output_of, same, same_list

from loaderx import _native
from loaderx._append import add_dense
from loaderx.zrecord import MAX_RECORD_LEN, DenseStore, RaggedStore

MIB = 1 << 20


@pytest.fixture
def roomy(tmp_path: Path) -> Iterator[str]:
    """A folder in memory where there is enough of it, because a disk takes its time."""
    memory = "/dev/shm"
    if os.path.isdir(memory) and shutil.disk_usage(memory).free > 2048 * MIB:
        with tempfile.TemporaryDirectory(prefix="loaderx-large-", dir=memory) as folder:
            yield folder
    else:
        yield str(tmp_path)


# 600 MiB that take no memory of their own, so that whatever is taken is the append's.
APPEND = """
    import resource, sys
    import numpy as np
    from loaderx import DenseStore, RaggedStore
    folder, kind, codec, layout = sys.argv[1:]
    row = np.arange(1 << 18, dtype=np.float32)          # 1 MiB
    if layout == "memory-mapped":
        row = np.load(folder + "/row.npy", mmap_mode="r")
    if layout == "strided":
        row = np.arange(1 << 19, dtype=np.float32)[::2]
    data = np.broadcast_to(row, (600, 1 << 18))
    if kind == "dense":
        store = DenseStore(folder + "/s", np.float32, (1 << 18,), codec)
    else:
        store = RaggedStore(folder + "/s", np.float32, codec)
    store.append(data[:2])                              # what is set up once is set up
    def taken():
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmData"))
    limit = taken() + (256 << 20)
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
    assert store.append(data) == 2
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
    assert len(store) == 602 and (store[601] == row).all() and (store[300] == row).all()
    print(store.stats()["records"])
    store.close()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA counts memory on Linux only")
@pytest.mark.parametrize(
    ("kind", "codec", "layout"),
    [
        ("dense", "raw", "broadcast"),
        ("dense", "zstd", "strided"),
        ("dense", "raw", "memory-mapped"),
        ("ragged", "zstd", "broadcast"),
    ],
)
def test_600_mib_take_less_than_256(roomy: str, kind: str, codec: str, layout: str) -> None:
    np.save(roomy + "/row.npy", np.arange(1 << 18, dtype=np.float32))
    assert output_of(APPEND, roomy, kind, codec, layout) == "602"


def test_an_array_is_streamed_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "CALL_BYTES", 1000)
    np.save(tmp_path / "data.npy", np.arange(30_000, dtype=np.int32).reshape(500, 4, 15))
    mapped = np.load(tmp_path / "data.npy", mmap_mode="r")
    layouts = [mapped, mapped.transpose(0, 2, 1).copy().transpose(0, 2, 1), mapped[::-1]]
    layouts += [np.asfortranarray(mapped), np.repeat(mapped, 3, axis=0)[::3]]
    sizes: list[int] = []

    def add(batch: Any, part: Any, error: Any) -> int:
        sizes.append(part.payload_bytes)
        return add_dense(batch, part, error)

    monkeypatch.setattr("loaderx.zrecord.add_dense", add)
    for n, data in enumerate(layouts):
        with DenseStore(tmp_path / f"s{n}", np.int32, (4, 15), "raw") as store:
            store.append(data)
            assert same(store[:], np.ascontiguousarray(data))
        assert len(sizes) > 100 * (n + 1) and max(sizes) <= 1000


@pytest.mark.parametrize("codec", ["raw", "zstd"])
@pytest.mark.parametrize("kind", ["dense", "ragged"])
def test_records_of_the_largest_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, codec: str
) -> None:
    limit = 100_000
    monkeypatch.setattr(_native.limits, "record", limit)
    monkeypatch.setattr(_native.limits, "chunk", 250_000)
    fits = np.random.default_rng(0).integers(0, 256, limit, np.uint8)
    if kind == "dense":
        with DenseStore(tmp_path / "s", np.uint8, (limit,), codec) as dense:
            dense.append([fits] * 5)
            assert same_list(list(dense), [fits] * 5)
        with pytest.raises(ValueError, match=f"expected 1 to {limit} bytes, got {limit + 1}"):
            DenseStore(tmp_path / "t", np.uint8, (limit + 1,), codec)
        assert not (tmp_path / "t" / "store.zr").exists()
        return
    with RaggedStore(tmp_path / "s", np.uint8, codec) as ragged:
        ragged.append([fits] * 5)
        files = {p.name: p.stat().st_size for p in (tmp_path / "s").iterdir()}
        with pytest.raises(ValueError, match=f"at most {limit} bytes.*got {limit + 1}"):
            ragged.append([fits, np.append(fits, fits[:1])])
        assert len(ragged) == 5
        assert {p.name: p.stat().st_size for p in (tmp_path / "s").iterdir()} == files
        assert same_list(list(ragged), [fits] * 5)


def test_two_gib_and_a_byte_are_refused_at_once(tmp_path: Path) -> None:
    assert MAX_RECORD_LEN == 2 << 30
    huge = np.broadcast_to(np.uint8(1), (MAX_RECORD_LEN + 1,))
    with RaggedStore(tmp_path / "s", np.uint8) as store:
        with pytest.raises(
            ValueError, match="record 1 to be of at most 2147483648 bytes, got 2147483649"
        ):
            store.append([b"x", huge])
        assert len(store) == 0
    for shape in ((MAX_RECORD_LEN + 1,), (1 << 16, 1 << 15, 2)):
        with pytest.raises(ValueError, match="at most 2147483648 bytes"):
            DenseStore(tmp_path / "d", np.uint8, shape)


@pytest.mark.parametrize("codec", ["raw", "zstd"])
@pytest.mark.parametrize("kind", ["dense", "ragged"])
@pytest.mark.parametrize("chunk", [64, 65, 100, 257])
def test_roll_over_of_chunks_and_segments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, kind: str, codec: str
) -> None:
    monkeypatch.setattr(_native.limits, "chunk", chunk)
    monkeypatch.setattr(_native.limits, "segment", 8)
    rng = np.random.default_rng(chunk)
    if kind == "dense":
        records: list[Any] = list(rng.integers(0, 256, (100, 16), np.uint8))
        store: Any = DenseStore(tmp_path / "s", np.uint8, (16,), codec)
    else:
        records = [rng.integers(0, 256, n, np.uint8) for n in rng.integers(1, 30, 100)]
        store = RaggedStore(tmp_path / "s", np.uint8, codec)
    with store:
        for start in range(0, 100, 7):
            store.append(records[start : start + 7])
        assert same_list(list(store), records)
    chunks = sorted((tmp_path / "s").glob("*.chunk"), key=lambda p: int(p.stem))
    assert len(chunks) > 5 and all(p.stat().st_size <= chunk for p in chunks)
    with type(store)(tmp_path / "s") as store:
        assert same_list(list(store), records) and store.verify().ok
