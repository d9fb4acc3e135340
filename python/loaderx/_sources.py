"""Streams of several sources, which a mix draws from.

A loader counts the records of all sources as if they were put one after
another. A set of them is read source by source, and put into the places that
they were drawn for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from loaderx import _memory
from loaderx._batch import RaggedBatch
from loaderx._index import IndexArray
from loaderx._streams import Out, Stream, Values, as_streams, common_length, read
from loaderx.zrecord import DenseStore

# The name under which a batch says where its records came from.
SOURCE = "source"


class Part(NamedTuple):
    """What is drawn from one source."""

    source: int
    """The number of the source."""
    places: IndexArray
    """Where in the batch."""
    records: IndexArray
    """Which of its records."""


class Located(NamedTuple):
    """The records of a batch, found in their sources."""

    source: np.ndarray[Any, np.dtype[np.int32]]
    """The number of the source of each."""
    parts: list[Part]
    """The same by source, of those that are drawn from."""


class Mixed:
    """The streams of several sources, whose names and types are the same."""

    def __init__(
        self, sources: Mapping[str, Mapping[str, Stream]], lengths: Mapping[str, int], ragged: str
    ) -> None:
        self._sources = list(sources.values())
        self.names = list(self._sources[0])
        self._starts = np.cumsum([0, *(lengths[name] for name in sources)])[:-1]
        self._ragged = ragged

    def locate(self, index: IndexArray) -> Located:
        """Find the source of each record."""
        source = (np.searchsorted(self._starts, index, "right") - 1).astype(np.int32)
        parts = []
        for number, start in enumerate(self._starts.tolist()):
            places = np.flatnonzero(source == number)
            if len(places):
                parts.append(Part(number, places, index[places] - start))
        return Located(source, parts)

    def read(
        self, name: str, where: Located, counts: list[int], max_threads: int, out: Out
    ) -> Values:
        """Read located records of a stream, as Reader.read."""
        first = self._sources[0][name]
        if out is None and isinstance(first, DenseStore):
            out = _memory.empty((len(where.source), *first.item_shape), first.dtype)
        found: list[Any] = [None] * len(where.source)
        packed = []
        for number, places, records in where.parts:
            values = read(self._sources[number][name], self._ragged, records, max_threads, None)
            if out is not None:
                out[places] = values
            elif isinstance(values, RaggedBatch):
                packed.append(values)
            else:
                for place, record in zip(places.tolist(), values):
                    found[place] = record
        if out is not None:
            return out
        return _interleaved(packed, where.parts) if packed else found

    def ask(self, where: Located) -> None:
        """Have located records brought into memory, in the background."""
        for part in where.parts:
            for store in self._sources[part.source].values():
                store.readahead(part.records)

    def beside(self, where: Located) -> dict[str, np.ndarray[Any, Any]]:
        """The number of each record's source."""
        return {SOURCE: where.source}

    def first(self) -> Mapping[str, Stream]:
        """The streams of the first source."""
        return self._sources[0]


def as_sources(
    streams: Any, names: list[str], kept: Mapping[str, Any] | None = None
) -> dict[str, dict[str, Stream]]:
    """Check the streams of a mix's sources, and give them in its order.

    Args:
        streams: streams by name, in a dict by source.
        names: of the sources.
        kept: for each, the lengths to keep to, as common_length takes them.

    Raises:
        TypeError: not dicts of stores by name, in a dict by source.
        ValueError: other sources than the mix has, or sources that are not alike.
    """
    if not isinstance(streams, Mapping) or not all(
        isinstance(source, Mapping) for source in streams.values()
    ):
        raise TypeError(
            "streams: expected a dict of streams for each source of the mix, as in "
            '{"a": {"image": store}, "b": {"image": store}}, '
            f"got {type(streams).__name__}"
        )
    if streams.keys() != set(names):
        raise ValueError(
            f"streams: expected the sources of the mix, {sorted(names)}, "
            f"got {sorted(map(str, streams))}"
        )
    sources = {name: as_streams(streams[name], f"streams of {name!r}") for name in names}
    for name, source in sources.items():
        common_length(source, f"streams of {name!r}", kept and kept[name])
        if SOURCE in source:
            raise ValueError(
                f"streams of {name!r}: expected another name than {SOURCE!r}, under which a "
                "batch of a mix says where its records came from"
            )
    like = names[0]
    for name in names[1:]:
        _require_alike(like, sources[like], name, sources[name])
    return sources


def _require_alike(
    like: str, expected: dict[str, Stream], name: str, got: dict[str, Stream]
) -> None:
    if got.keys() != expected.keys():
        raise ValueError(
            f"streams: expected {name!r} to have those of {like!r}, {sorted(expected)}, "
            f"got {sorted(got)}"
        )
    for stream, store in expected.items():
        facts = (_type_of(store), _type_of(got[stream]))
        if facts[0] != facts[1]:
            raise ValueError(
                f"streams: expected {stream!r} of {name!r} to be as that of {like!r}, "
                f"{facts[0]}, got {facts[1]}"
            )


def _type_of(store: Stream) -> str:
    if isinstance(store, DenseStore):
        return f"dense records of {store.dtype} and shape {store.item_shape}"
    return f"ragged records of {store.dtype}"


def _interleaved(packed: list[RaggedBatch], parts: list[Part]) -> RaggedBatch:
    """Put the records of several packed batches into their places of one."""
    count = sum(map(len, packed))
    lengths = np.empty(count, np.int64)
    shapes: list[tuple[int, ...]] = [()] * count
    for batch, part in zip(packed, parts):
        lengths[part.places] = batch.lengths
        rows = batch.shapes.tolist() if isinstance(batch.shapes, np.ndarray) else batch.shapes
        for place, shape in zip(part.places.tolist(), rows):
            shapes[place] = tuple(shape)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    values = _memory.empty((int(offsets[-1]),), packed[0].dtype)
    starts = offsets.tolist()
    for batch, part in zip(packed, parts):
        ends = batch.offsets.tolist()
        for place, first, last in zip(part.places.tolist(), ends, ends[1:]):
            values[starts[place] : starts[place + 1]] = batch.values[first:last]
    regular = len(set(map(len, shapes))) == 1
    return RaggedBatch(values, offsets, np.array(shapes, np.int64) if regular else shapes)
