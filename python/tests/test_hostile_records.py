"""Hostile records: table entries, shapes and frames that no append can have written.

Each is CorruptRecordError for that record, in every way to read it, and leaves
the others alone. The numbers are the rows of the table of hostile inputs.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import forge
import hostile
import numpy as np
import pytest
from forge import Forged
from hostile import COUNT, KINDS, MODES, forged, opened, reads, records, refuses_records
from support import same, same_list

from loaderx import _native
from loaderx.errors import CorruptRecordError, CorruptStoreError
from loaderx.zrecord import DenseStore, RaggedStore

_guard = hostile.guard

BAD = 2  # the record that is damaged in most of these
COMPRESSED = ["zstd", "zstd_dict"]

every_kind = pytest.mark.parametrize("kind", KINDS)
every_codec = pytest.mark.parametrize("codec", hostile.ALL_CODECS)
every_version = pytest.mark.parametrize("version", [4, 5])


def at(store: Forged, part: str = "payload") -> int:
    """The physical index of a part of the bad record."""
    return 2 * BAD + (part == "shape") if store.ragged else BAD


def parts(kind: str) -> list[str]:
    """The physical records of a record."""
    return ["payload", "shape"] if kind == "ragged" else ["payload"]


# ---- 16 to 21: table entries ----

ENTRIES: dict[str, tuple[dict[str, Any], str]] = {
    # 16
    "wraps": ({"offset": (1 << 32) - 8, "phys": 24}, "reach past the end of the store's data"),
    "wraps to 0": ({"offset": (1 << 32) - 24, "phys": 24}, "reach past the end"),
    "all ones": ({"offset": (1 << 32) - 1, "phys": (1 << 32) - 1}, "reach past the end"),
    # 17
    "behind the tail": ({"offset": 1000}, "reach past the end of the store's data"),
    # 18
    "chunk 1": ({"chunk": 1}, "expected a chunk up to 0, got 1"),
    "chunk of all ones": ({"chunk": (1 << 32) - 1}, "expected a chunk up to 0, got 4294967295"),
    # 19
    "phys 0": ({"phys": 0}, "a record of zero bytes"),
    "logic 0": ({"logic": 0}, "a record of zero bytes|a shape of 0 to 64 dimensions"),
    "both 0": ({"phys": 0, "logic": 0}, "a record of zero bytes|a shape of 0 to 64 dimensions"),
    # 20
    "logic of all ones": ({"logic": (1 << 32) - 1}, "expected at most|as many stored|bytes, got"),
    "logic 2^31 + 1": ({"logic": (1 << 31) + 1}, "expected at most|as many stored|bytes, got"),
    "logic beyond zstd": ({"logic": 1 << 23}, "cannot come out of|as many stored|bytes, got"),
}


@every_kind
@every_codec
@every_version
@pytest.mark.parametrize("entry", ENTRIES)
def test_an_impossible_entry(
    kind: str, codec: str, version: int, entry: str, tmp_path: Path
) -> None:
    change, match = ENTRIES[entry]
    for part in parts(kind):
        store = forged(kind, codec, version)
        i = at(store, part)
        store.entries[i] = replace(store.entries[i], **change)
        refuses_records(match, kind, store.write(tmp_path / part), [BAD])


@every_kind
@every_codec
@every_version
def test_a_record_across_the_tail(kind: str, codec: str, version: int, tmp_path: Path) -> None:
    """Row 17. The last record, whose bytes it claims too, is none the worse."""
    store = forged(kind, codec, version)
    i = at(store)
    store.entries[i].offset = len(store.chunk) - store.entries[i].phys + 1
    refuses_records("reach past the end", kind, store.write(tmp_path / "s"), [BAD])


@every_kind
@every_version
def test_a_raw_record_whose_lengths_differ(kind: str, version: int, tmp_path: Path) -> None:
    """Row 21."""
    for part in parts(kind):
        for field in ("phys", "logic"):
            store = forged(kind, "raw", version)
            i = at(store, part)
            length = store.entries[i].logic // 2
            store.entries[i] = replace(store.entries[i], **{field: length})
            path = store.write(tmp_path / (part + field))
            refuses_records("zero bytes|as many stored|has 8 to", kind, path, [BAD])


@every_codec
@every_version
@pytest.mark.parametrize("size", [23, 25, 1, 48])
def test_a_dense_record_of_another_width(
    codec: str, version: int, size: int, tmp_path: Path
) -> None:
    """Row 21, whole and consistent otherwise."""
    store = forged("dense", codec, version)
    content = bytes(range(1, size + 1))
    store.put(BAD, stored_as(store, content), size)
    path = store.write(tmp_path / "s")
    refuses_records(f"expected a record of 24 bytes, got {size}", "dense", path, [BAD])


def stored_as(store: Forged, content: bytes, **how: Any) -> bytes:
    """Bytes as the store's codec keeps them."""
    if store.meta.codec == forge.RAW:
        return content
    return forge.frame(content, dict_id=dict_id(store), **how)


