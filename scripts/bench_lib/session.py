"""One run of a script: its options, its folders, and what it found."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from bench_lib import environment, machine, report, targets
from bench_lib.plot import Panel, save_png

OUT = environment.ROOT / "build" / "bench"


@dataclass(frozen=True)
class Effort:
    """How much time a run takes for a figure.

    Attributes:
        rounds: in which every case has its turn.
        seconds: for each case in each round.
        writes: how often records are written, by what takes less than two seconds.
        plans: how many index plans there are at least.
        touched: bytes that the plans read together, so that no cache holds them.
        share: of the records of a set, how many are made.
    """

    rounds: int
    seconds: float
    writes: int
    plans: int
    touched: int
    share: float


FULL = Effort(7, 0.2, 5, 64, 128 << 20, 1.0)
QUICK = Effort(3, 0.05, 2, 4, 0, 0.25)


def parser(what: str) -> argparse.ArgumentParser:
    """The options that all scripts have."""
    made = argparse.ArgumentParser(description=what)
    made.add_argument("--quick", action="store_true", help="smaller data, less than two minutes")
    made.add_argument("--only", help="names to run, separated by commas")
    made.add_argument("--records", type=int, help="how many records (default: by the set)")
    made.add_argument("--batch", type=int, help="records in a batch (default: by the set)")
    made.add_argument(
        "--tries", type=int, default=1, help="take a ratio so often while a target is missed"
    )
    made.add_argument("--dir", type=Path, help="folder for the data (default: in .cache/bench)")
    made.add_argument("--json", type=Path, help="where to write the results as JSON")
    made.add_argument("--plot", type=Path, help="where to write the plot, a PNG")
    return made


def chosen(only: str | None, known: Iterable[str]) -> list[str]:
    """Return the names that --only asks for, in the order in which they are known.

    Raises:
        SystemExit: one is not known.
    """
    known = list(known)
    if only is None:
        return known
    wanted = [name.strip() for name in only.split(",") if name.strip()]
    unknown = sorted(set(wanted) - set(known))
    if unknown or not wanted:
        sys.exit(f"error: --only: expected some of {', '.join(known)}; got {only!r}")
    return [name for name in known if name in wanted]


class Session:
    """The folders and results of a run; the data are removed when it ends.

    Args:
        script: its name, which results are named after.
        args: what parser() parsed.
    """

    def __init__(self, script: str, args: argparse.Namespace) -> None:
        self.script, self.args = script, args
        self.effort = QUICK if args.quick else FULL
        self.results: dict[str, Any] = {"script": script, "quick": args.quick}
        self.verdicts: list[targets.Verdict] = []
        self.panels: list[Panel] = []
        base = args.dir or environment.CACHE / "data"
        base.mkdir(parents=True, exist_ok=True)
        self.folder = Path(tempfile.mkdtemp(prefix=f"{script}-", dir=base))

    def __enter__(self) -> Session:
        self.machine = machine.describe()
        self.results["machine"] = self.machine
        print(" | ".join(f"{k}: {v}" for k, v in self.machine.items()), flush=True)
        if not machine.quiet(self.machine):
            self.note(
                f"the machine is busy: {self.machine['cores']} threads do only "
                f"{self.machine['scaling']} times the work of one. Repeat this run later"
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def python(self, name: str) -> Path:
        """The interpreter of an environment, which is made when it is first needed."""
        return environment.make(name)

    def say(self, what: str) -> None:
        """Say what is being done, on standard error."""
        print(f"  {what}", file=sys.stderr, flush=True)

    def note(self, what: str) -> None:
        """Keep a remark that belongs to the figures, and print it."""
        self.results.setdefault("notes", []).append(what)
        print(f"note: {what}", flush=True)

    def show(self, title: str, head: list[str], rows: list[list[str]]) -> None:
        """Print a table."""
        print(f"\n{title}\n\n{report.table(head, rows)}", flush=True)

    def count(self, standard: int) -> int:
        """How many records a set has in this run, of so many by the design."""
        return int(self.args.records or max(1, int(standard * self.effort.share)))

    def finish(self) -> None:
        """Print the table of targets; write the JSON and the plot."""
        if self.verdicts:
            self.show("Targets", targets.HEAD, [v.row() for v in self.verdicts])
        self.results["targets"] = targets.as_json(self.verdicts)
        self.results["cpus"] = sorted(os.sched_getaffinity(0))
        path = self.args.json or OUT / f"{self.script}.json"
        report.save_json(path, self.results)
        print(f"\nwrote {path}")
        if self.panels:
            picture = self.args.plot or OUT / f"{self.script}.png"
            cores, cpu = self.machine["cores"], self.machine["processor"]
            save_png(picture, f"{self.script}: {cores} cores, {cpu}", self.panels)
            print(f"wrote {picture}")
