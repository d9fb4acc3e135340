"""Checkpoints whose CRC holds and whose claims do not: arithmetic layouts and epochs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import forge
import hostile
import pytest
from forge import Redo, RedoEntry
from hostile import KINDS, forged, opened, reads, records, refused

from loaderx.errors import CorruptStoreError

_guard = hostile.guard
LAST_EPOCH = (1 << 48) - 1


def test_an_arithmetic_slot_has_no_redo_record(tmp_path: Path) -> None:
    store = forged("dense", arithmetic=True)
    entry = RedoEntry(0, store.entries[-1], forge.record_sum(24, 24, store.stored(4)))
    store.redo = [Redo(replace(store.meta, length=4), [entry])]
    path = store.write(tmp_path / "s")
    refused(CorruptStoreError, "no redo record of checkpoint 1", "dense", path, "journal.zr")


@pytest.mark.parametrize("length,offset", [(3, 120), (5, 119), (5, 0), (0, 120)])
def test_an_arithmetic_slot_has_its_tail_where_the_formula_says(
    length: int, offset: int, tmp_path: Path
) -> None:
    store = forged("dense", arithmetic=True).both(length=length, tail_offset=offset)
    path = store.write(tmp_path / "s")
    match = f"tail of {length} records at chunk 0, offset {24 * length}, got chunk 0, offset"
    refused(CorruptStoreError, match, "dense", path, "journal.zr")


@pytest.mark.parametrize("per", [1, 5, forge.MAX_CHUNK // 24 - 1, forge.MAX_CHUNK // 24 + 1])
def test_an_arithmetic_slot_fills_its_chunks(per: int, tmp_path: Path) -> None:
    store = forged("dense", arithmetic=True)
    store.slots[0].per_chunk = per
    path = store.write(tmp_path / "s")
    match = f"expected {forge.MAX_CHUNK // 24} records of 24 bytes a chunk, got {per}"
    refused(CorruptStoreError, match, "dense", path, "journal.zr")


@pytest.mark.parametrize("kind,codec", [("ragged", "raw"), ("dense", "zstd")])
def test_only_dense_raw_stores_are_arithmetic(kind: str, codec: str, tmp_path: Path) -> None:
    store = forged(kind, codec)
    store.slots[0].per_chunk = forge.MAX_CHUNK // 24
    path = store.write(tmp_path / "s")
    refused(CorruptStoreError, "arithmetic layout", kind, path, "journal.zr")


@pytest.mark.parametrize("kind", KINDS)
def test_a_slot_of_epoch_0_is_none(kind: str, tmp_path: Path) -> None:
    path = forged(kind).both(epoch=0).write(tmp_path / "s")
    refused(CorruptStoreError, "no valid checkpoint", kind, path, "journal.zr")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epoch", [LAST_EPOCH, LAST_EPOCH - 1, (1 << 48) - (1 << 40)])
def test_an_epoch_that_nothing_can_follow_is_only_read(
    kind: str, epoch: int, tmp_path: Path
) -> None:
    """A writer would get to an epoch that begins at 0 again, and lose what it wrote."""
    path = forged(kind).both(epoch=epoch).write(tmp_path / "s")
    reads(kind, path)
    with hostile.unchanged(path), opened(kind, path, "a") as store:
        for change in (
            lambda: store.append(records(kind)[:1]),
            lambda: store.delete([0]),
            store.compact,
        ):
            with pytest.raises(CorruptStoreError, match=f"expected an epoch below .*{epoch}"):
                change()


@pytest.mark.parametrize("kind", KINDS)
def test_the_greatest_epoch_that_is_written_to(kind: str, tmp_path: Path) -> None:
    path = forged(kind).both(epoch=(1 << 48) - (1 << 40) - 1).write(tmp_path / "s")
    with opened(kind, path, "a") as store:
        store.append(records(kind)[:1])
    reads(kind, path, wanted=[*records(kind), records(kind)[0]])
