"""Build and check the wheels of all platforms and the source distribution.

It needs Go and Python 3.10 or newer, and nothing else: the C compiler is zig,
which comes from PyPI into a virtual environment in .cache, where everything
that is downloaded or kept between runs goes. The result is in dist/wheels.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
REQUIREMENTS = ROOT / "scripts" / "requirements-wheels.txt"
NEEDED = (3, 10)


def environment() -> Path:
    """Make the virtual environment, or bring it up to date, and return its Python."""
    folder = CACHE / "wheels-venv"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp = folder / "requirements-wheels.txt"
    if stamp.is_file() and stamp.read_bytes() == REQUIREMENTS.read_bytes():
        return python
    print(f"making {folder}", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    # pip asks a rustc on PATH for its version, and rustup's writes its settings then.
    own = {"PIP_CACHE_DIR": str(CACHE / "pip"), "RUSTUP_HOME": str(CACHE / "rustup")}
    install = ["install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]
    subprocess.run(
        [str(python), "-m", "pip", *install, "-r", str(REQUIREMENTS)],
        env={**os.environ, **own},
        check=True,
    )
    stamp.write_bytes(REQUIREMENTS.read_bytes())
    return python


def run(module: str) -> int:
    """Run a module of scripts/wheels in the environment, with our arguments."""
    if sys.version_info < NEEDED:
        print(
            f"loaderx: wheels are built with Python {NEEDED[0]}.{NEEDED[1]} or newer, and "
            f"{sys.executable} is {sys.version.split()[0]}",
            file=sys.stderr,
        )
        return 1
    try:
        python = environment()
    except subprocess.CalledProcessError as error:
        print(f"loaderx: the environment for building wheels failed: {error}", file=sys.stderr)
        return 1
    own = {"PYTHONPATH": str(ROOT / "scripts"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [str(python), "-m", module, *sys.argv[1:]]
    return subprocess.run(command, env={**os.environ, **own}, check=False).returncode


if __name__ == "__main__":
    sys.exit(run("wheels.build"))
