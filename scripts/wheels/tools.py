"""Programs that load foreign wheels: finding them, and installing them where that is allowed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

# A run that takes this long hangs. An emulator is some 20 times slower.
SECONDS = 1800


class Unavailable(Exception):
    """A trial cannot be made here, and this is why."""


class Failure(Exception):
    """A program failed, and this is what it said."""


def need(program: str, package: str) -> str:
    """Return a program's path. The superuser of a Debian gets the package installed."""
    found = shutil.which(program)
    if found is None and shutil.which("apt-get") and hasattr(os, "geteuid") and os.geteuid() == 0:
        print(f"   installing {package}", flush=True)
        command = ["apt-get", "install", "-y", "--no-install-recommends", *package.split()]
        subprocess.run(command, check=False, capture_output=True)
        found = shutil.which(program)
    if found is None:
        raise Unavailable(f"there is no {program}: apt-get install {package}")
    return found


def run(
    command: Sequence[str], env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> str:
    """Run a program and return what it printed. Raises Failure if it fails or hangs."""
    try:
        done = subprocess.run(
            list(command),
            env={**os.environ, **(env or {})},
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        said = (error.output or b"").decode(errors="replace")
        raise Failure(f"{command[0]} hangs after {SECONDS} s:\n{said}") from None
    said = done.stdout.decode(errors="replace")
    if done.returncode:
        tail = "\n".join(said.splitlines()[-40:])
        raise Failure(f"{' '.join(command)}: exit status {done.returncode}\n{tail}")
    return said


def debian_root(folder: Path, architecture: str, packages: Sequence[str]) -> Path:
    """Unpack packages of another architecture into a folder and return it.

    apt keeps what it knows of that architecture in the folder too: nothing of
    the system is changed.
    """
    root, stamp = folder / "root", folder / "packages"
    if stamp.is_file() and stamp.read_text().split() == list(packages):
        return root
    apt, dpkg = shutil.which("apt-get"), shutil.which("dpkg-deb")
    if apt is None or dpkg is None:
        raise Unavailable(
            f"packages of {architecture} come from Debian's apt-get, and there is none"
        )
    for name in ("lists/partial", "archives/partial", "debs"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "status").touch()
    options = {
        "APT::Architecture": architecture,
        "APT::Architectures": architecture,
        "Dir::State::lists": folder / "lists",
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder,
        "APT::Sandbox::User": "root",
    }
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    try:
        run([apt, *words, "update"])
        run([apt, *words, "download", *packages], cwd=folder / "debs")
    except Failure as failure:
        raise Unavailable(f"packages of {architecture} cannot be downloaded: {failure}") from None
    for package in sorted((folder / "debs").glob("*.deb")):
        run([dpkg, "-x", str(package), str(root)])
    stamp.write_text("\n".join(packages))
    return root


def interpreters(versions: Sequence[str]) -> dict[str, str]:
    """Return the Python interpreters of these versions, from PATH or pyenv; missing ones lack."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = {}
    for version in versions:
        candidates = [
            *([sys.executable] if sys.version.startswith(f"{version}.") else []),
            *(str(p / "bin" / "python") for p in sorted(pyenv.glob(f"{version}.*"), reverse=True)),
            shutil.which(f"python{version}") or "",
        ]
        for candidate in filter(None, candidates):
            said = subprocess.run(
                [candidate, "--version"], check=False, capture_output=True, text=True
            )
            if said.stdout.startswith(f"Python {version}."):
                found[version] = candidate
                break
    return found
