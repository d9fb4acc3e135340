"""Hostile lengths cost no memory, and the largest record works: rows 8, 20, 25, 41, 45 and more.

A length in a file is bounded by the sizes of the files before anything is
sized by it: at most 64 MiB more than the files have are ever taken.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import forge
import hostile
import pytest
from forge import Entry, Forged, Redo, RedoEntry
from hostile import KINDS, forged
from support import output_of

guard = hostile.guard

if sys.platform != "linux":
    pytest.skip("memory is measured as Linux does", allow_module_level=True)

LARGEST = 1 << 31  # bytes in a record
ROOM = 64  # MiB


def claims(kind: str) -> Iterator[tuple[str, Forged]]:
    """Stores of a few hundred bytes that claim to be large, by name."""
    for version in (4, 5):
        for length in (1 << 24, 1 << 40, (1 << 62) - 2, (1 << 64) - 2):
            store = forged(kind, version=version).both(length=length)
            yield f"{version} length {length}", store
        for codec in ("raw", "zstd"):
            for logic in ((1 << 32) - 1, LARGEST):
                store = forged(kind, codec, version)
                store.entries[2].logic = logic
                yield f"{version} {codec} logic {logic}", store
                store = forged(kind, codec, version)
                store.entries[2] = Entry(0, (1 << 32) - 1, logic)
                yield f"{version} {codec} phys {logic}", store
                # In a chunk that is not the last, of which only this is known.
                store = forged(kind, codec, version).both(tail_chunk=1, tail_offset=0)
                store.files["1.chunk"] = b""
                store.entries[2] = Entry(0, LARGEST, LARGEST)
                yield f"{version} {codec} inner {logic}", store
        yield f"{version} tail", forged(kind, version=version).both(tail_chunk=(1 << 32) - 1)
    store = forged(kind)
    store.meta = replace(store.meta, length=(1 << 62) - 2)
    yield "length of meta.zr", store
    for count in (1 << 24, (1 << 32) - 1):
        store = forged(kind)
        store.redo = [Redo(store.meta, [], count=count)]
        yield f"redo of {count}", store
    store = forged(kind)
    image = RedoEntry(0, Entry(0, (1 << 32) - 1, (1 << 32) - 1), 0, b"")
    store.redo = [Redo(store.meta, [image], image_bytes=(1 << 32) - 1)]
    yield "redo image", store
    for size in (1 << 16, 1 << 31, (1 << 64) - 1):
        store = forged(kind)
        store.typed.length = size
        yield f"identity of {size}", store
    for form in (b"\xdd\xff\xff\xff\xff", b"\xdb\x7f\xff\xff\xff", b"\xdf\xff\xff\xff\xff"):
        store = forged(kind)
        store.typed.identity = store.typed.identity[:7] + form
        yield f"identity with {form[0]:x}", store
    yield from claims_of_frames(kind)
    if kind == "dense":
        for shape in ([1 << 20, 1 << 20], [LARGEST // 4], [1 << 32, 1 << 32]):
            store = forged(kind)
            store.typed.identity = forge.pack({"dtype": "<i4", "item_shape": shape})
            yield f"shape {shape}", store
        store = forged(kind)
        store.typed.identity = forge.pack({"dtype": "|V2147483647", "item_shape": []})
        store.typed.width = LARGEST - 1
        yield "records of 2 GiB", store


def claims_of_frames(kind: str) -> Iterator[tuple[str, Forged]]:
    """Frames that claim a large content or window; the table agrees as far as it may."""
    content = b"\xee" * (1 << 16)
    frames = {
        "content": forge.frame(content, claimed=LARGEST),
        "window": forge.frame(content, claimed=LARGEST, window=0xFF),
        "content beyond": forge.frame(content, claimed=1 << 63),
    }
    for name, frame in frames.items():
        store = forged(kind, "zstd")
        store.put(2, frame, LARGEST)
        yield f"frame {name}", store


def write_holes(kind: str, path: Path) -> None:
    """Write a store with a redo record of eight million entries, all in a hole of its file."""
    store = forged(kind).both(length=1 << 24)
    store.redo = [Redo(store.meta, [], count=1 << 23)]
    os.truncate(store.write(path) / "journal.zr", 1 << 38)


MEASURE = """
    import os, resource, sys
    from loaderx import DenseStore, RaggedStore, ZrecordError

    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

    def use(path, mode):
        kind = DenseStore if "dense" in os.path.basename(os.path.dirname(path)) else RaggedStore
        with kind(path, mode=mode) as store:
            for read in (
                lambda: store[2], lambda: store[:], lambda: list(store),
                lambda: store.gather([0, 2]), store.verify, store.stats,
            ):
                try:
                    read()
                except (ZrecordError, MemoryError):
                    pass

    root = sys.argv[1]
    for kind in ("dense", "ragged"):
        for mode in ("r", "a"):
            for codec in ("raw", "zstd"):
                use(f"{root}/{kind}/{codec}", mode)
    before = peak()
    count = 0
    for kind in ("dense", "ragged"):
        for name in sorted(os.listdir(f"{root}/{kind}")):
            for mode in ("r", "a"):
                try:
                    use(f"{root}/{kind}/{name}", mode)
                except ZrecordError:
                    pass
                count += 1
                if peak() - before > int(sys.argv[2]):
                    sys.exit(f"{kind}/{name}, mode {mode}: {peak() - before} MiB more")
    print("stores:", count, "of", before, "MiB")
