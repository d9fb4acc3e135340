"""A relocatable ELF file of a little-endian 64-bit machine, to be changed and written back.

Symbols can be added and relocations redirected; sections keep their places.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SHT_SYMTAB, SHT_RELA = 2, 4
STT_TLS = 6
GLOBAL_NOTYPE, GLOBAL_FUNC, GLOBAL_TLS = 0x10, 0x12, 0x16
HIDDEN = 2

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")


class ObjectError(Exception):
    """The file is not what is expected of Go's object."""


@dataclass
class Section:
    """A section header. name is an offset into the table of names."""

    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry: int


@dataclass
class Symbol:
    """A symbol. name is an offset into the table of names."""

    name: int
    info: int
    other: int
    section: int
    value: int
    size: int


@dataclass
class Relocation:
    """A relocation with addend, at an offset of the section it is for."""

    offset: int
    symbol: int
    type: int
    addend: int


class ElfObject:
    """The whole file, in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bytes = bytearray(path.read_bytes())
        if self.bytes[:6] != b"\x7fELF\x02\x01" or len(self.bytes) < 64:
            raise ObjectError(f"{path}: expected a 64-bit little-endian ELF file")
        (self.machine,) = struct.unpack_from("<H", self.bytes, 18)
        (self._headers,) = struct.unpack_from("<Q", self.bytes, 40)
        count, names = struct.unpack_from("<HH", self.bytes, 60)
        self.sections = [
            Section(*_SECTION.unpack_from(self.bytes, self._headers + _SECTION.size * i))
            for i in range(count)
        ]
        self._section_names = self.sections[names]
        tables = [s for s in self.sections if s.type == SHT_SYMTAB]
        if len(tables) != 1:
            raise ObjectError(f"{path}: expected one table of symbols, got {len(tables)}")
        self._table = tables[0]
        self._strings = self.sections[self._table.link]
        self._text = bytearray(self._contents(self._strings))
        self.symbols = [Symbol(*f) for f in _SYMBOL.iter_unpack(self._contents(self._table))]
        self._by_name = {self._string(s.name): i for i, s in enumerate(self.symbols)}

    def _contents(self, section: Section) -> bytes:
        return bytes(self.bytes[section.offset : section.offset + section.size])

    def _string(self, offset: int) -> str:
        return self._text[offset : self._text.index(0, offset)].decode()

    def section_name(self, section: Section) -> str:
        """Return a section's name."""
        start = self._section_names.offset + section.name
        return self.bytes[start : self.bytes.index(0, start)].decode()

    def find(self, name: str) -> int:
        """Return the index of a symbol that has to be there."""
        if name not in self._by_name:
            raise ObjectError(f"{self.path}: expected a symbol {name}, and there is none")
        return self._by_name[name]

    def add(self, name: str, info: int, section: int = 0, value: int = 0, size: int = 0) -> int:
        """Return the index of a hidden symbol, which is added if it is missing."""
        if name not in self._by_name:
            self._by_name[name] = len(self.symbols)
            self.symbols.append(Symbol(len(self._text), info, HIDDEN, section, value, size))
            self._text += name.encode() + b"\0"
        return self._by_name[name]

    def alias(self, name: str, info: int, of: int) -> int:
        """Add another name for a symbol, to be seen by other objects."""
        symbol = self.symbols[of]
        return self.add(name, info, symbol.section, symbol.value, symbol.size)

    def relocations(self) -> Iterator[tuple[Section, Relocation]]:
        """Yield each relocation with its section; what is changed in it is kept."""
        for section in self.sections:
            if section.type != SHT_RELA:
                continue
            target = self.sections[section.info]
            for at in range(section.offset, section.offset + section.size, _RELOCATION.size):
                offset, info, addend = _RELOCATION.unpack_from(self.bytes, at)
                found = Relocation(offset, info >> 32, info & 0xFFFFFFFF, addend)
                yield target, found
                changed = found.symbol << 32 | found.type
                _RELOCATION.pack_into(self.bytes, at, found.offset, changed, found.addend)

    def write(self) -> None:
        """Write the file back, with the tables of symbols and names at its end."""
        self._append(self._table, b"".join(_SYMBOL.pack(*vars(s).values()) for s in self.symbols))
        self._append(self._strings, bytes(self._text))
        for i, section in enumerate(self.sections):
            place = self._headers + _SECTION.size * i
            _SECTION.pack_into(self.bytes, place, *vars(section).values())
        self.path.write_bytes(self.bytes)

    def _append(self, section: Section, contents: bytes) -> None:
        self.bytes += bytes(-len(self.bytes) % 16)
        section.offset, section.size = len(self.bytes), len(contents)
        self.bytes += contents
