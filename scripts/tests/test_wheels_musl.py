"""The link step for musl: what it changes in Go's object, and what it refuses."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from wheels import elfobject, musl

# What Go makes of an access to g, on either processor, and of its initializer.
X86_64 = """
    .text
    .globl _rt0_amd64_linux_lib
    .type _rt0_amd64_linux_lib, @function
_rt0_amd64_linux_lib:
    {first}
    mov runtime.tlsg@gottpoff(%rip), %r9
    ret
    .section .init_array, "aw"
    .quad {start}
    .section .tbss, "awT", @nobits
    .globl runtime.tlsg
    .type runtime.tlsg, @object
runtime.tlsg:
    .zero 8
"""


def assemble(tmp_path: Path, first: str, start: str = "_rt0_amd64_linux_lib") -> Path:
    """Make an object like Go's."""
    assembler = shutil.which("as")
    if assembler is None:
        pytest.skip("no assembler: there is no 'as' on PATH")
    source, target = tmp_path / "go.s", tmp_path / "go.o"
    source.write_text(X86_64.format(first=first, start=start), encoding="utf-8")
    done = subprocess.run(
        [assembler, "-o", str(target), str(source)], check=False, capture_output=True
    )
    if done.returncode:
        pytest.skip("the assembler 'as' is not for x86-64")
    return target


def names(path: Path) -> dict[str, elfobject.Symbol]:
    go = elfobject.ElfObject(path)
    return {go._string(s.name): s for s in go.symbols}


def test_accesses_become_calls(tmp_path: Path) -> None:
    path = assemble(tmp_path, "mov runtime.tlsg@gottpoff(%rip), %rcx")
    before = len(elfobject.ElfObject(path).symbols)
    assert musl.patch(path) == musl.MACHINES[musl.X86_64]
    go, symbols = elfobject.ElfObject(path), names(path)
    assert len(go.symbols) == before + 5
    (text,) = (s for s in go.sections if go.section_name(s) == ".text")
    code = bytes(go.bytes[text.offset : text.offset + 15])
    assert code == musl.NOP_CALL + musl.NOP_CALL + b"\xc3"
    found = {
        (go.section_name(s), r.offset, r.type, go._string(go.symbols[r.symbol].name))
        for s, r in go.relocations()
    }
    assert found == {
        (".text", 3, musl.R_X86_64_PLT32, "go_tlsoff_1"),
        (".text", 10, musl.R_X86_64_PLT32, "go_tlsoff_9"),
        (".init_array", 0, 1, "go_musl_libinit"),
    }
    assert symbols["go_tlsg"].value == symbols["runtime.tlsg"].value
    assert symbols["go_tlsg"].other == elfobject.HIDDEN
    assert symbols["go_rt0_lib"].section == symbols["_rt0_amd64_linux_lib"].section


@pytest.mark.parametrize(
    ("first", "start", "message"),
    [
        ("add runtime.tlsg@gottpoff(%rip), %rcx", "_rt0_amd64_linux_lib", "expected mov .* 48030d"),
        ("lea runtime.tlsg@gottpoff(%rip), %rcx", "_rt0_amd64_linux_lib", "expected mov .* 488d0d"),
        ("mov $runtime.tlsg@tpoff, %rcx", "_rt0_amd64_linux_lib", "type 23"),
        ("nop", "0", "one initializer, got 1 and 0"),
    ],
)
def test_what_is_not_expected_fails(tmp_path: Path, first: str, start: str, message: str) -> None:
    path = assemble(tmp_path, first, start)
    before = path.read_bytes()
    with pytest.raises(elfobject.ObjectError, match=message):
        musl.patch(path)
    assert path.read_bytes() == before


def test_other_files_and_other_commands_are_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "go.o"
    other.write_bytes(b"text")
    with pytest.raises(elfobject.ObjectError, match="expected a 64-bit little-endian ELF"):
        musl.patch(other)
    for command in (["cc", "-c", "go.c"], ["cc", "-o", "a.out", str(other)], ["cc", "-shared"]):
        assert musl.prepare(command) == command
