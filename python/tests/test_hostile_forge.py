"""The second reading of the format agrees with the engine, in both directions."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import forge
import hostile
import numpy as np
import pytest
from forge import Forged
from hostile import ALL_CODECS, COUNT, ITEM, KINDS, forged, opened, reads, records

from loaderx.zrecord import DenseStore, RaggedStore

_guard = hostile.guard


def test_crc32c_is_the_one_of_rfc_3720() -> None:
    assert forge.crc32c(b"123456789") == 0xE3069283
    assert forge.crc32c(bytes(32)) == 0x8A9136AA
    assert forge.crc32c(b"1234", b"56789") == 0xE3069283


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("codec", ALL_CODECS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_forged_store_is_right(kind: str, codec: str, version: int, tmp_path: Path) -> None:
    path = forged(kind, codec, version).write(tmp_path / "s")
    reads(kind, path)
    with opened(kind, path) as store:
        assert store.verify().ok and store.codec == codec


def test_a_forged_arithmetic_store_is_right(tmp_path: Path) -> None:
    path = forged("dense", arithmetic=True).write(tmp_path / "s")
    reads("dense", path)
    with opened("dense", path) as store:
        assert store.verify().ok


@pytest.mark.parametrize("codec", ALL_CODECS)
@pytest.mark.parametrize("kind", KINDS)
def test_what_loaderx_writes_is_as_the_format_says(kind: str, codec: str, tmp_path: Path) -> None:
    path, trained = tmp_path / "s", hostile.dictionary() if codec == "zstd_dict" else None
    if kind == "dense":
        store = DenseStore(path, np.int32, ITEM, codec, trained)
    else:
        store = RaggedStore(path, np.int32, codec, trained)
    with store:
        store.append(records(kind))
    model = forged(kind, codec, arithmetic=kind == "dense" and codec == "raw")
    typed = forge.Typed.decode((path / "store.zr").read_bytes())
    assert typed.identity == model.typed.identity
    assert (typed.kind, typed.width, typed.version) == (model.typed.kind, model.typed.width, 2)
    slot = forge.slots_of((path / "journal.zr").read_bytes())[-1]
    assert slot.store_id == typed.store_id != 0
    assert (slot.per_chunk, slot.dict_crc) == (
        model.slots[0].per_chunk,
        model.slots[0].dict_crc,
    )
    meta = forge.Meta.decode((path / "meta.zr").read_bytes())
    assert meta == slot.meta and (path / "meta.zr").read_bytes() == meta.encode()
    assert (meta.length, meta.codec) == (model.meta.length, forge.CODECS[codec])
    holds_the_records(model, path, codec == "raw")


def holds_the_records(model: Forged, path: Path, raw: bool) -> None:
    """Table, sums and (as far as they are to be told) records are the model's."""
    table, chunk = (path / "0.loc").read_bytes(), (path / "0.chunk").read_bytes()
    entries = forge.entries_of(table)
    sums = [n for (n,) in struct.iter_unpack("<I", (path / "0.sum").read_bytes())]
    assert len(entries) == len(sums) == len(model.entries)
    for entry, found, wanted in zip(entries, sums, model.entries):
        stored = chunk[entry.offset : entry.offset + entry.phys]
        assert entry.logic == wanted.logic
        assert found == forge.record_sum(entry.phys, entry.logic, stored)
        assert raw or stored[:4] == b"\x28\xb5\x2f\xfd"
    if raw:
        assert chunk == model.chunk and entries == model.entries


def test_a_redo_record_of_loaderx_is_as_the_format_says(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with DenseStore(path, np.int32, ITEM, "zstd") as store:
        store.append(records("dense"))
        store.sync()
        store.delete([1])
        journal = (path / "journal.zr").read_bytes()
        entries = forge.entries_of((path / "0.loc").read_bytes())
        sums = (path / "0.sum").read_bytes()
    slot = forge.slots_of(journal)[-1]
    after = replace(slot.meta, length=COUNT - 1)
    moved = forge.RedoEntry(1, entries[1], struct.unpack_from("<I", sums, 4)[0])
    wanted = forge.Redo(after, [moved], store_id=slot.store_id).encode()
    assert journal[forge.REDO_START :][: len(wanted)] == wanted
