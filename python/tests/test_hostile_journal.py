"""Hostile journals: rows 40 to 42 of the table of hostile inputs.

A redo record is carried out by the next writer and shown by every reader until
then. It counts only as a whole; and one that counts may not lead outside.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import forge
import hostile
import pytest
from forge import Forged, Redo, RedoEntry
from hostile import COUNT, KINDS, MODES, forged, opened, reads, records, refused
from support import same_list

from loaderx.errors import CorruptStoreError

_guard = hostile.guard

every_kind = pytest.mark.parametrize("kind", KINDS)
every_codec = pytest.mark.parametrize("codec", hostile.ALL_CODECS)


def per(store: Forged) -> int:
    return 2 if store.ragged else 1


def last_to_first(store: Forged) -> Redo:
    """The record of a delete of the first record: the last takes its place."""
    n, last = per(store), len(store.entries) - per(store)
    moved = []
    for k in range(n):
        e = store.entries[last + k]
        total = forge.record_sum(e.phys, e.logic, store.stored(last + k))
        moved.append(RedoEntry(k, replace(e), total))
    return Redo(replace(store.meta, length=last), moved)


def after_delete(kind: str) -> list[Any]:
    wanted = records(kind)
    return [wanted[-1], *wanted[1:-1]]


def recovers(kind: str, path: Path, wanted: list[Any]) -> None:
    """The next writer does what the journal says, and goes on."""
    with opened(kind, path, "a") as store:
        store.sync()
        assert same_list(list(store), wanted)
        assert store.append(records(kind)[:1]) == len(wanted)
    reads(kind, path, MODES, wanted + records(kind)[:1])
    with opened(kind, path) as store:
        assert store.verify().ok


@every_kind
@every_codec
def test_a_delete_that_was_cut_short(kind: str, codec: str, tmp_path: Path) -> None:
    store = forged(kind, codec)
    store.redo = [last_to_first(store)]
    path = store.write(tmp_path / "s")
    reads(kind, path, wanted=after_delete(kind))
    recovers(kind, path, after_delete(kind))


@every_kind
def test_a_move_with_images_that_was_cut_short(kind: str, tmp_path: Path) -> None:
    """A round of a compaction: the records are in the journal only."""
    store, n = forged(kind), len(forged(kind).entries)
    moved, at = [], 0
    for i in range(n):
        e, image = store.entries[i], store.stored(i)
        moved.append(
            RedoEntry(
                i, forge.Entry(at, e.phys, e.logic), forge.record_sum(e.phys, e.logic, image), image
            )
        )
        at += e.phys
    store.redo = [Redo(replace(store.meta), moved)]
    store.chunk = bytearray(b"\xdd" * len(store.chunk))
    store.sums = [e.sum for e in moved]
    path = store.write(tmp_path / "s")
    reads(kind, path)
    recovers(kind, path, records(kind))


# ---- 40 ----


@every_kind
@every_codec
def test_the_journal_of_another_store(kind: str, codec: str, tmp_path: Path) -> None:
    store = forged(kind, codec)
    other = replace(store, slots=[replace(store.slots[0], store_id=forge.STORE_ID + 1)])
    store.files["journal.zr"] = other.journal()
    path = store.write(tmp_path / "s")
    refused(CorruptStoreError, "no valid checkpoint of this store", kind, path, "journal.zr")


@every_kind
def test_a_redo_record_of_another_store(kind: str, tmp_path: Path) -> None:
    store = forged(kind)
    store.redo = [replace(last_to_first(store), store_id=forge.STORE_ID ^ 1)]
    reads(kind, store.write(tmp_path / "s"))


@every_kind
@pytest.mark.parametrize("epoch", [0, 2, (1 << 48) - 1])
def test_a_redo_record_of_another_epoch(kind: str, epoch: int, tmp_path: Path) -> None:
    store = forged(kind)
    record = last_to_first(store)
    record.meta.epoch = epoch
    store.redo = [record]
    reads(kind, store.write(tmp_path / "s"))


@every_kind
def test_a_redo_record_out_of_turn(kind: str, tmp_path: Path) -> None:
    """A record counts behind those before it, from 0."""
    store = forged(kind)
    store.redo = [replace(last_to_first(store), sequence=1)]
    reads(kind, store.write(tmp_path / "a"))
    store.redo = [last_to_first(store), replace(last_to_first(store), sequence=0)]
    reads(kind, store.write(tmp_path / "b"), wanted=after_delete(kind))


# ---- 41 ----


def outside(store: Forged) -> dict[str, Redo]:
    """Records that count, but for where they lead."""
    good = last_to_first(store)
    first = good.entries[0]
    total = len(store.chunk)

    def with_entry(**change: Any) -> Redo:
        changed = replace(first, entry=replace(first.entry, **change))
        return replace(good, entries=[changed, *good.entries[1:]])

    def with_index(index: int) -> Redo:
        return replace(good, entries=[replace(first, index=index), *good.entries[1:]])

    def with_meta(**change: Any) -> Redo:
        return replace(good, meta=replace(good.meta, **change))

    image = b"\xee" * 100
    beyond = RedoEntry(
        0, forge.Entry(total - 50, 100, 100), forge.record_sum(100, 100, image), image
    )
    far = RedoEntry(0, forge.Entry(0, 100, 100, 7), forge.record_sum(100, 100, image), image)
    return {
        "index at the length": with_index(good.meta.length),
        "index of 2^40": with_index(1 << 40),
        "index of 2^63": with_index(1 << 63),
        "index of all ones": with_index((1 << 64) - 1),
        "chunk 1": with_entry(chunk=1),
        "chunk of all ones": with_entry(chunk=(1 << 32) - 1),
        "behind the tail": with_entry(offset=total),
        "across the tail": with_entry(offset=total - first.entry.phys + 1),
        "wraps": with_entry(offset=(1 << 32) - 1),
        "longer store": with_meta(length=len(store.entries) + 2),
        "length of all ones": with_meta(length=(1 << 64) - 2),
        "length of 2^63": with_meta(length=1 << 63),
        "another codec": with_meta(codec=1 - min(store.meta.codec, 1)),
        "another tail": with_meta(tail_offset=total + 1),
        "another tail chunk": with_meta(tail_chunk=1),
        "image across the tail": replace(good, entries=[beyond]),
        "image in chunk 7": replace(good, entries=[far]),
    }


@every_kind
@pytest.mark.parametrize("codec", ["raw", "zstd"])
@pytest.mark.parametrize("which", outside(forged("dense")))
def test_a_redo_record_that_leads_outside(
    kind: str, codec: str, which: str, tmp_path: Path
) -> None:
    store = forged(kind, codec)
    store.redo = [outside(store)[which]]
    path = store.write(tmp_path / "s")
    refused(CorruptStoreError, "redo record 0", kind, path, "journal.zr")


@every_kind
def test_a_redo_record_that_splits_a_pair(kind: str, tmp_path: Path) -> None:
    """An odd length, of a ragged store."""
    store = forged(kind)
    record = last_to_first(store)
    record.meta.length -= 1
    record.entries = record.entries[:1]
    store.redo = [record]
    path = store.write(tmp_path / "s")
    if kind == "dense":
        wanted = records(kind)
        return reads(kind, path, wanted=[wanted[-1], *wanted[1:-2]])
    refused(CorruptStoreError, "odd length|redo record 0", kind, path, "journal.zr")


@every_kind
@pytest.mark.parametrize("count", [0, 2, 3, 1 << 20, 1 << 27, (1 << 32) - 1])
def test_a_redo_record_that_counts_wrong(kind: str, count: int, tmp_path: Path) -> None:
    """Its CRC holds, and is of other entries than it counts."""
    store = forged(kind)
    record = last_to_first(store)
    if count == len(record.entries):
        return
    store.redo = [replace(record, count=count)]
    reads(kind, store.write(tmp_path / "s"))


@every_kind
@pytest.mark.parametrize("size", [1, 100, 1 << 31, 1 << 63, (1 << 64) - 1])
def test_a_redo_record_whose_images_are_not_there(kind: str, size: int, tmp_path: Path) -> None:
    store = forged(kind)
    store.redo = [replace(last_to_first(store), image_bytes=size)]
    reads(kind, store.write(tmp_path / "s"))


@every_kind
def test_an_image_of_four_thousand_million_bytes(kind: str, tmp_path: Path) -> None:
    store = forged(kind)
    image = RedoEntry(0, forge.Entry(0, (1 << 32) - 1, (1 << 32) - 1), 0, b"")
    store.redo = [Redo(store.meta, [image], image_bytes=(1 << 32) - 1)]
    reads(kind, store.write(tmp_path / "s"))


@every_kind
def test_an_image_whose_sum_is_wrong(kind: str, tmp_path: Path) -> None:
    store = forged(kind)
    e, image = store.entries[0], b"\xee" * store.entries[0].phys
    total = forge.record_sum(e.phys, e.logic, image) ^ 1
    store.redo = [Redo(store.meta, [RedoEntry(0, e, total, image)])]
    reads(kind, store.write(tmp_path / "s"))


@every_kind
def test_thousands_of_redo_records(kind: str, tmp_path: Path) -> None:
    """As many as the area holds, each of no entries."""
    store = forged(kind)
    room = forge.REDO_RESERVE // 64
    store.redo = [Redo(store.meta, [], sequence=i) for i in range(room)]
    path = store.write(tmp_path / "s")
    reads(kind, path)
    recovers(kind, path, records(kind))
    store.redo.append(Redo(store.meta, [], sequence=room))
    path = store.write(tmp_path / "more")
    refused(CorruptStoreError, f"record {room} ends at", kind, path, "journal.zr")


@every_kind
def test_a_record_with_images_ends_the_chain(kind: str, tmp_path: Path) -> None:
    """A checkpoint follows each: what comes next in its epoch is no engine's."""
    store = forged(kind)
    e, image = store.entries[0], b"\xee" * store.entries[0].phys
    moved = RedoEntry(0, e, forge.record_sum(e.phys, e.logic, image), image)
    store.redo = [Redo(store.meta, [moved]), Redo(store.meta, [], sequence=1)]
    path = store.write(tmp_path / "s")
    refused(CorruptStoreError, "record 1 follows one with images", kind, path, "journal.zr")


