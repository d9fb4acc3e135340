"""Random damage to small stores: a script, because what it looks for may end the process.

Each case damages one file of a store (or takes it away) and uses the store. It
may be refused, as corrupt; a record may be; but it may not crash, hang, change a
byte when it is read, show another length, or give a wrong record that a
verification does not report. Version 4 has no checksums: there only crashes,
hangs, odd exceptions and changes count.

Usage: damage.py kind codec form cases seed folder
"""

from __future__ import annotations

import faulthandler
import os
import random
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
from hostile import CLASS, ITEM, dictionary
from support import same, same_list

from loaderx import _native
from loaderx.errors import (
    CorruptRecordError,
    CorruptStoreError,
    NotAStoreError,
    UnsupportedStoreError,
)

# clean: closed. appended: records behind the last checkpoint. deleted: a redo
# record that is carried out, but not covered by a checkpoint. old: version 4.
FORMS = ["clean", "appended", "deleted", "old"]
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
        new = [record.astype(self.records[0].dtype) for record in new]
        if self.form == "old" and self.kind == "dense":
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


def main() -> None:
    """Run the cases."""
    kind, codec, form, cases, seed, folder = sys.argv[1:]
    target = Target(kind, codec, form, Path(folder))
    for number in range(int(cases)):
        target.case(number, random.Random(f"{seed} {number}"))
    assert target.use("r"), "the store is whole again"
    print("done")


if __name__ == "__main__":
    main()
