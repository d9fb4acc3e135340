"""The last step for macOS: what it leaves of a library, and what it refuses.

There is no linker for macOS here: the libraries are laid out by hand, and what
comes of them is read by macholib and by the few lines of this file.
"""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path

import pytest
from macholib.MachO import MachO
from wheels import binaries, codesign, exporttrie, macho

START = 0x4000
TEXT = bytes(range(256)) * 64  # a segment of one page, the header in front
LOCAL, PRIVATE, EXPORT, UNDEFINED, STAB = 0x0E, 0x1E, 0x0F, 0x01, 0x24

# name, type, section, description, value; the description of an undefined one has the
# ordinal of its library.
SYMBOLS = [
    (b"_helper", LOCAL, 1, 0, 0x3100),
    (b"main.c", STAB, 1, 0, 0x3100),
    (b"_table", PRIVATE, 1, 0, 0x3200),
    (b"__cgo_panic", EXPORT, 1, 0, 0x3300),
    (b"_lx_one", EXPORT, 1, 0, 0x3400),
    (b"_lx_one_more", EXPORT, 1, 0, 0x3500),
    (b"_free", UNDEFINED, 0, 0x200, 0),
    (b"_malloc", UNDEFINED, 0, 0x100, 0),
]
INDIRECT = [7, 2, 6, macho.INDIRECT_LOCAL, 7]
BIND = b"\x11\x40_malloc\0\x72\x08\x90\0"


def library(
    machine: int = macho.ARM64,
    *,
    signed: bool = True,
    bind: bytes = BIND,
    command: bytes = b"",
    end: bytes = b"",
) -> bytes:
    """Lay out a dynamic library as zig's linker does."""
    strings = b"\0" + b"".join(name + b"\0" for name, *_ in SYMBOLS)
    symbols, at = b"", 1
    for name, *rest in SYMBOLS:
        symbols += struct.pack("<IBBHQ", at, *rest)
        at += len(name) + 1
    tree = {n: b"\0" + exporttrie.uleb(v) for n, kind, _, _, v in SYMBOLS if kind == EXPORT}
    tables = [b"REBASE", bind, b"", b"LAZY", exporttrie.build(tree), b"STARTS", symbols]
    tables += [struct.pack(f"<{len(INDIRECT)}I", *INDIRECT), strings]
    body, places = b"", []
    for table in tables:
        places.append((START + len(body), len(table)))
        body += table + bytes(-len(table) % 8)
    rebase, binds, weak, lazy, exports, starts, syms, indirect, strs = places
    body += end + bytes(-len(body + end) % 16)
    size = 40 if signed else 0
    commands = [
        struct.pack("<II16s4Q4I", 0x19, 72, b"__TEXT", 0, START, 0, START, 5, 5, 0, 0),
        struct.pack(
            "<II16s4Q4I",
            *(0x19, 72, b"__LINKEDIT", START, START, START, len(body) + size, 1, 1, 0, 0),
        ),
        struct.pack("<12I", 0x80000022, 48, *rebase, *binds, *weak, *lazy, *exports),
        struct.pack("<4I", 0x26, 16, *starts),
        struct.pack("<6I", 2, 24, syms[0], len(SYMBOLS), *strs),
        struct.pack("<20I", 0xB, 80, 0, 3, 3, 3, 6, 2, *[0] * 6, indirect[0], 5, *[0] * 4),
        struct.pack("<6I", 0x32, 24, 1, 0xC0000, 0xC0000, 0),
        struct.pack("<6I", 0xC, 56, 24, 2, 0, 0) + b"/usr/lib/libSystem.B.dylib".ljust(32, b"\0"),
    ]
    if signed:
        commands.append(struct.pack("<4I", 0x1D, 16, START + len(body), size))
    if command:
        commands.append(command)
    head = struct.pack(
        "<8I", 0xFEEDFACF, machine, 0, 6, len(commands), len(b"".join(commands)), 5, 0
    )
    head += b"".join(commands)
    return head + TEXT[len(head) :] + body + b"\xee" * size


def finished(tmp_path: Path, data: bytes, exports: set[str]) -> bytes:
    """Have the step done on a file."""
    path = tmp_path / "libloaderx.dylib"
    path.write_bytes(data)
    macho.finish(path, exports)
    return path.read_bytes()


