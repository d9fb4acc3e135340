"""The ad-hoc signature of a Mach-O file: hashes of its pages, and no name under them.

A Mac with an Apple processor loads no code without one. It is what Apple's linker
makes: a super blob with a code directory alone. Numbers in it are big-endian.
"""

from __future__ import annotations

import hashlib
import struct

_SUPER, _DIRECTORY = 0xFADE0CC0, 0xFADE0C02
_VERSION = 0x20400  # the first with the bounds of the executable segment
_AD_HOC_BY_LINKER = 0x20002  # codesign may put another one in its place
_SHA256 = 2
_PAGE_BITS = 12

_BLOBS = struct.Struct(">5I")  # magic, length, count; kind and offset of the only one
_HEAD = struct.Struct(">9I4B4I4Q")


def _pages(code: bytes) -> list[bytes]:
    page = 1 << _PAGE_BITS
    return [hashlib.sha256(code[i : i + page]).digest() for i in range(0, len(code), page)]


def size(length: int, identifier: str) -> int:
    """Return how many bytes the signature of so many bytes has."""
    pages = -(-length >> _PAGE_BITS)
    return _BLOBS.size + _HEAD.size + len(identifier.encode()) + 1 + 32 * pages


def sign(code: bytes, identifier: str, text: tuple[int, int]) -> bytes:
    """Return the signature of a library.

    Args:
        code: the file up to its signature.
        identifier: the library's name.
        text: the offset and the size in the file of the segment with code.
    """
    pages, name = _pages(code), identifier.encode() + b"\0"
    length = size(len(code), identifier)
    head = _HEAD.pack(
        *(_DIRECTORY, length - _BLOBS.size, _VERSION, _AD_HOC_BY_LINKER),
        *(_HEAD.size + len(name), _HEAD.size, 0, len(pages), len(code)),
        *(hashlib.sha256().digest_size, _SHA256, 0, _PAGE_BITS),
        *(0, 0, 0, 0),
        *(0, *text, 0),
    )
    blobs = _BLOBS.pack(_SUPER, length, 1, 0, _BLOBS.size)
    return blobs + head + name + b"".join(pages)


def complaint(file: bytes, start: int) -> str:
    """Say what is wrong with the signature at an offset of a file; nothing if it is right."""
    try:
        magic, length, _, _, offset = _BLOBS.unpack_from(file, start)
        fields = _HEAD.unpack_from(file, start + offset)
    except struct.error:
        return "the signature is cut short"
    kind, hashes, slots, limit, algorithm = (fields[0], fields[4], *fields[7:9], fields[10])
    if (magic, kind, algorithm, fields[12]) != (_SUPER, _DIRECTORY, _SHA256, _PAGE_BITS):
        return f"the signature is of a kind that is not known: {magic:#x}, {kind:#x}, {algorithm}"
    if limit != start or slots != -(-start >> _PAGE_BITS) or start + length > len(file):
        return f"the signature is for {limit} bytes in {slots} pages, and starts at {start}"
    at = start + offset + hashes
    if file[at : at + 32 * slots] != b"".join(_pages(file[:start])):
        return "the signature has other hashes than the pages of the file"
    return ""
