"""How long things take: cases alternate, and the best of several rounds counts.

On a machine that others use too, the mean of one case says more about them than
about the case. Rounds in which every case has its turn, and of each the fastest
round, compare cases under the same conditions.
"""

from __future__ import annotations

import hashlib
import os
import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

Sample = Callable[[float], Sequence[float]]


@dataclass
class Measured:
    """The best round of a case.

    Attributes:
        seconds: the mean duration of one run in the best round.
        p95: the 95th percentile of the durations in that round, in seconds.
        rounds: the mean of each round, in the order they were run.
    """

    seconds: float
    p95: float
    rounds: list[float] = field(default_factory=list)


def percentile(durations: Sequence[float], share: float) -> float:
    """Return the duration that a share of all do not exceed."""
    ordered = sorted(durations)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def alternate(cases: Mapping[str, Sample], rounds: int, seconds: float) -> dict[str, Measured]:
    """Run every case once a round, and keep the best round of each.

    Args:
        cases: for each name what runs the case for about so many seconds, at least
            once, and returns the duration of each run.
        rounds: how many, at least 1.
        seconds: for each case in each round.
    """
    best: dict[str, Measured] = {}
    means: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, sample in cases.items():
            durations = sample(seconds)
            mean = statistics.fmean(durations)
            means[name].append(mean)
            if name not in best or mean < best[name].seconds:
                best[name] = Measured(mean, percentile(durations, 0.95))
    for name, measured in best.items():
        measured.rounds = means[name]
    return best


def repeat(run: Callable[[], object], seconds: float, inner: int = 1) -> list[float]:
    """Run something for about so many seconds, and at least once.

    Args:
        run: what to run.
        seconds: when to stop.
        inner: how many runs between two looks at the clock; a duration is the mean
            of as many. More than 1 for what takes less than a few microseconds.

    Returns:
        The durations, in seconds a run.
    """
    durations = []
    begin = before = time.perf_counter()
    while True:
        for _ in range(inner):
            run()
        now = time.perf_counter()
        durations.append((now - before) / inner)
        if now - begin >= seconds:
            return durations
        before = time.perf_counter()


def cores() -> int:
    """The processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _hash(times: int, block: bytes) -> None:
    for _ in range(times):
        hashlib.sha256(block).digest()


def scaling(threads: int, seconds: float = 0.2) -> float:
    """How many times the work of one thread so many threads do: the best of five tries.

    The work is hashing, which holds no lock and hardly touches memory. Well below
    the number of threads means that the host has other things to do, and that
    figures of several threads are to be taken again later.
    """
    block = bytes(1 << 20)
    begin = time.perf_counter()
    _hash(4, block)
    times = max(4, int(4 * seconds / (time.perf_counter() - begin)))
    best = 0.0
    for _ in range(5):
        begin = time.perf_counter()
        _hash(times, block)
        alone = time.perf_counter() - begin
        workers = [threading.Thread(target=_hash, args=(times, block)) for _ in range(threads)]
        begin = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        best = max(best, threads * alone / (time.perf_counter() - begin))
    return best
