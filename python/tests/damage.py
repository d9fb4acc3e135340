"""Random damage to small stores: a script, because what it looks for may end the process.

Each case damages one file of a store (or takes it away) and uses the store. It
may be refused, as corrupt; a record may be; but it may not crash, hang, change a
byte when it is read, show another length, or give a wrong record that a
verification does not report. Version 4 has no checksums: there only crashes,
hangs, odd exceptions and changes count. So it is with forged stores, whose
headers, tables and journals say anything, under checksums that are right.

Usage: damage.py form cases seed folder
"""

from __future__ import annotations

import dataclasses
import faulthandler
import os
import random
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
from forge import Forged, Redo, RedoEntry, record_sum
from hostile import ALL_CODECS, CLASS, ITEM, KINDS, dictionary, forged, records
from support import same, same_list

from loaderx import _native
from loaderx.errors import (
    CorruptRecordError,
    CorruptStoreError,
    NotAStoreError,
    RecordIndexError,
    StoreMismatchError,
    UnsupportedStoreError,
)

# clean: closed. appended: records behind the last checkpoint. deleted: a redo
# record that is carried out, but not covered by a checkpoint. old: version 4.
FORMS = ["clean", "appended", "deleted", "old", "forged"]
REFUSALS = (CorruptStoreError, NotAStoreError, UnsupportedStoreError)
SYNCED, ALL = 14, 20
GOLDEN = Path(__file__).parent / "golden"

Files = dict[str, bytes]


def make_records(kind: str, rng: np.random.Generator, count: int) -> list[Any]:
    """Records of some repetition, so that compression finds something."""
    shapes = [ITEM] * count
    if kind == "ragged":
        shapes = [tuple(rng.integers(1, 4, rng.integers(0, 3)).tolist()) for _ in range(count)]
    return [np.asarray(rng.integers(1, 9, shape, np.int32)) for shape in shapes]


