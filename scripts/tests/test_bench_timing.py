"""The benchmarks' timing: cases alternate, and of each the best round is kept."""

from __future__ import annotations

import time

import pytest
from bench_lib import timing
from bench_lib.timing import alternate, percentile, repeat


def test_cases_alternate_and_the_best_round_counts() -> None:
    order: list[str] = []
    rounds = {"a": [[3.0], [1.0, 2.0], [9.0]], "b": [[4.0], [5.0], [6.0]]}

    def sampler(name: str) -> timing.Sample:
        answers = iter(rounds[name])

        def sample(seconds: float) -> list[float]:
            assert seconds == 0.5
            order.append(name)
            return next(answers)

        return sample

    found = alternate({name: sampler(name) for name in rounds}, 3, 0.5)
    assert order == ["a", "b", "a", "b", "a", "b"]
    assert found["a"].seconds == 1.5 and found["a"].p95 == 2.0
    assert found["a"].rounds == [3.0, 1.5, 9.0]
    assert found["b"].seconds == 4.0


def test_percentile() -> None:
    durations = [float(n) for n in range(100, 0, -1)]
    assert percentile(durations, 0.95) == 96.0
    assert percentile([7.0], 0.95) == 7.0


class Clock:
    """A clock that goes on by a second whenever it is looked at."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def test_repeat_runs_at_least_once_and_until_the_time_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(time, "perf_counter", Clock())
    runs: list[int] = []
    assert repeat(lambda: runs.append(1), 0.0) == [1.0]
    assert len(runs) == 1
    assert repeat(lambda: runs.append(1), 4.0, inner=2) == [0.5, 0.5, 0.5]
    assert len(runs) == 7


def test_scaling_of_one_thread_is_a_positive_number() -> None:
    assert timing.scaling(1, 0.001) > 0
    assert timing.cores() >= 1
