"""The order of indices: a pure function of the seed and the step.

``Sampler(length, batch_size, mode, seed)`` says which records make the batch of
each step, without knowing a store. The same arguments give the same order on
every machine, for as long as the major version stays.
"""

from __future__ import annotations

import threading
from enum import IntEnum
from typing import Any, ClassVar, Literal

import numpy as np

from loaderx import _native
from loaderx._arguments import as_int
from loaderx._ranks import as_ranks

__all__ = ["Sampler"]

IndexArray = np.ndarray[Any, np.dtype[np.int64]]

_INT64_MAX = (1 << 63) - 1
# The most indices of one batch: 2 GiB of them, more than any batch of records.
_MOST = 1 << 28
# The indices that next() draws at once, to hand out row by row.
_DRAW = 16384


class Mode(IntEnum):
    """The orders a Sampler knows."""

    SEQUENTIAL = 0
    IID = 1
    CYCLIC = 2


class Sampler:
    """Endless batches of indices, batch by batch in the order of a mode.

    - SEQUENTIAL walks through the records in order, and wraps.
    - IID draws every index independently, with replacement.
    - CYCLIC, the default, draws without replacement: every record once in a
      cycle, in another order in each. Batches are full; what is left of a cycle
      is dropped, another part of the records each time.

    With several ranks, ``batch_size`` is the batch of all of them together and
    each gets its contiguous part, so their number never changes the order.

    Any number of threads may use one sampler; ``next()`` gives each batch once.

    Args:
        length: the number of records, at least 1.
        batch_size: indices in a batch of all ranks, at least 1, a multiple of
            world_size; for CYCLIC at most length.
        mode: a Sampler.Mode, or its number.
        seed: 0 to 2**64 - 1.
        rank: 0 to world_size - 1. "auto" takes both from torch.distributed if that
            is initialised, else from RANK and WORLD_SIZE in the environment.
        world_size: the number of ranks.

    Raises:
        TypeError: an argument that is not an integer.
        ValueError: one out of range; the message says expected and got. Or rank is
            "auto" and nothing says which rank this is.
    """

    Mode: ClassVar[type[Mode]] = Mode

    _handle = 0

    def __init__(
        self,
        length: int,
        batch_size: int,
        mode: int = Mode.CYCLIC,
        seed: int = 42,
        *,
        rank: int | Literal["auto"] = 0,
        world_size: int = 1,
    ) -> None:
        rank, world_size = as_ranks(rank, world_size)
        self._length = as_int("length", length, 1, _INT64_MAX)
        self._batch_size = as_int("batch_size", batch_size, 1, _INT64_MAX)
        self._mode = as_mode(mode)
        self._seed = as_int("seed", seed, 0, (1 << 64) - 1)
        self._world_size = as_int("world_size", world_size, 1, (1 << 31) - 1)
        self._rank = as_int("rank", rank, 0, self._world_size - 1)
        if self._batch_size % self._world_size:
            raise ValueError(
                f"batch_size: expected a multiple of world_size {self._world_size}, "
                f"got {self._batch_size}"
            )
        if self._mode == Mode.CYCLIC and self._batch_size > self._length:
            raise ValueError(
                f"batch_size: expected at most the length {self._length} in mode CYCLIC, "
                f"got {self._batch_size}"
            )
        self._local = self._batch_size // self._world_size
        if self._local > _MOST:
            raise ValueError(
                f"batch_size: expected at most {_MOST} indices for a rank, got {self._local}"
            )
        self._lock = threading.Lock()
        self._step = 0
        self._none: IndexArray = np.empty((0, self._local), np.int64)
        self._drawn = 0, self._none
        self._handle = self._new()

    def _new(self) -> int:
        cell, error = _native.ffi.new("lx_handle *"), _native.scratch.error
        status = _native.lib.lx_sampler_new(
            int(self._mode),
            self._length,
            self._batch_size,
            self._seed,
            self._rank,
            self._world_size,
            cell,
            error,
        )
        _native.check(status, error)
        return int(cell[0])

    @property
    def length(self) -> int:
        """The number of records that indices are drawn from."""
        return self._length

    @property
    def batch_size(self) -> int:
        """Indices in a batch of all ranks."""
        return self._batch_size

    @property
    def mode(self) -> IntEnum:
        """The order, a Sampler.Mode."""
        return self._mode

    @property
    def seed(self) -> int:
        """The seed of the order."""
        return self._seed

    @property
    def rank(self) -> int:
        """Which part of each batch this sampler gives."""
        return self._rank

    @property
    def world_size(self) -> int:
        """The number of parts of each batch."""
        return self._world_size

    @property
    def step(self) -> int:
        """The step whose batch next() gives."""
        return self._step

    def next(self) -> IndexArray:
        """The indices of this rank for the next step: int64, (batch_size / world_size,).

        Raises:
            ForkedProcessError: in a forked child.
        """
        _native.require_usable()
        with self._lock:
            start, rows = self._drawn
            if self._step >= _INT64_MAX:
                raise ValueError(f"next: the last step is {_INT64_MAX - 1}, and it was given")
            if self._step >= start + len(rows):
                start, rows = self._step, self._draw()
                self._drawn = start, rows
            # One change only, the last, so that Ctrl-C cannot part the step from its row.
            self._step += 1
            row: IndexArray = rows[self._step - 1 - start]
            return row

    def _draw(self) -> IndexArray:
        steps = min(max(1, _DRAW // self._local), _INT64_MAX - self._step)
        return self.fill(self._step, steps)

    def seek(self, step: int) -> None:
        """Make next() go on with that step, at least 0."""
        _native.require_usable()
        step = as_int("step", step, 0, _INT64_MAX - 1)
        with self._lock:
            # Rows drawn before are not given again: they may have been written to.
            self._drawn = 0, self._none
            self._step = step

    def indices_at(self, step: int) -> IndexArray:
        """The indices of any step, as next() gives them; changes nothing."""
        indices: IndexArray = self.fill(as_int("step", step, 0, _INT64_MAX - 1), 1)[0]
        return indices

    def fill(self, step: int, steps: int) -> IndexArray:
        """The indices of several steps at once: int64, (steps, batch_size / world_size)."""
        out = np.empty((steps, self._local), np.int64)
        error = _native.scratch.error
        status = _native.lib.lx_sampler_fill(
            self._handle, step, steps, _native.ffi.from_buffer(out), out.size, error
        )
        _native.check(status, error)
        return out

    def _by_place(self) -> Sampler:
        """The same order one index at a time: step s has what is at place s of all batches.

        With CYCLIC the remainder that batches drop has places too, the last of its cycle.
        """
        return Sampler(self._length, 1, self._mode, self._seed)

    def __iter__(self) -> Sampler:
        return self

    __next__ = next

    def __del__(self) -> None:
        if self._handle and not _native.forked:
            _native.lib.lx_sampler_free(self._handle, _native.ffi.NULL)

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (self._length, self._batch_size, int(self._mode), self._seed)
        return _restore, (type(self), arguments, self._rank, self._world_size, self._step)

    def __repr__(self) -> str:
        ranks = (
            f", rank={self._rank}, world_size={self._world_size}" if self._world_size > 1 else ""
        )
        return (
            f"{type(self).__name__}({self._length}, {self._batch_size}, mode={self._mode.name}, "
            f"seed={self._seed}{ranks}, step={self._step})"
        )


def _restore(
    cls: type[Sampler], arguments: tuple[Any, ...], rank: int, world_size: int, step: int
) -> Sampler | _native.Forked:
    """Make an unpickled sampler, at the step where it was."""
    if _native.forked:
        return _native.Forked()
    sampler = cls(*arguments, rank=rank, world_size=world_size)
    sampler.seek(step)
    return sampler


def as_mode(mode: Any) -> Mode:
    """Take an argument as a Mode. Raises TypeError or ValueError."""
    known = ", ".join(f"{m.name} = {m.value}" for m in Mode)
    try:
        return Mode(as_int("mode", mode, 0, max(Mode)))
    except TypeError:
        raise TypeError(
            f"mode: expected one of {known}, got {type(mode).__name__} {mode!r}"
        ) from None
    except ValueError:
        raise ValueError(f"mode: expected one of {known}, got {mode!r}") from None
