"""Ratios against the targets, and whether they are reached.

A target is always a ratio of two figures of the same run, for machines differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Rule:
    """A target.

    Attributes:
        work: what is measured.
        mine, other: the names of the two figures. The ratio is mine / other.
        bound: what the ratio has to be.
        at_most: whether it has to be at most that, as for durations and memory;
            otherwise at least.
        unit: of the ratio; "x" unless mine is itself held against the bound, in
            which case other is "".
        times: other counts so many times, as for "twice one thread".
    """

    work: str
    mine: str
    other: str
    bound: float
    at_most: bool = False
    unit: str = "x"
    times: float = 1.0


@dataclass
class Verdict:
    """What became of a target: the best ratio of all tries.

    Attributes:
        work: what was measured.
        figures: of which two figures the ratio is, or the one that is the ratio.
        ratio, bound, at_most, unit: as Rule has them.
        reached: whether the ratio is within the bound.
    """

    work: str
    figures: str
    ratio: float
    bound: float
    at_most: bool
    unit: str
    reached: bool

    def row(self) -> list[str]:
        """As a row of the table of targets."""
        sign = "<=" if self.at_most else ">="
        return [
            self.work,
            self.figures,
            f"{self.ratio:.2f} {self.unit}",
            f"{sign} {self.bound:g} {self.unit}",
            "yes" if self.reached else "NO",
        ]


HEAD = ["work", "ratio of", "ratio", "target", "reached"]


def judge(rules: Iterable[Rule], figures: Mapping[str, float]) -> list[Verdict]:
    """Hold figures against the rules. A rule of which a figure was not measured is left out."""
    verdicts = []
    for rule in rules:
        if rule.mine not in figures or (rule.other and rule.other not in figures):
            continue
        other = figures[rule.other] * rule.times if rule.other else 1.0
        ratio = figures[rule.mine] / other
        reached = ratio <= rule.bound if rule.at_most else ratio >= rule.bound
        names = rule.mine
        if rule.other:
            names += f" / {rule.times:g} x {rule.other}" if rule.times != 1 else f" / {rule.other}"
        verdicts.append(
            Verdict(rule.work, names, ratio, rule.bound, rule.at_most, rule.unit, reached)
        )
    return verdicts


def better(old: list[Verdict], new: list[Verdict]) -> list[Verdict]:
    """Of two tries at the same rules keep the better ratio of each."""
    kept = []
    for a, b in zip(old, new):  # noqa: B905
        first = a.ratio <= b.ratio if a.at_most else a.ratio >= b.ratio
        kept.append(a if first else b)
    return kept


def as_json(verdicts: Iterable[Verdict]) -> list[dict[str, Any]]:
    """The verdicts as plain data."""
    return [asdict(v) for v in verdicts]
