"""The command behind scripts/build_wheels.py: everything in its order, and the summary."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import build_native

from wheels import checks, native, pack, sources
from wheels.platforms import PLATFORMS, SDIST, Platform

OUT = build_native.ROOT / "dist" / "wheels"
ERRORS = (build_native.BuildError, sources.SourceError, OSError, ValueError)


@dataclass
class Outcome:
    """What became of one wheel, or of the source distribution."""

    tag: str
    path: Path | None = None
    library: int = 0
    seconds: float = 0
    complaints: list[str] = field(default_factory=list)


class Builder:
    """Builds what is asked for from one layout of the sources."""

    def __init__(self, out: Path, scratch: Path) -> None:
        self.out = out
        self.scratch = scratch
        self.stage = scratch / "stage"
        self.when = pack.source_date()
        sources.lay_out(self.stage)
        self.info = sources.metadata(self.stage, scratch / "info")

    def sdist(self, outcome: Outcome) -> Iterator[str]:
        """Make the source distribution, and yield what is wrong with it."""
        outcome.path = pack.sdist(self.out, self.stage, self.info, self.when)
        yield from checks.check_sdist(outcome.path)
        yield from checks.tool("twine", "check", "--strict", str(outcome.path))

    def wheel(self, platform: Platform, outcome: Outcome) -> Iterator[str]:
        """Make one wheel, and yield what is wrong with it."""
        folder = self.scratch / platform.tag
        outcome.library = native.build(platform, folder).stat().st_size
        modules = sources.module_files()
        outcome.path = pack.wheel(self.out, platform, modules, self.info, folder, self.when)
        yield from checks.check_wheel(platform, outcome.path)
        yield from checks.tool("twine", "check", "--strict", str(outcome.path))
        if platform.tag.startswith("manylinux") and sys.platform == "linux":
            yield from checks.check_auditwheel(platform, outcome.path)
        if platform.goos != "linux":  # whose code is vetted where it is tested
            yield from native.vet(platform)


def attempt(tag: str, work: Callable[[Outcome], Iterator[str]]) -> Outcome:
    """Do one part. Whatever goes wrong is kept for the summary, and the others go on."""
    print(f"== {tag}", flush=True)
    outcome, start = Outcome(tag), time.monotonic()
    try:
        outcome.complaints.extend(work(outcome))
    except ERRORS as error:
        outcome.complaints.append(str(error))
    outcome.seconds = time.monotonic() - start
    if outcome.complaints and outcome.path is not None:
        outcome.path.unlink(missing_ok=True)  # nobody is to publish it
    for complaint in outcome.complaints:
        print(f"   WRONG: {complaint}", flush=True)
    return outcome


def summary(outcomes: list[Outcome]) -> str:
    """Return the table, and below it, loudly, what failed."""
    lines = [f"{'':28}{'file':>12}{'library':>12}{'time':>8}"]
    for done in outcomes:
        size = f"{done.path.stat().st_size:,}" if done.path and not done.complaints else "FAILED"
        library = f"{done.library:,}" if done.library else ""
        lines.append(f"{done.tag:28}{size:>12}{library:>12}{done.seconds:7.0f}s")
    for done in outcomes:
        if done.complaints:
            lines += ["", f"*** {done.tag} FAILED, there is no such file:"]
            lines += [f"    {line}" for c in done.complaints for line in c.splitlines()]
    return "\n".join(lines)


def main() -> int:
    """Build what the arguments say and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="build_wheels.py", description="Build and check wheels and the source distribution"
    )
    parser.add_argument(
        "--only",
        action="append",
        metavar="TAG",
        choices=[SDIST, *PLATFORMS],
        help=f"one of {', '.join([SDIST, *PLATFORMS])}; may be given again",
    )
    parser.add_argument("--out", type=Path, default=OUT, help="folder for what is built")
    arguments = parser.parse_args()
    wanted, out = arguments.only or [SDIST, *PLATFORMS], arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    if not arguments.only:
        for old in (*out.glob("loaderx-*.whl"), *out.glob("loaderx-*.tar.gz")):
            old.unlink()
    with tempfile.TemporaryDirectory(prefix="loaderx-wheels-") as scratch:
        try:
            builder = Builder(out, Path(scratch))
        except (*ERRORS, subprocess.CalledProcessError) as error:
            print(f"loaderx: {error}", file=sys.stderr)
            return 1
        outcomes = []
        for tag in wanted:
            work = builder.sdist if tag == SDIST else partial(builder.wheel, PLATFORMS[tag])
            outcomes.append(attempt(tag, work))
    print(f"\n{out}\n{summary(outcomes)}")
    return 1 if any(done.complaints for done in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
