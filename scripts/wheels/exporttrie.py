"""The tree in which a Mach-O file keeps the names it exports.

A node begins with the length of what its name stands for, and that: flags and an
address, which are not looked into here. Then come its edges: how many there are, and
of each the characters that it adds to the name and where in the tree its node lies.
Numbers are ULEB128: 7 bits a byte, the lowest first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


class TrieError(ValueError):
    """The bytes are no such tree."""


@dataclass
class _Node:
    payload: bytes = b""
    edges: list[tuple[bytes, _Node]] = field(default_factory=list)
    offset: int = 0


def uleb(number: int) -> bytes:
    """Encode a number."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(encoded) + bytes([number])


def read_uleb(data: bytes, at: int) -> tuple[int, int]:
    """Decode the number at an offset; return it and where it ends."""
    number = shift = 0
    while at < len(data):
        number |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return number, at
        shift += 7
    raise TrieError(f"expected the end of a number, got the end of the {len(data)} bytes")


def read(data: bytes) -> dict[bytes, bytes]:
    """Return what each name stands for. Raises TrieError where a tree is damaged."""
    found: dict[bytes, bytes] = {}
    seen: set[int] = set()
    pending = [(0, b"")] if data else []
    while pending:
        start, name = pending.pop()
        if start in seen or start >= len(data):
            raise TrieError(f"expected a node of its own at {start} of {len(data)}: {name!r}")
        seen.add(start)
        size, at = read_uleb(data, start)
        if size:
            found[name] = data[at : at + size]
        at += size
        if at >= len(data):
            raise TrieError(f"expected the edges of {name!r} at {at}, got {len(data)} bytes")
        count, at = data[at], at + 1
        for _ in range(count):
            end = data.find(0, at)
            if end < 0:
                raise TrieError(f"expected the end of a name at {at}: {name!r}")
            child, after = read_uleb(data, end + 1)
            pending.append((child, name + data[at:end]))
            at = after
    return found


def build(exports: Mapping[bytes, bytes]) -> bytes:
    """Return the tree for what each name stands for: the reverse of read()."""
    root = _grow(sorted(exports.items()), 0)
    nodes = _flatten(root)
    # The length of a node depends on the offsets of its children, and they on it:
    # offsets only grow, so this comes to an end.
    settled = False
    while not settled:
        settled, at = True, 0
        for node in nodes:
            settled = settled and node.offset == at
            node.offset = at
            at += len(_encode(node))
    return b"".join(map(_encode, nodes))


def _grow(exports: list[tuple[bytes, bytes]], depth: int) -> _Node:
    """Make the node for names, sorted, that have their first depth characters in common."""
    node = _Node()
    if exports and len(exports[0][0]) == depth:
        node.payload = exports.pop(0)[1]
    while exports:
        first = exports[0][0][depth]
        group = [item for item in exports if item[0][depth] == first]
        exports = exports[len(group) :]
        end = _shared(group[0][0], group[-1][0])
        node.edges.append((group[0][0][depth:end], _grow(group, end)))
    return node


def _shared(one: bytes, other: bytes) -> int:
    """Return how many characters two names begin with that are the same."""
    pairs = enumerate(zip(one, other))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


def _flatten(node: _Node) -> list[_Node]:
    return [node, *(below for _, child in node.edges for below in _flatten(child))]


def _encode(node: _Node) -> bytes:
    encoded = uleb(len(node.payload)) + node.payload + bytes([len(node.edges)])
    return encoded + b"".join(text + b"\0" + uleb(child.offset) for text, child in node.edges)