"""


@pytest.mark.parametrize("mapping", ["mapped", "by position"])
def test_claims_cost_no_memory(
    mapping: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if mapping == "by position":
        monkeypatch.setenv("LOADERX_NO_MMAP", "1")
    count = 0
    for kind in KINDS:
        for codec in ("raw", "zstd"):
            forged(kind, codec).write(tmp_path / "stores" / kind / codec)
        for name, store in claims(kind):
            store.write(tmp_path / "stores" / kind / name)
            count += 1
        write_holes(kind, tmp_path / "stores" / kind / "redo in a hole")
        count += 1
    assert count > 80
    found = output_of(MEASURE, tmp_path / "stores", ROOM)
    assert found.startswith(f"stores: {2 * count + 8} of")


LIMITED = """
    import resource, sys
    from loaderx import DenseStore
    with DenseStore(sys.argv[1] + "/raw") as store:
        store[:]
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    # Enough for what is in use; not for a length that a file claims.
    resource.setrlimit(resource.RLIMIT_AS, (now + (256 << 20),) * 2)
"""


def test_claims_are_refused_under_a_limit_of_address_space(tmp_path: Path) -> None:
    """A runtime that asks for more than there is would end the process."""
    for kind in KINDS:
        for codec in ("raw", "zstd"):
            forged(kind, codec).write(tmp_path / "stores" / kind / codec)
        for name, store in claims(kind):
            store.write(tmp_path / "stores" / kind / name)
    code = LIMITED.replace("sys.argv[1]", 'sys.argv[1] + "/dense"') + MEASURE
    assert output_of(code, tmp_path / "stores", ROOM).startswith("stores: ")


def test_a_redo_area_as_large_as_it_claims_to_be(tmp_path: Path) -> None:
    """A sparse journal: its size bounds what is read of it."""
    path = forged("dense").write(tmp_path / "s")
    os.truncate(path / "journal.zr", 1 << 40)
    hostile.reads("dense", path)


# ---- 45 ----

LARGE = """
    import os, sys
    import numpy as np
    from loaderx import DenseStore, RaggedStore
    what, path, size = sys.argv[1], sys.argv[2], 1 << 31
    if what == "read dense":
        with DenseStore(path, mode="r") as store:
            assert store.item_shape == (size,)
            record = store[0]
            assert record.nbytes == size and record[-1] == 9 and not record[:4096].any()
    elif what == "read ragged":
        with RaggedStore(path, mode="r") as store:
            for record in (store[0], store.gather([0])[0]):
                assert record.shape == (size,) and record[-1] == 9
                del record
    else:
        codec = what.split()[1]
        data = np.zeros(size + 1, np.uint8)
        data[size - 1] = 9
        with RaggedStore(path, np.uint8, codec) as store:
            try:
                store.append([data])
            except ValueError as error:
                assert "2147483648" in str(error) and "2147483649" in str(error), error
            assert len(store) == 0
            store.append([data[:size]])
            record = store[0]
            assert record.nbytes == size and record[-1] == 9
    print("done")
"""


@pytest.fixture
def large(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory, where there is enough of both."""
    with open("/proc/meminfo") as file:
        free = {line.split(":")[0]: int(line.split()[1]) >> 20 for line in file}["MemAvailable"]
    if free < 9:
        pytest.skip(f"records of 2 GiB take up to 8 GiB of memory, {free} are free")
    shared = Path("/dev/shm")
    if not shared.is_dir() or shutil.disk_usage(shared).free < 3 << 30:
        shared = tmp_path
    folder = shared / f"loaderx-large-{os.getpid()}"
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("kind,mapping", [("dense", "mapped"), ("ragged", "by position")])
def test_the_largest_record_is_read(
    kind: str, mapping: str, large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a sparse file, whose last byte is 9."""
    if mapping == "by position":
        monkeypatch.setenv("LOADERX_NO_MMAP", "1")
    identity: dict[str, object] = {"dtype": "|u1"}
    if kind == "dense":
        identity["item_shape"] = [LARGEST]
    store = forged(kind)
    store.typed.identity = forge.pack(identity)
    store.typed.width = LARGEST if kind == "dense" else 0
    shape = forge.shape_record([LARGEST])
    store.entries = [Entry(0, LARGEST, LARGEST), Entry(LARGEST, len(shape), len(shape))]
    end = LARGEST + len(shape)
    if kind == "dense":
        store.entries, end = store.entries[:1], LARGEST
    store.both(length=len(store.entries), tail_offset=end)
    store.sums = [0] * len(store.entries)
    path = store.write(large)
    with open(path / "0.chunk", "r+b") as chunk:
        chunk.truncate(0)
        chunk.seek(LARGEST - 1)
        chunk.write(b"\x09" + (shape if kind == "ragged" else b""))
    assert output_of(LARGE, f"read {kind}", path) == "done"


@pytest.mark.parametrize("codec", ["raw", "zstd"])
def test_the_largest_record_is_appended_and_no_larger_one(codec: str, large: Path) -> None:
    assert output_of(LARGE, f"append {codec}", large) == "done"
