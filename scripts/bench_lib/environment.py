"""The virtual environments that the benchmarks run in, made on first use.

Each contender that cannot share a process with others gets an environment of
its own under .cache/bench in the checkout: "main" has every storage library and
the loaderx of this checkout, "torch" PyTorch, and "1.7.7" and "2.8.19" the
published wheels. What is in each is pinned by a requirements file. This module
needs nothing but the standard library: it runs before there is an environment.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent.parent
ROOT = SCRIPTS.parent
CACHE = ROOT / ".cache" / "bench"

# loaderx 2.8.19 needs numpy 2.5, which needs CPython 3.12. All contenders run
# on the same interpreter, so that they are compared on equal terms.
OLDEST = (3, 12)
INTERPRETERS = ("python3.12", "python3.13", "python3.14", "python3")

REQUIREMENTS = {
    "main": SCRIPTS / "requirements-bench.txt",
    "torch": SCRIPTS / "requirements-bench-torch.txt",
    "1.7.7": SCRIPTS / "requirements-bench-1.7.7.txt",
    "2.8.19": SCRIPTS / "requirements-bench-2.8.19.txt",
}


class MissingEnvironmentError(RuntimeError):
    """An environment that cannot be made, with what is needed."""


def python_of(name: str) -> Path:
    """Return the interpreter of an environment, whether it is there yet or not."""
    return CACHE / name / "bin" / "python"


def version_of(python: str | Path) -> tuple[int, int] | None:
    """Return (major, minor) of an interpreter with working venv and pip, or None."""
    code = "import sys, venv, ensurepip; print(*sys.version_info[:2])"
    try:
        done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode:
        return None
    major, minor = done.stdout.split()
    return int(major), int(minor)


def candidates() -> Iterable[str]:
    """Yield interpreters that may do: this one, those on PATH, those of pyenv."""
    yield sys.executable
    for name in INTERPRETERS:
        found = shutil.which(name)
        if found:
            yield found
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for python in sorted(pyenv.glob("3.*/bin/python")):
        yield str(python)


def find_python() -> str:
    """Return the first interpreter that is new enough.

    Raises:
        MissingEnvironmentError: none is; the message says what was looked at.
    """
    seen = []
    for python in candidates():
        version = version_of(python)
        if version is not None and version >= OLDEST:
            return python
        seen.append(f"{python} ({'.'.join(map(str, version)) if version else 'does not run'})")
    raise MissingEnvironmentError(
        "the benchmarks need CPython 3.12 or newer (loaderx 2.8.19 needs numpy 2.5, and that "
        "needs it), on PATH or among pyenv's versions; found " + (", ".join(seen) or "none")
    )


def _environ() -> dict[str, str]:
    """The environment of child processes: nothing of the user's, caches in the checkout."""
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    env.setdefault("PIP_CACHE_DIR", str(ROOT / ".cache" / "pip"))
    env["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    env["PYTHONNOUSERSITE"] = "1"
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    return env


def _run(command: list[str], doing: str) -> None:
    print(f"{doing} ...", file=sys.stderr, flush=True)
    done = subprocess.run(command, env=_environ(), cwd=ROOT)
    if done.returncode:
        raise MissingEnvironmentError(
            f"{doing}: expected exit status 0, got {done.returncode} of {' '.join(command)}"
        )


def make(name: str) -> Path:
    """Make an environment, unless it is there with these very requirements.

    Args:
        name: one of REQUIREMENTS.

    Returns:
        Its interpreter.

    Raises:
        MissingEnvironmentError: no interpreter will do, or pip failed.
    """
    requirements = REQUIREMENTS[name]
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()
    python, stamp = python_of(name), CACHE / name / "installed"
    if stamp.exists() and stamp.read_text() == digest:
        return python
    shutil.rmtree(CACHE / name, ignore_errors=True)
    _run([find_python(), "-m", "venv", str(CACHE / name)], f"making {CACHE / name}")
    install = [str(python), "-m", "pip", "install", "--quiet", "--only-binary", ":all:"]
    _run([*install, "-r", str(requirements)], f"installing {requirements.name}")
    stamp.write_text(digest)
    return python


def wheel() -> Path:
    """Return the wheel of this checkout, built anew if a source is newer than it.

    LOADERX_WHEEL in the environment names another one to measure.
    """
    named = os.environ.get("LOADERX_WHEEL")
    if named:
        return Path(named)
    sources = [*(ROOT / "python" / "loaderx").glob("*.py")]
    for folder in ("cabi", "engine", "sampler"):
        sources += [p for p in (ROOT / folder).rglob("*") if p.suffix in (".go", ".h", ".c", ".s")]
    newest = max(path.stat().st_mtime for path in sources)
    found = sorted((ROOT / "dist").glob("loaderx-*.whl"), key=lambda p: p.stat().st_mtime)
    if not found or found[-1].stat().st_mtime < newest:
        _run(["make", "wheel"], "building the wheel")
        found = sorted((ROOT / "dist").glob("loaderx-*.whl"), key=lambda p: p.stat().st_mtime)
    return found[-1]


def install_loaderx() -> None:
    """Install the wheel of this checkout into "main", unless it is there."""
    package = wheel()
    digest = hashlib.sha256(package.read_bytes()).hexdigest()
    stamp = CACHE / "main" / "loaderx"
    if stamp.exists() and stamp.read_text() == digest:
        return
    pip = [str(python_of("main")), "-m", "pip", "install", "--quiet", "--no-deps"]
    _run([*pip, "--force-reinstall", str(package)], f"installing {package.name}")
    stamp.write_text(digest)


def enter() -> None:
    """Make the main environment and run the script again in it, unless it is in it."""
    here = Path(sys.prefix).resolve()
    try:
        python = make("main")
        install_loaderx()
    except MissingEnvironmentError as error:
        sys.exit(f"error: {error}")
    if here != (CACHE / "main").resolve():
        os.execve(str(python), [str(python), *sys.argv], _environ())