def dict_id(store: Forged) -> int:
    return int.from_bytes(store.dictionary[4:8], "little") if store.dictionary else 0


@pytest.mark.parametrize("codec", ["raw", "zstd"])
@pytest.mark.parametrize("size", [20, 48, 500])
def test_nothing_is_written_outside_the_destination(codec: str, size: int, tmp_path: Path) -> None:
    """Rows 21 and 32, seen from C: canaries around it, and neighbours that stay whole."""
    wanted, store = records("dense"), forged("dense", codec)
    if codec == "raw":
        store.put(BAD, b"\xee" * size, size)
    else:
        store.put(BAD, holding(0, forge.block(b"\xee" * size, last=True)))
    index = np.array([0, BAD, 1, BAD, 3], np.int64)
    room = np.full(64 + 24 * len(index) + 64, 0xA5, np.uint8)
    with opened("dense", store.write(tmp_path / "s")) as again:
        ffi = _native.ffi
        target = ffi.cast("char *", ffi.from_buffer(room)) + 64
        status = _native.lib.lx_dense_gather(
            again._handle, ffi.from_buffer(index), len(index), target, 120, 0, ffi.NULL
        )
    assert status == _native.lib.LX_CORRUPT_RECORD
    assert (room[:64] == 0xA5).all() and (room[-64:] == 0xA5).all()
    for k, i in enumerate(index):
        slot = room[64 + 24 * k : 88 + 24 * k]
        if i != BAD:
            assert (slot == 0xA5).all() or slot.tobytes() == wanted[i].tobytes()


# ---- 19, where empty records are taken ----


@every_codec
def test_an_empty_record_where_they_are_taken(codec: str, tmp_path: Path) -> None:
    store = forged("ragged", codec)
    store.typed.flags = 1
    store.put(2 * BAD, stored_as(store, b""), 0)
    store.put(2 * BAD + 1, stored_as(store, forge.shape_record([0, 7])), 24)
    path = store.write(tmp_path / "s")
    wanted = records("ragged")
    wanted[BAD] = np.empty((0, 7), np.int32)
    reads("ragged", path, wanted=wanted)
    with opened("ragged", path) as again:
        assert again.verify().ok and again.allow_empty


@every_codec
def test_a_shape_of_no_bytes_is_never_taken(codec: str, tmp_path: Path) -> None:
    store = forged("ragged", codec)
    store.typed.flags = 1
    store.put(2 * BAD + 1, stored_as(store, b""), 0)
    refuses_records("a shape of 0 to 64 dimensions", "ragged", store.write(tmp_path / "s"), [BAD])


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_frame_of_no_bytes_is_never_taken(codec: str, tmp_path: Path) -> None:
    store = forged("ragged", codec)
    store.typed.flags = 1
    store.entries[2 * BAD].phys = 0
    refuses_records("zero bytes", "ragged", store.write(tmp_path / "s"), [BAD])


# ---- 22: overlaps ----


def read_but_not_compacted(kind: str, path: Path, wanted: list[Any]) -> None:
    """Records 0 and 1 share bytes."""
    reads(kind, path, wanted=wanted)
    with opened(kind, path, "a") as again:
        assert [found.index for found in again.verify().bad] == [0, 1]
        with pytest.raises(CorruptRecordError, match="also those of another record"):
            again.compact()
        assert same_list(list(again), wanted)
    reads(kind, path, wanted=wanted)


@every_kind
@every_codec
@every_version
def test_two_records_of_the_same_bytes(kind: str, codec: str, version: int, tmp_path: Path) -> None:
    store, wanted = forged(kind, codec, version), records(kind)
    store.entries[1 if kind == "dense" else 2] = replace(store.entries[0])
    wanted[1] = wanted[0].reshape(wanted[1].shape)
    read_but_not_compacted(kind, store.write(tmp_path / "s"), wanted)


