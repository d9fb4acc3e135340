"""Hostile headers: what is refused when a store is opened, and what a slot makes good.

The numbers are the rows of the table of hostile inputs.
"""

from __future__ import annotations

import os
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import forge
import hostile
import pytest
from forge import Forged
from hostile import ALL_CODECS, KINDS, MODES, forged, opened, reads, records, refused

from loaderx.errors import (
    CorruptStoreError,
    NotAStoreError,
    StoreMismatchError,
    UnsupportedStoreError,
)

_guard = hostile.guard

every_kind = pytest.mark.parametrize("kind", KINDS)
every_codec = pytest.mark.parametrize("codec", ALL_CODECS)
every_version = pytest.mark.parametrize("version", [4, 5])


# ---- 1 ----


@every_kind
def test_an_empty_folder_is_no_store(kind: str, tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    refused(NotAStoreError, "no store there", kind, tmp_path / "s", ways=MODES)
    refused(NotAStoreError, "does not exist", kind, tmp_path / "nowhere", ways=MODES)


@every_kind
def test_a_file_is_no_store(kind: str, tmp_path: Path) -> None:
    (tmp_path / "s").write_bytes(b"LXST" + bytes(28))
    refused(NotAStoreError, "expected the folder of a store, got a file", kind, tmp_path / "s")


# ---- 2 ----


@every_kind
@every_version
def test_a_wrong_magic_in_store_zr(kind: str, version: int, tmp_path: Path) -> None:
    store = forged(kind, version=version)
    store.files["store.zr"] = b"LXSU" + store.typed.encode()[4:]
    path = store.write(tmp_path / "s")
    refused(NotAStoreError, "not the header of a loaderx store", kind, path, "store.zr")


DAMAGED_META = {
    "magic": lambda meta: b"ZREX" + meta[4:],
    "crc": lambda meta: meta[:28] + bytes([meta[28] ^ 1]) + meta[29:],
    "length bit": lambda meta: meta[:14] + bytes([meta[14] ^ 2]) + meta[15:],
    "0 bytes": lambda meta: b"",
    "31 bytes": lambda meta: meta[:31],
    "33 bytes": lambda meta: meta + b"\0",
    "1 MiB": lambda meta: meta + bytes(1 << 20),
    "version bit": lambda meta: meta[:4] + b"\x0d" + meta[5:],
    "version 4": lambda meta: meta[:4] + b"\x04" + meta[5:],
    "version 0": lambda meta: meta[:4] + b"\0" + meta[5:],
}


@every_kind
@pytest.mark.parametrize("damage", DAMAGED_META)
def test_a_damaged_meta_is_made_good_from_the_slot(kind: str, damage: str, tmp_path: Path) -> None:
    """Rows 2, 3, 5 and 6; and what 1.7.7 would have written is not believed here."""
    store = forged(kind)
    store.files["meta.zr"] = DAMAGED_META[damage](store.meta.encode())
    path = store.write(tmp_path / "s")
    reads(kind, path)
    # The next writer repairs it.
    with opened(kind, path, "a") as again:
        assert again.append(records(kind)[:1]) == len(records(kind))
    assert forge.Meta.decode((path / "meta.zr").read_bytes()).version == 5
    reads(kind, path, wanted=records(kind) + records(kind)[:1])


@every_kind
@pytest.mark.parametrize("damage", ["magic", "0 bytes", "31 bytes", "33 bytes", "version 0"])
def test_a_damaged_meta_of_version_4_is_corrupt(kind: str, damage: str, tmp_path: Path) -> None:
    store = forged(kind, version=4)
    store.files["meta.zr"] = DAMAGED_META[damage](store.meta.encode())
    path = store.write(tmp_path / "s")
    refused(CorruptStoreError, "the file is missing", kind, path, "journal.zr")


@every_kind
def test_a_missing_meta_is_corrupt(kind: str, tmp_path: Path) -> None:
    store = forged(kind)
    store.files["meta.zr"] = None
    refused(CorruptStoreError, "is missing", kind, store.write(tmp_path / "s"), "meta.zr")


# ---- 3 and 4 ----


@every_kind
@pytest.mark.parametrize("version", [6, 255])
def test_a_later_version_is_named(kind: str, version: int, tmp_path: Path) -> None:
    store = forged(kind)
    store.meta.version = version
    path = store.write(tmp_path / "s")
    refused(UnsupportedStoreError, f"format version {version} is newer", kind, path, "meta.zr")


@every_kind
def test_a_later_version_without_any_checkpoint_is_named(kind: str, tmp_path: Path) -> None:
    """Its CRC may be of another kind, and its journal somewhere else."""
    store = forged(kind)
    store.files["meta.zr"] = store.meta.encode()[:4] + b"\x06" + store.meta.encode()[5:]
    store.slots = []
    path = store.write(tmp_path / "s")
    refused(UnsupportedStoreError, "format version 6 is newer", kind, path, "meta.zr")


@every_kind
@pytest.mark.parametrize("version", [3, 255])
def test_a_later_typed_header_is_named(kind: str, version: int, tmp_path: Path) -> None:
    store = forged(kind)
    store.typed.version = version
    path = store.write(tmp_path / "s")
    refused(UnsupportedStoreError, f"got {version}", kind, path, "store.zr")
    flipped = bytearray(store.typed.encode())
    flipped[28] ^= 1
    (path / "store.zr").write_bytes(flipped)
    refused(CorruptStoreError, "typed header version", kind, path, "store.zr")


@every_kind
@every_version
@pytest.mark.parametrize("codec", [3, 255])
def test_an_unknown_codec(kind: str, version: int, codec: int, tmp_path: Path) -> None:
    path = forged(kind, version=version).both(codec=codec).write(tmp_path / "s")
    refused(UnsupportedStoreError, f"got codec {codec}", kind, path, "meta.zr")


@every_kind
@pytest.mark.parametrize("codec", [1, 255])
def test_meta_and_slot_differ_in_codec(kind: str, codec: int, tmp_path: Path) -> None:
    store = forged(kind)
    store.meta = replace(store.meta, codec=codec)
    path = store.write(tmp_path / "s")
    refused(CorruptStoreError, "codec: expected raw", kind, path, "meta.zr")


# ---- 7 ----


@every_kind
@every_codec
@pytest.mark.parametrize("journal", ["slots", "empty", "short", "missing"])
def test_meta_and_both_slots_bad(kind: str, codec: str, journal: str, tmp_path: Path) -> None:
    store = forged(kind, codec)
    store.files["meta.zr"] = store.meta.encode()[:31] + b"?"
    good = store.journal()
    store.files["journal.zr"] = {
        "slots": good.replace(b"ZCKP", b"ZCKQ"),
        "empty": b"",
        "short": good[: forge.SLOT_STRIDE + 63],
        "missing": None,
    }[journal]
    path = store.write(tmp_path / "s")
    match = "is missing" if journal == "missing" else "no valid checkpoint of this store"
    refused(CorruptStoreError, match, kind, path, "journal.zr")


@every_kind
def test_a_good_meta_without_a_checkpoint_is_not_enough(kind: str, tmp_path: Path) -> None:
    store = forged(kind)
    store.slots = []
    path = store.write(tmp_path / "s")
    refused(CorruptStoreError, "no valid checkpoint of this store", kind, path, "journal.zr")


@every_kind
def test_a_meta_newer_than_the_checkpoints(kind: str, tmp_path: Path) -> None:
    store = forged(kind)
    store.meta = replace(store.meta, epoch=2)
    path = store.write(tmp_path / "s")
    refused(CorruptStoreError, "epoch 2 is newer than 1", kind, path, "meta.zr")


@every_kind
def test_the_newer_of_two_slots_counts(kind: str, tmp_path: Path) -> None:
    store = forged(kind)
    older = replace(store.meta, epoch=1 << 40, length=2, tail_offset=store.entries[2].offset)
    newer = replace(store.meta, epoch=(1 << 40) + 1)
    store.slots = [forge.Slot(newer), forge.Slot(older)]
    store.meta = newer
    reads(kind, store.write(tmp_path / "s"))


# ---- 8 to 12: what the headers claim ----


def claims(kind: str, version: int, where: str, tmp_path: Path, **what: Any) -> Path:
    """A store whose headers claim something: "both", or meta.zr only."""
    store = forged(kind, version=version)
    if where == "both":
        store.both(**what)
    else:
        store.meta = replace(store.meta, **what)
    return store.write(tmp_path / "s")


LENGTHS = [1 << 20, 1 << 32, 1 << 40, (1 << 62) - 2, 1 << 62, (1 << 63) - 2, 1 << 63, (1 << 64) - 2]


@every_kind
@every_version
@pytest.mark.parametrize("length", LENGTHS)
def test_a_length_beyond_the_table(kind: str, version: int, length: int, tmp_path: Path) -> None:
    """Rows 8 and 9."""
    path = claims(kind, version, "both", tmp_path, length=length)
    file = "meta.zr" if length > 1 << 62 else "0.loc"
    refused(CorruptStoreError, "length|expected at least", kind, path, file)


@every_kind
@pytest.mark.parametrize("length", [*LENGTHS, (1 << 64) - 1, 7, 11])
def test_a_length_that_only_meta_claims(kind: str, length: int, tmp_path: Path) -> None:
    """Rows 8 to 10: the checkpoint holds, and a record counts if its sum does."""
    if length < len(forged(kind).entries):
        length += 10
    reads(kind, claims(kind, 5, "meta", tmp_path, length=length))


@every_version
@pytest.mark.parametrize("length", [9, 11, (1 << 64) - 1])
def test_an_odd_length(version: int, length: int, tmp_path: Path) -> None:
    path = claims("ragged", version, "both", tmp_path, length=length)
    match = "odd length" if length < 1 << 62 else "beyond any store"
    refused(CorruptStoreError, match, "ragged", path, "meta.zr")


@every_kind
@every_version
@pytest.mark.parametrize("offset", [10_000, (1 << 32) - 1])
def test_a_tail_behind_the_file(kind: str, version: int, offset: int, tmp_path: Path) -> None:
    path = claims(kind, version, "both", tmp_path, tail_offset=offset)
    refused(CorruptStoreError, f"expected at least {offset} bytes", kind, path, "0.chunk")


@every_kind
@every_version
def test_a_tail_chunk_of_four_thousand_million(kind: str, version: int, tmp_path: Path) -> None:
    path = claims(kind, version, "both", tmp_path, tail_chunk=(1 << 32) - 1, tail_offset=0)
    match = f"is missing; the store holds chunks 0 to {(1 << 32) - 1}"
    refused(CorruptStoreError, match, kind, path, "1.chunk")


@every_kind
@pytest.mark.parametrize(
    "what", [{"tail_offset": (1 << 32) - 1}, {"tail_chunk": (1 << 32) - 1}, {"tail_offset": 0}]
)
def test_a_tail_that_only_meta_claims(kind: str, what: dict[str, int], tmp_path: Path) -> None:
    """Rows 11 and 12: the tail is never meta.zr's."""
    reads(kind, claims(kind, 5, "meta", tmp_path, **what))


@every_kind
def test_a_meta_that_lost_records(kind: str, tmp_path: Path) -> None:
    """An older meta.zr of the same epoch is no crash's doing."""
    path = claims(kind, 5, "meta", tmp_path, length=2)
    refused(CorruptStoreError, "expected at least the", kind, path, "meta.zr")


@every_kind
@pytest.mark.parametrize("per_chunk", [1, (1 << 32) - 1])
def test_an_arithmetic_layout_that_does_not_fit(kind: str, per_chunk: int, tmp_path: Path) -> None:
    """It would take the place of the table."""
    store = forged(kind, "raw" if per_chunk > 1 else "zstd")
    store.slots[0].per_chunk = per_chunk
    path = store.write(tmp_path / "s")
    refused(CorruptStoreError, "an arithmetic layout: expected", kind, path, "journal.zr")


def test_an_arithmetic_slot_with_nothing_in_a_chunk_is_none(tmp_path: Path) -> None:
    store = forged("dense", arithmetic=True)
    journal = bytearray(store.journal())
    at = forge.SLOT_STRIDE
    journal[at + 40 : at + 44] = bytes(4)
    journal[at + 60 : at + 64] = struct.pack("<I", forge.crc32c(bytes(journal[at : at + 60])))
    store.files["journal.zr"] = bytes(journal)
    path = store.write(tmp_path / "s")
    refused(CorruptStoreError, "no valid checkpoint", "dense", path, "journal.zr")


# ---- 13 to 15: the data files ----


@every_kind
@every_version
@every_codec
@pytest.mark.parametrize("file", ["0.chunk", "0.loc", "0.sum"])
def test_a_missing_file(kind: str, version: int, codec: str, file: str, tmp_path: Path) -> None:
    store = forged(kind, codec, version)
    store.files[file] = None
    path = store.write(tmp_path / "s")
    if version == 4 and file == "0.sum":
        return reads(kind, path)  # version 4 has none
    refused(CorruptStoreError, "is missing|got -1", kind, path, file)


@every_kind
@every_version
def test_a_chunk_too_many_is_never_read(kind: str, version: int, tmp_path: Path) -> None:
    store = forged(kind, version=version)
    store.files["9.chunk"] = b"x" * 100
    path = store.write(tmp_path / "s")
    reads(kind, path)
    # It goes when a writer owns the clean store.
    with opened(kind, path, "a") as again:
        assert (path / "9.chunk").exists()
        again.append(records(kind)[:1])
        assert not (path / "9.chunk").exists()
    reads(kind, path, wanted=records(kind) + records(kind)[:1])


@every_kind
@every_version
@pytest.mark.parametrize("extra", [1, 15, 16, 4000])
def test_bytes_behind_the_table(kind: str, version: int, extra: int, tmp_path: Path) -> None:
    store = forged(kind, version=version)
    contents = store.contents()
    for file in ("0.loc", "0.sum", "0.chunk"):
        if contents.get(file) is not None:
            store.files[file] = (contents[file] or b"") + b"\xff" * extra
    path = store.write(tmp_path / "s")
    reads(kind, path)
    with opened(kind, path, "a") as again:  # and the next writer cuts them off
        again.append(records(kind)[:1])
    assert (path / "0.loc").stat().st_size == len(contents["0.loc"] or b"") + (
        16 if kind == "dense" else 32
    )
    reads(kind, path, wanted=records(kind) + records(kind)[:1])


@every_kind
@every_version
def test_a_table_cut_short(kind: str, version: int, tmp_path: Path) -> None:
    store = forged(kind, version=version)
    store.files["0.loc"] = (store.contents()["0.loc"] or b"")[:-1]
    path = store.write(tmp_path / "s")
    refused(CorruptStoreError, "expected at least", kind, path, "0.loc")


# ---- 23 ----


@every_kind
@every_version
@pytest.mark.parametrize("size", [0, 1, 3, 4, 31, 32, -1])
def test_store_zr_cut_short(kind: str, version: int, size: int, tmp_path: Path) -> None:
    store = forged(kind, version=version)
    store.files["store.zr"] = store.typed.encode()[:size]
    path = store.write(tmp_path / "s")
    refused(CorruptStoreError, "typed header|identity length", kind, path, "store.zr")


@every_version
@pytest.mark.parametrize("kind,other", [("dense", "ragged"), ("ragged", "dense")])
def test_opened_as_the_other_kind(kind: str, other: str, version: int, tmp_path: Path) -> None:
    path = forged(kind, version=version).write(tmp_path / "s")
    match = f"expected a {other} store, the store is {kind}"
    refused(StoreMismatchError, match, other, path)
    with pytest.raises(ValueError, match=match):
        opened(other, path)


# ---- 35 and 36: the dictionary ----


@every_kind
@every_version
def test_a_missing_dictionary(kind: str, version: int, tmp_path: Path) -> None:
    store = forged(kind, "zstd_dict", version)
    store.dictionary = None
    path = store.write(tmp_path / "s")
    refused(CorruptStoreError, "the file is missing", kind, path, "dict.zr")


@every_kind
@every_version
@pytest.mark.parametrize("codec", ["raw", "zstd"])
def test_a_dictionary_that_nobody_needs(
    kind: str, version: int, codec: str, tmp_path: Path
) -> None:
    store = forged(kind, codec, version)
    store.dictionary = hostile.dictionary()
    path = store.write(tmp_path / "s")
    refused(CorruptStoreError, f"a {codec} store has no dictionary", kind, path, "dict.zr")


def wrong_dictionaries() -> dict[str, bytes]:
    """Each of the same id, if any, except the first."""
    right, other = hostile.dictionary(), hostile.dictionary(1)
    return {
        "another": other,
        "the same id": other[:4] + right[4:8] + other[8:],
        "garbage": bytes(range(256)) * 4,
        "garbage behind a head": right[:8] + b"\xff" * 500,
        "one bit": right[:-1] + bytes([right[-1] ^ 1]),
        "cut short": right[:-1],
        "a head": right[:8],
        "empty": b"",
        "no id": right[:4] + bytes(4) + right[8:],
    }


@every_kind
@pytest.mark.parametrize("which", wrong_dictionaries())
def test_a_wrong_dictionary(kind: str, which: str, tmp_path: Path) -> None:
    store = forged(kind, "zstd_dict")
    store.dictionary = wrong_dictionaries()[which]
    path = store.write(tmp_path / "s")
    match = "not the dictionary that the store was made with"
    refused(CorruptStoreError, match, kind, path, "dict.zr")


@every_kind
@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("which", ["garbage", "garbage behind a head", "a head", "empty", "no id"])
def test_a_dictionary_that_is_none(kind: str, version: int, which: str, tmp_path: Path) -> None:
    """Also where the checkpoint vouches for it, and where there is no checkpoint."""
    store = forged(kind, "zstd_dict", version)
    store.dictionary = wrong_dictionaries()[which]
    for slot in store.slots:
        slot.dict_crc = forge.crc32c(store.dictionary)
    path = store.write(tmp_path / "s")
    refused(CorruptStoreError, "dictionary", kind, path, "dict.zr")


@every_kind
@every_version
def test_a_dictionary_of_more_than_a_gigabyte(kind: str, version: int, tmp_path: Path) -> None:
    path = forged(kind, "zstd_dict", version).write(tmp_path / "s")
    os.truncate(path / "dict.zr", (1 << 30) + 1)
    refused(CorruptStoreError, "expected at most 1073741824 bytes", kind, path, "dict.zr")


def test_never_created_again(tmp_path: Path) -> None:
    """A store without store.zr, but with records: the remains are left alone."""
    for kind in KINDS:
        store: Forged = forged(kind)
        store.files["store.zr"] = None
        path = store.write(tmp_path / kind)
        with hostile.unchanged(path), pytest.raises(CorruptStoreError, match=str(path)):
            opened(kind, path, "create")
