"""delete, compact, stats, verify, snapshot and refresh, of both kinds of store."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import same, same_list

from loaderx import _native
from loaderx.errors import (
    CorruptRecordError,
    NotAStoreError,
    StoreBusyError,
    StoreMismatchError,
    StoreReadOnlyError,
    ZrecordError,
)
from loaderx.zrecord import BadRecord, DenseStore, RaggedStore, VerifyReport

DENSE = list(np.arange(20 * 6, dtype=np.int32).reshape(20, 2, 3))
RAGGED = [np.arange(i, 2 * i + 1, dtype=np.int32).reshape(1, -1)[: i % 2 + 1] for i in range(20)]
RECORDS = {"dense": DENSE, "ragged": RAGGED}


def create(path: Path, kind: str, **options: Any) -> Any:
    if kind == "dense":
        return DenseStore(path, np.int32, (2, 3), **options)
    return RaggedStore(path, np.int32, **options)


def swapped(records: list[Any], gone: list[int]) -> list[Any]:
    """What a deletion leaves: each hole is filled with the last record."""
    left = list(records)
    for i in sorted(set(gone), reverse=True):
        left[i] = left[-1]
        left.pop()
    return left


@pytest.fixture(params=["dense", "ragged"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["raw", "zstd"])
def store(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> Iterator[Any]:
    with create(tmp_path / "s", kind, codec=request.param) as made:
        made.append(RECORDS[kind])
        yield made


INDICES: list[tuple[Any, list[int]]] = [
    (3, [3]),
    (-1, [19]),
    (np.int64(0), [0]),
    ([], []),
    ([19], [19]),
    ([0, 0, -20, 0], [0]),
    ((5, 2, 19, 18), [2, 5, 18, 19]),
    (np.array([7, 3], np.uint8), [3, 7]),
    (slice(None, None, 2), list(range(0, 20, 2))),
    (slice(15, 5, -1), list(range(6, 16))),
    (np.arange(20) < 4, [0, 1, 2, 3]),
    ([True] * 3 + [False] * 17, [0, 1, 2]),
    (range(4, 8), [4, 5, 6, 7]),
    (slice(None), list(range(20))),
    ([BadRecord(6, "", None, ""), BadRecord(8, "", 5, "")], [6, 8]),
]


@pytest.mark.parametrize(("index", "gone"), INDICES, ids=[str(i) for i in range(len(INDICES))])
def test_delete_fills_each_hole_with_the_last_record(
    store: Any, kind: str, index: Any, gone: list[int]
) -> None:
    left = swapped(RECORDS[kind], gone)
    assert store.delete(index) is None
    assert len(store) == len(left) and same_list(list(store), left)
    assert store.append(RECORDS[kind][:2]) == len(left)
    store.close()
    with type(store)(store.path) as again:
        assert same_list(list(again), left + RECORDS[kind][:2]) and again.verify().ok


def test_stats_and_compact(store: Any, kind: str) -> None:
    full = store.stats()
    assert list(full) == ["records", "live_bytes", "chunk_bytes", "reclaimable"]
    assert full["records"] == 20 and full["reclaimable"] == 0
    assert (
        full["live_bytes"] == full["chunk_bytes"] == (Path(store.path) / "0.chunk").stat().st_size
    )
    store.delete(slice(0, 10))
    holed = store.stats()
    assert holed["records"] == 10 and holed["chunk_bytes"] == full["chunk_bytes"]
    assert holed["reclaimable"] == holed["chunk_bytes"] - holed["live_bytes"] > 0
    records = list(store)
    calls: list[tuple[int, int]] = []
    assert store.compact(lambda at, total: calls.append((at, total))) is None
    assert calls and all(0 <= at <= total for at, total in calls) and calls[-1][0] == calls[-1][1]
    packed = store.stats()
    assert packed == {**holed, "chunk_bytes": holed["live_bytes"], "reclaimable": 0}
    assert (Path(store.path) / "0.chunk").stat().st_size == packed["live_bytes"]
    assert same_list(list(store), records) and store.verify().ok
    store.compact()
    assert store.stats() == packed


def test_compact_removes_chunks_and_segments(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_native.limits, "chunk", 300)
    monkeypatch.setattr(_native.limits, "segment", 4)
    with create(tmp_path / "s", kind, codec="raw") as store:
        store.append(RECORDS[kind] * 5)
        before = store.stats()
        names = {p.name for p in (tmp_path / "s").iterdir()}
        assert len([n for n in names if n.endswith(".chunk")]) > 5
        store.delete(slice(10, None))
        # A chunk holds whole records only, so not all that is not live can be had back.
        holed = store.stats()
        assert 0 < holed["reclaimable"] <= holed["chunk_bytes"] - holed["live_bytes"]
        store.compact()
        after = store.stats()
        assert after["chunk_bytes"] == before["chunk_bytes"] - holed["reclaimable"]
        left = {p.name for p in (tmp_path / "s").iterdir()}
        assert left < names and f"{len(left)}.loc" not in left
        assert sum(n.endswith(".loc") for n in left) == (3 if kind == "dense" else 5)
        assert same_list(list(store), RECORDS[kind][:10])
    with type(store)(store.path, mode="r") as again:
        assert same_list(list(again), RECORDS[kind][:10])


TASKS: list[str] = ["compact", "verify", "snapshot"]


def start(store: Any, task: str, progress: Callable[[int, int], object] | None) -> Any:
    dest = (store.path + "-copy",) if task == "snapshot" else ()
    return getattr(store, task)(*dest, progress)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_what_progress_raises_ends_the_task(
    store: Any, kind: str, task: str, error: type[BaseException]
) -> None:
    def progress(at: int, total: int) -> None:
        raise error

    store.delete([0, 4])
    with pytest.raises(error):
        start(store, task, progress)
    assert same_list(list(store), swapped(RECORDS[kind], [0, 4]))
    store.append(RECORDS[kind][:1])  # nothing is left that keeps the store busy
    store.delete(0)
    store.compact()
    assert store.verify().ok


@pytest.mark.parametrize("task", TASKS)
def test_progress_may_read_but_not_change(store: Any, kind: str, task: str) -> None:
    seen = []

    def progress(at: int, total: int) -> None:
        seen.append(len(store[:]))
        if task == "compact":
            with pytest.raises(ZrecordError, match="from within its iterator or progress"):
                store.append(RECORDS[kind][:1])

    start(store, task, progress)
    assert seen and set(seen) == {20}


def test_an_interrupted_compaction_goes_on(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_native.limits, "chunk", 300)
    with create(tmp_path / "s", kind) as store:
        store.append(RECORDS[kind] * 3)
        store.delete(slice(0, 40, 2))
        records = list(store)

        def progress(at: int, total: int) -> None:
            raise KeyboardInterrupt

        while True:
            try:
                store.compact(progress)
            except KeyboardInterrupt:
                assert same_list(list(store), records) and store.verify().ok
                break
        store.compact()
        assert store.stats()["reclaimable"] == 0 and same_list(list(store), records)


def test_another_handle_is_in_the_way(store: Any, kind: str) -> None:
    with type(store)(store.path, mode="r") as other:
        for change in (lambda: store.delete(0), store.compact):
            with pytest.raises(StoreBusyError, match="another handle.*has the store open"):
                change()
        assert same_list(list(other), RECORDS[kind])
        store.append(RECORDS[kind][:1])
    store.delete(20)
    store.compact()
    assert same_list(list(store), RECORDS[kind])


def test_a_reader_changes_nothing(store: Any) -> None:
    store.close()
    with type(store)(store.path, mode="r") as reader:
        for change in (lambda: reader.delete(0), reader.compact):
            with pytest.raises(StoreReadOnlyError, match="mode"):
                change()
        assert reader.upgrade() is None  # of a store of version 5: nothing to do
        assert reader.verify().ok and reader.stats()["records"] == 20


# ---- verify ----


def test_verify_of_a_whole_store(store: Any) -> None:
    calls: list[tuple[int, int]] = []
    report = store.verify(lambda at, total: calls.append((at, total)))
    assert report == VerifyReport(True, 20, []) and report
    assert calls[-1] == (store.stats()["live_bytes"],) * 2


def test_verify_finds_the_record_that_rots(store: Any, kind: str) -> None:
    store.sync()
    chunk = Path(store.path) / "0.chunk"
    content = bytearray(chunk.read_bytes())
    spot = len(content) - 1
    content[spot] ^= 4
    chunk.write_bytes(content)
    report = store.verify()
    assert not report and not report.ok and report.records == 20
    (bad,) = report.bad
    assert bad.path == str(chunk) and bad.offset is not None and bad.offset <= spot
    assert "checksum" in bad.reason or "frame" in bad.reason
    store.delete(0)  # the last record comes there, and a compaction would have to move it
    with pytest.raises(CorruptRecordError, match="checksum") as caught:
        store.compact()
    assert (caught.value.index, caught.value.path) == (0, str(chunk))
    again = store.verify()
    assert [record.index for record in again.bad] == [0]
    store.delete(again.bad)
    assert store.verify() == VerifyReport(True, 18, [])
    store.compact()
    assert same_list(list(store), swapped(swapped(RECORDS[kind], [0]), [0]))


def test_bad_records_come_in_the_order_of_their_indices(tmp_path: Path, kind: str) -> None:
    with create(tmp_path / "s", kind, codec="raw") as store:
        store.append(RECORDS[kind] * 100)
        store.delete(slice(0, 1000))  # what was last is first now
        store.sync()
        chunk = tmp_path / "s" / "0.chunk"
        content = np.frombuffer(chunk.read_bytes(), np.uint8).copy()
        content[::997] ^= 1
        chunk.write_bytes(content.tobytes())
        bad = [record.index for record in store.verify().bad]
        assert len(bad) > 10 and bad == sorted(set(bad))


def test_a_bad_record_stands_for_its_index(store: Any, kind: str) -> None:
    bad = BadRecord(3, "file", 8, "reason")
    assert same(store[bad], RECORDS[kind][3])
    assert same_list(
        list(store[[bad, BadRecord(1, "", None, "")]]), [RECORDS[kind][i] for i in (3, 1)]
    )


# ---- snapshot ----


def test_snapshot_is_a_store_of_its_own(store: Any, kind: str, tmp_path: Path) -> None:
    store.append(RECORDS[kind][:3])  # not synced
    calls: list[tuple[int, int]] = []
    store.snapshot(tmp_path / "deep" / "copy", lambda at, total: calls.append((at, total)))
    assert calls and calls[-1][0] == calls[-1][1] > 0
    with type(store)(tmp_path / "deep" / "copy") as copy:
        assert repr(copy).replace(copy.path, store.path) == repr(store)
        assert same_list(list(copy), RECORDS[kind] + RECORDS[kind][:3]) and copy.verify().ok
        copy.delete(0)
        copy.append(RECORDS[kind][:1])
    assert same_list(list(store), RECORDS[kind] + RECORDS[kind][:3])
    ids = [(Path(p) / "store.zr").read_bytes()[24:28] for p in (store.path, copy.path)]
    assert ids[0] != ids[1]


def test_snapshot_beside_a_writer_shows_what_the_handle_shows(store: Any, kind: str) -> None:
    with type(store)(store.path, mode="r") as reader:
        store.append(RECORDS[kind])
        copied = threading.Event()

        def progress(at: int, total: int) -> None:
            store.append(RECORDS[kind][:2])
            copied.set()

        reader.snapshot(store.path + "-copy", progress)
        assert copied.is_set()
    with type(store)(store.path + "-copy") as copy:
        assert same_list(list(copy), RECORDS[kind]) and copy.verify().ok


def test_snapshot_goes_to_an_empty_folder(store: Any, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    store.snapshot(tmp_path / "empty")
    with pytest.raises(ValueError, match="a new or an empty folder"):
        store.snapshot(tmp_path / "empty")
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "file", tmp_path / "file" / "inside"):
        with pytest.raises(NotAStoreError, match="file"):
            store.snapshot(path)
    assert (tmp_path / "file").read_text() == "mine"
    for inside in (store.path, Path(store.path) / "in" / "side"):
        with pytest.raises(ValueError, match="outside the store"):
            store.snapshot(inside)
    assert not (Path(store.path) / "in").exists()


def test_an_interrupted_snapshot_leaves_no_folder(
    store: Any, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted:
        def __getattr__(self, name: str) -> Any:
            return getattr(lib, name)

        def lx_task_step(self, *_: Any) -> int:
            raise KeyboardInterrupt

    lib = _native.lib
    (tmp_path / "mine").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(_native, "lib", Interrupted())
        for dest in ("deep/er/copy", "mine"):
            with pytest.raises(KeyboardInterrupt):
                store.snapshot(tmp_path / dest)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine", "s"]

    def progress(at: int, total: int) -> None:
        calls.append(at == total)
        raise KeyboardInterrupt

    calls: list[bool] = []
    with pytest.raises(KeyboardInterrupt):
        store.snapshot(tmp_path / "mine", progress)
    assert calls == [True]  # so small a store takes one step, and the copy is whole
    with type(store)(tmp_path / "mine") as copy:
        assert same_list(list(copy), RECORDS[kind])


# ---- refresh ----


def test_refresh_shows_what_others_did(store: Any, kind: str) -> None:
    with type(store)(store.path, mode="r") as reader:
        store.append(RECORDS[kind][:3])
        assert len(reader) == 20 and len(reader[:]) == 20
        reader.refresh()
        assert same_list(list(reader), RECORDS[kind] + RECORDS[kind][:3])
        store.refresh()  # the writer is always exact
        assert len(store) == 23


def test_refresh_refuses_another_store(tmp_path: Path, kind: str) -> None:
    with create(tmp_path / "a", kind) as first:
        first.append(RECORDS[kind])
    create(tmp_path / "b", kind).close()
    with type(first)(tmp_path / "a", mode="r") as reader:
        os.rename(tmp_path / "a", tmp_path / "c")
        os.rename(tmp_path / "b", tmp_path / "a")
        with pytest.raises(StoreMismatchError, match="another is there now"):
            reader.refresh()
        assert same_list(list(reader), RECORDS[kind])
