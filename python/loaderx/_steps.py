"""What all samplers have in common: a seed, a rank, and a batch for every step."""

from __future__ import annotations

import threading
from typing import Any, ClassVar, TypeVar

import numpy as np

from loaderx import _native
from loaderx._arguments import as_int
from loaderx._ranks import as_ranks

IndexArray = np.ndarray[Any, np.dtype[np.int64]]
Self = TypeVar("Self", bound="StepSampler")

INT64_MAX = (1 << 63) - 1
# The most indices of one batch: 2 GiB of them, more than any batch of records.
MOST_INDICES = 1 << 28


class StepSampler:
    """The base of Sampler, MixSampler and BudgetSampler. Not for use by itself.

    A subclass says what the batches of some steps are, and what names its order
    in the state of a loader.
    """

    _FREE: ClassVar[str]

    _handle = 0

    def __init__(self, seed: Any, rank: Any, world_size: Any) -> None:
        rank, world_size = as_ranks(rank, world_size)
        self._seed = as_int("seed", seed, 0, (1 << 64) - 1)
        self._world_size = as_int("world_size", world_size, 1, (1 << 31) - 1)
        self._rank = as_int("rank", rank, 0, self._world_size - 1)
        # Reentrant, for a signal handler that asks for a batch while one is drawn.
        self._lock = threading.RLock()
        self._step = 0

    # ---- what a subclass says ----

    @property
    def length(self) -> int:
        """The number of records that there are to draw from."""
        raise NotImplementedError

    def batches(self, step: int, steps: int) -> list[Any]:
        """What indices_at gives for steps ``step`` to ``step + steps - 1``."""
        raise NotImplementedError

    def draw(self, step: int, steps: int) -> tuple[IndexArray, list[int]]:
        """The records of those steps, one batch after another, and how many each has.

        Records are counted as a loader of this sampler counts them.
        """
        raise NotImplementedError

    def facts(self) -> dict[str, Any]:
        """What the order depends on beside seed and step: data that survives JSON."""
        raise NotImplementedError

    def _arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What makes an equal sampler, beside seed, rank and world_size."""
        raise NotImplementedError

    # ---- what all have ----

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

    def next(self) -> Any:
        """What indices_at gives for the next step.

        Raises:
            ForkedProcessError: in a forked child.
        """
        _native.require_usable()
        with self._lock:
            while True:
                self._require_more()
                step = self._step
                batch = self.batches(step, 1)[0]
                if step == self._step:  # no signal handler took it meanwhile
                    self._step = step + 1
                    return batch

    def seek(self, step: int) -> None:
        """Make next() go on with that step, at least 0."""
        _native.require_usable()
        step = as_int("step", step, 0, INT64_MAX - 1)
        with self._lock:
            self._step = step

    def indices_at(self, step: int) -> Any:
        """The batch of any step, as next() gives it; changes nothing."""
        return self.batches(as_int("step", step, 0, INT64_MAX - 1), 1)[0]

    def __iter__(self: Self) -> Self:
        return self

    def __next__(self) -> Any:
        return self.next()

    def __del__(self) -> None:
        if self._handle and not _native.forked:
            getattr(_native.lib, self._FREE)(self._handle, _native.ffi.NULL)

    def __reduce__(self) -> tuple[Any, ...]:
        places, names = self._arguments()
        names.update(seed=self._seed, rank=self._rank, world_size=self._world_size)
        return _restore, (type(self), places, names, self._step)

    def _made(self, function: Any, *arguments: Any) -> int:
        """The handle that a native constructor makes of its own arguments, seed and rank."""
        cell, error = _native.ffi.new("lx_handle *"), _native.scratch.error
        status = function(*arguments, self._seed, self._rank, self._world_size, cell, error)
        _native.check(status, error)
        return int(cell[0])

    def _require_more(self) -> None:
        if self._step >= INT64_MAX:
            raise ValueError(f"next: the last step is {INT64_MAX - 1}, and it was given")

    def _require_shares(self, name: str, value: int) -> None:
        """Raise ValueError for a batch that cannot be shared by the ranks."""
        if value % self._world_size:
            raise ValueError(
                f"{name}: expected a multiple of world_size {self._world_size}, got {value}"
            )

    def _tail(self) -> str:
        """How a repr ends."""
        ranks = (
            f", rank={self._rank}, world_size={self._world_size}" if self._world_size > 1 else ""
        )
        return f"seed={self._seed}{ranks}, step={self._step})"


def _restore(
    cls: type[StepSampler], places: tuple[Any, ...], names: dict[str, Any], step: int
) -> StepSampler | _native.Forked:
    """Make an unpickled sampler, at the step where it was."""
    if _native.forked:
        return _native.Forked()
    sampler = cls(*places, **names)
    sampler.seek(step)
    return sampler


def cut(values: Any, counts: list[int]) -> list[Any]:
    """Cut what was drawn for several steps into the parts of each."""
    start, parts = 0, []
    for count in counts:
        parts.append(values[start : start + count])
        start += count
    return parts