@every_kind
def test_an_unsynced_tail_of_records_that_share_bytes(kind: str, tmp_path: Path) -> None:
    """However many say that they are the whole chunk, it is read once at most."""
    store = forged(kind)
    whole = forge.Entry(0, len(store.chunk), len(store.chunk))
    store.entries = [replace(whole) for _ in range(20)]
    total = forge.record_sum(whole.phys, whole.logic, bytes(store.chunk))
    store.sums = [total] * len(store.entries)
    store.slots = [
        replace(slot, meta=replace(slot.meta, length=0, tail_offset=0)) for slot in store.slots
    ]
    store.meta = replace(store.meta, length=len(store.entries))
    with opened(kind, store.write(tmp_path / "s")) as found:
        assert len(found) == 0  # no dense record is as long, and no second one has room


# ---- 42 ----


@every_kind
@pytest.mark.parametrize("fill", ["nothing", "zeros", "garbage"])
def test_a_redo_record_torn_at_every_byte(kind: str, fill: str, tmp_path: Path) -> None:
    """Old state; the whole record is the new one."""
    store = forged(kind)
    e, image = store.entries[0], store.stored(0)
    record = last_to_first(store)
    record.entries.append(RedoEntry(per(store), e, forge.record_sum(e.phys, e.logic, image), image))
    whole, clean = record.encode(), store.journal()
    path = store.write(tmp_path / "s")
    for size in range(len(whole)):
        torn = clean[: forge.REDO_START] + whole[:size]
        rest = len(clean) - len(torn)
        torn += {"nothing": b"", "zeros": bytes(rest), "garbage": b"\xa5" * rest}[fill]
        if torn[forge.REDO_START :][: len(whole)] == whole:
            continue  # what came behind was right by chance
        (path / "journal.zr").write_bytes(torn)
        with opened(kind, path) as again:
            assert same_list(list(again), records(kind)), size
    assert len(whole) > 64 + 32


