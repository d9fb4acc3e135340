"""A store beside the list of arrays that it has to be, driven by hypothesis."""

from __future__ import annotations

import os
import shutil
import tempfile
from functools import lru_cache
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support import same, same_list

from loaderx import _native
from loaderx.errors import RecordIndexError
from loaderx.utils import train_dict
from loaderx.zrecord import DenseStore, RaggedStore

# In memory where that can be had: a script syncs many times, and a disk is slow at it.
FAST = "/dev/shm" if os.path.isdir("/dev/shm") else None
ITEM = (2, 3)
# Some of equal sizes, so that a shape in the wrong place is not noticed by its size.
SHAPES = [(6,), (2, 3), (3, 2), (1,), (), (4, 1), (2, 2), (1, 1, 4), (40,), (0,), (3, 0)]
SEED = st.integers(0, (1 << 16) - 1)


class Stop(Exception):
    """What interrupts an operation half way."""


@lru_cache
def dictionary() -> bytes:
    """A small dictionary: its content is of no matter here."""
    rng = np.random.default_rng(0)
    return train_dict([rng.integers(0, 9, 1000, np.int32) for _ in range(80)], "fast")


class Model(RuleBasedStateMachine):
    """Random operations on a store; ``self.records`` is what it has to hold."""

    dense: type[DenseStore] = DenseStore
    ragged: type[RaggedStore] = RaggedStore
    kind = "dense"
    codec = "raw"
    operations = 0  # of all scripts of the class

    @initialize(chunk=st.sampled_from([0, 200, 1000]), segment=st.sampled_from([0, 4, 16]))
    def create(self, chunk: int, segment: int) -> None:
        _native.limits.chunk, _native.limits.segment = chunk, segment
        self.folder = tempfile.mkdtemp(prefix="loaderx-model-", dir=FAST)
        self.path = os.path.join(self.folder, "store")
        trained = dictionary() if self.codec == "zstd_dict" else None
        if self.kind == "dense":
            self.store: Any = self.dense(self.path, np.int32, ITEM, self.codec, trained)
        else:
            self.store = self.ragged(self.path, np.int32, self.codec, trained, allow_empty=True)
        self.records: list[Any] = []
        self.reader: Any = None
        self.seen: list[Any] = []

    def teardown(self) -> None:
        _native.limits.chunk = _native.limits.segment = 0
        if hasattr(self, "store"):
            self.close_reader()
            self.store.close()
            shutil.rmtree(self.folder)

    # ---- what goes in ----

    def make(self, rng: np.random.Generator) -> list[Any]:
        count = int(rng.integers(1, 7))
        if self.kind == "dense":
            return list(rng.integers(-9, 9, (count, *ITEM), np.int32))
        shapes = [SHAPES[i] for i in rng.integers(len(SHAPES), size=count)]
        return [np.asarray(rng.integers(-9, 9, shape, np.int32)) for shape in shapes]

    @rule(seed=SEED, form=st.sampled_from(["list", "generator", "strided", "array"]))
    def append(self, seed: int, form: str) -> None:
        new = self.make(np.random.default_rng(seed))
        given: Any = new
        if form == "generator":
            given = (record for record in new)
        elif form == "strided":
            given = [np.repeat(np.atleast_1d(r), 2, 0)[::2].reshape(r.shape) for r in new]
        elif form == "array" and self.kind == "dense":
            given = np.asfortranarray(np.array(new))
        assert self.store.append(given) == len(self.records)
        self.records += new

    @rule(seed=SEED)
    def append_that_fails(self, seed: int) -> None:
        def failing() -> Any:
            yield from self.make(np.random.default_rng(seed))
            raise Stop

        try:
            self.store.append(failing())
        except Stop:
            return
        raise AssertionError("the iterator's exception did not arrive")

    # ---- what comes out ----

    def choose(self, rng: np.random.Generator, length: int) -> tuple[Any, list[int]]:
        """An index of some form, and what it means for so many records."""
        form = rng.integers(5)
        if form == 0:
            start, stop = sorted(int(n) for n in rng.integers(0, length + 1, 2))
            cut = slice(start, stop, int(rng.integers(1, 4)))
            return cut, list(range(length))[cut]
        if form == 1:
            mask = rng.random(length) < 0.2
            return mask, np.flatnonzero(mask).tolist()
        count = int(rng.integers(0, 6)) if length else 0
        found = [int(i) for i in rng.integers(-length, max(length, 1), count)]
        meant = [i % length for i in found]
        return (found, tuple(found), np.array(found, np.int64))[form - 2], meant

    @rule(seed=SEED, threads=st.sampled_from([0, 1, 2]))
    def gather(self, seed: int, threads: int) -> None:
        index, meant = self.choose(np.random.default_rng(seed), len(self.records))
        wanted = [self.records[i] for i in meant]
        assert same_list(list(self.store[index]), wanted)
        assert same_list(list(self.store.gather(index)), wanted)
        assert same_list(list(self.store._read(np.array(meant, np.int64), threads)), wanted)
        if self.kind == "ragged":
            assert self.store.lengths(index).tolist() == [record.size for record in wanted]

    @precondition(lambda self: self.records)
    @rule(at=SEED)
    def read_one(self, at: int) -> None:
        at %= len(self.records)
        assert same(self.store[at], self.records[at])
        assert same(self.store[at - len(self.records)], self.records[at])

    @rule()
    def read_all(self) -> None:
        assert same_list(list(self.store), self.records)

    @rule()
    def read_outside(self) -> None:
        for at in (len(self.records), -len(self.records) - 1):
            for use in (self.store.__getitem__, self.store.delete):
                try:
                    use([at])
                except RecordIndexError:
                    continue
                raise AssertionError(f"{use} took index {at} of {len(self.records)} records")

    @rule()
    def look_at_all_of_it(self) -> None:
        report = self.store.verify()
        assert (report.ok, report.records, report.bad) == (True, len(self.records), [])
        stats = self.store.stats()
        assert stats["records"] == len(self.records)
        assert stats["live_bytes"] + stats["reclaimable"] <= stats["chunk_bytes"]

    # ---- what changes it ----

    @rule(seed=SEED)
    def delete(self, seed: int) -> None:
        self.close_reader()
        rng = np.random.default_rng(seed)
        index, meant = self.choose(rng, len(self.records))
        if meant and rng.integers(3) == 0:
            index, meant = meant[0], meant[:1]
        self.store.delete(index)
        for i in sorted(set(meant), reverse=True):
            self.records[i] = self.records[-1]
            self.records.pop()

    @rule(interrupted=st.booleans())
    def compact(self, interrupted: bool) -> None:
        self.close_reader()

        def progress(at: int, total: int) -> None:
            assert 0 <= at <= total
            if interrupted:
                raise Stop

        try:
            self.store.compact(progress)
        except Stop:
            assert interrupted
        else:
            assert self.store.stats()["reclaimable"] == 0

    @rule()
    def sync(self) -> None:
        self.store.sync()

    @rule(again=st.sampled_from(["a", "r"]))
    def reopen(self, again: str) -> None:
        self.store.close()
        with type(self.store)(self.path, mode=again) as store:
            assert same_list(list(store), self.records)
        self.store = type(self.store)(self.path)

    # ---- others ----

    @rule()
    def open_reader(self) -> None:
        self.close_reader()
        self.reader = type(self.store)(self.path, mode="r")
        self.seen = list(self.records)

    @precondition(lambda self: self.reader is not None)
    @rule()
    def refresh_reader(self) -> None:
        assert same_list(list(self.reader), self.seen)
        self.reader.refresh()
        self.seen = list(self.records)
        assert same_list(list(self.reader), self.seen)

    @rule(interrupted=st.booleans())
    def snapshot(self, interrupted: bool) -> None:
        copy = os.path.join(self.folder, "copy")

        def progress(at: int, total: int) -> None:
            if interrupted:
                raise Stop

        try:
            self.store.snapshot(copy, progress)
        except Stop:
            assert interrupted
        # Nothing, or, if the interrupt came after the last step, all of it.
        if not interrupted or os.listdir(copy):
            with type(self.store)(copy) as store:
                assert same_list(list(store), self.records) and store.verify().ok
        shutil.rmtree(copy)

    @invariant()
    def lengths_agree(self) -> None:
        type(self).operations += 1
        if hasattr(self, "store"):
            assert len(self.store) == len(self.records)
        if getattr(self, "reader", None) is not None:
            assert len(self.reader) == len(self.seen)

    def close_reader(self) -> None:
        if self.reader is not None:
            self.reader.close()
            self.reader = None