class Target:
    """A store, its files when nothing is wrong with them, and what it holds."""

    def __init__(self, kind: str, codec: str, form: str, folder: Path) -> None:
        self.kind, self.form, self.path = kind, form, folder / "store"
        if form == "old":
            self.from_version_4(codec, folder)
            return
        _native.limits.chunk, _native.limits.segment = 300, 16
        records = make_records(kind, np.random.default_rng(7), ALL)
        trained = dictionary() if codec == "zstd_dict" else None
        shape = [ITEM] if kind == "dense" else []
        live = folder / "live"
        with CLASS[kind](live, np.int32, *shape, codec=codec, dict_bytes=trained) as store:
            store.append(records[:SYNCED])
            store.sync()
            if form != "clean":
                store.append(records[SYNCED:])
            if form == "deleted":
                store.sync()
                store.delete([2, 5])
                records[5], records[2] = records[-1], records[-2]
                del records[-2:]
            shutil.copytree(live, self.path)
        self.records = records[:SYNCED] if form == "clean" else records
        self.least = SYNCED if form == "appended" else len(self.records)
        self.files = self.read_files()

    def from_version_4(self, codec: str, folder: Path) -> None:
        name = {"raw": "raw_after_delete", "zstd": "zstd_after_delete_compact"}.get(
            codec, "dict_i4"
        )
        shutil.copytree(GOLDEN / f"{self.kind}_{name}", self.path)
        with CLASS[self.kind](self.path, mode="r") as store:
            self.records = list(store)
        self.least = 0
        self.files = self.read_files()

    def read_files(self) -> Files:
        return {name: (self.path / name).read_bytes() for name in sorted(os.listdir(self.path))}

    def restore(self, name: str) -> None:
        (self.path / name).write_bytes(self.files[name])

    # ---- one case ----

    def damage(self, rng: random.Random) -> tuple[str, str]:
        """Damage one file, and say how."""
        name = rng.choice(sorted(self.files))
        data = bytearray(self.files[name])
        how = rng.choice(["cut", "bit", "bit", "byte", "run", "zeros", "move", "extend", "gone"])
        at = rng.randrange(len(data)) if data else 0
        if name == "journal.zr" and rng.random() < 0.8:
            at = rng.choice([0, 4096, 8192]) + rng.randrange(256)  # elsewhere are zeros
        size = rng.choice([1, 4, 8, 16, 64])
        if how == "gone":
            (self.path / name).unlink()
            return name, how
        if how == "cut":
            del data[at:]
        elif how == "extend":
            data += bytes(rng.randrange(256) for _ in range(size))
        elif how == "bit" and data:
            data[at] ^= 1 << rng.randrange(8)
        elif how == "byte" and data:
            data[at] = rng.choice([0, 1, 127, 128, 255])
        elif how == "run":
            data[at : at + size] = bytes(rng.randrange(256) for _ in data[at : at + size])
        elif how == "zeros":
            data[at : at + size] = bytes(len(data[at : at + size]))
        elif how == "move" and data:
            source = rng.randrange(len(data))
            piece = data[source : source + size]
            data[at : at + len(piece)] = piece
            del data[len(self.files[name]) :]
        (self.path / name).write_bytes(data)
        return name, f"{how} at {at} of {size}"

    def use(self, mode: str) -> bool:
        """Read everything; say whether all of it was right. Raises what it may not do."""
        try:
            store = CLASS[self.kind](self.path, mode=mode)
        except REFUSALS:
            return False
        except StoreMismatchError:
            assert self.form == "old"  # a byte says of which kind it is
            return False
        with store:
            wrong = self.wrong_records(store)
            report = store.verify()
            found = {bad.index for bad in report.bad}
            if self.form != "old":
                assert self.least <= len(store) <= len(self.records), f"{len(store)} records"
                assert wrong <= found, f"wrong: {sorted(wrong)}, verify found {sorted(found)}"
            return not wrong and report.ok and len(store) == len(self.records)

    def wrong_records(self, store: Any) -> set[int]:
        """The records that read, but not as they were."""
        wrong, failed = set(), 0
        for i in range(len(store)):
            try:
                if not same(store[i], self.records[i % len(self.records)]):
                    wrong.add(i)
            except CorruptRecordError as error:
                assert error.index == i, error
                failed += 1
        try:
            store[:]
        except CorruptRecordError:
            assert failed or wrong
        else:
            assert not failed
        return wrong

    def change(self, rng: random.Random, right: bool) -> None:
        """Append, delete and compact; what was right has to stay so."""
        new = make_records(self.kind, np.random.default_rng(rng.randrange(1 << 30)), 3)
        if self.form == "old":
            new = [self.records[0]] * 3
        wanted = [*self.records, *new]
        try:
            with CLASS[self.kind](self.path) as store:
                store.append(new)
                store.delete(1)
                wanted[1] = wanted.pop()
                store.compact()
            with CLASS[self.kind](self.path, mode="r") as store:
                if right:
                    assert same_list(list(store), wanted) and store.verify().ok
        except (*REFUSALS, CorruptRecordError):
            assert not right or self.form == "old"
        except (TypeError, ValueError):
            assert self.form == "old"  # its dtype or shape is another now

    def case(self, number: int, rng: random.Random) -> None:
        name, how = self.damage(rng)
        mode = rng.choice(["r", "a"])
        # The last line says which case it was if the process ends in it.
        print(f"case {number}: {name}, {how}, mode {mode}", flush=True)
        faulthandler.dump_traceback_later(60, exit=True)
        before = self.read_files()
        right = self.use(mode)
        assert self.read_files() == before, "reading changed the store"
        if number % 4 == 0:
            self.change(rng, right)
            shutil.rmtree(self.path)
            self.path.mkdir()
            for other in self.files:
                self.restore(other)
        else:
            self.restore(name)
        faulthandler.cancel_dump_traceback_later()


