"""Stores made and taken apart byte by byte, after FORMAT.md.

Nothing here calls loaderx: what the engine writes and what it refuses is held
against a second reading of the format. A ``Forged`` store is right as it is
made; a test changes what it wants to be wrong, and ``write`` computes the
checksums over that. Sections in comments are those of FORMAT.md.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

RAW, ZSTD, ZSTD_DICT = 0, 1, 2
CODECS = {"raw": RAW, "zstd": ZSTD, "zstd_dict": ZSTD_DICT}
DENSE, RAGGED = 1, 2
SLOT_STRIDE, REDO_START, REDO_RESERVE = 4096, 8192, 64 << 10
STORE_ID = 0x51A7E5ED
# tail_offset is a u32.
MAX_CHUNK = (1 << 32) - 1


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_CRC = _crc_table()


def crc32c(*pieces: bytes) -> int:
    """The CRC32C of the pieces laid end to end."""
    crc = 0xFFFFFFFF
    for piece in pieces:
        for byte in piece:
            crc = _CRC[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def sealed(data: bytes, *more: bytes) -> bytes:
    """Data, and the CRC of it and of what follows elsewhere."""
    return data + struct.pack("<I", crc32c(data, *more))


# ---- 1: store.zr ----


def pack(value: Any) -> bytes:
    """Msgpack in the smallest encodings, of what an identity is made of and some more."""
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        if value < 0:
            return struct.pack(">Bq", 0xD3, value)
        for limit, form in ((1 << 7, "B"), (1 << 8, "BB"), (1 << 16, "BH"), (1 << 32, "BI")):
            if value < limit:
                codes = {"BB": 0xCC, "BH": 0xCD, "BI": 0xCE}
                return struct.pack(">" + form, *([codes[form]] if form in codes else []), value)
        return struct.pack(">BQ", 0xCF, value)
    if isinstance(value, float):
        return struct.pack(">Bd", 0xCB, value)
    if isinstance(value, str):
        text = value.encode()
        return _head(len(text), (0xA0, 32), (0xD9, 0xDA, 0xDB)) + text
    if isinstance(value, dict):
        inside = b"".join(pack(key) + pack(v) for key, v in value.items())
        return _head(len(value), (0x80, 16), (None, 0xDE, 0xDF)) + inside
    return _head(len(value), (0x90, 16), (None, 0xDC, 0xDD)) + b"".join(map(pack, value))


def _head(n: int, short: tuple[int, int], codes: Sequence[int | None]) -> bytes:
    """A type byte and a length."""
    if n < short[1]:
        return bytes([short[0] | n])
    for code, form, limit in zip(codes, "BHI", (1 << 8, 1 << 16, 1 << 32)):
        if code is not None and n < limit:
            return struct.pack(f">B{form}", code, n)
    raise AssertionError(n)


@dataclass
class Typed:
    """store.zr. length None: that of the identity."""

    kind: int
    width: int
    identity: bytes
    version: int = 2
    flags: int = 0
    store_id: int = STORE_ID
    length: int | None = None

    def encode(self) -> bytes:
        length = len(self.identity) if self.length is None else self.length
        head = struct.pack(
            "<4sBBHQQ", b"LXST", self.version, self.kind, self.flags, self.width, length
        )
        if self.version == 1:
            return head + bytes(8) + self.identity
        return sealed(head + struct.pack("<I", self.store_id), self.identity) + self.identity

    @classmethod
    def decode(cls, data: bytes) -> Typed:
        magic, version, kind, flags, width, length = struct.unpack_from("<4sBBHQQ", data)
        store_id, crc = struct.unpack_from("<II", data, 24)
        identity = data[32:]
        assert magic == b"LXST" and length == len(identity)
        assert version == 1 or crc == crc32c(data[:28], identity)
        return cls(kind, width, identity, version, flags, store_id)


# ---- 2: meta.zr ----


@dataclass
class Meta:
    """The physical header."""

    codec: int
    tail_chunk: int
    tail_offset: int
    length: int
    epoch: int = 1
    version: int = 5
    magic: bytes = b"ZREC"

    def head(self) -> bytes:
        """Bytes 0 to 28."""
        return struct.pack(
            "<4sBBIIQIH", self.magic, self.version, self.codec, self.tail_chunk,
            self.tail_offset, self.length, self.epoch & 0xFFFFFFFF, self.epoch >> 32,
        )  # fmt: skip

    def encode(self) -> bytes:
        return self.head() + bytes(4) if self.version == 4 else sealed(self.head())

    @classmethod
    def decode(cls, data: bytes) -> Meta:
        magic, version, codec, chunk, offset, length, low, high = struct.unpack_from(
            "<4sBBIIQIH", data
        )
        return cls(codec, chunk, offset, length, low | high << 32, version, magic)


# ---- 3 to 5: tables, records, checksums ----


@dataclass
class Entry:
    """Where a physical record lies."""

    offset: int
    phys: int
    logic: int
    chunk: int = 0

    def encode(self) -> bytes:
        return struct.pack("<IIII", self.offset, self.phys, self.logic, self.chunk)


def entries_of(table: bytes) -> list[Entry]:
    """The entries of an N.loc."""
    return [Entry(*row) for row in struct.iter_unpack("<IIII", table[: len(table) & ~15])]


def record_sum(phys: int, logic: int, stored: bytes) -> int:
    """The checksum of a record (5)."""
    return crc32c(struct.pack("<II", phys, logic), stored)


def shape_record(shape: Sequence[int]) -> bytes:
    """The shape of a ragged record, as it is before the codec."""
    return struct.pack(f"<{1 + len(shape)}Q", len(shape), *shape)


def frame(
    content: bytes,
    *,
    claimed: int | None = -1,
    dict_id: int = 0,
    window: int | None = None,
    blocks: Iterable[bytes] | None = None,
) -> bytes:
    """A zstd frame of one raw block (RFC 8878).

    Args:
        content: what it holds.
        claimed: the content size its header gives; None: it gives none.
        window: a window descriptor; None: a single segment, which has none.
        blocks: encoded blocks instead of the one of content.
    """
    size = len(content) if claimed == -1 else claimed
    if size is None and window is None:
        window = 0
    single = window is None
    descriptor = (3 if dict_id else 0) | (32 if single else 0) | (0 if size is None else 3 << 6)
    head = struct.pack("<IB", 0xFD2FB528, descriptor)
    head += b"" if window is None else bytes([window])
    head += struct.pack("<I", dict_id) if dict_id else b""
    head += b"" if size is None else struct.pack("<Q", size)
    return head + b"".join([block(content, last=True)] if blocks is None else blocks)


def block(content: bytes, *, last: bool, times: int = 0) -> bytes:
    """A raw block; with times, one byte repeated."""
    size, kind = (times, 1) if times else (len(content), 0)
    return struct.pack("<I", int(last) | kind << 1 | size << 3)[:3] + content


# ---- 7: journal.zr ----


@dataclass
class Slot:
    """A checkpoint."""

    meta: Meta
    store_id: int = STORE_ID
    per_chunk: int = 0
    dict_crc: int = 0

    def encode(self) -> bytes:
        return sealed(
            struct.pack("<4sI", b"ZCKP", self.store_id)
            + self.meta.head()
            + struct.pack("<III", int(self.per_chunk > 0), self.per_chunk, self.dict_crc)
            + bytes(12)
        )

    @classmethod
    def decode(cls, data: bytes) -> Slot | None:
        """The slot at the start of data, or None if it is not valid."""
        if data[:4] != b"ZCKP" or data[60:64] != struct.pack("<I", crc32c(data[:60])):
            return None
        flags, per_chunk, dict_crc = struct.unpack_from("<III", data, 36)
        assert flags == int(per_chunk > 0)
        return cls(
            Meta.decode(data[8:36]), struct.unpack_from("<I", data, 4)[0], per_chunk, dict_crc
        )


@dataclass
class RedoEntry:
    """The after-image of a table entry; image: the payload that follows."""

    index: int
    entry: Entry
    sum: int
    image: bytes | None = None


@dataclass
class Redo:
    """A redo record. count and image_bytes None: as the entries are."""

    meta: Meta
    entries: list[RedoEntry]
    sequence: int = 0
    store_id: int = STORE_ID
    count: int | None = None
    image_bytes: int | None = None

    def encode(self) -> bytes:
        images = b"".join(e.image or b"" for e in self.entries)
        table = b"".join(
            struct.pack("<Q", e.index)
            + e.entry.encode()
            + struct.pack("<II", e.sum, int(e.image is not None))
            for e in self.entries
        )
        count = len(self.entries) if self.count is None else self.count
        size = len(images) if self.image_bytes is None else self.image_bytes
        head = struct.pack("<4sI", b"ZRDO", self.store_id) + self.meta.head()
        head += struct.pack("<IIIQI", self.sequence, count, 0, size, 0)
        return sealed(head, table) + table + images


def slots_of(journal: bytes) -> list[Slot]:
    """The valid slots, the newest last."""
    found = [Slot.decode(journal[at : at + 64]) for at in (0, SLOT_STRIDE)]
    return sorted((slot for slot in found if slot), key=lambda slot: slot.meta.epoch)


# ---- a whole store ----


@dataclass
class Forged:
    """The parts of a store of one chunk, each as a test wants it.

    ``sums`` None: the right ones for what the entries say. ``slots`` are
    written to the place of their epoch. ``files`` overrides files by name:
    bytes, or None for a file that is missing.
    """

    typed: Typed
    meta: Meta
    entries: list[Entry]
    chunk: bytearray
    slots: list[Slot]
    redo: list[Redo] = field(default_factory=list)
    sums: list[int] | None = None
    dictionary: bytes | None = None
    files: dict[str, bytes | None] = field(default_factory=dict)

    @property
    def ragged(self) -> bool:
        return self.typed.kind == RAGGED

    def both(self, **changes: Any) -> Forged:
        """Change the header in meta.zr and in the slot alike, as a commit does."""
        self.meta = replace(self.meta, **changes)
        self.slots = [replace(slot, meta=replace(slot.meta, **changes)) for slot in self.slots]
        return self

    def stored(self, i: int) -> bytes:
        """The bytes that entry i points to, as far as they exist."""
        e = self.entries[i]
        return bytes(self.chunk[e.offset : e.offset + e.phys])

    def put(self, i: int, stored: bytes, logic: int | None = None) -> None:
        """Store other bytes for physical record i, behind all that is there."""
        old = self.entries[i]
        self.entries[i] = Entry(len(self.chunk), len(stored), old.logic if logic is None else logic)
        self.chunk += stored
        self.both(tail_offset=len(self.chunk))

    def journal(self) -> bytes:
        data = bytearray(REDO_START + REDO_RESERVE)
        for slot in self.slots:
            at = slot.meta.epoch % 2 * SLOT_STRIDE
            data[at : at + 64] = slot.encode()
        at = REDO_START
        for record in self.redo:
            raw = record.encode()
            data[at : at + len(raw)] = raw
            at += (len(raw) + 63) & ~63
        return bytes(data)

    def contents(self) -> dict[str, bytes | None]:
        """The files."""
        found: dict[str, bytes | None] = {
            "store.zr": self.typed.encode(),
            "meta.zr": self.meta.encode(),
            "0.loc": b"".join(e.encode() for e in self.entries),
            "0.chunk": bytes(self.chunk),
            "dict.zr": self.dictionary,
        }
        if self.meta.version != 4:
            sums = self.sums
            if sums is None:
                rows = enumerate(self.entries)
                sums = [record_sum(e.phys, e.logic, self.stored(i)) for i, e in rows]
            found["0.sum"] = b"".join(struct.pack("<I", s) for s in sums)
            found["journal.zr"] = self.journal()
        return {**found, **self.files}

    def write(self, path: Path) -> Path:
        path.mkdir(parents=True)
        for name, data in self.contents().items():
            if data is not None:
                (path / name).write_bytes(data)
        return path


def forge(
    kind: str,
    codec: str,
    records: Sequence[Any],
    *,
    version: int = 5,
    dictionary: bytes | None = None,
    arithmetic: bool = False,
) -> Forged:
    """A right store of arrays of one dtype (and, if kind is "dense", one shape)."""
    first = records[0]
    dict_id = (
        struct.unpack_from("<I", dictionary, 4)[0] if dictionary and codec == "zstd_dict" else 0
    )
    chunk, entries = bytearray(), []
    for record in records:
        parts = [record.tobytes()] + ([shape_record(record.shape)] if kind == "ragged" else [])
        for part in parts:
            stored = part if codec == "raw" else frame(part, dict_id=dict_id)
            entries.append(Entry(len(chunk), len(stored), len(part)))
            chunk += stored
    identity = {"dtype": first.dtype.str}
    if kind == "dense":
        identity["item_shape"] = list(first.shape)
    typed = Typed(
        DENSE if kind == "dense" else RAGGED,
        first.nbytes if kind == "dense" else 0,
        pack(identity),
        2 if version == 5 else 1,
        store_id=STORE_ID if version == 5 else 0,
    )
    meta = Meta(CODECS[codec], 0, len(chunk), len(entries), 1 if version == 5 else 0, version)
    slot = Slot(
        meta,
        per_chunk=MAX_CHUNK // first.nbytes if arithmetic else 0,
        dict_crc=crc32c(dictionary) if dict_id and dictionary else 0,
    )
    slots = [slot] if version == 5 else []
    return Forged(typed, meta, entries, chunk, slots, dictionary=dictionary if dict_id else None)
