"""A ticket: some consecutive steps that one worker reads and transforms together.

Small batches cost more to hand over than to read, so a ticket holds several of
them: one native call a stream reads them all, and each batch is a view.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from loaderx._ahead import TICKETS, Ahead
from loaderx._batch import RaggedBatch
from loaderx._buffers import Lease, room
from loaderx._order import Order
from loaderx._stats import Stats, Work
from loaderx._steps import cut
from loaderx._streams import Reader, nbytes, rows
from loaderx.errors import add_note

Batch = dict[str, Any]
Transform = Callable[..., Any]


class Result:
    """What became of a ticket: the batches from step ``first`` on, and what went wrong next.

    Attributes:
        first: the step of the first batch.
        batches: a batch for each step, up to the one that failed.
        error: why the step after the last batch failed, or None.
        nbytes: what was read.
        seconds: how long it took.
        lease: the memory of the caller's that the batch is in, or None.
    """

    __slots__ = ("first", "batches", "error", "nbytes", "seconds", "lease")

    def __init__(self, first: int, lease: Lease | None = None) -> None:
        self.first = first
        self.batches: list[Any] = []
        self.error: BaseException | None = None
        self.nbytes = 0
        self.seconds = 0.0
        self.lease = lease


class Job:
    """How to make batches.

    Args:
        reader: what is read.
        order: at which indices.
        transform: the caller's, or None.
        random: makes the generator of a step, for a transform that takes one.
        max_threads: of the engine, for a read.
        stats: where to count what it took.
        ragged: how ragged streams are given.
        even: whether every batch takes the same memory.
    """

    def __init__(
        self,
        reader: Reader,
        order: Order,
        transform: Transform | None,
        random: Callable[[int], np.random.Generator] | None,
        max_threads: int,
        stats: Stats,
        ragged: str,
        even: bool = True,
    ) -> None:
        self.reader = reader
        self.order = order
        self.transform = transform
        self.random = random
        self.max_threads = max_threads
        self.stats = stats
        self.ragged = ragged
        self.even = even
        self._ahead = Ahead(order, reader)

    def ordered(self, order: Order) -> Job:
        """The same in another order."""
        twin = copy.copy(self)
        twin.order = order
        twin._ahead = Ahead(order, self.reader)
        return twin

    def ask(self, step: int, steps: int, end: int) -> None:
        """Ask the disk for a ticket that comes after one, if it comes before the end."""
        begin = step + TICKETS * steps
        self._ahead.ask(begin, min(steps, end - begin))

    def run(
        self, step: int, steps: int, catch: type[BaseException], lease: Lease | None = None
    ) -> Result:
        """Make the batches of a ticket.

        Args:
            step: the first step.
            steps: how many; one if there is a lease.
            catch: exceptions that become the result's error; others are raised.
            lease: memory of the caller's to read into.
        """
        started = time.perf_counter()
        result, work = Result(step, lease), Work()
        try:
            raw = self._read(step, steps, result, work)
        except catch as error:
            # What is no Exception, such as KeyboardInterrupt, may not come a second time.
            if steps > 1 and isinstance(error, Exception):
                return self._run_singly(step, steps, catch)
            result.error = error
            return result
        if self.transform is None:
            result.batches = raw
            result.seconds = time.perf_counter() - started
        else:
            read = time.perf_counter()
            for position, batch in enumerate(raw):
                try:
                    result.batches.append(self._transformed(batch, step + position))
                except catch as error:
                    result.error = error
                    break
            ended = time.perf_counter()
            result.seconds = ended - started
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
        index, counts = self._ahead.draw(step, steps)
        where = self.reader.locate(index)
        batches: list[Batch] = [{} for _ in counts]
        now = time.perf_counter()
        work.sampling = now - before
        for name in self.reader.names:
            try:
                parts, size = self._read_stream(name, where, counts, result.lease)
            except BaseException as error:
                add_note(error, f"loaderx: while reading stream {name!r} for step {step}")
                raise
            result.nbytes += size
            for batch, part in zip(batches, parts):
                batch[name] = part
            before, now = now, time.perf_counter()
            work.reading.append(now - before)
            work.nbytes.append(size)
        for name, values in self.reader.beside(where).items():
            for batch, part in zip(batches, cut(values, counts)):
                batch[name] = part
        return batches

    def _read_stream(
        self, name: str, where: Any, counts: list[int], lease: Lease | None
    ) -> tuple[list[Any], int]:
        """Read a stream: the values of each step, and their bytes."""
        out = room(lease.slot, name, counts[0]) if lease is not None else None
        values = self.reader.read(name, where, counts, self.max_threads, out)
        if isinstance(values, np.ndarray):
            # Without the records that only take up space between the batches.
            return rows(values, counts), values.nbytes * sum(counts) // max(1, len(values))
        parts, size = cut(values, counts), nbytes(values)
        if self.ragged == "padded" and isinstance(values, RaggedBatch):
            parts = [part.pad() for part in parts]
            size = sum(map(nbytes, parts))
        return parts, size

    def _transformed(self, batch: Batch, step: int) -> Any:
        assert self.transform is not None
        try:
            if self.random is not None:
                return self.transform(batch, self.random(step))
            return self.transform(batch)
        except StopIteration as error:
            # Raised to the consumer it would end its loop as if all were well.
            stopped = RuntimeError(f"the transform raised StopIteration for step {step}")
            self._note(stopped, step)
            raise stopped from error
        except BaseException as error:
            self._note(error, step)
            raise

    def _note(self, error: BaseException, step: int) -> None:
        names = ", ".join(map(repr, self.reader.names))
        add_note(error, f"loaderx: in the transform of step {step}, of streams {names}")
