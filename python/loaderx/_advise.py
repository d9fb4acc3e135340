"""Which codec suits some data: measured, not guessed."""

from __future__ import annotations

import tempfile
import time
from typing import Any, NamedTuple

import numpy as np

from loaderx._sample import Records, check_source, pieces, records
from loaderx._train import room_for, train
from loaderx.zrecord import DICT_TIERS, DenseStore, RaggedStore

# What is written and read of the source for each row.
SAMPLE_BYTES = 4 << 20
# Rows are read in batches of this many records, and of at most so many bytes
# unless one record is more, for at least so long.
BATCH = 256
BATCH_BYTES = 16 << 20
GATHER_SECONDS = 0.1
# A codec has to make data this much smaller to be worth its time, a dictionary
# this much smaller than plain zstd does, and a larger tier than a smaller one.
WORTH = 1.1
DICT_WORTH = 1.2
TIER_WORTH = 1.15


class AdviceRow(NamedTuple):
    """What was measured of one codec.

    Attributes:
        codec: "raw", "zstd" or "zstd_dict".
        tier: of the dictionary, or None.
        dict_bytes: the size of the dictionary, or 0.
        ratio: how many times smaller than raw the records are.
        write: how fast they were appended, in MiB of records a second.
        gather: how fast random batches were read, in MiB of records a second.
    """

    codec: str
    tier: str | None
    dict_bytes: int
    ratio: float
    write: float
    gather: float

    @property
    def name(self) -> str:
        """The codec and its tier, for people."""
        return self.codec if self.tier is None else f"{self.codec} {self.tier}"


class Advice(NamedTuple):
    """What ``advise`` found. ``str()`` of it is a table and the recommendation.

    Attributes:
        rows: one for each codec and tier that could be measured.
        recommendation: which to take and why, in a sentence.
        sample: what was measured on.
    """

    rows: list[AdviceRow]
    recommendation: str
    sample: str

    def __str__(self) -> str:
        lines = [f"{'codec':<20}{'ratio':>8}{'write MiB/s':>14}{'gather MiB/s':>14}"]
        lines += [
            f"{row.name:<20}{row.ratio:>8.2f}{row.write:>14.0f}{row.gather:>14.0f}"
            for row in self.rows
        ]
        return "\n".join([*lines, f"Measured on {self.sample}.", self.recommendation])


def advise(source: Any) -> Advice:
    """Measure how small and how fast records become with each codec.

    A sample of the records is written to stores in a temporary folder and read
    back at random. It takes seconds to a minute, most of it to train dictionaries.

    Args:
        source: as for ``train_dict``.

    Returns:
        An Advice: ``rows``, ``recommendation``, and ``str()`` for a table.

    Raises:
        ValueError: the source holds no records.
        TypeError: it is not a source of records.
    """
    check_source(source, "source")
    if not isinstance(source, (np.ndarray, DenseStore, RaggedStore)):
        # It can be read once only, so what the largest dictionary needs is kept.
        source = records(source, max(tier["samples"] for tier in DICT_TIERS.values()))
    sample = records(source, SAMPLE_BYTES) if len(source) else []
    nbytes = sum(np.asarray(record).nbytes for record in sample)
    if nbytes == 0:
        raise ValueError("source: expected at least one record of at least one byte, got none")
    rows = [
        _measure(sample, nbytes, "raw", None, None),
        _measure(sample, nbytes, "zstd", None, None),
    ]
    for tier, trained in _dictionaries(source).items():
        rows.append(_measure(sample, nbytes, "zstd_dict", tier, trained))
    return Advice(rows, recommend(rows), f"{len(sample)} of {len(source)} records, {nbytes} bytes")


def recommend(rows: list[AdviceRow]) -> str:
    """Say in a sentence which row to take. The first is raw, the second zstd."""
    raw, plain, *trained = rows
    best = plain
    for row in trained:
        if row.ratio >= best.ratio * (DICT_WORTH if best is plain else TIER_WORTH):
            best = row
    if best.ratio < WORTH:
        return (
            f"Take raw: no codec makes these records {WORTH} times smaller, and raw ones are "
            f"read at {raw.gather:.0f} MiB/s."
        )
    text = (
        f"Take {best.name}: it makes the records {best.ratio:.1f} times smaller and reads them at "
        f"{best.gather:.0f} MiB/s"
    )
    if best is not plain:
        text += f", where plain zstd makes them {plain.ratio:.1f} times smaller"
    if raw.gather > 2 * best.gather:
        text += f"; raw is read at {raw.gather:.0f} MiB/s, and better if all of it fits in memory"
    return text + "."


def _dictionaries(source: Any) -> dict[str, bytes]:
    """A dictionary for each tier that the source is large enough to tell from the one before."""
    found: dict[str, bytes] = {}
    room = 0
    for name, tier in DICT_TIERS.items():
        sample = pieces(source, tier["samples"])
        try:
            larger = room_for(sample, tier["size"])
            if larger > room:
                room, found[name] = larger, train(sample, larger)
        except ValueError:
            break  # too little to learn from, and larger tiers need more
    return found


def _measure(
    sample: Records, nbytes: int, codec: str, tier: str | None, trained: bytes | None
) -> AdviceRow:
    """Write the sample to a store of a codec, read it at random, and take the times."""
    with tempfile.TemporaryDirectory(prefix="loaderx-advise-") as folder:
        with _new_store(folder + "/store", sample, codec, trained) as store:
            started = time.perf_counter()
            store.append(sample)
            write = time.perf_counter() - started
            stored = store.stats()["live_bytes"]
            read, seconds = _read_at_random(store, _batch_for(sample))
        return AdviceRow(
            codec,
            tier,
            len(trained or b""),
            nbytes / max(1, stored),
            nbytes / write / (1 << 20),
            read * nbytes / len(sample) / seconds / (1 << 20),
        )


def _new_store(
    path: str, sample: Records, codec: str, trained: bytes | None
) -> DenseStore | RaggedStore:
    if isinstance(sample, np.ndarray):
        return DenseStore(path, sample.dtype, sample.shape[1:], codec, trained)
    return RaggedStore(path, sample[0].dtype, codec, trained, allow_empty=True)


def _batch_for(sample: Records) -> int:
    """How many records to read at once, even if all of them were the largest one."""
    largest = max(np.asarray(record).nbytes for record in sample)
    return max(1, min(BATCH, BATCH_BYTES // largest))


def _read_at_random(store: DenseStore | RaggedStore, batch: int) -> tuple[int, float]:
    """Read random batches for a while. Returns the records read, and the seconds it took."""
    order = np.random.default_rng(0).integers(len(store), size=(64, batch))
    read, started = 0, time.perf_counter()
    while True:
        for index in order:
            store[index]
            read += batch
            seconds = time.perf_counter() - started
            if seconds >= GATHER_SECONDS:
                return read, seconds
