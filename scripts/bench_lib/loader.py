"""The loaders' part of bench.py: batches a second, first batch, memory."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from typing import Any

from bench_lib import data as sets
from bench_lib.data import DIGITS, IMAGES, DataSet
from bench_lib.hosts import save_source
from bench_lib.loaders import REGISTRY
from bench_lib.machine import PeakMemory
from bench_lib.plot import Panel
from bench_lib.report import number
from bench_lib.session import Session
from bench_lib.targets import Rule, Verdict, better, judge
from bench_lib.timing import Measured, alternate, cores
from bench_lib.worker import Worker

SETS = (IMAGES, DIGITS)
HEAD = ["loader", "batches/s", "MiB/s", "p95 ms", "first batch ms", "peak memory MiB"]

# loaderx's own defaults, which the bound on its memory is made of.
PREFETCH = 4
WORKERS = 4
SPARE = 64 << 20
MEMORY_SECONDS = 0.5


def rules(data: DataSet) -> list[Rule]:
    """The targets of a set on raw stores and without a transform."""
    work = f"loader {data.name}"
    naive = Rule(work, "loaderx", "naive", 2)
    if data.name == "784":
        return [naive, Rule(work, "loaderx", "loaderx_1.7.7", 25)]
    memory = Rule(f"{work}, peak memory", "memory", "bound", 1, at_most=True)
    return [naive, Rule(work, "loaderx", "loaderx_2.8.19", 1.4), memory]


class LoaderRun:
    """One set, one codec, and the loaders that read it.

    Args:
        session: the run it belongs to.
        data: what the images are.
        codec: of the stores; loaders that have no such codec are left out.
        names: of the loaders.
        augmented: whether the transform is applied.
    """

    def __init__(
        self, session: Session, data: DataSet, codec: str, names: list[str], augmented: bool
    ) -> None:
        self.session, self.data, self.codec, self.augmented = session, data, codec, augmented
        self.names = [name for name in names if codec in REGISTRY[name].codecs]
        self.folder = session.folder / f"loader-{data.name.replace(',', 'x')}-{codec}"
        self.measured: dict[str, Measured] = {}
        self.first: dict[str, float] = {}
        self.memory: dict[str, int] = {}

    def run(self) -> list[Verdict]:
        """Measure everything, print the table, and judge the targets."""
        self.session.say(f"loader {self.data.name}, {self.codec}: {', '.join(self.names)}")
        save_source(self.folder / "source", self.data, sets.dense(self.data), None)
        for name in self.names:
            with self._worker(name) as worker:
                worker.call("write")
        judged = [] if self.augmented or self.codec != "raw" else rules(self.data)
        verdicts: list[Verdict] = []
        for turn in range(self.session.args.tries):
            self._measure()
            found = judge(judged, self._figures())
            verdicts = better(verdicts, found) if turn else found
            if all(v.reached for v in verdicts):
                break
        self._show()
        shutil.rmtree(self.folder)
        return verdicts

    def _worker(self, name: str) -> Worker:
        arguments = (
            name,
            str(self.folder / name),
            self.data,
            str(self.folder / "source"),
            self.codec,
            self.augmented,
        )
        python = self.session.python(REGISTRY[name].environment)
        return Worker(name, python, "bench_lib.loader_host:LoaderHost", arguments)

    def _measure(self) -> None:
        effort = self.session.effort
        with ExitStack() as stack:
            cases, workers = {}, {}
            for name in self.names:
                worker = workers[name] = stack.enter_context(self._worker(name))
                self.first[name] = worker.call("start")
                with PeakMemory(worker.pid) as peak:
                    worker.call("sample", MEMORY_SECONDS)
                self.memory[name] = peak.bytes
                worker.call("check", 4)
                cases[name] = lambda seconds, worker=worker: worker.call("sample", seconds)
            self.measured = alternate(cases, effort.rounds, 2 * effort.seconds)
            for worker in workers.values():
                worker.call("close")

    def _figures(self) -> dict[str, float]:
        found: dict[str, float] = {name: 1 / m.seconds for name, m in self.measured.items()}
        if "loaderx" in self.memory:
            batch = self.data.batch * (self.data.record_bytes + 8)
            found["memory"] = self.memory["loaderx"]
            found["bound"] = (PREFETCH + min(WORKERS, cores()) + 1) * batch + SPARE
        return found

    def _show(self) -> None:
        data, session, mib = self.data, self.session, 1 << 20
        nbytes = data.batch * (data.record_bytes + 8)
        rows = [
            [
                name,
                number(1 / m.seconds),
                number(nbytes / m.seconds / mib),
                number(m.p95 * 1000),
                number(self.first[name] * 1000),
                number(self.memory[name] / mib),
            ]
            for name, m in self.measured.items()
        ]
        extra = ", transform augment" if self.augmented else ""
        title = f"loader: {data.name} x {data.batch} + label, {self.codec} stores{extra}"
        session.show(f"{title}: {data.count} records", HEAD, rows)
        results: dict[str, Any] = session.results.setdefault("loader", {})
        results[f"{data.name} {self.codec}{extra}"] = {
            name: {
                "batches_per_second": 1 / m.seconds,
                "p95_seconds": m.p95,
                "rounds": m.rounds,
                "first_batch_seconds": self.first[name],
                "peak_memory_bytes": self.memory[name],
            }
            for name, m in self.measured.items()
        }
        bars = [(n, 1 / m.seconds, REGISTRY[n].color) for n, m in self.measured.items()]
        session.panels.append(Panel(title, "batches/s", bars))
