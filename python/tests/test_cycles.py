"""Opening and closing leaves nothing behind, however often."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support import output_of

CYCLES = """
    import gc, os, sys, threading
    import numpy as np
    from loaderx import DenseStore, RaggedStore, DataLoader
    folder, cycles = sys.argv[1], int(sys.argv[2])
    data = np.arange(3000, dtype=np.int32).reshape(1000, 3)
    with DenseStore(folder + "/d", np.int32, (3,), "raw") as store:
        store.append(data)
    with RaggedStore(folder + "/r", np.int32) as store:
        store.append(list(data[:50]))

    def one(i):
        cls, name = ((DenseStore, "/d"), (RaggedStore, "/r"))[i % 2]
        store = cls(folder + name, mode="r")
        store[[0, 5]]
        if i % 2:
            store.gather([1]), store.lengths([0])
        if i % 4 < 3:
            store.close()                       # the others are left to be collected
        if i % 500 == 0:
            with DenseStore(folder + "/d") as writer:
                writer.append(data[:1]), writer.delete(-1), writer.compact(), writer.verify()

    def held():
        gc.collect()
        with open("/proc/self/maps") as maps:
            files = [line for line in maps if folder in line]
        names = sorted(filter(None, map(opened, os.listdir("/proc/self/fd"))))
        return names, len(files), threading.active_count()

    def opened(number):
        try:
            # The Go runtime makes its poller (an epoll and an event descriptor) when
            # it first needs one, which is not in step with the cycles.
            name = os.readlink("/proc/self/fd/" + number)
            return "" if name.startswith("anon_inode:") else name
        except FileNotFoundError:
            return ""                           # the listing's own

    def anonymous():
        with open("/proc/self/maps") as maps, open("/proc/self/status") as status:
            size = next(int(x.split()[1]) for x in status if x.startswith("VmRSS"))
            return len(list(maps)), len(os.listdir("/proc/self/task")), size

    for i in range(600):
        one(i)
    before, around = held(), anonymous()
    for i in range(cycles):
        one(i)
    after, now = held(), anonymous()
    assert not any(folder in name for name in after[0]), after
    assert after == before, (before, after)
    assert before[1:] == (0, 1), before
    # The Go runtime maps and starts what it likes, but not in step with the cycles.
    assert now[0] - around[0] < 100 and now[1] - around[1] < 20, (around, now)
    assert now[2] - around[2] < 64 << 10, (around, now)
    print("nothing left")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts what /proc shows")
def test_ten_thousand_cycles_leave_nothing(tmp_path: Path) -> None:
    assert output_of(CYCLES, tmp_path, 10_000) == "nothing left"
