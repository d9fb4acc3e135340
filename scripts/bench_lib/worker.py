"""The parent's end of a pipe: a contender in a fresh process of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, cast

from bench_lib.child import receive, send

SCRIPTS = Path(__file__).resolve().parent.parent


class ContenderError(RuntimeError):
    """A contender failed, or is not there. The message names it and has its traceback."""


class Worker:
    """A process that hosts one contender.

    Args:
        name: of the contender, for messages.
        python: the interpreter to run, of the environment the contender is in.
        host: "module:Class" of what is made there.
        arguments: for the class.
        environ: added to the environment of the process.

    Raises:
        ContenderError: the process does not start, or the host cannot be made.
    """

    def __init__(
        self,
        name: str,
        python: str | Path,
        host: str,
        arguments: tuple[Any, ...] = (),
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        env = {**os.environ, **(environ or {}), "PYTHONPATH": str(SCRIPTS)}
        env["PYTHONDONTWRITEBYTECODE"] = "1"
        try:
            self._process = subprocess.Popen(
                [str(python), "-m", "bench_lib.child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=env,
            )
        except OSError as error:
            raise ContenderError(f"{name}: cannot run {python}: {error}") from error
        try:
            self.call(host, *arguments)
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the host there, and return its result.

        Raises:
            ContenderError: it raised, or the process ended.
        """
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        try:
            send(cast(Any, process.stdin), (method, arguments))
            good, result = receive(cast(Any, process.stdout))
        except (EOFError, BrokenPipeError) as error:
            status = process.wait()
            raise ContenderError(
                f"{self.name}: expected an answer to {method}, the process ended with {status}"
            ) from error
        if not good:
            raise ContenderError(f"{self.name}, {method}: {result}")
        return result

    def close(self) -> None:
        """End the process."""
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.close()
            process.wait(timeout=30)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            process.kill()
            process.wait()
        process.stdout.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