@every_kind
def test_a_redo_record_with_each_byte_damaged(kind: str, tmp_path: Path) -> None:
    store = forged(kind)
    whole, clean = last_to_first(store).encode(), bytearray(store.journal())
    path = store.write(tmp_path / "s")
    clean[forge.REDO_START :][: len(whole)] = whole
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << at % 8
        clean[forge.REDO_START : forge.REDO_START + len(whole)] = damaged
        (path / "journal.zr").write_bytes(clean)
        with opened(kind, path) as again:
            assert len(again) == COUNT and same_list(list(again), records(kind)), at


@every_kind
@every_codec
def test_the_second_of_two_records_is_torn(kind: str, codec: str, tmp_path: Path) -> None:
    store = forged(kind, codec)
    first = last_to_first(store)
    second = Redo(replace(first.meta, length=first.meta.length - per(store)), [], sequence=1)
    store.redo = [first, second]
    path = store.write(tmp_path / "s")
    reads(kind, path, wanted=after_delete(kind)[:-1])
    journal = bytearray(store.journal())
    at = forge.REDO_START + (len(first.encode()) + 63 & ~63)
    journal[at + 63] ^= 1
    (path / "journal.zr").write_bytes(journal)
    reads(kind, path, wanted=after_delete(kind))
    recovers(kind, path, after_delete(kind))


