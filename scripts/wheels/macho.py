"""The last step for macOS: a dynamic library that exports what is asked for, stripped.

zig's linker takes no list of exports for macOS and removes no symbols, so its last
segment, __LINKEDIT, is written again: the tree of exports and the table of symbols
with the names wanted, the tables that point into it with their new indices, all that
was between them unchanged, and a signature if there was one.

Whatever is not expected in the file fails the build, so that a new version of the
linker cannot break the library unseen.
"""

from __future__ import annotations

import struct
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from wheels import codesign, exporttrie

X86_64, ARM64 = 0x01000007, 0x0100000C
SIGNATURE_ALIGN = 16
PAGE = {X86_64: 0x1000, ARM64: 0x4000}
DYLIB = 6
SEGMENT = 0x19
SYMTAB, DYSYMTAB, SIGNATURE = 0x2, 0xB, 0x1D
N_STAB, N_PEXT, N_TYPE, N_EXT = 0xE0, 0x10, 0x0E, 0x01
INDIRECT_LOCAL, INDIRECT_ABSOLUTE = 0x80000000, 0x40000000

# The parts of __LINKEDIT: by the load command that places each, its name, where in the
# command its offset and its size stand, and the bytes that a size of 1 means.
PARTS = {
    0x80000022: [  # LC_DYLD_INFO_ONLY
        ("rebase", 8, 12, 1),
        ("bind", 16, 20, 1),
        ("weak bind", 24, 28, 1),
        ("lazy bind", 32, 36, 1),
        ("exports", 40, 44, 1),
    ],
    0x80000033: [("exports", 8, 12, 1)],  # LC_DYLD_EXPORTS_TRIE
    0x80000034: [("chained fixups", 8, 12, 1)],
    0x26: [("function starts", 8, 12, 1)],
    0x29: [("data in code", 8, 12, 1)],
    SYMTAB: [("symbols", 8, 12, 16), ("strings", 16, 20, 1)],
    DYSYMTAB: [("indirect symbols", 56, 60, 4)],
    SIGNATURE: [("signature", 8, 12, 1)],
}
# Commands that place nothing in __LINKEDIT: of libraries, the linker, versions, the id.
OTHERS = {0xC, 0xD, 0xE, 0x1B, 0x2A, 0x32, 0x80000018, 0x8000001C}

_SYMBOL = struct.Struct("<IBBHQ")
_SEGMENT = struct.Struct("<16s4Q")


class MachOError(ValueError):
    """The file is not what is expected of the linker."""


@dataclass
class Part:
    """One of the tables in __LINKEDIT, and the places in the file that say where it is."""

    name: str
    data: bytes
    offset: int
    offset_at: int
    size_at: int
    unit: int


@dataclass
class Symbol:
    """A symbol with its name, and the other fields as they are in the file."""

    name: bytes
    kind: int
    section: int
    description: int
    value: int

    @property
    def undefined(self) -> bool:
        """Whether it is taken from another library."""
        return self.kind & (N_STAB | N_TYPE) == 0 and bool(self.kind & N_EXT)

    @property
    def exported(self) -> bool:
        """Whether another library can take it from here."""
        outside = self.kind & N_EXT and not self.kind & (N_STAB | N_PEXT)
        return bool(outside) and bool(self.kind & N_TYPE)


def padded(data: bytes | bytearray) -> bytes:
    """Return a table to which the next one can be joined: dyld wants them at multiples of 8."""
    return bytes(data) + bytes(-len(data) % 8)


