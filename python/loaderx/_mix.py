"""Mixes: batches drawn from several sources in exact proportions."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Literal, NamedTuple

import numpy as np

from loaderx import _native
from loaderx._arguments import as_int
from loaderx._mode import Mode, as_mode
from loaderx._steps import INT64_MAX, MOST_INDICES, IndexArray, StepSampler, cut
from loaderx._subset import Subset, as_subset, as_weights, facts_of, source_of

SourceArray = np.ndarray[Any, np.dtype[np.int32]]


class Drawn(NamedTuple):
    """A batch of a mix: for each place, from which source, and which of its records."""

    source: SourceArray
    """int32, (n,): the number of the source, in the order of the mix."""
    record: IndexArray
    """int64, (n,): the record of that source."""


class Mix:
    """How much of each batch comes from which source: the ``sampler`` of a DataLoader.

    ::

        mix = Mix({"web": 0.7, "books": 0.3})
        DataLoader({"web": {"text": web}, "books": {"text": books}}, sampler=mix)

    Proportions are exact: after any number of draws, every source has had its
    share of them but for a few. Which source a place of a batch draws from
    depends on the seed, the step and the place alone. Each source goes through
    its records in an order of its own, in the mode of the loader, as often as
    its share asks for.

    Args:
        weights: by name of the source, each above 0; the share of a source is its
            weight over the sum of all.
        subsets: by name, the records of a source to draw from, as for Sampler;
            sources that are left out draw from all.

    Raises:
        TypeError, ValueError: an argument outside what is described above.
    """

    def __init__(
        self, weights: Mapping[str, float], *, subsets: Mapping[str, Any] | None = None
    ) -> None:
        if not isinstance(weights, Mapping):
            raise TypeError(
                f"weights: expected a dict of numbers by name, got {type(weights).__name__}"
            )
        values = as_weights("weights", weights)
        for name, value in zip(weights, values.tolist()):
            if not 0 < value < float("inf"):
                raise ValueError(
                    f"weights: expected finite numbers above 0, got {value} for {name!r}"
                )
        self._weights = dict(zip(weights, values.tolist()))
        if subsets is not None and not isinstance(subsets, Mapping):
            raise TypeError(
                f"subsets: expected a dict of subsets by name, got {type(subsets).__name__}"
            )
        given = dict(subsets or {})
        unknown = sorted(map(repr, given.keys() - self._weights.keys()))
        if unknown:
            raise ValueError(
                f"subsets: expected names of {sorted(self._weights)}, got {', '.join(unknown)}"
            )
        self._subsets = {n: as_subset(f"subset of {n!r}", given.get(n)) for n in self._weights}

    @property
    def names(self) -> list[str]:
        """The names of the sources: the number of a source is its place here."""
        return list(self._weights)

    @property
    def weights(self) -> dict[str, float]:
        """The weights by name."""
        return dict(self._weights)

    @property
    def subsets(self) -> dict[str, Subset]:
        """The records each source draws from; None: all."""
        return dict(self._subsets)

    def sampler(
        self,
        lengths: Mapping[str, int],
        batch_size: int,
        mode: int = Mode.CYCLIC,
        seed: int = 42,
        *,
        rank: int | Literal["auto"] = 0,
        world_size: int = 1,
    ) -> MixSampler:
        """The order itself, for sources of those lengths: what a DataLoader makes of a mix."""
        return MixSampler(self, lengths, batch_size, mode, seed, rank=rank, world_size=world_size)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._weights})"


class MixSampler(StepSampler):
    """Endless batches of a Mix. Each is a Drawn: sources, and records of them.

    Args:
        mix: the sources and their weights.
        lengths: the number of records by name of the source.
        batch_size, mode, seed, rank, world_size: as for Sampler.

    Raises:
        TypeError, ValueError: as Sampler; or lengths of other sources than the mix has.
    """

    _FREE = "lx_mix_free"

    def __init__(
        self,
        mix: Mix,
        lengths: Mapping[str, int],
        batch_size: int,
        mode: int = Mode.CYCLIC,
        seed: int = 42,
        *,
        rank: int | Literal["auto"] = 0,
        world_size: int = 1,
    ) -> None:
        super().__init__(seed, rank, world_size)
        if not isinstance(mix, Mix):
            raise TypeError(f"mix: expected a Mix, got {type(mix).__name__}")
        if lengths.keys() != mix.weights.keys():
            raise ValueError(
                f"lengths: expected one for each of {sorted(mix.names)}, got {sorted(lengths)}"
            )
        self._mix = mix
        self._lengths = {
            name: as_int(f"length of {name!r}", lengths[name], 1, INT64_MAX) for name in mix.names
        }
        as_int("lengths", sum(self._lengths.values()), 1, INT64_MAX)
        self._starts = np.cumsum([0, *self._lengths.values()])
        self._batch_size = as_int("batch_size", batch_size, 1, MOST_INDICES * self._world_size)
        self._mode = as_mode(mode)
        self._require_shares("batch_size", self._batch_size)
        self._local = self._batch_size // self._world_size
        self._handle = self._new()

    def _new(self) -> int:
        sources = _native.ffi.new("lx_source[]", len(self._lengths))
        for place, (name, length) in enumerate(self._lengths.items()):
            subset, weight = self._mix.subsets[name], self._mix.weights[name]
            sources[place] = source_of(length, int(self._mode), subset, weight)[0]
        return self._made(_native.lib.lx_mix_new, sources, len(sources), self._batch_size)

    @property
    def mix(self) -> Mix:
        """The sources and their weights."""
        return self._mix

    @property
    def lengths(self) -> dict[str, int]:
        """The number of records by name of the source."""
        return dict(self._lengths)

    @property
    def length(self) -> int:
        """The records of all sources together."""
        return int(self._starts[-1])

    @property
    def batch_size(self) -> int:
        """Draws in a batch of all ranks and sources."""
        return self._batch_size

    @property
    def mode(self) -> IntEnum:
        """In which order each source goes through its records, a Sampler.Mode."""
        return self._mode

    def fill(self, step: int, steps: int) -> Drawn:
        """The draws of several steps at once, one batch after another."""
        count = steps * self._local
        source, record = np.empty(count, np.int32), np.empty(count, np.int64)
        buffer, error = _native.ffi.from_buffer, _native.scratch.error
        status = _native.lib.lx_mix_fill(
            self._handle, step, steps, buffer(source), buffer(record), count, error
        )
        _native.check(status, error)
        return Drawn(source, record)

    def drawn(self, step: int) -> dict[str, int]:
        """How many draws from each source, by name, come before a step, of all ranks."""
        step = as_int("step", step, 0, INT64_MAX - 1)
        counts, error = np.empty(len(self._lengths), np.int64), _native.scratch.error
        status = _native.lib.lx_mix_drawn(
            self._handle, step, _native.ffi.from_buffer(counts), len(counts), error
        )
        _native.check(status, error)
        return dict(zip(self._lengths, counts.tolist()))

    def batches(self, step: int, steps: int) -> list[Drawn]:
        """What indices_at gives for steps ``step`` to ``step + steps - 1``."""
        source, record = self.fill(step, steps)
        counts = [self._local] * steps
        return [Drawn(*parts) for parts in zip(cut(source, counts), cut(record, counts))]

    def draw(self, step: int, steps: int) -> tuple[IndexArray, list[int]]:
        """The same as records of all sources put one after another, and how many each has."""
        source, record = self.fill(step, steps)
        return self._starts[source] + record, [self._local] * steps

    def facts(self) -> dict[str, Any]:
        """What the order depends on beside seed and step: data that survives JSON."""
        return {
            "sampler": "Mix",
            "mode": self._mode.name,
            "batch_size": self._batch_size,
            # A list, because the order of the sources counts.
            "weights": [[name, weight] for name, weight in self._mix.weights.items()],
            "subset": {name: facts_of(subset) for name, subset in self._mix.subsets.items()},
        }

    def _arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (self._mix, self._lengths, self._batch_size, int(self._mode)), {}

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self._mix!r}, {self._lengths}, {self._batch_size}, "
            f"mode={self._mode.name}, {self._tail()}"
        )
