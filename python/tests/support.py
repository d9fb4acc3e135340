"""What several tests share."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np


class FakeStore:
    """A store as far as index rules go: a length and a path."""

    path = "/data/fake"

    def __init__(self, length: int) -> None:
        self._length = length

    def __len__(self) -> int:
        return self._length


def run_python(code: str, *arguments: Any) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter; the time limit is only there for hangs."""
    return _run("-c", textwrap.dedent(code), *arguments)


def output_of(code: str, *arguments: Any) -> str:
    """Run code that must succeed silently on stderr, and return what it printed."""
    return _succeeded(run_python(code, *arguments))


def script_output(script: Path, *arguments: Any) -> str:
    """Run a script as output_of runs code: for what has to be importable."""
    return _succeeded(_run(script, *arguments))


def _run(*command: Any) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, *map(str, command))
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def _succeeded(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0 and done.stderr == "", (done.returncode, done.stdout, done.stderr)
    return done.stdout.strip()


CHILD = """
import sys
import numpy as np
from loaderx.zrecord import DenseStore, RaggedStore
for line in sys.stdin:
    try:
        print(repr(eval(line, globals())), flush=True)
    except Exception as error:
        print(f"{type(error).__name__}: {error}", flush=True)
"""


class Child:
    """Another process that evaluates expressions; ``(s := DenseStore(...))`` keeps a value.

    Args:
        environment: what its environment has beside this one's.
    """

    def __init__(self, **environment: str) -> None:
        self._process = subprocess.Popen(
            (sys.executable, "-c", CHILD),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )

    def ask(self, expression: str) -> str:
        """The repr of an expression's value, or the name and message of its exception."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(expression + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().rstrip("\n")

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *exc_info: object) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(60)


def same(a: Any, b: Any) -> bool:
    """Whether two arrays are equal in dtype, shape and every byte that counts."""
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def same_list(a: Any, b: Any) -> bool:
    """Whether two lists of arrays are the same, one by one."""
    return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
