"""A ticket: some consecutive steps that one worker reads and transforms together.

Small batches cost more to hand over than to read, so a ticket holds several of
them: one native call a stream reads them all, and each batch is a view.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from loaderx._order import IndexArray, Order
from loaderx.zrecord import DenseStore, RaggedStore

Batch = dict[str, Any]
Streams = dict[str, "DenseStore | RaggedStore"]
Transform = Callable[[Batch], Any]


class Result:
    """What became of a ticket: the batches from step ``first`` on, and what went wrong next.

    Attributes:
        first: the step of the first batch.
        batches: a batch for each step, up to the one that failed.
        error: why the step after the last batch failed, or None.
        nbytes: what was read.
        seconds: how long it took.
    """

    __slots__ = ("first", "batches", "error", "nbytes", "seconds")

    def __init__(self, first: int) -> None:
        self.first = first
        self.batches: list[Any] = []
        self.error: BaseException | None = None
        self.nbytes = 0
        self.seconds = 0.0


class Job:
    """How to make batches: the streams, the order, and the caller's transform."""

    def __init__(
        self, streams: Streams, order: Order, transform: Transform | None, max_threads: int
    ) -> None:
        self.streams = streams
        self.order = order
        self.transform = transform
        self.max_threads = max_threads

    def run(self, step: int, steps: int, catch: type[BaseException]) -> Result:
        """Make the batches of a ticket.

        Args:
            step: the first step.
            steps: how many.
            catch: exceptions that become the result's error; others are raised.
        """
        started = time.perf_counter()
        result = Result(step)
        try:
            raw = self._read(step, steps, result)
        except catch as error:
            if steps > 1:
                return self._run_singly(step, steps, catch)
            result.error = error
            return result
        for position, batch in enumerate(raw):
            try:
                result.batches.append(self._transformed(batch, step + position))
            except catch as error:
                result.error = error
                break
        result.seconds = time.perf_counter() - started
        return result

    def _run_singly(self, step: int, steps: int, catch: type[BaseException]) -> Result:
        """Find out which step of a ticket fails, and keep the batches before it."""
        result = Result(step)
        for position in range(steps):
            one = self.run(step + position, 1, catch)
            result.batches += one.batches
            result.error = one.error
            if one.error is not None:
                break
        return result

    def _read(self, step: int, steps: int, result: Result) -> list[Batch]:
        """Read all streams for some steps: a batch for each."""
        try:
            indices = self.order.indices(step, steps)
        except BaseException as error:
            add_note(error, f"loaderx: while drawing the indices of step {step}")
            raise
        index = indices[0] if steps == 1 else np.concatenate(indices)
        batches: list[Batch] = [{} for _ in indices]
        for name, store in self.streams.items():
            try:
                values = store._read(index, self.max_threads)
            except BaseException as error:
                add_note(error, f"loaderx: while reading stream {name!r} for step {step}")
                raise
            result.nbytes += _nbytes(values)
            for batch, part in zip(batches, _split(values, indices)):
                batch[name] = part
        return batches

    def _transformed(self, batch: Batch, step: int) -> Any:
        if self.transform is None:
            return batch
        try:
            return self.transform(batch)
        except StopIteration as error:
            # Raised to the consumer it would end its loop as if all were well.
            raise RuntimeError(f"the transform raised StopIteration for step {step}") from error
        except BaseException as error:
            names = ", ".join(map(repr, self.streams))
            add_note(error, f"loaderx: in the transform of step {step}, of streams {names}")
            raise


def add_note(error: BaseException, note: str) -> None:
    """Add a note to an exception, as its add_note does from Python 3.11 on."""
    error.__dict__.setdefault("__notes__", []).append(note)


def _split(values: Any, indices: list[IndexArray]) -> Iterator[Any]:
    """Cut what was read for several steps into the values of each."""
    start = 0
    for index in indices:
        yield values[start : start + len(index)]
        start += len(index)


def _nbytes(values: Any) -> int:
    if isinstance(values, np.ndarray):
        return values.nbytes
    return sum(array.nbytes for array in values)
