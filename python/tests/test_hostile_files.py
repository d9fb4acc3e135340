"""Hostile files: links, pipes, devices and folders in place of a store's files, and no rights.

Rows 37 to 39 and 43 of the table of hostile inputs. A store that cannot be
written can still be read; and whatever lies outside the store's folder is not
written, cut or removed, however a name in it leads there.
"""

from __future__ import annotations

import os
import shutil
import socket
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import forge
import hostile
import numpy as np
import pytest
from hostile import ITEM, KINDS, MODES, forged, opened, reads, records, unchanged
from support import output_of, same_list

from loaderx import _native
from loaderx.errors import CorruptRecordError, CorruptStoreError, StoreReadOnlyError, ZrecordError
from loaderx.zrecord import DenseStore

guard = hostile.guard

if sys.platform == "win32":
    pytest.skip("links and pipes are of POSIX", allow_module_level=True)

WRITTEN = ["0.chunk", "0.loc", "0.sum", "meta.zr", "journal.zr"]
every_kind = pytest.mark.parametrize("kind", KINDS)
MUTATIONS: dict[str, Callable[[str, Any], Any]] = {
    "append": lambda kind, store: store.append(records(kind)),
    "delete": lambda kind, store: store.delete([0, 2]),
    "compact": lambda kind, store: store.compact(),
}
every_mutation = pytest.mark.parametrize("mutation", MUTATIONS)


def moved_out(path: Path, file: str, to: Path) -> Path:
    """Move a file of the store out of its folder."""
    shutil.move(str(path / file), str(to / f"{path.name} {file}"))
    return to / f"{path.name} {file}"


def refuses_to_write(kind: str, path: Path, mutation: str, match: str) -> None:
    """The store reads, the first mutation is refused, and it reads on."""
    reads(kind, path, MODES)
    with unchanged(path), opened(kind, path, "a") as store:
        with pytest.raises(StoreReadOnlyError, match=match):
            MUTATIONS[mutation](kind, store)
        assert same_list(list(store), records(kind))
    reads(kind, path, MODES)


# ---- 37: symbolic links ----


