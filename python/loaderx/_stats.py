"""Where a loader's time goes: numbers, and one sentence that judges them."""

from __future__ import annotations

import threading
import time
from typing import Any

# Waiting for less of the time than this, a loop gains nothing from a faster loader.
_NEGLIGIBLE = 0.1


class Work:
    """What the making of one ticket took, in seconds and bytes of each stream."""

    __slots__ = ("sampling", "reading", "nbytes", "transforming")

    def __init__(self) -> None:
        self.sampling = 0.0
        self.reading: list[float] = []
        self.nbytes: list[int] = []
        self.transforming = 0.0


class Stats:
    """The sums of a loader, those of its finite passes included.

    The consumer's numbers change in its turn only, the workers' under a lock. It is
    reentrant, because a signal handler may ask for the numbers wherever the consumer is.
    """

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self._lock = threading.RLock()
        self._counting = False
        self._sampling = 0.0
        self._reading = [0.0] * len(names)
        self._nbytes = [0] * len(names)
        self._transforming = 0.0
        self._steps = 0
        self._asks = 0
        self._depths = 0
        self._began: float | None = None
        self._last = 0.0
        self._waiting = 0.0
        self._from_disk = bytes_from_disk()

    def add(self, work: Work) -> None:
        """Count a ticket that was made."""
        with self._lock:
            self._sampling += work.sampling
            self._transforming += work.transforming
            for position, (seconds, nbytes) in enumerate(zip(work.reading, work.nbytes)):
                self._reading[position] += seconds
                self._nbytes[position] += nbytes

    def given(self, feed: Any) -> None:
        """Count the batches that a feed has given since it was last asked."""
        with self._lock:
            if self._counting:
                return  # from within a signal handler, in the middle of the same
            self._counting = True
            try:
                step = feed.step
                self._steps += step - feed.accounted
                feed.accounted = step
            finally:
                self._counting = False

    def asked(self, now: float, ready: int) -> None:
        """Count that the consumer asks for the first batch of a ticket, with so many ready."""
        self._last = now
        if self._began is None:
            self._began = now
        self._asks += 1
        self._depths += ready

    def waited(self, since: float) -> None:
        """Count that the consumer has waited."""
        self._last = time.perf_counter()
        self._waiting += self._last - since

    def numbers(self) -> dict[str, Any]:
        """The numbers that DataLoader.stats documents."""
        from_disk = bytes_from_disk()
        with self._lock:
            seconds = 0.0 if self._began is None else self._last - self._began
            return {
                "steps": self._steps,
                "seconds": seconds,
                "waiting_for_data": self._waiting,
                "waiting_for_consumer": max(0.0, seconds - self._waiting),
                "sampling": self._sampling,
                "reading": dict(zip(self._names, self._reading)),
                "transforming": self._transforming,
                "bytes": dict(zip(self._names, self._nbytes)),
                "queue_depth": self._depths / self._asks if self._asks else 0.0,
                "cached": cached(sum(self._nbytes), self._from_disk, from_disk),
            }


def bytes_from_disk() -> int | None:
    """What this process has made the system read from disk; None if that is not told."""
    try:
        with open("/proc/self/io", "rb") as file:
            counts = dict(line.split(b": ") for line in file.read().splitlines())
        return int(counts[b"read_bytes"])
    except (OSError, KeyError, ValueError):
        return None  # not Linux, or not allowed


def cached(nbytes: int, before: int | None, after: int | None) -> float | None:
    """The share of bytes read that did not come from disk; None if that is not known."""
    if before is None or after is None or not nbytes:
        return None
    return max(0.0, 1.0 - (after - before) / nbytes)


def verdict(numbers: dict[str, Any]) -> str:
    """One sentence: what limits the loop, and what would help."""
    if not numbers["seconds"]:
        return "no batch was asked for yet"
    share = numbers["waiting_for_data"] / numbers["seconds"]
    if share < _NEGLIGIBLE:
        return (
            f"waiting for data {share:.0%} of the time: the loop is limited by what it does "
            "with its batches, not by the loader"
        )
    reading = numbers["reading"]
    slowest = max(reading, key=reading.__getitem__)
    _, what, remedy = max(
        (numbers["transforming"], "the transform", "add workers or move it off the GIL"),
        (
            reading[slowest],
            f"stream {slowest!r} to be read",
            "add workers up to the processors, or a cheaper codec",
        ),
        (numbers["sampling"], "the sampler", "let it give its indices with less work"),
    )
    return f"waiting for {what} {share:.0%} of the time: {remedy}"


def table(numbers: dict[str, Any]) -> str:
    """The numbers as lines to print, the sentence last."""
    seconds = numbers["seconds"]
    rows = [
        ("waiting for data", numbers["waiting_for_data"], ""),
        ("waiting for the consumer", numbers["waiting_for_consumer"], ""),
        ("workers: sampling", numbers["sampling"], ""),
    ]
    for name, spent in numbers["reading"].items():
        rows.append((f"workers: reading {name!r}", spent, f"  {numbers['bytes'][name]:,} bytes"))
    rows.append(("workers: transforming", numbers["transforming"], ""))
    width = max(len(label) for label, _, _ in rows)
    lines = [f"{numbers['steps']} steps in {seconds:.3f} s"]
    lines += [f"  {label:{width}}  {spent:9.3f} s{rest}" for label, spent, rest in rows]
    lines.append(f"  batches ready when one was asked for: {numbers['queue_depth']:.1f}")
    if numbers["cached"] is not None:
        lines.append(f"  read from memory and not from disk, estimated: {numbers['cached']:.0%}")
    return "\n".join([*lines, verdict(numbers)])
