"""What a dictionary is worth: the dictionaries' part of bench.py."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench_lib import check
from bench_lib import data as sets
from bench_lib.data import DataSet
from bench_lib.plot import Panel
from bench_lib.report import number
from bench_lib.session import Session
from bench_lib.timing import Measured, alternate, repeat
from bench_lib.worker import Worker

SETS = (
    DataSet("smooth", "smooth", "float32", (64, 64), 2048, 256),
    DataSet("tokens", "tokens", "int32", (512,), 16384, 256),
)
CHOICES = ("zstd", "fast", "balanced", "max")
HEAD = ["codec", "ratio", "with dictionary", "gather MiB/s", "dictionary KiB"]
PLANS = 32


class DictionaryHost:
    """Stores of one set, without a dictionary and with one of each tier."""

    def __init__(self, folder: str, data: DataSet) -> None:
        self._folder, self._data = Path(folder), data
        self._folder.mkdir(parents=True)
        self._records = sets.dense(data)
        self._stores: dict[str, Any] = {}
        self._plans = list(sets.plans(data.count, data.batch, PLANS))
        self._at = 0

    def write(self, choice: str) -> dict[str, float]:
        """Write a store, and return its ratio and the bytes of its dictionary."""
        from loaderx.utils import train_dict
        from loaderx.zrecord import DenseStore

        data, trained = self._data, None
        codec = "zstd" if choice == "zstd" else "zstd_dict"
        if codec == "zstd_dict":
            trained = train_dict(self._records, choice)
        path = self._folder / choice
        with DenseStore(path, data.dtype, data.item_shape, codec, trained) as store:
            store.append(self._records)
            frames = int(store.stats()["live_bytes"])
        size = len(trained) if trained else 0
        nbytes = int(self._records.nbytes)
        self._stores[choice] = DenseStore(path, mode="r")
        return {
            "ratio": nbytes / frames,
            "ratio_with_dictionary": nbytes / (frames + size),
            "dictionary_bytes": size,
        }

    def check(self) -> None:
        """Compare every record, and the result of every plan."""
        for choice, store in self._stores.items():
            check.dense(choice, store[:], self._records, "all records")
            for plan in self._plans:
                check.dense(choice, store[plan], self._records[plan], "a plan")

    def run(self, rounds: int, seconds: float) -> dict[str, Measured]:
        """Measure the gather of a batch from each store, in seconds."""

        def next_plan() -> Any:
            self._at += 1
            return self._plans[self._at % PLANS]

        cases = {
            choice: lambda seconds, store=store: repeat(lambda: store[next_plan()], seconds)
            for choice, store in self._stores.items()
        }
        return alternate(cases, rounds, seconds)


def run(session: Session) -> None:
    """Measure both sets and print their tables."""
    for found in SETS:
        data = replace(found, count=session.count(found.count))
        session.say(f"dictionary: {data.count} records of {data.name}")
        folder = session.folder / f"dictionary-{data.name}"
        host = "bench_lib.dictionary:DictionaryHost"
        effort = session.effort
        with Worker("dictionary", session.python("main"), host, (str(folder), data)) as worker:
            facts = {choice: worker.call("write", choice) for choice in CHOICES}
            worker.call("check")
            measured = worker.call("run", effort.rounds, effort.seconds)
        shutil.rmtree(folder)
        nbytes = data.batch * data.record_bytes
        rows = [
            [
                choice,
                number(facts[choice]["ratio"]),
                number(facts[choice]["ratio_with_dictionary"]),
                number(nbytes / m.seconds / (1 << 20)),
                number(facts[choice]["dictionary_bytes"] / 1024),
            ]
            for choice, m in measured.items()
        ]
        shape = "x".join(map(str, data.item_shape))
        title = f"dictionary: {data.name} ({data.dtype} {shape}), {data.count} records"
        session.show(title, HEAD, rows)
        session.results.setdefault("dictionary", {})[data.name] = {
            choice: {**facts[choice], "batch_seconds": m.seconds} for choice, m in measured.items()
        }
        bars = [(c, facts[c]["ratio"], "ours") for c in CHOICES]
        session.panels.append(Panel(title, "ratio", bars))
