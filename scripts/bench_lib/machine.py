"""What the machine is, what files take on disk, and what processes take in memory."""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench_lib.timing import cores, scaling

PROC = Path("/proc")


def _field(path: str, key: str) -> str:
    """Return the value of the first line that begins with a key, or "unknown"."""
    try:
        with open(path, encoding="utf-8") as file:
            for line in file:
                if line.startswith(key):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return "unknown"


def describe() -> dict[str, Any]:
    """What a reader of the figures has to know of the machine, and whether it is quiet.

    "scaling" is how many times the work of one thread as many threads do as there
    are processors; see timing.scaling.
    """
    return {
        "processor": _field("/proc/cpuinfo", "model name"),
        "cores": cores(),
        "memory": _field("/proc/meminfo", "MemTotal"),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "time": time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime()) + " UTC",
        "scaling": round(scaling(cores()), 2),
    }


def quiet(machine: dict[str, Any]) -> bool:
    """Whether figures of several threads are to be believed: 0.9 of the cores or more."""
    return bool(machine["scaling"] >= 0.9 * machine["cores"])


def disk_bytes(folder: Path) -> int:
    """The bytes that the blocks of all files below a folder take."""
    found = (p for p in folder.rglob("*") if p.is_file())
    return sum(path.stat().st_blocks * 512 for path in found)


def _parents() -> Iterator[tuple[int, int]]:
    """Yield (process, its parent) of every process."""
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue  # it has just ended
            yield int(entry.name), int(stat.rpartition(")")[2].split()[1])


def tree(pid: int) -> list[int]:
    """A process and all that descend from it."""
    children: dict[int, list[int]] = {}
    for child, parent in _parents():
        children.setdefault(parent, []).append(child)
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found


def anonymous_bytes(pid: int) -> int:
    """The anonymous and shared memory of a tree of processes.

    Pages of mapped files are left out: they are the page cache's, and go when
    somebody needs the room. Shared memory counts in each process that maps it.
    """
    total = 0
    for one in tree(pid):
        try:
            lines = (PROC / str(one) / "status").read_text().splitlines()
        except OSError:
            continue
        for line in lines:
            if line.startswith(("RssAnon", "RssShmem")):
                total += int(line.split()[1]) << 10
    return total


class PeakMemory:
    """Watches a tree of processes, and keeps the most that it took.

    Used as a context manager; ``bytes`` is the peak.
    """

    def __init__(self, pid: int, every: float = 0.01) -> None:
        self.bytes = 0
        self._pid, self._every = pid, every
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while True:
            self.bytes = max(self.bytes, anonymous_bytes(self._pid))
            if self._done.wait(self._every):
                return

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._done.set()
        self._thread.join()


def drop_pages(folder: Path) -> None:
    """Write the files below a folder to disk, and take their pages out of the page cache.

    Pages that are mapped somewhere stay: close what reads the files first.
    """
    for path in folder.rglob("*"):
        if path.is_file():
            fd = os.open(path, os.O_RDONLY)
            try:
                os.fsync(fd)
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(fd)
