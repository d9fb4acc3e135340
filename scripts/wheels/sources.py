"""The source distribution: what is in it, and how its files are laid out.

It is a checkout with the Python package at its top, where the standards want
it, and with the Go modules vendored, so that building it needs no network.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import build_native

from wheels.native import environment
from wheels.platforms import PLATFORMS

ROOT = build_native.ROOT

# Files, by where they lie in the checkout and in the distribution.
FILES = {
    "python/pyproject.toml": "pyproject.toml",
    "python/setup.py": "setup.py",
    "README.md": "README.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "FORMAT.md": "FORMAT.md",
    "ARCHITECTURE.md": "ARCHITECTURE.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "LICENSE": "LICENSE",
    "THIRD_PARTY_LICENSES": "THIRD_PARTY_LICENSES",
    "go.mod": "go.mod",
    "go.sum": "go.sum",
    "packaging/zstd.h": "packaging/zstd.h",
    "scripts/build_native.py": "scripts/build_native.py",
    "scripts/quickstart.py": "scripts/quickstart.py",
}
# What the README links to, besides those.
DOCUMENTS = ("docs/*.md", "docs/images/*.png", "examples/*.py")
GO_FOLDERS = ("cabi", "engine", "sampler")
GO_SUFFIXES = {".go", ".c", ".h", ".s", ".map"}


class SourceError(Exception):
    """The sources cannot be laid out. The message says why."""


def version() -> str:
    """Return the version that the package states."""
    text = (ROOT / "python" / "loaderx" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "([^"]+)"$', text, re.M)
    if found is None:
        raise SourceError("expected a line __version__ = ... in python/loaderx/__init__.py")
    return found.group(1)


def module_files() -> list[Path]:
    """Return the files of the Python package that somebody wrote."""
    package = ROOT / "python" / "loaderx"
    return sorted({*package.rglob("*.py"), package / "py.typed"} - {package / "_cdef.py"})


def go_files() -> list[Path]:
    """Return the Go sources that the library is made of."""
    return sorted(
        path
        for folder in GO_FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.suffix in GO_SUFFIXES
        and not path.name.endswith("_test.go")
        and "testdata" not in path.parts
    )


def documents() -> list[Path]:
    """Return the files of DOCUMENTS."""
    return sorted(path for pattern in DOCUMENTS for path in ROOT.glob(pattern))


def lay_out(stage: Path) -> None:
    """Make the folder that the source distribution is an archive of, but for PKG-INFO."""
    for source, target in FILES.items():
        copy(ROOT / source, stage / target)
    for path in module_files():
        copy(path, stage / path.relative_to(ROOT / "python"))
    for path in (*go_files(), *documents()):
        copy(path, stage / path.relative_to(ROOT))
    vendor(stage / "vendor")


def copy(source: Path, target: Path) -> None:
    """Copy a file's contents, and make the folders above it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def vendor(out: Path) -> None:
    """Have the go command copy the modules, C sources included."""
    env = environment(next(iter(PLATFORMS.values())))
    command = ["go", "mod", "vendor", "-o", str(out)]
    done = subprocess.run(command, cwd=ROOT, env=env, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SourceError(f"'go mod vendor' failed:\n{done.stderr.strip()}")
    if not list((out / "github.com" / "DataDog" / "zstd").glob("zstd_compress.c")):
        raise SourceError(f"the C sources of zstd are not among what was vendored into {out}")


def metadata(stage: Path, out: Path) -> Path:
    """Have setuptools make the folder .dist-info for what is laid out, and return it."""
    hook = "import sys; from setuptools import build_meta as b; "
    hook += "b.prepare_metadata_for_build_wheel(sys.argv[1])"
    out.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-c", hook, str(out)]
    done = subprocess.run(command, cwd=stage, check=False, capture_output=True, text=True)
    made = list(out.glob("*.dist-info"))
    if done.returncode or len(made) != 1:
        raise SourceError(f"setuptools made no metadata:\n{done.stdout}{done.stderr}")
    for rest in stage.glob("*.egg-info"):
        shutil.rmtree(rest)
    shutil.rmtree(stage / "build", ignore_errors=True)
    return made[0]
