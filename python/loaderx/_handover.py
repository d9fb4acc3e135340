"""What a loader's ring gives to its consumer and to its workers."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any, NamedTuple

from loaderx._buffers import Lease
from loaderx._ticket import Result


class Taken(NamedTuple):
    """The next batch: its step, whether another worker could be at work, and whose
    memory it is in."""

    step: int
    batch: Any
    hire: bool
    lease: Lease | None


class Failed(NamedTuple):
    """What made the next step fail."""

    error: BaseException


class Ready:
    """What is not consumed yet of a ticket that was made.

    Attributes:
        first: its first step.
        end: the step behind its last batch.
        rest: the batches from the next one on. Taking one from the left is atomic,
            and all that a consumer does.
        error: why the step ``end`` failed, or None.
        nbytes: what was read for it.
        lease: the memory of the caller's that the batch is in, or None.
    """

    __slots__ = ("first", "end", "rest", "error", "nbytes", "lease")

    def __init__(self, result: Result) -> None:
        self.first = result.first
        self.end = result.first + len(result.batches)
        self.rest = deque(result.batches)
        self.error = result.error
        self.nbytes = result.nbytes
        self.lease = result.lease


class Claim(NamedTuple):
    """A ticket to make: steps ``step`` to ``step + steps - 1``."""

    step: int
    steps: int
    lease: Lease | None


class Wait(NamedTuple):
    """A lock that opens when it is worth trying again."""

    lock: threading.Lock

    def wait(self) -> None:
        """Wait for it, in short turns: a signal just before the wait would not end it."""
        while not self.lock.acquire(timeout=0.2):
            pass