# ---- the slots ----


@every_kind
@pytest.mark.parametrize("size", [0, 63, 64, 4095, 4096, 4159, 8191, 8192, 8193])
def test_a_journal_cut_short(kind: str, size: int, tmp_path: Path) -> None:
    """A copy may lose the redo area; a checkpoint must be there."""
    store = forged(kind)  # of epoch 1, whose slot is the second
    store.files["journal.zr"] = store.journal()[:size]
    path = store.write(tmp_path / "s")
    if size < forge.SLOT_STRIDE + 64:
        return refused(CorruptStoreError, "no valid checkpoint", kind, path, "journal.zr")
    reads(kind, path)
    recovers(kind, path, records(kind))


@every_kind
def test_each_bit_of_the_only_slot(kind: str, tmp_path: Path) -> None:
    path = forged(kind).write(tmp_path / "s")
    journal = bytearray((path / "journal.zr").read_bytes())
    for bit in range(64 * 8):
        at, mask = forge.SLOT_STRIDE + bit // 8, 1 << bit % 8
        journal[at] ^= mask
        (path / "journal.zr").write_bytes(journal)
        with pytest.raises(CorruptStoreError, match="no valid checkpoint"):
            opened(kind, path)
        journal[at] ^= mask
    (path / "journal.zr").write_bytes(journal)
    reads(kind, path)


@every_kind
def test_an_old_journal_beside_a_newer_store(kind: str, tmp_path: Path) -> None:
    """A backup of one file: it would take back what was committed since."""
    path = forged(kind).write(tmp_path / "s")
    shutil.copy(path / "journal.zr", tmp_path / "backup")
    with opened(kind, path, "a") as store:
        store.append(records(kind))
    shutil.copy(tmp_path / "backup", path / "journal.zr")
    refused(CorruptStoreError, "is newer than", kind, path, "meta.zr")
