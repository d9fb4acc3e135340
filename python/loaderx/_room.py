"""Is there room for a Go runtime in this process?

A Go runtime that finds too little of something ends the process, it does not
fail to load. So what it needs is looked up first, and a lack becomes an
ImportError. Measured: below 820,000 KiB of address space dlopen of even a
minimal Go library kills the process; it starts a handful of threads at once,
and more when goroutines block in system calls.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

ADDRESS_SPACE = 1 << 30
TASKS = 16

# A limit above this is not worth counting a machine's processes for.
_FAR_LIMIT = 4096


def lack() -> str | None:
    """Say what there is too little of, or None when there is room."""
    free = address_space_left()
    if free is not None and free < ADDRESS_SPACE:
        return (
            "too little address space for the Go runtime: expected at least "
            f"{ADDRESS_SPACE >> 20} MiB free, got {max(free, 0) >> 20} MiB under RLIMIT_AS "
            "(ulimit -v); raise that limit"
        )
    tasks = tasks_left()
    if tasks is not None and tasks < TASKS:
        return (
            f"too few threads left for the Go runtime: expected room for {TASKS}, got "
            f"{max(tasks, 0)} under RLIMIT_NPROC (ulimit -u) or the cgroup's pids.max; raise that "
            "limit"
        )
    return None


def address_space_left() -> int | None:
    """Bytes of address space free under RLIMIT_AS; None without a limit."""
    limit = _soft_limit("RLIMIT_AS")
    if limit is None:
        return None
    try:
        with open("/proc/self/statm", "rb") as statm:
            used = int(statm.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        used = 0
    return limit - used


def tasks_left() -> int | None:
    """How many more threads may be started; None where no limit is near."""
    rooms = [room for room in (_user_tasks_left(), *_cgroup_tasks_left()) if room is not None]
    return min(rooms, default=None)


def _soft_limit(name: str) -> int | None:
    """The soft resource limit of that name, or None where there is none."""
    if sys.platform == "win32":
        return None
    import resource

    number = getattr(resource, name, None)
    if number is None:
        return None
    soft = resource.getrlimit(number)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def _user_tasks_left() -> int | None:
    """What RLIMIT_NPROC leaves this user. It does not bind the superuser."""
    limit = _soft_limit("RLIMIT_NPROC")
    if limit is None or limit > _FAR_LIMIT or sys.platform != "linux" or os.geteuid() == 0:
        return None
    user, tasks = os.getuid(), 0
    for process in os.scandir("/proc"):
        try:
            if process.name.isdigit() and process.stat().st_uid == user:
                # One folder a thread, plus "." and "..".
                tasks += os.stat(f"/proc/{process.name}/task").st_nlink - 2
        except OSError:
            continue  # it has ended meanwhile
    return limit - tasks


def _cgroup_tasks_left() -> Iterator[int]:
    """What pids.max leaves, for every cgroup this process is in."""
    for folder in _cgroup_folders():
        try:
            with open(f"{folder}/pids.max") as most, open(f"{folder}/pids.current") as now:
                limit, current = most.read().strip(), now.read().strip()
            if limit != "max":
                yield int(limit) - int(current)
        except (OSError, ValueError):
            continue  # no pids controller here


def _cgroup_folders() -> Iterator[str]:
    """The folders of this process's cgroups that may count tasks, and their parents."""
    try:
        with open("/proc/self/cgroup") as lines:
            entries = [line.rstrip("\n").split(":", 2) for line in lines]
    except OSError:
        return
    for entry in entries:
        if len(entry) != 3 or entry[1] not in ("", "pids"):
            continue
        root = "/sys/fs/cgroup/pids" if entry[1] else "/sys/fs/cgroup"
        names = [name for name in entry[2].split("/") if name not in ("", "..")]
        for depth in range(len(names) + 1):
            yield "/".join([root, *names[:depth]])
