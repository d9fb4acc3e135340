"""A ticket: some consecutive steps that one worker reads and transforms together.

Small batches cost more to hand over than to read, so a ticket holds several of
them: one native call a stream reads them all, and each batch is a view.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from loaderx._batch import RaggedBatch
from loaderx._order import IndexArray, Order
from loaderx._stats import Stats, Work
from loaderx._streams import nbytes, read
from loaderx.errors import add_note
from loaderx.zrecord import DenseStore, RaggedStore

Batch = dict[str, Any]
Streams = dict[str, "DenseStore | RaggedStore"]
Transform = Callable[..., Any]


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
    """How to make batches.

    Args:
        streams: what is read.
        order: at which indices.
        transform: the caller's, or None.
        random: makes the generator of a step, for a transform that takes one.
        max_threads: of the engine, for a read.
        stats: where to count what it took.
        ragged: how ragged streams are given.
    """

    def __init__(
        self,
        streams: Streams,
        order: Order,
        transform: Transform | None,
        random: Callable[[int], np.random.Generator] | None,
        max_threads: int,
        stats: Stats,
        ragged: str,
    ) -> None:
        self.streams = streams
        self.order = order
        self.transform = transform
        self.random = random
        self.max_threads = max_threads
        self.stats = stats
        self.ragged = ragged

    def ordered(self, order: Order) -> Job:
        """The same in another order."""
        twin = copy.copy(self)
        twin.order = order
        return twin

    def run(self, step: int, steps: int, catch: type[BaseException]) -> Result:
        """Make the batches of a ticket.

        Args:
            step: the first step.
            steps: how many.
            catch: exceptions that become the result's error; others are raised.
        """
        started = time.perf_counter()
        result, work = Result(step), Work()
        try:
            raw = self._read(step, steps, result, work)
        except catch as error:
            if steps > 1:
                return self._run_singly(step, steps, catch)
            result.error = error
            return result
        read = time.perf_counter()
        for position, batch in enumerate(raw):
            try:
                result.batches.append(self._transformed(batch, step + position))
            except catch as error:
                result.error = error
                break
        ended = time.perf_counter()
        result.seconds = ended - started
        if self.transform is not None:
            work.transforming = ended - read
        self.stats.add(work)
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

    def _read(self, step: int, steps: int, result: Result, work: Work) -> list[Batch]:
        """Read all streams for some steps: a batch for each."""
        before = time.perf_counter()
        indices = self.order.indices(step, steps)
        index = indices[0] if steps == 1 else np.concatenate(indices)
        batches: list[Batch] = [{} for _ in indices]
        now = time.perf_counter()
        work.sampling = now - before
        for name, store in self.streams.items():
            try:
                values = read(store, self.ragged, index, self.max_threads)
                parts, size = _split(values, indices), nbytes(values)
                if self.ragged == "padded" and isinstance(values, RaggedBatch):
                    padded = [part.pad() for part in parts]
                    parts, size = iter(padded), sum(map(nbytes, padded))
            except BaseException as error:
                add_note(error, f"loaderx: while reading stream {name!r} for step {step}")
                raise
            result.nbytes += size
            for batch, part in zip(batches, parts):
                batch[name] = part
            before, now = now, time.perf_counter()
            work.reading.append(now - before)
            work.nbytes.append(size)
        return batches

    def _transformed(self, batch: Batch, step: int) -> Any:
        if self.transform is None:
            return batch
        try:
            if self.random is not None:
                return self.transform(batch, self.random(step))
            return self.transform(batch)
        except StopIteration as error:
            # Raised to the consumer it would end its loop as if all were well.
            raise RuntimeError(f"the transform raised StopIteration for step {step}") from error
        except BaseException as error:
            names = ", ".join(map(repr, self.streams))
            add_note(error, f"loaderx: in the transform of step {step}, of streams {names}")
            raise


def _split(values: Any, indices: list[IndexArray]) -> Iterator[Any]:
    """Cut what was read for several steps into the values of each."""
    start = 0
    for index in indices:
        yield values[start : start + len(index)]
        start += len(index)
