"""The ring between a loader's consumer and its workers.

Workers claim tickets of consecutive steps and put their results in; the
consumer takes batches in step order. The steps claimed and not yet consumed
stay within a window, and that bounds memory. A worker that finds the window
full waits a moment, then ends; the consumer starts it again. So nobody has to
stop the workers of a loader that was left: they end by themselves, and they
know the ring and the job but not the loader, which can be collected.

The consumer takes the first batch of a ticket under the ring's lock and the rest
without, because a lock costs as much as all else that a small batch does. It may
be interrupted (Ctrl-C) between any two instructions, so what it changes is changed
by one operation at the end, and it waits on a lock of its own, outside the ring's.

A signal handler may call in while the consumer is within the lock, which is reentrant
for that. One that closes then only says so, and the consumer finishes it on its way out.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from loaderx._buffers import BufferRing
from loaderx._handover import Claim, Failed, Ready, Taken, Wait
from loaderx._index import INT64_MAX
from loaderx._ticket import Job, Result

# A ticket grows while it takes less than both; it shrinks when it takes far longer.
TICKET_SECONDS = 0.0005
TICKET_BYTES = 6 << 20
TICKET_STEPS = 256
# How long a worker waits for room before it ends.
LINGER_SECONDS = 0.05
# The end of a ring that has none: no step is counted so far.
ENDLESS = INT64_MAX


class Ring:
    """The state that consumer and workers share, all of it under one lock."""

    def __init__(
        self,
        job: Job,
        workers: int,
        prefetch: int,
        step: int,
        end: int = ENDLESS,
        max_memory: int | None = None,
        buffers: BufferRing | None = None,
    ) -> None:
        self._end = end
        self._max_memory = max_memory
        self._buffers = buffers
        # Until a batch was read it may be as large as it likes, so there is one only.
        self._step_bytes = max_memory or 0
        self._unmeasured = True
        self._job = job
        self._workers = workers
        self._prefetch = prefetch
        self._lock = threading.RLock()
        self._busy = False  # within the lock, and a close has to wait for the way out
        self._room = threading.Condition(self._lock)
        self._waiter: Any = None
        self._threads: set[threading.Thread] = set()
        self._idle = 0
        # Tickets in the making. What is in here no more is dropped when it arrives.
        self._live: dict[int, Claim] = {}
        self._claimed = step
        self._steps = 1
        self._done: dict[int, Ready] = {}
        self._done_bytes = 0
        self.current = Ready(Result(step))
        # One step for each batch that was put: those not consumed are ready.
        self._arrived = step
        self.closed = False
        self.waiting = False
        """Whether the consumer is waiting for a batch."""
        # Whether what was made ahead was given up, and the consumer has not come since.
        self._parked = False
        if buffers is not None:
            buffers.join(self)

    @property
    def consumed(self) -> int:
        """The step of the next batch to be consumed."""
        current = self.current
        return current.end - len(current.rest)

    @property
    def ready(self) -> int:
        """How many batches are made and not consumed."""
        return self._arrived - self.consumed

    # ---- the consumer's side; one thread at a time ----

    def take(self) -> Taken | Failed | Wait:
        """Take the next batch.

        Returns:
            One of: Taken; Failed, which stays so; or Wait, for trying again after.
        """
        with self._lock:
            self._busy = True
            try:
                return self._take()
            finally:
                self._leave()

    def _take(self) -> Taken | Failed | Wait:
        self._parked = False
        current = self.current
        if not current.rest and current.end in self._done:
            current = self.current = self._done[current.end]
            del self._done[current.first]
            self._done_bytes -= current.nbytes
        if current.rest:
            # The ring keeps nothing alive that it has given.
            step, lease, current.lease = self.consumed, current.lease, None
            batch = current.rest.popleft()
            try:
                self._call()
                return Taken(step, batch, self._missing() > 0, lease)
            except BaseException:
                self.put_back(Taken(step, batch, False, lease))
                raise
        if current.error is not None:
            return Failed(current.error)
        self._call()
        waiter = threading.Lock()
        waiter.acquire()
        self._waiter = waiter
        return Wait(waiter)

    def put_back(self, taken: Taken) -> None:
        """Have the batch that was taken last be the next one again."""
        with self._lock:
            current = self.current
            if not self.closed and current.first <= taken.step == self.consumed - 1:
                current.lease = taken.lease
                current.rest.appendleft(taken.batch)

    def give_up(self) -> None:
        """Drop what was made ahead, for another ring that needs the buffers it is in.

        It is made again in its turn. The batch that a consumer waits for is kept.
        Tickets are of one step where there are buffers.
        """
        with self._lock:
            if self._busy:
                return
            self._busy = True
            try:
                if not self.closed:
                    self._drop_ahead()
            finally:
                self._leave()

    def _drop_ahead(self) -> None:
        if self.current.rest:
            self.current.rest.clear()
            self.current = Ready(Result(self.current.first))
        first = self.consumed
        kept = first if self.waiting else None
        self._done = {step: ready for step, ready in self._done.items() if step == kept}
        self._live = {step: claim for step, claim in self._live.items() if step == kept}
        self._done_bytes = sum(ready.nbytes for ready in self._done.values())
        self._arrived = first + sum(len(ready.rest) for ready in self._done.values())
        self._claimed = first + len(self._done) + len(self._live)
        self._parked = True
        self._room.notify_all()

    def starved(self) -> bool:
        """Whether nothing is under way because every buffer is held."""
        return not (self._buffers is None or self._buffers.free) and self._claimed == self.consumed

    def hire(self) -> None:
        """Start the workers there is room for. They count themselves when they run.

        Raises:
            RuntimeError: the system gives no thread, and there is no worker at all.
        """
        # Without the lock: one too many does not register, one that ends wakes the consumer.
        for _ in range(self._missing()):
            # Daemons: at exit the loader's own hook stops them, and never for long.
            worker = threading.Thread(
                target=_work, args=(self,), name="loaderx worker", daemon=True
            )
            try:
                worker.start()
            except RuntimeError:
                if not self._threads:
                    raise
                return

    def pass_over(self, step: int) -> None:
        """Note, where there are no workers, which step is to be made next."""
        self.current = Ready(Result(step))
        self._arrived = step

    def seek(self, step: int) -> None:
        """Go on with another step; what is under way is dropped when it arrives."""
        with self._lock:
            self._busy = True
            try:
                self._live = {}
                self._done, self._done_bytes = {}, 0
                self.current = Ready(Result(step))
                self._claimed = self._arrived = step
                self._room.notify_all()
            finally:
                self._leave()

    def close(self) -> bool:
        """Let workers and consumer end, and drop what was made ahead.

        Returns:
            False in a signal handler that has interrupted a call of the ring, which
            will see to the rest.
        """
        self.closed = True
        with self._lock:
            if self._busy:
                return False
            self._leave()
            return True

    def _leave(self) -> None:
        """End a call that no close was to come in between, and do what a close has left."""
        self._busy = False
        if self.closed:
            self._busy = True
            self._drop()
            self._busy = False

    def _drop(self) -> None:
        self._done, self._done_bytes = {}, 0
        self._arrived = self.consumed
        # Emptied too, for a consumer that has just looked it up.
        current, self.current = self.current, Ready(Result(self._arrived))
        current.rest.clear()
        self._room.notify_all()
        self._wake()

    def is_worker(self) -> bool:
        """Whether the calling thread is one of the ring's workers."""
        return threading.current_thread() in self._threads

    def join(self, seconds: float) -> None:
        """Wait for the workers to end, but no longer than that, and never for oneself."""
        deadline = time.monotonic() + seconds
        for thread in self._threads.copy() - {threading.current_thread()}:
            thread.join(max(0.0, deadline - time.monotonic()))

    # ---- the workers' side ----

    def register(self) -> bool:
        """Count a worker that has started; False if it is one too many."""
        with self._lock:
            if self.closed or len(self._threads) >= self._workers:
                return False
            self._threads.add(threading.current_thread())
            return True

    def unregister(self) -> None:
        """Forget a worker that ends, and let the consumer see that it did."""
        with self._lock:
            self._threads.discard(threading.current_thread())
            self._wake()

    def claim(self) -> Claim | None:
        """Claim a ticket. None: there is nothing to do, end."""
        with self._lock:
            waited = False
            while not self.closed:
                if self._has_room():
                    lease = None if self._buffers is None else self._buffers.lease()
                    if self._buffers is None or lease is not None:
                        step, steps = self._claimed, min(self._ticket(), self._end - self._claimed)
                        claim = self._live[step] = Claim(step, steps, lease)
                        self._claimed = step + steps
                        return claim
                if waited:
                    return None
                self._idle += 1
                # Woken without room, because another took it: as good as not woken.
                waited = not self._room.wait(LINGER_SECONDS)
                self._idle -= 1
            return None

    def put(self, claim: Claim, result: Result) -> None:
        """Hand over a ticket's result, and learn from it how large tickets should be."""
        with self._lock:
            if self._live.get(claim.step) is not claim or self.closed:
                return
            del self._live[claim.step]
            self._done[result.first] = Ready(result)
            self._done_bytes += result.nbytes
            self._arrived += len(result.batches)
            self._measure(result, claim.steps)
            if claim.steps == self._steps and result.error is None:
                self._resize(result)
            self._wake()

    def run(self, claim: Claim) -> Result:
        """Make the batches of a ticket; whatever goes wrong is in the result."""
        self._job.ask(claim.step, claim.steps, self._end)
        return self._job.run(claim.step, claim.steps, BaseException, claim.lease)

    # ---- with the lock held ----

    def _missing(self) -> int:
        """How many more workers would find a ticket."""
        absent = self._workers - len(self._threads)
        return absent and min(absent, self._free() // self._ticket() - self._idle)

    def _window(self) -> int:
        """How many steps may be claimed and not consumed."""
        return max(self._prefetch + self._workers, self._steps * (self._workers + 1))

    def _ticket(self) -> int:
        """How many steps a ticket has now."""
        return self._steps if self._max_memory is None else min(self._steps, self._fit(0))

    def _free(self) -> int:
        """How many steps may be claimed now."""
        if self._claimed >= self._end:
            return 0
        held = self._claimed - self._held_from()
        free = self._window() - held
        if self._max_memory is not None:
            fit = self._fit(self._held_bytes()) - (self._claimed - self._arrived)
            free = min(free, fit)
        if self._buffers is None:
            return free
        if self._parked or self._buffers.is_awaited(self):
            free = min(free, int(self.waiting) - held)
        return min(free, self._buffers.free)

    def _fit(self, held: int) -> int:
        """How many steps max_memory has room for beside what is held, each as the largest so far.

        Of nothing held there is always room for one.
        """
        assert self._max_memory is not None
        fit = (self._max_memory - held) // max(1, self._step_bytes)
        return fit if held else max(1, fit)

    def _held_bytes(self) -> int:
        """What the batches take that were made and not given, those of a ticket together."""
        return self._done_bytes + (self.current.nbytes if self.current.rest else 0)

    def _held_from(self) -> int:
        """The first step whose memory counts: batches of a ticket share theirs."""
        current = self.current
        return current.first if self._max_memory is not None and current.rest else self.consumed

    def _has_room(self) -> bool:
        return self._free() >= self._ticket()

    def _call(self) -> None:
        """Have a worker that waits for room look again."""
        if self._idle and self._has_room():
            self._room.notify()

    def _measure(self, result: Result, steps: int) -> None:
        """Learn how large a batch can be, for max_memory."""
        if self._max_memory is not None and result.error is None:
            largest = 0 if self._unmeasured else self._step_bytes
            self._step_bytes = max(largest, -(-result.nbytes // steps))
            self._unmeasured = False

    def _resize(self, result: Result) -> None:
        if self._buffers is not None:
            return  # a slot holds one batch
        if self._max_memory is not None and not self._job.even:
            return  # small batches say nothing of those that come after them in a ticket
        small = result.seconds < TICKET_SECONDS and 2 * result.nbytes <= TICKET_BYTES
        if small and self._steps < TICKET_STEPS:
            self._steps *= 2
        elif result.seconds > 8 * TICKET_SECONDS and self._steps > 1:
            self._steps //= 2

    def _wake(self) -> None:
        if self._waiter is not None:
            self._waiter.release()
            self._waiter = None


def _work(ring: Ring) -> None:
    """What a worker thread does until there is nothing left to do."""
    if not ring.register():
        return
    try:
        while (claim := ring.claim()) is not None:
            ring.put(claim, ring.run(claim))
            del claim  # its lease must not wait for the next one
    finally:
        ring.unregister()
