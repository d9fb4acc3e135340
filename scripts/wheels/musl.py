"""The link step for musl: what is changed in Go's object before the last link.

musl does not load a library with initial-exec accesses to thread-local
variables, which is the only kind that Go makes, and does not hand main's
arguments to initializers, where Go's runtime looks for them. So when go.o is
linked into a shared library, each access becomes a call of a thunk, the
initializer becomes that of packaging/musl/shim.c, and those files are linked in.

Every place is checked: an instruction that is not the expected one fails the
build, so that a new version of Go cannot break the library unseen.
"""

from __future__ import annotations

import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

from wheels.elfobject import (
    GLOBAL_FUNC,
    GLOBAL_NOTYPE,
    GLOBAL_TLS,
    STT_TLS,
    ElfObject,
    ObjectError,
    Relocation,
)

SOURCES = Path(__file__).resolve().parent.parent.parent / "packaging" / "musl"

X86_64, AARCH64 = 62, 183
R_X86_64_PLT32, R_X86_64_GOTTPOFF = 4, 22
R_AARCH64_NONE, R_AARCH64_JUMP26 = 0, 282
R_AARCH64_TLSIE_ADR_PAGE, R_AARCH64_TLSIE_LD64 = 541, 542

# mov runtime.tlsg@gottpoff(%rip), %rX is 7 bytes, and so are a nop of 2 and a
# call. The nop comes first: after the call follows an instruction that Go
# already takes for one at which a goroutine is not to be interrupted.
NOP_CALL = b"\x66\x90\xe8\0\0\0\0"

# The ends of runtime.load_g and save_g on arm64: adrp x27; ldr x27, [x27];
# ldr or str x28, [x0, x27]; ret.
ADRP_X27, ADRP_MASK = 0x9000001B, 0x9F00001F
LDR_X27_X27, LDR_MASK = 0xF940037B, 0xFFC003FF
LOAD_G, SAVE_G, RET = 0xF87B681C, 0xF83B681C, 0xD65F03C0
BRANCH, BREAK = 0x14000000, 0xD4200000


@dataclass(frozen=True)
class Machine:
    """What Go's symbols and our thunks are called on a processor."""

    g: str
    start: str
    thunks: str


MACHINES = {
    X86_64: Machine("runtime.tlsg", "_rt0_amd64_linux_lib", "thunks_x86_64.S"),
    AARCH64: Machine("runtime.tls_g", "_rt0_arm64_linux_lib", "thunks_aarch64.S"),
}


def prepare(command: list[str]) -> list[str]:
    """Return the command to run for a command: another one if it links Go's library."""
    objects = [word for word in command if Path(word).name == "go.o"]
    if "-shared" not in command or not objects:
        return command
    go = Path(objects[0])
    machine = patch(go)
    # The compiler's own words end where its first option but the target is.
    compiler = command[: command.index("-target") + 2] if "-target" in command else command[:1]
    added = []
    for source in ("shim.c", machine.thunks):
        added.append(str(go.with_name(f"{source}.o")))
        options = ["-c", "-O2", "-g0", "-fPIC", "-o", added[-1], str(SOURCES / source)]
        subprocess.run([*compiler, *options], check=True)
    after = command.index(objects[0]) + 1
    return [*command[:after], *added, *command[after:]]


def patch(path: Path) -> Machine:
    """Change Go's object in place. Raises ObjectError if anything in it is unexpected."""
    go = ElfObject(path)
    if go.machine not in MACHINES:
        raise ObjectError(f"{path}: no thunks for processor {go.machine}")
    machine = MACHINES[go.machine]
    g, start = go.find(machine.g), go.find(machine.start)
    if go.symbols[g].info & 15 != STT_TLS:
        raise ObjectError(f"{path}: expected {machine.g} to be thread-local")
    go.alias("go_tlsg", GLOBAL_TLS, g)
    go.alias("go_rt0_lib", GLOBAL_FUNC, start)
    redirect = redirect_x86_64 if go.machine == X86_64 else redirect_aarch64
    accesses = initializers = 0
    for section, relocation in go.relocations():
        name = go.section_name(section)
        if name == ".init_array" and relocation.symbol == start:
            relocation.symbol = go.add("go_musl_libinit", GLOBAL_NOTYPE)
            initializers += 1
        elif relocation.symbol == g:
            at = section.offset + relocation.offset
            try:
                redirect(go, at, relocation)
            except ObjectError as error:
                place = f"{name}+{relocation.offset:#x}"
                raise ObjectError(f"{path}: access to g at {place}: {error}") from None
            accesses += 1
    if accesses == 0 or initializers != 1:
        raise ObjectError(
            f"{path}: expected accesses to g and one initializer, got {accesses} and {initializers}"
        )
    go.write()
    return machine


def redirect_x86_64(go: ElfObject, at: int, relocation: Relocation) -> None:
    """Make mov g@gottpoff(%rip), %rX a call of thunk X."""
    found = bytes(go.bytes[at - 3 : at])
    rex, opcode, operands = found
    if (
        relocation.type != R_X86_64_GOTTPOFF
        or relocation.addend != -4
        or rex not in (0x48, 0x4C)
        or opcode != 0x8B
        or operands & 0xC7 != 5
    ):
        raise ObjectError(
            f"expected mov and a relocation of type {R_X86_64_GOTTPOFF}, "
            f"got {found.hex()} and type {relocation.type}"
        )
    register = operands >> 3 & 7 | (8 if rex == 0x4C else 0)
    go.bytes[at - 3 : at + 4] = NOP_CALL
    relocation.symbol = go.add(f"go_tlsoff_{register}", GLOBAL_NOTYPE)
    relocation.type = R_X86_64_PLT32


def redirect_aarch64(go: ElfObject, at: int, relocation: Relocation) -> None:
    """Make the end of load_g or save_g a jump to its thunk."""
    if relocation.type == R_AARCH64_TLSIE_LD64:  # the other half of an access
        relocation.symbol = relocation.addend = 0
        relocation.type = R_AARCH64_NONE
        return
    first, second, access, last = struct.unpack_from("<IIII", go.bytes, at)
    if (
        relocation.type != R_AARCH64_TLSIE_ADR_PAGE
        or first & ADRP_MASK != ADRP_X27
        or second & LDR_MASK != LDR_X27_X27
        or access not in (LOAD_G, SAVE_G)
        or last != RET
    ):
        words = " ".join(f"{word:08x}" for word in (first, second, access, last))
        raise ObjectError(
            f"expected the end of load_g or save_g and a relocation of type "
            f"{R_AARCH64_TLSIE_ADR_PAGE}, got {words} and type {relocation.type}"
        )
    struct.pack_into("<II", go.bytes, at, BRANCH, BREAK)
    name = "go_load_g" if access == LOAD_G else "go_save_g"
    relocation.symbol = go.add(name, GLOBAL_NOTYPE)
    relocation.type, relocation.addend = R_AARCH64_JUMP26, 0