@every_kind
@every_version
def test_two_records_that_overlap(kind: str, version: int, tmp_path: Path) -> None:
    """Raw ones: of two frames that overlap one does not decode."""
    store, wanted = forged(kind, version=version), records(kind)
    store.put(0, b"".join(r.tobytes() for r in wanted)[:28], 24)
    first = store.entries[0].offset
    store.entries[0] = forge.Entry(first, 24, 24)
    store.entries[1 if kind == "dense" else 2] = forge.Entry(first + 4, 24, 24)
    for i, record in enumerate(wanted[:2]):
        content = bytes(store.chunk[first + 4 * i : first + 4 * i + 24])
        wanted[i] = np.frombuffer(content, np.int32).reshape(record.shape)
    read_but_not_compacted(kind, store.write(tmp_path / "s"), wanted)


# ---- 29: shapes ----

SHAPES: dict[str, bytes] = {
    "too large": forge.shape_record([5]),
    "zero": forge.shape_record([0]),
    "says 2, has 1": forge.shape_record([2, 1])[:16],
    "says 1, has 2": b"\1" + forge.shape_record([2, 1])[1:],
    "says 0, has 1": b"\0" + forge.shape_record([1])[1:],
    "says all ones": b"\xff" * 8 + forge.shape_record([1])[8:],
    "overflows to 0": forge.shape_record([1 << 32, 1 << 32]),
    "overflows to 1": forge.shape_record([(1 << 63) + 1, (1 << 63) + 1]),
    "overflows in bytes": forge.shape_record([(1 << 62) + 1]),
    "overflows and is 0": forge.shape_record([1 << 63, 1 << 63, 0]),
    "negative": forge.shape_record([(1 << 64) - 1]),
    "two negative": forge.shape_record([(1 << 64) - 1, (1 << 64) - 1]),
    "65 dimensions": forge.shape_record([1] * 65),
    "8000 dimensions": forge.shape_record([1] * 8000),
    "9 bytes": forge.shape_record([1])[:9],
    "7 bytes": forge.shape_record([])[:7],
}


@every_version
@every_codec
@pytest.mark.parametrize("shape", SHAPES)
def test_a_wrong_shape(codec: str, version: int, shape: str, tmp_path: Path) -> None:
    """Of a record of 4 bytes, one int32."""
    store, raw = forged("ragged", codec, version), SHAPES[shape]
    store.put(2 * BAD + 1, stored_as(store, raw), len(raw))
    match = "a shape of 0 to 64|by its size, it says|does not make the 4 bytes"
    path = store.write(tmp_path / "s")
    refuses_records(match, "ragged", path, [BAD])


@every_codec
@pytest.mark.parametrize("bytes_", [1, 2, 3, 5])
def test_a_payload_that_is_no_multiple_of_the_element(
    codec: str, bytes_: int, tmp_path: Path
) -> None:
    store = forged("ragged", codec)
    store.put(2 * BAD, stored_as(store, b"x" * bytes_), bytes_)
    path = store.write(tmp_path / "s")
    refuses_records(f"does not make the {bytes_} bytes", "ragged", path, [BAD])


def test_sixty_four_dimensions(tmp_path: Path) -> None:
    """The most that a shape can have, more than an older NumPy takes."""
    store = forged("ragged")
    raw = forge.shape_record([1] * 64)
    store.put(2 * BAD + 1, raw, len(raw))
    path = store.write(tmp_path / "s")
    wanted = records("ragged")
    try:
        wanted[BAD] = wanted[BAD].reshape((1,) * 64)
    except ValueError:
        with opened("ragged", path) as again, pytest.raises(ValueError, match="dimension"):
            again[BAD]
        return
    reads("ragged", path, wanted=wanted)


# ---- 30 to 34: frames ----

CONTENT = records("dense")[BAD].tobytes()
Maker = Callable[[int], bytes]


MANY = [forge.block(b"x", last=False, times=9)] * 9


def holding(d: int, *blocks: bytes) -> bytes:
    """A frame that claims 24 bytes and holds some blocks."""
    return forge.frame(b"", claimed=24, dict_id=d, blocks=blocks)


