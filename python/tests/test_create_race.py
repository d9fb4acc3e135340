"""Processes that make the same store at once: it is made once, and all of them write to it."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

from loaderx.zrecord import DenseStore

PROCESSES, ROUNDS = 4, 3

CREATOR = """
    import sys
    import numpy as np
    from loaderx.errors import StoreBusyError
    from loaderx.zrecord import DenseStore

    me = int(sys.argv[1])
    print("ready", flush=True)
    for path in sys.stdin:
        while True:  # until the others have closed it
            try:
                with DenseStore(path.strip(), np.uint8, (3,)) as store:
                    store.append(np.full((2, 3), me, np.uint8))
                break
            except StoreBusyError:
                pass
        print("done", flush=True)
"""


def test_creators_race(tmp_path: Path) -> None:
    """Each process goes on when it finds that another was faster."""
    code = textwrap.dedent(CREATOR)
    children = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(me)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for me in range(1, PROCESSES + 1)
    ]
    try:
        for child in children:
            assert child.stdout is not None and child.stdout.readline() == "ready\n"
        for number in range(ROUNDS):
            path = tmp_path / f"new{number}" / "store"
            for child in children:
                assert child.stdin is not None
                child.stdin.write(f"{path}\n")
                child.stdin.flush()
            for child in children:
                assert child.stdout is not None and child.stdout.readline() == "done\n"
            with DenseStore(path) as store:
                found = store[:][:, 0].tolist()
                assert sorted(found) == sorted(2 * list(range(1, PROCESSES + 1)))
                assert found[::2] == found[1::2] and store.verify().ok
    finally:
        for child in children:
            child.kill()
            child.communicate()
