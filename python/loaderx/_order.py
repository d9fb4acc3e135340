"""Where a loader's indices come from, whatever kind of sampler gives them.

A loader asks for the indices of steps, several at once and from any thread. Its
own sampler, and any object with ``indices_at(step)``, answer for every step.
One that has only ``next()`` gives each step once and in order, so what it gave
is kept until the step that it belongs to asks for it.
"""

from __future__ import annotations

import threading
from typing import Any, Protocol, TypeVar

import numpy as np

from loaderx._index import INT64_MAX
from loaderx._steps import IndexArray, StepSampler
from loaderx.errors import RecordIndexError, add_note


class Order(Protocol):
    """What a loader needs of a sampler."""

    pure: bool
    """Whether any step can be asked for, again and out of order."""

    own: bool
    """Whether it is the package's own: steps may be drawn early, since they lie within
    the streams and cost nobody else anything."""

    def draw(self, step: int, steps: int) -> tuple[IndexArray, list[int]]:
        """The indices of steps ``step`` to ``step + steps - 1``, and how many each has.

        May be asked for again until the step is done, since a ticket that fails
        is tried step by step, and Ctrl-C leaves a step to be made anew.
        """
        ...

    def done(self, step: int) -> None:
        """Steps below this one were handed over, and are not asked for again."""
        ...


def order_of(sampler: Any) -> Order:
    """Wrap a sampler. Raises TypeError for an object that is none."""
    if isinstance(sampler, StepSampler) and not _overrides(sampler, "indices_at"):
        if _overrides(sampler, "next"):
            raise TypeError(
                f"sampler: expected {type(sampler).__name__}, which overrides next(), to override "
                "indices_at(step) as well, since that is what a loader asks for"
            )
        return _Native(sampler)
    if callable(getattr(sampler, "indices_at", None)):
        return _Indexed(sampler)
    if callable(getattr(sampler, "next", None)):
        return _Sequential(sampler)
    raise TypeError(
        "sampler: expected a loaderx Sampler, or an object with indices_at(step) or next(), "
        f"got {type(sampler).__name__}"
    )


def _overrides(sampler: StepSampler, method: str) -> bool:
    """Whether a subclass of another package has a method of its own."""
    found = next(c for c in type(sampler).__mro__ if method in c.__dict__)
    return found.__module__.partition(".")[0] != __package__


class _Native:
    """A sampler of the package: many steps in one native call."""

    pure = True
    own = True

    def __init__(self, sampler: StepSampler) -> None:
        self._sampler = sampler

    def draw(self, step: int, steps: int) -> tuple[IndexArray, list[int]]:
        return self._sampler.draw(step, steps)

    def done(self, step: int) -> None:
        pass


class _Indexed:
    """A sampler that answers for any step, one at a time."""

    pure = True
    own = False

    def __init__(self, sampler: Any) -> None:
        self._sampler = sampler

    def draw(self, step: int, steps: int) -> tuple[IndexArray, list[int]]:
        return joined([self._at(s) for s in range(step, step + steps)])

    def _at(self, step: int) -> IndexArray:
        try:
            return _as_indices(self._sampler.indices_at(step), step)
        except StopIteration as stop:
            # Raised to the consumer it would end its loop as if all were well.
            error = RuntimeError(f"indices_at raised StopIteration for step {step}")
            raise _noted(error, step) from stop
        except BaseException as error:
            _noted(error, step)
            raise

    def done(self, step: int) -> None:
        pass


class _Sequential:
    """A sampler that gives each step once, in order. StopIteration is its end."""

    pure = False
    own = False

    def __init__(self, sampler: Any) -> None:
        self._sampler = sampler
        # Reentrant, for a signal handler that takes a batch while one is counted as done.
        self._lock = threading.RLock()
        self._drawn = 0
        self._first = 0  # of the steps kept
        self._kept: dict[int, IndexArray] = {}
        self._error: Exception | None = None

    def draw(self, step: int, steps: int) -> tuple[IndexArray, list[int]]:
        with self._lock:
            # Whoever comes first draws for the steps before its own as well.
            while self._drawn < step + steps and self._error is None:
                try:
                    self._kept[self._drawn] = _as_indices(self._sampler.next(), self._drawn)
                    self._drawn += 1
                except Exception as error:
                    self._error = _noted(error, self._drawn)
            if self._error is not None and self._drawn < step + steps:
                raise self._error
            return joined([self._kept[s] for s in range(step, step + steps)])

    def done(self, step: int) -> None:
        with self._lock:
            while self._first < step:
                self._kept.pop(self._first, None)
                self._first += 1


def joined(batches: list[IndexArray]) -> tuple[IndexArray, list[int]]:
    """Put the indices of several steps one after another: what Order.draw gives."""
    index = batches[0] if len(batches) == 1 else np.concatenate(batches)
    return index, [len(batch) for batch in batches]


_Error = TypeVar("_Error", bound=BaseException)


def _noted(error: _Error, step: int) -> _Error:
    """Say which step an error is of."""
    add_note(error, f"loaderx: while drawing the indices of step {step}")
    return error


def _as_indices(given: Any, step: int) -> IndexArray:
    """Take what a foreign sampler gave as indices: a copy, since it may use its array again."""
    indices = np.asarray(given)
    if not indices.size and not isinstance(given, np.ndarray):
        indices = indices.astype(np.int64)  # NumPy makes floats of []
    if indices.ndim != 1 or indices.dtype.kind not in "iu":
        raise TypeError(
            f"sampler: expected a 1-D array of integers for step {step}, "
            f"got shape {indices.shape} of dtype {indices.dtype}"
        )
    if indices.dtype == np.uint64 and indices.size and int(indices.max()) > INT64_MAX:
        index = int(indices.max())
        raise RecordIndexError(
            f"sampler: index {index} of step {step} is out of range", index=index
        )
    return np.array(indices, np.int64, order="C")
