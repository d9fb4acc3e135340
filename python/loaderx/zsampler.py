"""The order of indices: a pure function of the seed and the step.

``Sampler(length, batch_size, mode, seed)`` says which records make the batch of
each step, without knowing a store. The same arguments give the same order on
every machine, for as long as the major version stays. ``split`` cuts a store
into parts to sample from, ``Mix`` draws from several stores, ``TokenBudget`` and
``LengthBuckets`` form batches of records of like lengths.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, ClassVar, Literal

import numpy as np

from loaderx import _native
from loaderx._arguments import as_int
from loaderx._budget import BudgetSampler, LengthBuckets, TokenBudget
from loaderx._mix import Drawn, Mix, MixSampler
from loaderx._mode import Mode, as_mode
from loaderx._steps import INT64_MAX, MOST_INDICES, IndexArray, StepSampler
from loaderx._subset import as_subset, count_of, described, facts_of, source_of, split

__all__ = [
    "BudgetSampler",
    "Drawn",
    "LengthBuckets",
    "Mix",
    "MixSampler",
    "Sampler",
    "TokenBudget",
    "split",
]

# The indices that next() draws at once, to hand out row by row.
_DRAW = 16384


class Sampler(StepSampler):
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
            world_size; for CYCLIC at most the number of records drawn from.
        mode: a Sampler.Mode, or its number.
        seed: 0 to 2**64 - 1.
        rank: 0 to world_size - 1. "auto" takes both from torch.distributed if that
            is initialised, else from RANK and WORLD_SIZE in the environment.
        world_size: the number of ranks.
        subset: the records to draw from: a range, or their indices, 0 to
            length - 1, in the order in which SEQUENTIAL takes them; one that is
            there twice is drawn twice as often. None: all.

    Raises:
        TypeError: an argument that is not an integer.
        ValueError: one out of range; the message says expected and got. Or rank is
            "auto" and nothing says which rank this is.
    """

    Mode: ClassVar[type[Mode]] = Mode

    _FREE = "lx_sampler_free"

    def __init__(
        self,
        length: int,
        batch_size: int,
        mode: int = Mode.CYCLIC,
        seed: int = 42,
        *,
        rank: int | Literal["auto"] = 0,
        world_size: int = 1,
        subset: Any = None,
    ) -> None:
        super().__init__(seed, rank, world_size)
        self._length = as_int("length", length, 1, INT64_MAX)
        self._batch_size = as_int("batch_size", batch_size, 1, INT64_MAX)
        self._mode = as_mode(mode)
        self._subset = as_subset("subset", subset)
        self._require_shares("batch_size", self._batch_size)
        of = "length" if subset is None else "subset's length"
        if self._mode == Mode.CYCLIC and 0 < self.records < self._batch_size:
            raise ValueError(
                f"batch_size: expected at most the {of} {self.records} in mode CYCLIC, "
                f"got {self._batch_size}"
            )
        self._local = self._batch_size // self._world_size
        if self._local > MOST_INDICES:
            raise ValueError(
                f"batch_size: expected at most {MOST_INDICES} indices for a rank, got {self._local}"
            )
        self._none: IndexArray = np.empty((0, self._local), np.int64)
        self._drawn = 0, self._none
        self._handle = self._new()

    def _new(self) -> int:
        source = source_of(self._length, int(self._mode), self._subset)
        return self._made(_native.lib.lx_sampler_new_of, source, self._batch_size)

    @property
    def length(self) -> int:
        """The number of records of the store."""
        return self._length

    @property
    def records(self) -> int:
        """The number of records that indices are drawn from: length, or the subset's."""
        return count_of(self._subset, self._length)

    @property
    def subset(self) -> range | IndexArray | None:
        """The records that indices are drawn from; None: all. The array is read-only."""
        return self._subset

    @property
    def batch_size(self) -> int:
        """Indices in a batch of all ranks."""
        return self._batch_size

    @property
    def mode(self) -> IntEnum:
        """The order, a Sampler.Mode."""
        return self._mode

    def next(self) -> IndexArray:
        """The indices of this rank for the next step: int64, (batch_size / world_size,).

        Raises:
            ForkedProcessError: in a forked child.
        """
        _native.require_usable()
        with self._lock:
            while True:
                self._require_more()
                start, rows = self._drawn
                step = self._step
                if not start <= step < start + len(rows):
                    self._drawn = step, self._draw(step)
                    continue
                row: IndexArray = rows[step - start]
                if step == self._step:  # no signal handler took it meanwhile
                    # One change only, the last, so that Ctrl-C cannot part the step from its row.
                    self._step = step + 1
                    return row

    __next__ = next

    def _draw(self, step: int) -> IndexArray:
        steps = min(max(1, _DRAW // self._local), INT64_MAX - step)
        return self.fill(step, steps)

    def seek(self, step: int) -> None:
        """Make next() go on with that step, at least 0."""
        _native.require_usable()
        step = as_int("step", step, 0, INT64_MAX - 1)
        with self._lock:
            # Rows drawn before are not given again: they may have been written to.
            self._drawn = 0, self._none
            self._step = step

    def indices_at(self, step: int) -> IndexArray:
        """The indices of any step, as next() gives them; changes nothing."""
        indices: IndexArray = self.fill(as_int("step", step, 0, INT64_MAX - 1), 1)[0]
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

    def batches(self, step: int, steps: int) -> list[IndexArray]:
        """What indices_at gives for steps ``step`` to ``step + steps - 1``."""
        return list(self.fill(step, steps))

    def draw(self, step: int, steps: int) -> tuple[IndexArray, list[int]]:
        """The indices of those steps, one batch after another, and how many each has."""
        return self.fill(step, steps).reshape(-1), [self._local] * steps

    def facts(self) -> dict[str, Any]:
        """What the order depends on beside seed and step: data that survives JSON."""
        return {
            "sampler": "Sampler",
            "mode": self._mode.name,
            "batch_size": self._batch_size,
            "subset": facts_of(self._subset),
        }

    def by_place(self) -> Sampler:
        """The same order one index at a time: step s has what is at place s of all batches.

        With CYCLIC the remainder that batches drop has places too, the last of its cycle.
        """
        return Sampler(self._length, 1, self._mode, self._seed, subset=self._subset)

    def _arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (self._length, self._batch_size, int(self._mode)), {"subset": self._subset}

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self._length}, {self._batch_size}, mode={self._mode.name}"
            f"{described(self._subset)}, {self._tail()}"
        )
