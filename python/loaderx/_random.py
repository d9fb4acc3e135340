"""Randomness for transforms: a generator for each step, whichever worker makes it.

The generator of a step is ``Generator(Philox(key=[seed, step], counter=[0, 0, 0,
rank]))``. Philox is made for keys and counters that are just numbers (Salmon et
al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): each (seed, step)
has a stream of its own, and each rank 2**192 blocks of it, so ranks do not
repeat each other.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def takes_rng(transform: Any) -> bool:
    """Whether a transform wants ``(batch, rng)``.

    It does if it must be given two arguments, or if its second is named rng; also if
    it must be given rng by keyword. One with another second argument that has a
    default is called as ever.
    """
    parameters = _parameters(transform)
    places = [p for p in parameters if p.kind in _POSITIONAL]
    if _by_keyword(parameters):
        return True
    if len(places) < 2:
        return False
    return places[1].name == "rng" or places[1].default is inspect.Parameter.empty


def with_rng(transform: Any) -> Any:
    """The transform, to be called by place if it takes rng by keyword only."""
    if _by_keyword(_parameters(transform)):
        return lambda batch, rng: transform(batch, rng=rng)
    return transform


def _parameters(transform: Any) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(transform).parameters.values())
    except (TypeError, ValueError):
        return []  # some callables written in C do not tell


def _by_keyword(parameters: list[inspect.Parameter]) -> bool:
    return any(
        p.name == "rng" and p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in parameters
    )


def generator(seed: int, step: int, rank: int) -> np.random.Generator:
    """The generator of a step."""
    key = np.array([seed, step], np.uint64)
    counter = np.array([0, 0, 0, rank], np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))
