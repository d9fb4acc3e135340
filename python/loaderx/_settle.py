"""What a loader is about: from the arguments to streams, an order and its seed."""

from __future__ import annotations

from typing import Any, NamedTuple

from loaderx._arguments import as_int
from loaderx._ranks import as_ranks
from loaderx._sources import Mixed, as_sources
from loaderx._state import lengths_of
from loaderx._steps import StepSampler
from loaderx._streams import Reader, Single, as_streams, common_length
from loaderx.zrecord import DenseStore
from loaderx.zsampler import LengthBuckets, Mix, MixSampler, Sampler, TokenBudget


class Kept(NamedTuple):
    """The sampler of a loader that is being copied, and the fingerprints of its streams.

    Streams may have grown since: the copy has the order of the original.
    """

    sampler: Any
    fingerprints: dict[str, Any]


class Settled(NamedTuple):
    """Arguments of a loader that were checked against each other."""

    streams: dict[str, Any]
    """Stores by name; of a mix, in dicts by source."""
    reader: Reader
    sampler: Any
    seed: int
    rank: int
    world_size: int

    @property
    def step(self) -> int:
        """The step to begin with."""
        return self.sampler.step if isinstance(self.sampler, StepSampler) else 0

    @property
    def even(self) -> bool:
        """Whether every batch takes the same memory."""
        dense = all(isinstance(store, DenseStore) for store in self.reader.first().values())
        return dense and self.local is not None

    @property
    def local(self) -> int | None:
        """The records of this rank in a batch, where they are as many in each."""
        if isinstance(self.sampler, (Sampler, MixSampler)):
            return self.sampler.batch_size // self.world_size
        return None


def settle(
    streams: Any,
    sampler: Any,
    batch_size: Any,
    mode: Any,
    seed: Any,
    rank: Any,
    world_size: Any,
    ragged: str,
) -> Settled:
    """Check the arguments of those names of a DataLoader.

    Raises:
        TypeError, ValueError: as DataLoader.
    """
    ranks = {"rank": rank, "world_size": world_size}
    reader: Reader
    kept: dict[str, Any] | None = None
    if isinstance(sampler, Kept):
        sampler, kept = sampler.sampler, lengths_of(sampler.fingerprints)
    if isinstance(sampler, (Mix, MixSampler)):
        mix = sampler.mix if isinstance(sampler, MixSampler) else sampler
        streams = as_sources(streams, mix.names, kept)
        lengths = {
            name: common_length(source, f"streams of {name!r}", kept and kept[name])
            for name, source in streams.items()
        }
        if isinstance(sampler, Mix):
            sampler = sampler.sampler(lengths, batch_size, mode, seed, **ranks)
        elif sampler.lengths != lengths:
            raise ValueError(
                f"sampler: expected one for the sources' lengths {lengths}, got {sampler.lengths}"
            )
        reader = Mixed(streams, lengths, ragged)
    else:
        streams = as_streams(streams)
        length = common_length(streams, "streams", kept)
        if sampler is None:
            sampler = Sampler(length, batch_size, mode, seed, **ranks)
        elif isinstance(sampler, (TokenBudget, LengthBuckets)):
            sampler = sampler.sampler(seed, **ranks)
        if isinstance(sampler, StepSampler) and sampler.length != length:
            raise ValueError(
                f"sampler: expected one for the streams' length {length}, "
                f"got length {sampler.length}"
            )
        reader = Single(streams, ragged)
    if isinstance(sampler, StepSampler):
        seed, rank, world_size = sampler.seed, sampler.rank, sampler.world_size
    rank, world_size = as_ranks(rank, world_size)
    world_size = as_int("world_size", world_size, 1, (1 << 31) - 1)
    rank = as_int("rank", rank, 0, world_size - 1)
    _require_ranks(sampler, rank, world_size)
    return Settled(
        streams, reader, sampler, as_int("seed", seed, 0, (1 << 64) - 1), rank, world_size
    )


def _require_ranks(sampler: Any, rank: int, world_size: int) -> None:
    """Refuse ranks that a sampler does not know of: each would read the whole batch."""
    got = getattr(sampler, "rank", None), getattr(sampler, "world_size", None)
    if world_size > 1 and got != (rank, world_size):
        raise ValueError(
            "sampler: expected one whose own rank and world_size are those of the loader, "
            f"{rank} and {world_size}, and which gives that rank's part of each batch, "
            f"got {type(sampler).__name__} with {got[0]} and {got[1]}"
        )


def facts_of(sampler: Any) -> dict[str, Any]:
    """What names the order of a sampler in a state."""
    if isinstance(sampler, StepSampler):
        return sampler.facts()
    return {"sampler": None, "mode": None, "batch_size": None}