FRAMES: dict[str, tuple[Maker, str]] = {
    # 30
    "size 23": (lambda d: forge.frame(CONTENT, claimed=23, dict_id=d), "got one of 23"),
    "size 25": (lambda d: forge.frame(CONTENT, claimed=25, dict_id=d), "got one of 25"),
    "size 0": (lambda d: forge.frame(CONTENT, claimed=0, dict_id=d), "got one of 0"),
    "size 2^63": (lambda d: forge.frame(CONTENT, claimed=1 << 63, dict_id=d), f"of {1 << 63}"),
    "size -3": (lambda d: forge.frame(CONTENT, claimed=(1 << 64) - 3, dict_id=d), "got one of"),
    "no size": (lambda d: forge.frame(CONTENT, claimed=None, dict_id=d), "that does not say"),
    # 31: exponent 31, mantissa 7 are 3.75 TiB
    "window": (lambda d: forge.frame(CONTENT, window=0xFF, dict_id=d), "zstd|damaged"),
    "window of 4 GiB": (lambda d: forge.frame(CONTENT, window=0xB0, dict_id=d), "zstd"),
    # 32
    "expands": (lambda d: holding(d, forge.block(b"x", last=True, times=1 << 17)), "zstd"),
    "expands by 1": (lambda d: holding(d, forge.block(CONTENT + b"x", last=True)), "zstd"),
    "expands in many blocks": (lambda d: holding(d, *MANY, forge.block(b"x", last=True)), "zstd"),
    "is too small": (lambda d: holding(d, forge.block(b"xx", last=True)), "zstd"),
    # 33
    "two frames": (lambda d: forge.frame(CONTENT, dict_id=d) * 2, "expected one frame"),
    "an empty frame behind": (
        lambda d: forge.frame(CONTENT, dict_id=d) + forge.frame(b"", dict_id=d),
        "expected one frame",
    ),
    "a skippable frame behind": (
        lambda d: forge.frame(CONTENT, dict_id=d) + b"\x50\x2a\x4d\x18\4\0\0\0abcd",
        "expected one frame",
    ),
    "a skippable frame before": (
        lambda d: b"\x50\x2a\x4d\x18\4\0\0\0abcd" + forge.frame(CONTENT, dict_id=d),
        "expected a frame with magic",
    ),
    "only a skippable frame": (lambda d: b"\x50\x2a\x4d\x18\4\0\0\0abcd", "with magic"),
    "trailing bytes": (lambda d: forge.frame(CONTENT, dict_id=d) + b"\0", "expected one frame"),
    # 34
    "cut short": (lambda d: forge.frame(CONTENT, dict_id=d)[:-1], "zstd"),
    "cut in its header": (lambda d: forge.frame(CONTENT, dict_id=d)[:6], "zstd"),
    "its magic": (lambda d: forge.frame(CONTENT, dict_id=d)[:4], "zstd"),
    "one byte": (lambda d: b"\x28", "expected a frame with magic"),
    "no last block": (
        lambda d: holding(d, forge.block(CONTENT, last=False)),
        "zstd",
    ),
    "a reserved block": (
        lambda d: holding(d, b"\xc7\0\0" + CONTENT),
        "zstd",
    ),
    "a reserved bit": (
        lambda d: b"\x28\xb5\x2f\xfd" + bytes([forge.frame(CONTENT, dict_id=d)[4] | 8])
        + forge.frame(CONTENT, dict_id=d)[5:],
        "zstd",
    ),
    "no frame": (lambda d: CONTENT, "expected a frame with magic"),
    # 36: a dictionary that is not the store's
    "another dictionary": (lambda d: forge.frame(CONTENT, dict_id=d ^ 0x55), "dictionary"),
}  # fmt: skip


@every_version
@pytest.mark.parametrize("codec", COMPRESSED)
@pytest.mark.parametrize("which", FRAMES)
def test_a_wrong_frame(codec: str, version: int, which: str, tmp_path: Path) -> None:
    make, match = FRAMES[which]
    store = forged("dense", codec, version)
    store.put(BAD, make(dict_id(store)))
    refuses_records(match, "dense", store.write(tmp_path / "s"), [BAD])


