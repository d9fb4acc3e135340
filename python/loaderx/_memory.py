"""Recycled memory for the destinations of gathers.

A gather into fresh memory spends half its time on page faults, so blocks are
kept and used again. An array made here owns its block as far as anyone can
tell: it is writable, and when the last array or view on the block dies, the
block goes back to the free list of its size.

Blocks come in sizes four to a doubling. Taking one never waits: where the list
is empty, a block is allocated. What lies idle is bounded per size and in all.
Releases run inside garbage collection, at any moment and in any thread, so
nothing here takes a lock: lists are appended to and popped from, which is
atomic, and the counts are made from their lengths. Blocks are freed by C, which
a forked child survives as well.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from loaderx import _native

# A block of at least this size is large: it is counted towards IDLE_BYTES.
LARGE = 1 << 20
# All large blocks that may lie idle together. A larger one is never kept.
IDLE_BYTES = 512 << 20
KEEP_LARGEST = 256 << 20
# What smaller blocks of one size may have lying idle: bytes, and a number.
SMALL_BYTES = 1 << 20
SMALL_MOST = 1024
SMALL_LEAST = 8


class BlockClass:
    """The blocks of one size, and the list of the idle ones."""

    __slots__ = ("size", "free", "release")

    def __init__(self, size: int) -> None:
        self.size = size
        self.free: deque[Any] = deque()
        # What takes a block back. It runs once per array.
        self.release = _releaser(self)

    def take(self) -> Any:
        """Hand out a block, as take() does."""
        try:
            block = self.free.pop()
        except IndexError:
            block = _allocate(self.size)
        return _native.ffi.gc(block, self.release)


def _most(size: int) -> int:
    """How many small blocks of a size may lie idle."""
    return max(SMALL_LEAST, min(SMALL_MOST, SMALL_BYTES // size))


def _releaser(block_class: BlockClass) -> Callable[[Any], None]:
    """What takes a block back, or frees it where enough of them lie idle.

    Blocks are plain pointers, and none frees itself: when arrays die in a cycle,
    the collector would run that too, for a block that was just taken back.
    """
    free, size, give_back = block_class.free, block_class.size, _native.lib.lx_buffer_free
    most = _most(size)

    def release_small(block: Any) -> None:
        if len(free) < most:
            free.append(block)
        else:
            give_back(block)

    def release_large(block: Any) -> None:
        if size <= KEEP_LARGEST and _large_idle() + size <= IDLE_BYTES:
            free.append(block)
        else:
            give_back(block)

    return release_large if size >= LARGE else release_small


_classes: dict[int, BlockClass] = {}


def take(nbytes: int) -> Any:
    """Hand out a block of at least that many bytes, aligned to 64, contents undefined.

    Args:
        nbytes: at least 1.

    Returns:
        A cffi pointer that owns the block: it is free again when the pointer
        and every buffer made of it are gone.

    Raises:
        MemoryError: the system has no more.
        ForkedProcessError: in a forked child.
    """
    return class_of(nbytes).take()


def class_of(nbytes: int) -> BlockClass:
    """The class whose blocks hold that many bytes, with at most a quarter to spare."""
    last = (nbytes - 1) | 63
    shift = last.bit_length() - 3
    size = ((last >> shift) + 1) << shift
    block_class = _classes.get(size)
    if block_class is None:
        block_class = _classes.setdefault(size, BlockClass(size))
    return block_class


def array(
    block: Any, nbytes: int, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> np.ndarray[Any, Any]:
    """Make the array over the first ``nbytes`` bytes of a block; it keeps the block."""
    made: np.ndarray[Any, Any] = np.ndarray(shape, dtype, _native.ffi.buffer(block, nbytes))
    return made


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Make a writable C-ordered array of undefined contents, aligned to 64 bytes.

    Raises:
        MemoryError: the system has no more.
        ForkedProcessError: in a forked child.
    """
    nbytes = dtype.itemsize
    for length in shape:
        nbytes *= length
    if nbytes == 0:
        return np.empty(shape, dtype)
    return array(take(nbytes), nbytes, shape, dtype)


def stats() -> dict[str, int]:
    """Count what is held: idle blocks and their bytes, and blocks in use by arrays.

    Raises:
        ForkedProcessError: in a forked child.
    """
    classes = list(_classes.values())
    idle = sum(len(c.free) for c in classes)
    return {
        "idle_blocks": idle,
        "idle_bytes": sum(len(c.free) * c.size for c in classes),
        "used_blocks": _native.lib.lx_buffer_count() - idle,
    }


def trim(keep: int = 0) -> None:
    """Free idle large blocks, the largest first, until at most ``keep`` bytes of them lie idle."""
    idle = _large_idle()
    for block_class in sorted(list(_classes.values()), key=lambda c: -c.size):
        while idle > keep and block_class.size >= LARGE and block_class.free:
            try:
                _native.lib.lx_buffer_free(block_class.free.pop())
            except IndexError:
                break  # another thread took the last one
            idle -= block_class.size


def _allocate(size: int) -> Any:
    """Allocate a block. That one is missing hints that idle ones of other sizes are stale."""
    if size >= LARGE:
        trim(IDLE_BYTES // 2)
    block = _native.ffi.new("void **")
    error = _native.scratch.error
    _native.check(_native.lib.lx_buffer_new(size, block, error), error)
    return block[0]


def _large_idle() -> int:
    return sum(len(c.free) * c.size for c in list(_classes.values()) if c.size >= LARGE)
