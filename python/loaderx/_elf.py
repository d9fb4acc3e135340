"""What an ELF file says of itself, before the system is asked to load it.

The system's loader says of a library for another processor that there is no such
file, and a library that was cut short, as by a full disk, ends the process.
"""

from __future__ import annotations

import os
import struct

# The numbers of processors in ELF (e_machine), by what uname says.
_MACHINES = {"x86_64": 62, "aarch64": 183}


def complaint(path: str) -> str | None:
    """Say why a library cannot be loaded here, or None; also where it is no ELF file.

    Args:
        path: of a file that exists.
    """
    try:
        size = os.path.getsize(path)
        with open(path, "rb") as file:
            head = file.read(64)
    except OSError:
        return None  # the loader will say it
    if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":
        return None
    # The sections' headers are the last in the file: where they begin, their size, their number.
    (machine,) = struct.unpack_from("<H", head, 18)
    (begin,) = struct.unpack_from("<Q", head, 40)
    each, count = struct.unpack_from("<HH", head, 58)
    name = os.uname().machine if hasattr(os, "uname") else ""
    here = _MACHINES.get(name, machine)
    if machine != here:
        return (
            f"it was built for another processor (ELF machine {machine}, expected {here}, {name}); "
            "install loaderx again on this one"
        )
    if size < begin + each * count:
        return (
            f"it was cut short (expected at least {begin + each * count} bytes, got {size}); "
            "install loaderx again"
        )
    return None