@pytest.mark.parametrize("codec", COMPRESSED)
@pytest.mark.parametrize("which", ["two frames", "cut short", "no size", "expands", "window"])
def test_a_wrong_frame_of_a_shape(codec: str, which: str, tmp_path: Path) -> None:
    """A shape of two dimensions has 24 bytes too."""
    make, match = FRAMES[which]
    store = forged("ragged", codec)
    store.put(3, make(dict_id(store)))
    refuses_records(match, "ragged", store.write(tmp_path / "s"), [1])


@every_kind
@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_content_checksum_that_is_wrong(kind: str, codec: str, tmp_path: Path) -> None:
    """Row 34, of frames that loaderx wrote: their last four bytes are their checksum."""
    path, wanted = tmp_path / "s", records(kind)
    trained = hostile.dictionary() if codec == "zstd_dict" else None
    make: Any = DenseStore if kind == "dense" else RaggedStore
    shape = [hostile.ITEM] if kind == "dense" else []
    with make(path, np.int32, *shape, codec=codec, dict_bytes=trained) as store:
        store.append(wanted)
    entry = forge.entries_of((path / "0.loc").read_bytes())[BAD if kind == "dense" else 2 * BAD]
    chunk = bytearray((path / "0.chunk").read_bytes())
    chunk[entry.offset + entry.phys - 1] ^= 0x80
    (path / "0.chunk").write_bytes(chunk)
    refuses_records("checksum", kind, path, [BAD])


# ---- damage that only verify sees ----


@every_kind
@pytest.mark.parametrize("arithmetic", [False, True])
def test_a_flipped_bit_of_a_raw_record_is_found_by_verify(
    kind: str, arithmetic: bool, tmp_path: Path
) -> None:
    """Raw bytes have nothing to be read against but their sum."""
    store = forged(kind, arithmetic=arithmetic and kind == "dense")
    i = at(store)
    store.sums = [
        forge.record_sum(e.phys, e.logic, store.stored(k)) for k, e in enumerate(store.entries)
    ]
    store.chunk[store.entries[i].offset] ^= 1
    path = store.write(tmp_path / "s")
    for mode in MODES:
        with hostile.unchanged(path), opened(kind, path, mode) as again:
            assert not same(again[BAD], records(kind)[BAD])
            assert [found.index for found in again.verify().bad] == [BAD]


@every_kind
@every_codec
def test_a_wrong_sum_is_found_by_verify(kind: str, codec: str, tmp_path: Path) -> None:
    for part in parts(kind):
        store = forged(kind, codec)
        store.sums = [
            forge.record_sum(e.phys, e.logic, store.stored(k)) for k, e in enumerate(store.entries)
        ]
        store.sums[at(store, part)] ^= 1 << 31
        path = store.write(tmp_path / part)
        reads(kind, path)
        for mode in MODES:
            with hostile.unchanged(path), opened(kind, path, mode) as again:
                assert [found.index for found in again.verify().bad] == [BAD]


@pytest.mark.parametrize("change", [{"offset": 0}, {"chunk": 7}, {"phys": 1}, {"logic": 1}])
def test_a_table_that_differs_from_the_formula(change: dict[str, int], tmp_path: Path) -> None:
    """Arithmetic stores are read without their table where they are mapped; verify reads it."""
    store = forged("dense", arithmetic=True)
    store.entries[BAD] = replace(store.entries[BAD], **change)
    path = store.write(tmp_path / "s")
    with hostile.unchanged(path), opened("dense", path) as again:
        assert len(again) == COUNT
        assert [found.index for found in again.verify().bad][-1:] == [BAD]
        try:
            found = again[BAD]
        except CorruptRecordError:
            pass
        else:
            by_position = "LOADERX_NO_MMAP" in os.environ
            assert by_position or same(found, records("dense")[BAD])


@pytest.mark.parametrize("kind", KINDS)
def test_an_upgrade_of_records_that_share_bytes(kind: str, tmp_path: Path) -> None:
    """Reading them works; the upgrade, which reads them all, ends when they cannot be right."""
    store = forged(kind, version=4)
    store.entries *= 3
    path = store.both(length=len(store.entries)).write(tmp_path / "s")
    wanted = records(kind) * 3
    for _ in range(2):
        reads(kind, path, ["r"], wanted)
        with opened(kind, path, "a") as found:
            with pytest.raises(CorruptStoreError, match="some share their bytes"):
                found.append(wanted[:1])
