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
from loaderx._buffers import BufferRing, Lease
from loaderx._handover import Failed, Taken
from loaderx._ring import ENDLESS, Ring
from loaderx._ticket import Job
from loaderx.errors import LoaderClosedError, ZrecordError, add_note

_get_ident = threading.get_ident

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
        buffers: BufferRing | None = None,
    ) -> None:
        self.ring = Ring(job, workers, prefetch, step, end, max_memory, buffers)
        self.end = end
        self._job = job
        self._stats = job.stats
        # Up to which step batches were counted.
        self.accounted = step
        self._workers = workers
        self._on_step = on_step
        self._buffers = buffers
        # Reentrant, for a signal handler that calls in just before the turn is noted.
        self._turn = threading.RLock()
        # The thread that may take the rest of a ticket by the short way: it is not
        # within a transform, a sampler or on_step. 0: none may.
        self._owner = 0
        self._consumer = 0
        # The step of the batch that on_step is being told of: it is not given yet.
        self._telling: int | None = None
        _open_feeds.add(self)

    @property
    def step(self) -> int:
        """The step of the batch that next() gives; in on_step, of the one it is told of."""
        telling = self._telling
        return self.ring.consumed if telling is None else telling

    def next(self) -> Any:
        """The batch of the next step. An error closes the feed."""
        if self._owner == _get_ident() and not _native.forked:
            try:
                return self.ring.current.rest.popleft()
            except IndexError:
                pass  # that was the last of its ticket
        return self._next()

    def _next(self) -> Any:
        """The long way: whatever else there is to do besides handing over a batch."""
        self.require_open()
        self.require_outside("next")
        found: Taken | Failed | None = None
        try:
            with self._turn:
                self._require_more()
                ready, asked = self.ring.ready, time.perf_counter()
                self._stats.asked(asked, ready)
                self._owner, self._consumer = 0, _get_ident()
                try:
                    found = self._wait() if self._workers else self._make()
                    if self._on_step is not None and isinstance(found, Taken):
                        found = self._tell(found, time.perf_counter() - asked, ready)
                    if isinstance(found, Taken) and found.lease is not None:
                        self._give(found.lease)
                finally:
                    self._owner = 0 if self._on_step is not None else self._consumer
                    self._consumer = 0
            self.account()
        except BaseException:
            if isinstance(found, Taken):
                self._take_back(found)
            raise
        if isinstance(found, Failed):
            self.ring.close()
            raise found.error
        if not self._job.order.pure:
            self._job.order.done(self.ring.consumed)
        return found.batch

    def _take_back(self, taken: Taken) -> None:
        """Have a batch that Ctrl-C has kept from its consumer be the next one again."""
        if taken.lease is not None:
            assert self._buffers is not None
            self._buffers.take_back(taken.lease)
        if self._workers:
            self.ring.put_back(taken)
        elif self.ring.consumed == taken.step + 1:
            self.ring.pass_over(taken.step)

    def seek(self, step: int) -> None:
        """Make next() go on with that step."""
        self.require_outside("seek")
        with self._turn:
            self._consumer = _get_ident()
            try:
                self.account()
                self.ring.seek(step)
                self.accounted = step
            finally:
                self._consumer = 0

    def account(self) -> None:
        """Have the batches counted that were given since the last time."""
        self._stats.given(self)

    def account_all(self) -> None:
        """The same, of the passes that are under way as well."""
        for feed in list(_open_feeds):
            if feed._stats is self._stats:
                feed.account()

    def close(self) -> None:
        """Stop the workers; a second call does nothing."""
        if _native.forked:
            self.ring.closed = True
            return
        self.account()
        if self.ring.close():
            self.ring.join(_JOIN_SECONDS)
        _open_feeds.discard(self)

    def __del__(self) -> None:
        # No more: collection may run while the ring's lock is held. Workers see it soon.
        ring = getattr(self, "ring", None)
        if ring is not None:
            ring.closed = True
            if not _native.forked:
                self.account()

    def require_open(self) -> None:
        """Raise ForkedProcessError or LoaderClosedError if it is not open."""
        _native.require_usable()
        if self.ring.closed:
            raise LoaderClosedError(
                f"expected an open loader, got one that was closed at step {self.step}"
            )

    @property
    def ended(self) -> bool:
        """Whether all batches up to the end were given."""
        return self.step >= self.end

    def _require_more(self) -> None:
        """Raise StopIteration behind the last batch, which another thread may have taken."""
        if self.ended:
            if self.end < ENDLESS:
                raise StopIteration
            raise ValueError(f"next: the last step is {self.end - 1}, and it was given")

    def require_outside(self, method: str) -> None:
        """Refuse what would wait for itself."""
        if self._consumer == _get_ident() or self.ring.is_worker():
            raise ZrecordError(
                f"{method}: expected a call from outside the loader, got one from within its "
                "transform, sampler, a signal handler or on_step, which would wait for itself"
            )

    def _wait(self) -> Taken | Failed:
        """Wait for the batch that workers make. Ctrl-C leaves the feed as it was."""
        self.ring.waiting = True
        try:
            return self._await()
        finally:
            self.ring.waiting = False
            if self._buffers is not None:
                self._buffers.fed(self.ring)

    def _await(self) -> Taken | Failed:
        while True:
            found = self.ring.take()
            if isinstance(found, Failed):
                return found
            if isinstance(found, Taken):
                try:
                    if found.hire:
                        self.ring.hire()
                    return found
                except BaseException:
                    self._take_back(found)
                    raise
            since = time.perf_counter()
            self.require_open()
            if self._buffers is not None and self.ring.starved():
                self._buffers.wait(self.ring, lambda: not self.ring.starved())
            else:
                self.ring.hire()
                found.wait()
            self._stats.waited(since)

    def _make(self) -> Taken | Failed:
        """Make the batch here. Ctrl-C leaves the feed as it was."""
        step, since = self.ring.consumed, time.perf_counter()
        lease = self._lease()
        self._job.ask(step, 1, self.end)
        result = self._job.run(step, 1, Exception, lease)
        if result.error is not None:
            return Failed(result.error)
        self._stats.waited(since)
        self.ring.pass_over(step + 1)
        return Taken(step, result.batches[0], False, lease)

    def _give(self, lease: Lease) -> None:
        assert self._buffers is not None
        self._buffers.give(lease)

    def _lease(self) -> Lease | None:
        """A slot to make a batch in, where there are any."""
        if self._buffers is None:
            return None
        try:
            buffers = self._buffers
            while (lease := buffers.lease()) is None:
                buffers.wait(self.ring, lambda: buffers.free > 0)
                self.require_open()
        finally:
            self._buffers.fed(self.ring)
        return lease

    def _tell(self, taken: Taken, waited: float, ready: int) -> Taken | Failed:
        """Call the hook. If it fails the batch is not given, and its step is not done.

        What is no Exception, such as Ctrl-C, leaves the feed as it was.
        """
        assert self._on_step is not None
        step = self.ring.consumed - 1
        try:
            self._telling = step
            self._on_step(Step(step, waited, ready))
        except Exception as error:
            self.ring.pass_over(step)
            failure: Exception = error
            if isinstance(error, StopIteration):
                # Raised to the consumer it would end its loop as if all were well.
                failure = RuntimeError(f"on_step raised StopIteration for step {step}")
                failure.__cause__ = error
            add_note(failure, f"loaderx: in on_step of step {step}")
            return Failed(failure)
        finally:
            self._telling = None
        return taken


_open_feeds: weakref.WeakSet[Feed] = weakref.WeakSet()


@atexit.register
def _close_open_feeds() -> None:
    """Stop workers before the interpreter takes things apart under them.

    All are told before any is waited for, so that it takes no longer for many.
    """
    if _native.forked:
        return
    rings = [feed.ring for feed in list(_open_feeds)]
    for ring in rings:
        ring.close()
    deadline = time.monotonic() + _JOIN_SECONDS
    for ring in rings:
        ring.join(deadline - time.monotonic())
