"""A feed: what hands batches to one consumer, for as long as it is open.

The endless loader has one, and every finite pass has one of its own. With
workers the batches come out of a ring; without, each is made when it is asked
for.
"""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from typing import Any, Callable, NamedTuple

from loaderx import _native
from loaderx._ring import ENDLESS, Failed, Ring, Taken
from loaderx._ticket import Job
from loaderx.errors import LoaderClosedError, ZrecordError, add_note

# How long close() waits for workers that are in the middle of a batch.
_JOIN_SECONDS = 0.5


class Step(NamedTuple):
    """What an on_step hook is told of a batch that is about to be given."""

    step: int
    """The step of the batch."""
    waited: float
    """Seconds the consumer has waited for it."""
    ready: int
    """Batches that were ready when it was asked for."""


OnStep = Callable[[Step], Any]


class Feed:
    """Batches in step order, from a step up to an end."""

    def __init__(
        self,
        job: Job,
        workers: int,
        prefetch: int,
        step: int,
        end: int = ENDLESS,
        on_step: OnStep | None = None,
        max_memory: int | None = None,
    ) -> None:
        self.ring = Ring(job, workers, prefetch, step, end, max_memory)
        self.end = end
        self._job = job
        self._workers = workers
        self._on_step = on_step
        self._turn = threading.Lock()
        self._consumer = 0
        _open_feeds.add(self)

    @property
    def step(self) -> int:
        """The step of the batch that next() gives."""
        return self.ring.consumed

    def next(self) -> Any:
        """The batch of the next step. An error closes the feed."""
        self.require_open()
        self.require_outside("next")
        with self._turn:
            ready, asked = self.ring.ready, time.perf_counter()
            self._job.stats.asked(asked, ready)
            self._consumer = threading.get_ident()
            try:
                found = self._wait() if self._workers else self._make()
                if self._on_step is not None and isinstance(found, Taken):
                    found = self._tell(found, time.perf_counter() - asked, ready)
            finally:
                self._consumer = 0
        if isinstance(found, Taken):
            self._job.order.done(self.ring.consumed)
            return found.batch
        self.ring.close()
        raise found.error

    def seek(self, step: int) -> None:
        """Make next() go on with that step."""
        self.require_outside("seek")
        with self._turn:
            self.ring.seek(step)

    def close(self) -> None:
        """Stop the workers; a second call does nothing."""
        if _native.forked:
            self.ring.closed = True
            return
        self.ring.close()
        self.ring.join(_JOIN_SECONDS)
        _open_feeds.discard(self)

    def __del__(self) -> None:
        # Only this: collection may run while the ring's lock is held. Workers see it soon.
        ring = getattr(self, "ring", None)
        if ring is not None:
            ring.closed = True

    def require_open(self) -> None:
        """Raise ForkedProcessError or LoaderClosedError if it is not open."""
        _native.require_usable()
        if self.ring.closed:
            raise LoaderClosedError(
                f"expected an open loader, got one that was closed at step {self.step}"
            )

    def require_outside(self, method: str) -> None:
        """Refuse what would wait for itself."""
        if self._consumer == threading.get_ident() or self.ring.is_worker():
            raise ZrecordError(
                f"{method}: expected a call from outside the loader, got one from within its "
                "transform, sampler or on_step, which would wait for itself"
            )

    def _wait(self) -> Taken | Failed:
        """Wait for the batch that workers make. Ctrl-C leaves the feed as it was."""
        while True:
            found = self.ring.take()
            if isinstance(found, Failed):
                return found
            if isinstance(found, Taken):
                if found.hire:
                    self.ring.hire()
                return found
            since = time.perf_counter()
            self.require_open()
            self.ring.hire()
            found.wait()
            self._job.stats.waited(since)

    def _make(self) -> Taken | Failed:
        """Make the batch here. Ctrl-C leaves the feed as it was."""
        step, since = self.ring.consumed, time.perf_counter()
        result = self._job.run(step, 1, Exception)
        if result.error is not None:
            return Failed(result.error)
        self._job.stats.waited(since)
        self.ring.consumed = step + 1
        return Taken(result.batches[0], False)

    def _tell(self, taken: Taken, waited: float, ready: int) -> Taken | Failed:
        """Call the hook. If it fails the batch is not given, and its step is not done."""
        assert self._on_step is not None
        step = self.ring.consumed - 1
        try:
            self._on_step(Step(step, waited, ready))
        except BaseException as error:
            self.ring.consumed = step
            if isinstance(error, StopIteration):
                # Raised to the consumer it would end its loop as if all were well.
                error, cause = RuntimeError(f"on_step raised StopIteration for step {step}"), error
                error.__cause__ = cause
            add_note(error, f"loaderx: in on_step of step {step}")
            return Failed(error)
        return taken


_open_feeds: weakref.WeakSet[Feed] = weakref.WeakSet()


@atexit.register
def _close_open_feeds() -> None:
    """Stop workers before the interpreter takes things apart under them."""
    for feed in list(_open_feeds):
        feed.close()