class ForgedTarget(Target):
    """Stores of which some numbers are any number."""

    def __init__(self, kind: str, codec: str, form: str, folder: Path) -> None:
        self.kind, self.codec, self.form, self.path = kind, codec, form, folder / "store"
        self.records = records(kind)
        self.least = 0

    def case(self, number: int, rng: random.Random) -> None:
        store = forged(self.kind, self.codec, rng.choice([4, 5, 5, 5]))
        if rng.random() < 0.4:
            store.redo = [self.redo(store, i, rng) for i in range(rng.randrange(1, 4))]
        said = [self.spoil(store, rng) for _ in range(rng.randrange(1, 4))]
        mode = rng.choice(["r", "a"])
        print(f"case {number}: {said}, mode {mode}, redo {store.redo}", flush=True)
        faulthandler.dump_traceback_later(60, exit=True)
        store.write(self.path)
        before = self.read_files()
        self.read_forged(mode)
        assert self.read_files() == before, "reading changed the store"
        if number % 2 == 0:
            self.change_forged()
        shutil.rmtree(self.path)
        faulthandler.cancel_dump_traceback_later()

    def spoil(self, store: Forged, rng: random.Random) -> str:
        """Change a number."""
        what: Any = rng.choice([store.meta, store.typed, *store.slots, *store.entries * 2])
        if rng.random() < 0.2:
            what = None  # the header of meta.zr and the slot alike
        fields = [f.name for f in dataclasses.fields(what or store.meta) if f.type == "int"]
        name = rng.choice(fields)
        size = 255 if name in ("codec", "version", "kind") else (1 << 32) - 1
        if name == "flags":
            size = (1 << 16) - 1
        value = any_number(rng, getattr(what or store.meta, name), size)
        if what is None:
            store.both(**{name: value})
        else:
            setattr(what, name, value)
        return f"{type(what or store).__name__}.{name} = {value}"

    def redo(self, store: Forged, sequence: int, rng: random.Random) -> Redo:
        """A redo record, right but for its numbers, which are any."""
        meta = dataclasses.replace(store.meta, version=5)
        meta.length = any_number(rng, meta.length, meta.length)
        found = []
        for _ in range(rng.randrange(3)):
            entry = dataclasses.replace(rng.choice(store.entries))
            entry.offset = any_number(rng, entry.offset, (1 << 32) - 1)
            image = rng.choice([None, bytes(entry.phys)])
            total = record_sum(entry.phys, entry.logic, image or b"")
            found.append(RedoEntry(any_number(rng, 1, (1 << 64) - 1), entry, total, image))
        return Redo(meta, found, sequence)

    def read_forged(self, mode: str) -> None:
        try:
            store = CLASS[self.kind](self.path, mode=mode)
        except (*REFUSALS, StoreMismatchError):  # its kind is a number too
            return
        with store:
            for read in (lambda: store[:], lambda: list(store), store.stats, store.verify):
                try:
                    read()
                except CorruptRecordError:
                    pass

    def change_forged(self) -> None:
        for change in ("append", "delete", "compact", "upgrade", "sync"):
            try:
                with CLASS[self.kind](self.path) as store:
                    given = {"append": [self.records], "delete": [[0, -1]]}.get(change, [])
                    getattr(store, change)(*given)
            except (*REFUSALS, StoreMismatchError, CorruptRecordError, RecordIndexError):
                pass


def any_number(rng: random.Random, now: int, most: int) -> int:
    """A number near now, near a power of two, or any."""
    value = rng.choice(
        [
            now,
            now + rng.choice([-2, -1, 1, 2, 16]),
            rng.randrange(40),
            (1 << rng.randrange(65)) + rng.choice([-1, 0, 1]),
            rng.randrange(most + 1),
        ]
    )
    return max(0, min(value, most))


def main() -> None:
    """Run the cases on a store of each kind and codec."""
    form, cases, seed, folder = sys.argv[1:]
    for kind in KINDS:
        for codec in ALL_CODECS:
            print(kind, codec)
            own = Path(folder, f"{kind} {codec}")
            own.mkdir(parents=True)
            target = (ForgedTarget if form == "forged" else Target)(kind, codec, form, own)
            for number in range(int(cases)):
                target.case(number, random.Random(f"{seed} {number}"))
            assert form == "forged" or target.use("r"), "the store is whole again"
    print("done")


if __name__ == "__main__":
    main()
