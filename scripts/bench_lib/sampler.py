"""The sampler's part of bench.py, against NumPy's generator in the same process."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench_lib.backends.base import library
from bench_lib.report import number
from bench_lib.session import Session
from bench_lib.targets import Rule, Verdict, better, judge
from bench_lib.timing import Measured, alternate, repeat
from bench_lib.worker import Worker

RECORDS = 1_000_000
BATCHES = (256, 8192)
INNER = 32

ENVIRONMENTS = {"loaderx": "main", "1.7.7": "1.7.7", "2.8.19": "2.8.19"}

RULES = [
    Rule("sampler, IID 256", "integers 256", "loaderx IID 256", 5),
    Rule("sampler, IID 8192", "integers 8192", "loaderx IID 8192", 1.5),
    Rule("sampler, CYCLIC 256", "integers 256", "loaderx CYCLIC 256", 1.8),
    Rule("sampler, CYCLIC 8192", "permutation 8192", "loaderx CYCLIC 8192", 1.2),
]


class SamplerHost:
    """The sampler of one version, and NumPy beside it.

    Args:
        version: a key of ENVIRONMENTS.
    """

    def __init__(self, version: str) -> None:
        module = "loaderx.sampler" if version == "2.8.19" else "loaderx.zsampler"
        self._sampler: Any = library(module).Sampler
        self._version = version

    def check(self) -> None:
        """See that a cycle has every record once, and that all draws are in range."""
        sampler = self._sampler(1000, 250, 2, 1)
        cycle = np.concatenate([np.array(sampler.next()) for _ in range(4)])
        if sorted(cycle.tolist()) != list(range(1000)):
            raise AssertionError(f"{self._version}: expected 0 to 999 once each, got {cycle}")
        drawn = np.array(self._sampler(1000, 8192, 1, 1).next())
        if drawn.shape != (8192,) or not 0 <= drawn.min() <= drawn.max() < 1000:
            raise AssertionError(f"{self._version}: expected 8192 draws below 1000, got {drawn}")

    def run(self, rounds: int, seconds: float) -> dict[str, Measured]:
        """Measure a batch of everything, in seconds."""
        rng = np.random.default_rng(0)
        calls: dict[str, Any] = {}
        for batch in BATCHES:
            for mode, word in ((1, "IID"), (2, "CYCLIC")):
                calls[f"{self._version} {word} {batch}"] = self._sampler(
                    RECORDS, batch, mode, 42
                ).next
            calls[f"integers {batch}"] = lambda batch=batch: rng.integers(0, RECORDS, batch)
        cases = {
            name: lambda seconds, call=call: repeat(call, seconds, INNER)
            for name, call in calls.items()
        }
        for batch in BATCHES:
            share = batch / RECORDS
            cases[f"permutation {batch}"] = lambda seconds, share=share: [
                share * t for t in repeat(lambda: rng.permutation(RECORDS), seconds)
            ]
        return alternate(cases, rounds, seconds)


def run(session: Session) -> list[Verdict]:
    """Measure the samplers of all versions, print the table, and judge the targets."""
    session.say("sampler")
    effort = session.effort
    figures: dict[str, float] = {}
    verdicts: list[Verdict] = []
    for version, environment in ENVIRONMENTS.items():
        host = "bench_lib.sampler:SamplerHost"
        with Worker(version, session.python(environment), host, (version,)) as worker:
            worker.call("check")
            for turn in range(session.args.tries if version == "loaderx" else 1):
                measured = worker.call("run", effort.rounds, effort.seconds)
                found = {name: m.seconds for name, m in measured.items()}
                if version == "loaderx":
                    judged = judge(RULES, found)
                    verdicts = better(verdicts, judged) if turn else judged
            # NumPy's figures are those beside loaderx, which the ratios are of.
            figures = {**found, **figures}
    rows = [[name, number(seconds * 1e6)] for name, seconds in sorted(figures.items())]
    session.show(f"sampler, n = {RECORDS:,}", ["draw", "us a batch"], rows)
    session.results["sampler"] = {name: {"seconds": s} for name, s in figures.items()}
    return verdicts