def tables(data: bytes) -> dict[str, bytes]:
    """Read the tables of a library by its load commands alone."""
    (count,) = struct.unpack_from("<I", data, 16)
    found, at = {}, 32
    for _ in range(count):
        command, size = struct.unpack_from("<II", data, at)
        words = struct.unpack_from(f"<{size // 4}I", data, at)
        if command == 0x80000022:
            for name, i in (("rebase", 2), ("bind", 4), ("weak", 6), ("lazy", 8), ("exports", 10)):
                assert words[i] % 8 == 0
                found[name] = data[words[i] :][: words[i + 1]]
        elif command == 0x26:
            found["starts"] = data[words[2] :][: words[3]]
        elif command == 2:
            assert words[2] % 8 == words[4] % 8 == 0
            found["symbols"] = data[words[2] :][: words[3] * 16]
            found["strings"] = data[words[4] :][: words[5]]
        elif command == 0xB:
            found["counts"] = data[at + 8 : at + 32]
            found["indirect"] = data[words[14] :][: words[15] * 4]
        elif command == 0x1D:
            assert words[2] % 16 == 0
            found["signature"] = data[words[2] :][: words[3]]
        at += size
    return found


def names(found: dict[str, bytes]) -> list[tuple[bytes, int, int, int, int]]:
    rows = struct.iter_unpack("<IBBHQ", found["symbols"])
    strings = found["strings"]
    return [(strings[n : strings.index(0, n)], *rest) for n, *rest in rows]


@pytest.mark.parametrize("machine", [macho.ARM64, macho.X86_64])
def test_only_what_is_wanted_is_left(tmp_path: Path, machine: int) -> None:
    before = library(machine, signed=machine == macho.ARM64)
    after = finished(tmp_path, before, {"lx_one", "lx_one_more"})
    old, new = tables(before), tables(after)
    assert names(new) == SYMBOLS[4:]  # values and ordinals with them
    assert struct.unpack("<6I", new["counts"]) == (0, 0, 0, 2, 2, 2)
    pointed = struct.unpack("<5I", new["indirect"])
    local = macho.INDIRECT_LOCAL
    assert [i if i == local else names(new)[i][0] for i in pointed] == [
        *(b"_malloc", local, b"_free", local, b"_malloc")
    ]
    for same in ("rebase", "bind", "weak", "lazy", "starts"):
        assert new[same] == old[same]
    assert exporttrie.read(new["exports"]) == {
        b"_lx_one": b"\0\x80\x68",
        b"_lx_one_more": b"\0\x80\x6a",
    }
    assert after[:32] == before[:32] and after[0x400:START] == before[0x400:START]
    (header,) = MachO(str(tmp_path / "libloaderx.dylib")).headers
    last = header.commands[1][1]
    assert last.fileoff + last.filesize == len(after) < len(before) + 300
    assert last.vmsize >= last.filesize and last.vmsize % macho.PAGE[machine] == 0
    assert ("signature" in new) == (machine == macho.ARM64)


def test_the_checks_see_the_difference(tmp_path: Path) -> None:
    path = tmp_path / "libloaderx.dylib"
    path.write_bytes(library())
    read = binaries.read(path)
    assert read.exports == {"_cgo_panic", "lx_one", "lx_one_more"} and not read.stripped
    assert "cut short" in read.unsigned
    finished(tmp_path, library(), {"lx_one", "lx_one_more"})
    read = binaries.read(path)
    assert (read.exports, read.stripped, read.unsigned) == ({"lx_one", "lx_one_more"}, True, "")
    assert (read.machine, read.oldest) == ("ARM64", (12, 0))
    path.write_bytes(library(signed=False))
    assert binaries.read(path).unsigned == "there is none"
    path.write_bytes(library(macho.X86_64, signed=False))
    assert binaries.read(path).unsigned == ""


def test_a_name_in_one_table_only_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "libloaderx.dylib"
    data = finished(tmp_path, library(), {"lx_one", "lx_one_more"})
    # What is in the table of symbols, and not in the tree, cannot be exported.
    start = data.index(tables(data)["strings"])
    path.write_bytes(data[:start] + data[start:].replace(b"_more\0", b"_most\0"))
    assert binaries.read(path).exports == {"lx_one", "lx_one_more"}
    assert not binaries.read(path).stripped
    # The other way round, it is there for this library alone.
    start = data.index(tables(data)["symbols"])
    path.write_bytes(data[: start + 4] + bytes([PRIVATE | 1]) + data[start + 5 :])
    assert binaries.read(path).exports == {"lx_one", "lx_one_more"}
    assert not binaries.read(path).stripped


def test_the_step_can_be_repeated(tmp_path: Path) -> None:
    once = finished(tmp_path, library(), {"lx_one", "lx_one_more"})
    assert finished(tmp_path, library(), {"lx_one", "lx_one_more"}) == once
    assert finished(tmp_path, once, {"lx_one", "lx_one_more"}) == once


