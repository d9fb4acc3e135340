"""Reading libraries: what ELF, Mach-O and PE files say about themselves."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import pefile
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection
from elftools.elf.relocation import RelocationSection
from macholib import mach_o
from macholib.MachO import MachO
from macholib.SymbolTable import SymbolTable

from wheels import codesign, exporttrie


@dataclass
class Library:
    """What is checked of a library, whatever its format."""

    format: str
    machine: str
    exports: set[str]
    needed: set[str]
    """Libraries that it is linked to."""
    stripped: bool
    oldest: tuple[int, ...] = ()
    """The oldest glibc or macOS that it needs; () where there is no such thing."""
    static_tls: list[str] = field(default_factory=list)
    """What ties its thread-local variables to being loaded at the start."""
    unsigned: str = ""
    """What is wrong with its signature, where one is needed."""


def read(path: Path) -> Library:
    """Read a library of any of the three formats. Raises ValueError for others."""
    with path.open("rb") as file:
        start = file.read(4)
    if start == b"\x7fELF":
        return read_elf(path)
    if start == b"\xcf\xfa\xed\xfe":
        return read_macho(path)
    if start[:2] == b"MZ":
        return read_pe(path)
    raise ValueError(f"{path}: expected an ELF, Mach-O or PE file, got one starting {start.hex()}")


# Relocations of thread-local variables at a fixed distance from the thread
# pointer: R_X86_64_TPOFF64 and _TPOFF32, R_AARCH64_TLS_TPREL.
FIXED_TLS = {"EM_X86_64": {18, 23}, "EM_AARCH64": {1030}}
DF_STATIC_TLS = 0x10


def read_elf(path: Path) -> Library:
    """Read a shared object of Linux."""
    with path.open("rb") as file:
        elf = ELFFile(file)
        machine = str(elf["e_machine"])
        library = Library("ELF", machine, set(), set(), elf.get_section_by_name(".symtab") is None)
        for section in elf.iter_sections():
            if section.name.startswith(".debug"):
                library.stripped = False
            if isinstance(section, DynamicSection):
                read_dynamic(section, library)
            elif isinstance(section, GNUVerNeedSection):
                library.oldest = max(library.oldest, newest_glibc(section))
            elif isinstance(section, RelocationSection):
                for relocation in section.iter_relocations():
                    if relocation["r_info_type"] in FIXED_TLS.get(machine, ()):
                        where = f"relocation at {relocation['r_offset']:#x} in {section.name}"
                        library.static_tls.append(where)
        symbols = elf.get_section_by_name(".dynsym")
        for symbol in symbols.iter_symbols() if symbols else ():
            if symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_info"]["bind"] != "STB_LOCAL":
                library.exports.add(symbol.name)
    return library


def read_dynamic(section: DynamicSection, library: Library) -> None:
    """Take from the dynamic section what is needed, and the flag for static TLS."""
    for tag in section.iter_tags():
        if tag.entry.d_tag == "DT_NEEDED":
            library.needed.add(tag.needed)
        elif tag.entry.d_tag == "DT_FLAGS" and tag.entry.d_val & DF_STATIC_TLS:
            library.static_tls.append("the flag STATIC_TLS")
        elif tag.entry.d_tag == "DT_TEXTREL":
            library.static_tls.append("relocations in code")


def newest_glibc(section: GNUVerNeedSection) -> tuple[int, ...]:
    """Return the newest version of glibc's symbols among those that are needed."""
    newest: tuple[int, ...] = ()
    for _, needed in section.iter_versions():
        for version in needed:
            found = re.fullmatch(r"GLIBC_([\d.]+)", version.name)
            if found:
                newest = max(newest, tuple(int(part) for part in found.group(1).split(".")))
    return newest


def read_macho(path: Path) -> Library:
    """Read a dynamic library of macOS for one processor."""
    (header,) = MachO(str(path)).headers
    machine = mach_o.CPU_TYPE_NAMES.get(header.header.cputype, str(header.header.cputype))
    library = Library("Mach-O", machine, set(), set(), True)
    data = path.read_bytes()
    if machine == "ARM64":
        library.unsigned = "there is none"
    for load, command, rest in header.commands:
        if load.cmd == mach_o.LC_BUILD_VERSION:
            library.oldest = (command.minos >> 16, command.minos >> 8 & 0xFF)
        elif load.cmd == mach_o.LC_LOAD_DYLIB:
            library.needed.add(rest.rstrip(b"\0").decode())
        elif load.cmd == mach_o.LC_SEGMENT_64 and command.segname.startswith(b"__DWARF"):
            library.stripped = False
        elif load.cmd in (mach_o.LC_DYLD_INFO, mach_o.LC_DYLD_INFO_ONLY):
            tree = data[command.export_off :][: command.export_size]
            library.exports |= {plain(name) for name in exporttrie.read(tree)}
        elif load.cmd == mach_o.LC_DYLD_EXPORTS_TRIE:
            tree = data[command.dataoff :][: command.datasize]
            library.exports |= {plain(name) for name in exporttrie.read(tree)}
        elif load.cmd == mach_o.LC_CODE_SIGNATURE:
            library.unsigned = codesign.complaint(data, command.dataoff)
    for symbol, name in SymbolTable(MachO(str(path))).nlists or ():
        imported = symbol.n_type == mach_o.N_EXT
        exported = symbol.n_type == mach_o.N_EXT | mach_o.N_SECT and plain(name) in library.exports
        if not imported and not exported:
            library.stripped = False
    return library


def plain(name: bytes) -> str:
    """Return what C calls a symbol of Mach-O."""
    return name.decode().removeprefix("_")


def read_pe(path: Path) -> Library:
    """Read a DLL of Windows."""
    pe = pefile.PE(str(path))
    machine = pefile.MACHINE_TYPE.get(pe.FILE_HEADER.Machine, hex(pe.FILE_HEADER.Machine))
    debug = any(section.Name.startswith(b".debug") for section in pe.sections)
    stripped = not debug and pe.FILE_HEADER.NumberOfSymbols == 0
    library = Library("PE", machine, set(), set(), stripped)
    table = getattr(pe, "DIRECTORY_ENTRY_EXPORT", None)
    for symbol in table.symbols if table else ():
        library.exports.add(symbol.name.decode())
    for imported in getattr(pe, "DIRECTORY_ENTRY_IMPORT", ()):
        library.needed.add(imported.dll.decode())
    return library
