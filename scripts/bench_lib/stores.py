"""Measuring storage contenders: write, check, then gather in fresh processes."""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench_lib import data as sets
from bench_lib.backends import REGISTRY
from bench_lib.data import Array, DataSet, Records
from bench_lib.hosts import MALLOC, save_source
from bench_lib.plot import Panel
from bench_lib.report import number
from bench_lib.session import Session
from bench_lib.targets import Rule, Verdict, better, judge
from bench_lib.timing import Measured, alternate
from bench_lib.worker import Worker

# What takes longer than this to write is written once.
SLOW_WRITE = 2.0

HEAD = [
    "backend",
    "write MiB/s",
    "gather MiB/s",
    "krecords/s",
    "p95 ms",
    "disk MiB",
    "ratio",
    "open ms",
]


@dataclass
class Row:
    """The figures of one backend.

    Attributes:
        write: seconds for all records, or None where nothing is written.
        gather: of one batch.
        disk: allocated bytes, or None.
        opened: seconds to open.
    """

    write: float | None
    gather: Measured
    disk: int | None
    opened: float


class StoreRun:
    """One data set, and the backends that are to keep it.

    Args:
        session: the run it belongs to.
        data: what the records are.
        names: of the backends.
        cover: whether the plans cover the data, each record once; otherwise they
            are drawn with replacement.
    """

    def __init__(
        self, session: Session, data: DataSet, names: list[str], cover: bool = False
    ) -> None:
        self.session, self.data, self.names = session, data, names
        self.folder = session.folder / data.name.replace(",", "x")
        self._cover = cover
        self.rows: dict[str, Row] = {}

    def run(self, rules: list[Rule]) -> list[Verdict]:
        """Measure everything, print the table, and judge the rules."""
        self._make_source()
        self._write_and_check()
        os.sync()  # what was written is not to be written back while others are measured
        self._gather()
        verdicts = judge(rules, self.figures())
        for _ in range(1, self.session.args.tries):
            if all(v.reached for v in verdicts):
                break
            self._gather()
            verdicts = better(verdicts, judge(rules, self.figures()))
        self._show()
        shutil.rmtree(self.folder)
        return verdicts

    def _make_source(self) -> None:
        data = self.data
        self.session.say(f"making {data.count} records of {data.name}")
        shapes: Array | None = None
        if data.ragged:
            shapes = sets.ragged_shapes(data)
            records: Records = sets.ragged_values(data, shapes)
        else:
            records = sets.dense(data)
        self.nbytes = int(records.nbytes)
        save_source(self.folder / "source", data, records, shapes)
        if self._cover:
            plans = sets.covering_plans(data.count, data.batch)
        else:
            plans = sets.plans(data.count, data.batch, self._how_many())
        np.save(self.folder / "plans.npy", plans)
        self.batch_bytes = self.nbytes / data.count * data.batch

    def _how_many(self) -> int:
        """How many plans: enough to read more than caches hold, but no more than cover the data."""
        data = self.data
        needed = -(-self.session.effort.touched // (data.batch * data.record_bytes))
        return max(self.session.effort.plans, min(needed, data.count // data.batch))

    def _worker(self, name: str) -> Worker:
        entry = REGISTRY[name]
        arguments = (
            name,
            str(self.folder / name),
            self.data,
            str(self.folder / "source"),
            str(self.folder / "plans.npy"),
        )
        environ = MALLOC if entry.module == "frames" else None
        python = self.session.python(entry.environment)
        return Worker(name, python, "bench_lib.hosts:StoreHost", arguments, environ)

    def _write_and_check(self) -> None:
        self.written: dict[str, float] = {}
        self.disk: dict[str, int] = {}
        with ExitStack() as stack:
            workers = {name: stack.enter_context(self._worker(name)) for name in self.names}
            for turn in range(self.session.effort.writes):
                for name, worker in workers.items():
                    best = self.written.get(name)
                    if turn and best is not None and best > SLOW_WRITE:
                        continue
                    took = worker.call("write")
                    self.written[name] = took if best is None else min(best, took)
            for name, worker in workers.items():
                self.session.say(f"checking {name}")
                self.disk[name] = worker.call("finish")
                worker.call("validate")
                worker.close()

    def _gather(self) -> None:
        """Gather in processes that have done nothing but open the files."""
        effort = self.session.effort
        self.session.say(f"gathering from {len(self.names)} backends")
        with ExitStack() as stack:
            opened, cases = {}, {}
            for name in self.names:
                worker = stack.enter_context(self._worker(name))
                opened[name] = worker.call("open")
                cases[name] = lambda seconds, worker=worker: worker.call("sample", seconds)
            measured = alternate(cases, effort.rounds, effort.seconds)
        for name in self.names:
            kept = REGISTRY[name].module != "ram" or name == "npy_memmap"
            self.rows[name] = Row(
                self.written[name] if kept else None,
                measured[name],
                self.disk[name] if kept else None,
                opened[name],
            )

    def figures(self) -> dict[str, float]:
        """What rules refer to: NAME, batches a second; NAME.write, bytes a second."""
        found = {name: 1 / row.gather.seconds for name, row in self.rows.items()}
        for name, row in self.rows.items():
            if row.write:
                found[f"{name}.write"] = self.nbytes / row.write
        return found

    def _cells(self, name: str) -> list[str]:
        row, mib = self.rows[name], 1 << 20
        seconds = row.gather.seconds
        return [
            name,
            number(self.nbytes / row.write / mib if row.write else None),
            number(self.batch_bytes / seconds / mib),
            number(self.data.batch / seconds / 1000),
            number(row.gather.p95 * 1000),
            number(row.disk / mib if row.disk else None),
            number(self.nbytes / row.disk if row.disk else None),
            number(row.opened * 1000),
        ]

    def _show(self) -> None:
        data, session = self.data, self.session
        shape = "ragged" if data.ragged else "x".join(map(str, data.item_shape))
        title = (
            f"{data.name} ({data.kind}, {data.dtype} {shape}): {data.count} records, "
            f"{self.nbytes / (1 << 20):.0f} MiB, batches of {data.batch}"
        )
        session.show(title, HEAD, [self._cells(name) for name in self.names])
        session.results.setdefault("sets", {})[data.name] = self.as_json()
        bars = [
            (name, self.batch_bytes / row.gather.seconds / (1 << 20), REGISTRY[name].color)
            for name, row in self.rows.items()
        ]
        session.panels.append(Panel(f"gather: {data.name} x {data.batch}", "MiB/s", bars))

    def as_json(self) -> dict[str, Any]:
        """All figures as plain data: bytes, seconds, and rates by the second."""
        rows = {
            name: {
                "write_seconds": row.write,
                "batch_seconds": row.gather.seconds,
                "batch_p95_seconds": row.gather.p95,
                "rounds": row.gather.rounds,
                "records_per_second": self.data.batch / row.gather.seconds,
                "bytes_per_second": self.batch_bytes / row.gather.seconds,
                "disk_bytes": row.disk,
                "open_seconds": row.opened,
            }
            for name, row in self.rows.items()
        }
        about = {"count": self.data.count, "batch": self.data.batch, "bytes": self.nbytes}
        return {**about, "backends": rows}