def test_signature(tmp_path: Path) -> None:
    data = finished(tmp_path, library(), {"lx_one"})
    blob = tables(data)["signature"]
    start = len(data) - len(blob)
    assert struct.unpack_from(">5I", blob) == (0xFADE0CC0, len(blob.rstrip(b"\0")), 1, 0, 20)
    head = struct.unpack_from(">9I4B4I4Q", blob, 20)
    pages = -(-start // 4096)
    assert head[:4] == (0xFADE0C02, len(blob.rstrip(b"\0")) - 20, 0x20400, 0x20002)
    assert head[6:] == (0, pages, start, 32, 2, 0, 12, 0, 0, 0, 0, 0, 0, START, 0)
    assert blob[20 + head[5] : 20 + head[4]] == b"libloaderx.dylib\0"
    for page in range(pages):
        hashed = hashlib.sha256(data[page * 4096 : min(page * 4096 + 4096, start)]).digest()
        assert blob[20 + head[4] + 32 * page :][:32] == hashed


def test_wrong_signatures(tmp_path: Path) -> None:
    data = finished(tmp_path, library(), {"lx_one"})
    start = len(data) - len(tables(data)["signature"])
    assert codesign.complaint(data, start) == ""
    other = bytearray(data)
    other[0x3000] ^= 1
    assert "other hashes" in codesign.complaint(bytes(other), start)
    assert "cut short" in codesign.complaint(data[: start + 30], start)
    assert "is for" in codesign.complaint(data[:-60], start)
    other = bytearray(data)
    other[start + 20 + 35] += 1  # the last byte of how much is signed
    assert f"is for {start + 1} bytes" in codesign.complaint(bytes(other), start)
    other = bytearray(data)
    other[start] ^= 1
    assert "not known" in codesign.complaint(bytes(other), start)


@pytest.mark.parametrize(
    ("data", "exports", "message"),
    [
        (b"\x7fELF" + bytes(60), set(), "expected a 64-bit Mach-O file, got 7f454c46"),
        (library(7), set(), "expected a dynamic library for x86-64 or arm64, got .* for 0x7"),
        (library(), {"lx_two"}, r"expected \[b'_lx_two'\] in the tree of exports"),
        (library(command=struct.pack("<4I", 0x1E, 16, 0, 0)), set(), "load command 0x1e at .*not"),
        (library(command=struct.pack("<4I", 0x26, 16, 0, 0)), set(), "function starts once"),
        (library(end=b"more"), set(), "expected signature at .* or after zeros"),
        (library() + b"x", set(), "expected __LINKEDIT at the end"),
        (library(bind=b"\x40__cgo_panic\0"), set(), r"dyld looks for \[b'__cgo_panic'\]"),
    ],
)
def test_what_is_refused(tmp_path: Path, data: bytes, exports: set[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        finished(tmp_path, data, exports)
    assert (tmp_path / "libloaderx.dylib").read_bytes() == data


def test_tree_of_exports() -> None:
    """The bytes are worked out by hand: _a, _ab and _b, with addresses 1, 0x80 and 2."""
    tree = b"\0\1_\0\x05"  # 0: to 5
    tree += b"\0\x02a\0\x0db\0\x14"  # 5: to 13 and 20
    tree += b"\x02\0\x01\x01b\0\x18"  # 13: _a, and on to 24
    tree += b"\x02\0\x02\0"  # 20: _b
    tree += b"\x03\0\x80\x01\0"  # 24: _ab
    found = {b"_a": b"\0\1", b"_ab": b"\0\x80\1", b"_b": b"\0\2"}
    assert exporttrie.read(tree) == found
    assert exporttrie.read(exporttrie.build(found)) == found
    assert exporttrie.read(b"") == {}


def test_trees_with_far_nodes() -> None:
    """Offsets of nodes take one, two and three bytes, which moves what comes after them."""
    for count in (1, 20, 200, 3000):
        wanted = {f"_name{i:04}".encode(): b"\0" + exporttrie.uleb(i << 7) for i in range(count)}
        assert exporttrie.read(exporttrie.build(wanted)) == wanted


@pytest.mark.parametrize("tree", [b"\0\1a\0\0", b"\0\1a\0\x50", b"\0\1a", b"\0\1a\0\x80", b"\5"])
def test_damaged_trees(tree: bytes) -> None:
    with pytest.raises(exporttrie.TrieError):
        exporttrie.read(tree)
