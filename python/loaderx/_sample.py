"""Taking a sample of bounded size, spread evenly over a whole source of records.

A source is an array, an open store, or any iterable of records. Of the first
two the length is known and the sample is a stride over all records. Of an
iterable it is not: every record is kept at first, and whenever there is too
much, every other one is dropped and from then on twice as many are passed
over. Either way the same source gives the same sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Union

import numpy as np

from loaderx._parts import as_bytes
from loaderx.zrecord import DenseStore, RaggedStore

Array = np.ndarray[Any, Any]
Int64Array = np.ndarray[Any, np.dtype[np.int64]]
Records = Union[Array, "list[Array]"]

# The trainer looks at 128 KiB of a sample at most, so larger records are cut.
PIECE = 128 << 10
# Tiny records would make a sample of far too many.
MOST = 1 << 20
# What is read of a store at once, in bytes.
_READ = 16 << 20


class Pieces(NamedTuple):
    """Samples one after another, and their lengths in bytes."""

    payload: Array
    sizes: Int64Array


class Cut(NamedTuple):
    """Where to take the pieces of a sample: of these records, in order, these parts."""

    records: Int64Array
    parts: Int64Array
    sizes: Int64Array  # of each record, in bytes


def check_source(source: Any, name: str) -> None:
    """Refuse what is no source of records. Raises TypeError and ValueError."""
    if isinstance(source, (DenseStore, RaggedStore)):
        source._require_open()
    elif isinstance(source, np.ndarray):
        if source.ndim == 0:
            raise ValueError(f"{name}: expected an array of records, got one of shape ()")
        if source.dtype.hasobject:
            raise TypeError(f"{name}: expected an array without Python objects, got {source.dtype}")
    elif isinstance(source, (str, bytes, bytearray, memoryview, dict)) or not isinstance(
        source, Iterable
    ):
        raise TypeError(
            f"{name}: expected an array, an iterable of records or an open store, "
            f"got {type(source).__name__}"
        )


def pieces(source: Any, budget: int) -> Pieces:
    """Take samples of at most PIECE bytes each, about budget bytes together."""
    if isinstance(source, RaggedStore):
        among = stride(len(source), MOST)
        cut = _cut(among, source.lengths(among) * source.dtype.itemsize, budget)
        return _joined(_read_pieces(source, cut))
    if isinstance(source, (DenseStore, np.ndarray)):
        return _joined(_read_pieces(source, _cut_evenly(len(source), width_of(source), budget)))
    kept = _thinned(_pieces_of(source), budget, len)
    return _joined(np.frombuffer(piece, np.uint8) for piece in kept)


def records(source: Any, budget: int) -> Records:
    """Take whole records, about budget bytes together and at least one where there is one."""
    if isinstance(source, RaggedStore):
        among = stride(len(source), MOST)
        nbytes = int(source.lengths(among).sum()) * source.dtype.itemsize
        count = len(among) if nbytes <= budget else max(1, len(among) * budget // nbytes)
        chosen: Records = source[among[stride(len(among), count)]]
        return chosen
    if isinstance(source, (DenseStore, np.ndarray)):
        count = max(1, budget // max(1, width_of(source)))
        return np.asarray(source[stride(len(source), count)])
    return _thinned((as_record(r, i) for i, r in enumerate(source)), budget, _nbytes)


def width_of(source: DenseStore | Array) -> int:
    """Bytes in a record of an array or a dense store."""
    shape = source.item_shape if isinstance(source, DenseStore) else source.shape[1:]
    return source.dtype.itemsize * int(np.prod(shape, dtype=np.int64))


def stride(length: int, count: int) -> Int64Array:
    """At most count indices below length, evenly apart, in order."""
    count = min(length, count)
    return (np.arange(count) * (length / max(1, count))).astype(np.int64)


def as_record(record: Any, position: int) -> Array:
    """One record of an iterable as an array of its own: it may be filled again for the next."""
    if not isinstance(record, (np.ndarray, np.generic)) and not hasattr(type(record), "__array__"):
        try:
            return np.frombuffer(memoryview(record).tobytes(), np.uint8)
        except TypeError:
            raise TypeError(
                f"source: expected record {position} to be an array or a buffer, "
                f"got {type(record).__name__}"
            ) from None
    array = np.array(record)
    if array.dtype.hasobject:
        raise TypeError(
            f"source: expected record {position} without Python objects, got {array.dtype}"
        )
    return array


def _pieces_of(source: Iterable[Any]) -> Iterator[bytes]:
    for position, record in enumerate(source):
        flat = as_bytes(as_record(record, position))
        for start in range(0, len(flat), PIECE):
            yield flat[start : start + PIECE].tobytes()


def _nbytes(record: Array) -> int:
    return record.nbytes


def _thinned(items: Iterable[Any], budget: int, size: Any) -> list[Any]:
    """Keep about budget bytes of items, evenly apart, of however many there are."""
    kept: list[Any] = []
    step, total = 1, 0
    for position, item in enumerate(items):
        if position % step:
            continue
        kept.append(item)
        total += size(item)
        if (total > 2 * budget or len(kept) > 2 * MOST) and len(kept) > 1:
            del kept[1::2]
            step, total = 2 * step, sum(map(size, kept))
    if total <= budget:
        return kept
    return [kept[i] for i in stride(len(kept), max(1, len(kept) * budget // total)).tolist()]


def _cut_evenly(length: int, width: int, budget: int) -> Cut:
    """Where to take pieces from records of one width."""
    each = max(1, -(-width // PIECE))
    wanted = max(1, min(MOST, budget * each // max(1, width)))
    records, parts = np.divmod(stride(length * each, wanted), each)
    return Cut(records, parts, np.broadcast_to(np.int64(width), records.shape))


def _cut(among: Int64Array, nbytes: Int64Array, budget: int) -> Cut:
    """Where to take pieces from records of these sizes; those without a byte have none."""
    ends = np.cumsum(-(-nbytes // PIECE))
    available, total = (int(ends[-1]), int(nbytes.sum())) if len(ends) else (0, 0)
    wanted = min(MOST, max(1, budget * available // max(1, total)))
    places = stride(available, wanted)
    at = np.searchsorted(ends, places, "right")
    starts = ends - -(-nbytes // PIECE)
    return Cut(among[at], places - starts[at], nbytes[at])


def _read_pieces(source: Any, cut: Cut) -> Iterator[Array]:
    """Read the records of a cut a few at a time, and yield its pieces as bytes."""
    start = 0
    while start < len(cut.records):
        # A record is read once for all its pieces that follow each other.
        again = np.diff(cut.records[start : start + 65536], prepend=cut.records[start]) == 0
        sizes = np.where(again, 0, cut.sizes[start : start + 65536])
        stop = start + max(1, int(np.searchsorted(np.cumsum(sizes), _READ, "right")))
        chosen, where = np.unique(cut.records[start:stop], return_inverse=True)
        found = [as_bytes(np.asarray(record)) for record in source[chosen]]
        for at, part in zip(where.tolist(), cut.parts[start:stop].tolist()):
            # A copy, for a view would keep the whole record.
            yield found[at][part * PIECE : (part + 1) * PIECE].copy()
        start = stop


def _joined(found: Iterable[Array]) -> Pieces:
    samples = list(found)
    payload = np.concatenate(samples) if samples else np.empty(0, np.uint8)
    return Pieces(payload, np.array(list(map(len, samples)), np.int64))