class Library:
    """The whole file, in memory."""

    def __init__(self, data: bytes, name: str) -> None:
        self.name = name
        self.bytes = bytearray(data)
        if data[:4] != b"\xcf\xfa\xed\xfe" or len(data) < 32:
            raise MachOError(f"{name}: expected a 64-bit Mach-O file, got {data[:4].hex()}")
        self.machine, _, kind, count, _ = struct.unpack_from("<5I", data, 4)
        if self.machine not in PAGE or kind != DYLIB:
            raise MachOError(
                f"{name}: expected a dynamic library for x86-64 or arm64, got one of kind {kind} "
                f"for {self.machine:#x}"
            )
        self.parts: dict[str, Part] = {}
        self.commands: dict[int, int] = {}
        self.segments: dict[bytes, int] = {}
        at = 32
        for _ in range(count):
            at += self._command(at)
        self.start, length = self._segment(b"__LINKEDIT")
        if self.start + length != len(data):
            raise MachOError(f"{name}: expected __LINKEDIT at the end of the {len(data)} bytes")
        for needed in ("exports", "symbols", "strings", "indirect symbols"):
            if needed not in self.parts:
                raise MachOError(f"{name}: expected {needed}, got only {sorted(self.parts)}")
        self._check_parts()
        self.symbols = self._symbols()

    def _command(self, at: int) -> int:
        """Take what a load command says and return its size."""
        command, size = struct.unpack_from("<II", self.bytes, at)
        if command == SEGMENT:
            self.segments[bytes(self.bytes[at + 8 : at + 24]).rstrip(b"\0")] = at
        elif command not in PARTS and command not in OTHERS:
            raise MachOError(f"{self.name}: load command {command:#x} at {at:#x} is not known")
        self.commands[command] = at
        for name, offset_at, size_at, unit in PARTS.get(command, ()):
            (offset,) = struct.unpack_from("<I", self.bytes, at + offset_at)
            (count,) = struct.unpack_from("<I", self.bytes, at + size_at)
            data = bytes(self.bytes[offset : offset + count * unit])
            if len(data) != count * unit or name in self.parts:
                raise MachOError(f"{self.name}: expected {name} once, and whole, at {offset:#x}")
            self.parts[name] = Part(name, data, offset, at + offset_at, at + size_at, unit)
        return int(size)

    def _segment(self, name: bytes) -> tuple[int, int]:
        """Return the offset and the size of a segment in the file."""
        if name not in self.segments:
            raise MachOError(f"{self.name}: expected a segment {name!r}")
        _, _, _, offset, size = _SEGMENT.unpack_from(self.bytes, self.segments[name] + 8)
        return int(offset), int(size)

    def _check_parts(self) -> None:
        """Refuse tables that overlap, and bytes in __LINKEDIT that are in no table."""
        at = self.start
        for part in sorted(self.parts.values(), key=lambda part: part.offset):
            if part.data and (part.offset < at or any(self.bytes[at : part.offset])):
                raise MachOError(f"{self.name}: expected {part.name} at {at:#x} or after zeros")
            at = max(at, part.offset + len(part.data))
        dysymtab = self.commands[DYSYMTAB]
        others = self.bytes[dysymtab + 32 : dysymtab + 56] + self.bytes[dysymtab + 64 :][:16]
        if any(self.bytes[at:]) or any(others):
            raise MachOError(f"{self.name}: expected no other tables in __LINKEDIT")

    def _symbols(self) -> list[Symbol]:
        strings = self.parts["strings"].data
        found = []
        for start, *rest in _SYMBOL.iter_unpack(self.parts["symbols"].data):
            found.append(Symbol(strings[start : strings.index(0, start)], *rest))
        return found

    def keep(self, exports: AbstractSet[bytes]) -> None:
        """Leave of the symbols these exports and what is taken from other libraries."""
        tree = exporttrie.read(self.parts["exports"].data)
        self._check_names(exports, set(tree))
        self.parts["exports"].data = padded(exporttrie.build({n: tree[n] for n in exports}))
        # The order that LC_DYSYMTAB speaks of: local ones, defined ones, undefined ones.
        defined = [s for s in self.symbols if s.exported and s.name in exports]
        undefined = [s for s in self.symbols if s.undefined]
        self._redirect([*defined, *undefined])
        self.symbols = [*defined, *undefined]
        self._pack_symbols()
        counts = (0, 0, 0, len(defined), len(defined), len(undefined))
        struct.pack_into("<6I", self.bytes, self.commands[DYSYMTAB] + 8, *counts)

    def _check_names(self, exports: AbstractSet[bytes], tree: AbstractSet[bytes]) -> None:
        """Refuse to export what is not there, and to hide what dyld looks for by its name."""
        defined = {s.name for s in self.symbols if s.exported}
        for where, names in (("tree of exports", tree), ("table of symbols", defined)):
            if lack := sorted(exports - names):
                raise MachOError(f"{self.name}: expected {lack} in the {where}, got no such names")
        binds = b"".join(part.data for name, part in self.parts.items() if "bind" in name)
        if sought := sorted(name for name in defined - exports if name + b"\0" in binds):
            raise MachOError(f"{self.name}: dyld looks for {sought}, which are not to be exported")

    def _redirect(self, kept: list[Symbol]) -> None:
        """Have stubs and pointers stand for the same symbols in a new order.

        A pointer to something of the library's own needs none: dyld rebases it.
        """
        place = {id(symbol): i for i, symbol in enumerate(kept)}
        table = self.parts["indirect symbols"]
        new = bytearray()
        for (old,) in struct.iter_unpack("<I", table.data):
            plain = old & (INDIRECT_LOCAL | INDIRECT_ABSOLUTE) == 0
            index = place.get(id(self.symbols[old]), INDIRECT_LOCAL) if plain else old
            new += struct.pack("<I", index)
        table.data = bytes(new)

    def _pack_symbols(self) -> None:
        strings, packed = bytearray(b"\0"), []
        for s in self.symbols:
            packed.append(_SYMBOL.pack(len(strings), s.kind, s.section, s.description, s.value))
            strings += s.name + b"\0"
        self.parts["symbols"].data = b"".join(packed)
        self.parts["strings"].data = padded(strings)

    def write(self) -> bytes:
        """Return the file with its tables one after another, and signed again if it was."""
        signature = self.parts.pop("signature", None)
        body = bytearray()
        for part in sorted(self.parts.values(), key=lambda part: part.offset):
            self._place(part, self.start + len(body), len(part.data))
            body += padded(part.data)
        size = 0
        if signature is not None:
            body += bytes(-(self.start + len(body)) % SIGNATURE_ALIGN)
            size = codesign.size(self.start + len(body), self.name)
            size += -size % SIGNATURE_ALIGN
            self._place(signature, self.start + len(body), size)
        at, length = self.segments[b"__LINKEDIT"] + 8, len(body) + size
        name, address, *_ = _SEGMENT.unpack_from(self.bytes, at)
        memory = length + -length % PAGE[self.machine]
        _SEGMENT.pack_into(self.bytes, at, name, address, memory, self.start, length)
        code = bytes(self.bytes[: self.start] + body)
        if signature is None:
            return code
        return code + codesign.sign(code, self.name, self._segment(b"__TEXT")).ljust(size, b"\0")

    def _place(self, part: Part, offset: int, size: int) -> None:
        struct.pack_into("<I", self.bytes, part.offset_at, offset)
        struct.pack_into("<I", self.bytes, part.size_at, size // part.unit)


def finish(path: Path, exports: AbstractSet[str]) -> None:
    """Have a library of zig's export these functions of C and no more, and strip it.

    Raises MachOError if the file is not as expected.
    """
    library = Library(path.read_bytes(), path.name)
    library.keep({f"_{name}".encode() for name in exports})
    path.write_bytes(library.write())