@every_kind
@every_mutation
@pytest.mark.parametrize("file", WRITTEN)
def test_a_linked_file_is_read_and_not_written(
    kind: str, mutation: str, file: str, tmp_path: Path
) -> None:
    path, elsewhere = forged(kind).write(tmp_path / "s"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    target = moved_out(path, file, elsewhere)
    (path / file).symlink_to(target)
    reads(kind, path, MODES)
    with unchanged(elsewhere), opened(kind, path, "a") as store:
        if mutation == "delete" and file == "0.chunk" or mutation == "compact":
            # What it does not have to write may be a link.
            try:
                MUTATIONS[mutation](kind, store)
            except StoreReadOnlyError:
                assert same_list(list(store), records(kind))
        else:
            with pytest.raises(StoreReadOnlyError, match=f"{file}.*link"):
                MUTATIONS[mutation](kind, store)
            assert same_list(list(store), records(kind))
    assert (path / file).is_symlink()


@every_kind
def test_all_files_are_links(kind: str, tmp_path: Path) -> None:
    """As in the cache of a downloader."""
    path, elsewhere = forged(kind, "zstd_dict").write(tmp_path / "s"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    for file in os.listdir(path):
        target = moved_out(path, file, elsewhere)
        (path / file).symlink_to(os.path.relpath(target, path))
    with unchanged(elsewhere):
        for mutation in MUTATIONS:
            refuses_to_write(kind, path, mutation, "link")


@every_kind
@pytest.mark.parametrize(
    "file", ["0.chunk", "0.loc", "0.sum", "journal.zr", "store.tmp", "meta.zr"]
)
def test_the_upgrade_does_not_follow_links(
    kind: str, file: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Names that a version 4 store does not have yet, and those that it has."""
    path, elsewhere = forged(kind, version=4).write(tmp_path / "s"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    target = elsewhere / file
    if (path / file).exists():
        shutil.move(str(path / file), str(target))
    else:
        target.write_bytes(b"not yours" * 100)
    (path / file).symlink_to(target)
    reads(kind, path, MODES)
    with unchanged(elsewhere), opened(kind, path, "a") as store:
        try:
            store.append(records(kind))
        except StoreReadOnlyError:
            assert same_list(list(store), records(kind))
        else:
            assert file == "store.tmp"  # removed, or replaced: the link, not what it leads to
            assert same_list(list(store), records(kind) * 2)


@pytest.mark.parametrize("file", ["1.chunk", "1.loc", "1.sum", "7.chunk"])
@pytest.mark.parametrize("there", [True, False])
def test_the_next_file_is_a_link(
    file: str, there: bool, guard: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To a file, or to where there is none yet: it is not made there."""
    monkeypatch.setattr(_native.limits, "chunk", 200)
    monkeypatch.setattr(_native.limits, "segment", 8)
    path, target = tmp_path / "s", guard / ("0.chunk" if there else "none")
    data = np.arange(5 * 6, dtype=np.int32).reshape(5, *ITEM)
    with DenseStore(path, np.int32, ITEM, "raw") as store:
        store.append(data)
    (path / file).symlink_to(target)
    with unchanged(guard), DenseStore(path) as store:
        wanted = data
        try:
            store.append(np.concatenate([data] * 4))
        except StoreReadOnlyError as error:
            assert "link" in str(error)
        else:
            wanted = np.concatenate([data] * 5)
        assert same_list(list(store), list(wanted))
    reads("dense", path, MODES, list(wanted))


@every_kind
def test_a_link_to_itself(kind: str, tmp_path: Path) -> None:
    for file in [*WRITTEN, "store.zr"]:
        path = forged(kind).write(tmp_path / file)
        (path / file).unlink()
        (path / file).symlink_to(path / file)
        for way in hostile.WAYS:
            with unchanged(path), pytest.raises(ZrecordError, match=file):
                opened(kind, path, way)


# ---- 38: what is no file ----


def make_pipe(name: Path) -> None:
    os.mkfifo(name)


def make_folder(name: Path) -> None:
    name.mkdir()


def make_socket(name: Path) -> None:
    here = os.getcwd()
    os.chdir(name.parent)  # a socket's name must be short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(name.name)
    finally:
        os.chdir(here)


def device(target: str) -> Callable[[Path], None]:
    return lambda name: name.symlink_to(target)


ODD: dict[str, Callable[[Path], None]] = {
    "pipe": make_pipe,
    "folder": make_folder,
    "socket": make_socket,
    "zero": device("/dev/zero"),
    "null": device("/dev/null"),
    "full": device("/dev/full"),
    "linked folder": device("/"),
}


@every_kind
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("file", [*WRITTEN, "store.zr", "dict.zr"])
def test_what_is_no_file_is_refused(kind: str, odd: str, file: str, tmp_path: Path) -> None:
    store = forged(kind, "zstd_dict")
    store.files[file] = None
    path = store.write(tmp_path / "s")
    ODD[odd](path / file)
    hostile.refused(CorruptStoreError, "expected a regular file", kind, path, file)


@every_kind
@pytest.mark.parametrize("odd", ODD)
def test_what_is_no_file_is_refused_in_version_4(kind: str, odd: str, tmp_path: Path) -> None:
    for file in ("0.chunk", "0.loc", "store.zr", "meta.zr"):
        store = forged(kind, version=4)
        store.files[file] = None
        path = store.write(tmp_path / file)
        ODD[odd](path / file)
        hostile.refused(CorruptStoreError, "expected a regular file", kind, path, file)


@pytest.mark.parametrize("odd", ODD)
def test_a_chunk_that_is_no_file_among_others(
    odd: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks before the last one are met when they are read."""
    monkeypatch.setattr(_native.limits, "chunk", 50)
    path, data = tmp_path / "s", records("dense")
    with DenseStore(path, np.int32, ITEM, "raw") as store:
        store.append(data)
    (path / "1.chunk").unlink()
    ODD[odd](path / "1.chunk")
    for mode in MODES:
        with DenseStore(path, mode=mode) as store:
            assert same_list(list(store[[0, 1, 4]]), [data[i] for i in (0, 1, 4)])
            for index in (2, [2], [0, 2, 4], slice(None)):
                with pytest.raises(CorruptRecordError, match="1.chunk") as caught:
                    store[index]
                assert caught.value.index == 2
            assert {found.index for found in store.verify().bad} == {2, 3}


@pytest.mark.parametrize("odd", ODD)
def test_a_name_of_no_store_is_never_opened(odd: str, guard: Path, tmp_path: Path) -> None:
    for file in ("9.chunk", "00.loc", "x", "1.sum", "-1.chunk", "18446744073709551616.chunk"):
        path = forged("dense").write(tmp_path / file)
        ODD[odd](path / file)
        reads("dense", path)
        with opened("dense", path, "a") as store:
            try:
                store.append(records("dense"))
            except ZrecordError as error:
                assert file in str(error)  # in its way, and not to be removed
                assert same_list(list(store), records("dense"))


# ---- 39: hard links ----


@every_kind
@every_mutation
@pytest.mark.parametrize("file", WRITTEN)
def test_a_file_with_two_names_is_read_and_not_written(
    kind: str, mutation: str, file: str, tmp_path: Path
) -> None:
    path, elsewhere = forged(kind).write(tmp_path / "s"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    os.link(path / file, elsewhere / file)
    reads(kind, path, MODES)
    with unchanged(elsewhere), opened(kind, path, "a") as store:
        if mutation == "delete" and file == "0.chunk" or mutation == "compact":
            try:
                MUTATIONS[mutation](kind, store)
            except StoreReadOnlyError:
                assert same_list(list(store), records(kind))
        else:
            with pytest.raises(StoreReadOnlyError, match=f"{file}.*link"):
                MUTATIONS[mutation](kind, store)
            assert same_list(list(store), records(kind))


# ---- 43: no rights ----

NO_RIGHTS = """
    import ctypes, os, sys
    if os.geteuid() == 0:
        # Root without its capabilities (capset, for itself, none) obeys file modes.
        none = (ctypes.c_uint32 * 6)(*[0] * 6)
        head = (ctypes.c_uint32 * 2)(0x20080522, 0)
        assert ctypes.CDLL(None).capset(head, none) == 0
    from loaderx import DenseStore, RaggedStore, StoreReadOnlyError
    kind = DenseStore if sys.argv[1] == "dense" else RaggedStore
    for mode in ("r", "a"):
        with kind(sys.argv[2], mode=mode) as store:
            records = [r.tobytes().hex() for r in store]
            changes = {
                "append": lambda: store.append([store[0]]),
                "delete": lambda: store.delete([0]),
                "compact": lambda: store.compact(),
            }
            if sys.argv[3] == "dirty" and mode == "a":
                changes["sync"] = lambda: store.sync()
            for name, change in changes.items():
                try:
                    change()
                except StoreReadOnlyError:
                    continue
                print("no error:", name, mode)
            assert records == [r.tobytes().hex() for r in store] and store.verify().ok
        print(*records)
"""


def dirty(kind: str, how: str) -> tuple[forge.Forged, list[Any]]:
    """A store that a crash left: with records behind the checkpoint, or a delete to carry out."""
    store, wanted = forged(kind), records(kind)
    per = 2 if kind == "ragged" else 1
    slot = store.slots[0]
    if how == "appended":
        entry = store.entries[2 * per]
        slot.meta = replace(slot.meta, length=2 * per, tail_offset=entry.offset)
        return store, wanted
    last = len(store.entries) - per
    moved = [
        forge.RedoEntry(k, store.entries[last + k], forge.record_sum(e.phys, e.logic, stored))
        for k in range(per)
        for e, stored in [(store.entries[last + k], store.stored(last + k))]
    ]
    store.redo = [forge.Redo(replace(slot.meta, length=last), moved)]
    return store, [wanted[-1], *wanted[1:-1]]


@pytest.mark.skipif(
    sys.platform != "linux", reason="the rights of root are taken by Linux's capset"
)
@every_kind
@pytest.mark.parametrize("how", ["clean", "version 4", "appended", "deleted"])
@pytest.mark.parametrize("what", ["folder", "files", "both"])
def test_without_the_right_to_write(kind: str, how: str, what: str, tmp_path: Path) -> None:
    if how in ("clean", "version 4"):
        store, wanted = forged(kind, version=4 if how == "version 4" else 5), records(kind)
    else:
        store, wanted = dirty(kind, how)
    path = store.write(tmp_path / "s")
    reads(kind, path, MODES, wanted)
    for file in path.iterdir():
        file.chmod(0o644 if what == "folder" else 0o444)
    path.chmod(0o755 if what == "files" else 0o555)
    try:
        with unchanged(path):
            state = "clean" if how in ("clean", "version 4") else "dirty"
            found = output_of(NO_RIGHTS, kind, path, state)
    finally:
        path.chmod(0o755)
    line = " ".join(record.tobytes().hex() for record in wanted)
    assert found.splitlines() == [line, line]
