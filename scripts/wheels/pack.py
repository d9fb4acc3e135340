"""Making wheels and the source distribution, the same bytes from the same files.

Entries are sorted, all have one time, and modes are 644 or, for libraries, 755.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import os
import subprocess
import tarfile
import time
import zipfile
from pathlib import Path

import build_native

from wheels.platforms import Platform
from wheels.sources import SourceError

# The first moment that a zip file can name.
ZIP_BEGINS = 315532800
LIBRARIES = {"libloaderx.so", *build_native.LIBRARY_NAMES.values()}


def source_date() -> int:
    """Return the time that all entries get, in seconds: $SOURCE_DATE_EPOCH, or the commit's."""
    text = os.environ.get("SOURCE_DATE_EPOCH")
    if not text:
        command = ["git", "-C", str(build_native.ROOT), "log", "-1", "--format=%ct"]
        try:
            text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        except (OSError, subprocess.CalledProcessError) as error:
            raise SourceError(
                "the time of the commit is needed, for the same files from every build: expected "
                f"a git checkout, or SOURCE_DATE_EPOCH in seconds ({error})"
            ) from None
    return max(int(text), ZIP_BEGINS)


def mode_of(name: str) -> int:
    """Return the permissions of an entry."""
    return 0o755 if Path(name).name in LIBRARIES else 0o644


def wheel(
    out: Path, platform: Platform, package: list[Path], info: Path, folder: Path, when: int
) -> Path:
    """Write a wheel and return its path.

    package is the Python files with the folder above the package; info is the
    folder .dist-info from setuptools, and folder has the native files.
    """
    files = {f"loaderx/{p.name}": p.read_bytes() for p in package}
    for path in folder.iterdir():
        files[f"loaderx/{path.name}"] = path.read_bytes()
    for path in info.rglob("*"):
        if path.is_file() and path.name not in ("RECORD", "WHEEL"):
            files[f"{info.name}/{path.relative_to(info).as_posix()}"] = path.read_bytes()
    files[f"{info.name}/WHEEL"] = (
        "Wheel-Version: 1.0\nGenerator: loaderx\nRoot-Is-Purelib: false\n"
        f"Tag: {platform.wheel_tag}\n"
    ).encode()
    files[f"{info.name}/RECORD"] = record(files, f"{info.name}/RECORD")
    target = out / f"{info.name.removesuffix('.dist-info')}-{platform.wheel_tag}.whl"
    staged = target.with_name(f".{target.name}")
    with zipfile.ZipFile(staged, "w") as archive:
        # The metadata last, as the standard for wheels wants it.
        for name in sorted(files, key=lambda name: (name.startswith(info.name), name)):
            entry = zipfile.ZipInfo(name, time.gmtime(when)[:6])
            entry.external_attr = (0o100000 | mode_of(name)) << 16
            entry.create_system = 3
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, files[name], compresslevel=9)
    os.replace(staged, target)
    return target


def record(files: dict[str, bytes], own: str) -> bytes:
    """Return the contents of RECORD, which names itself without a checksum."""
    lines = []
    for name in sorted(files):
        digest = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).rstrip(b"=")
        lines.append(f"{name},sha256={digest.decode()},{len(files[name])}\n")
    return "".join([*lines, f"{own},,\n"]).encode()


def sdist(out: Path, stage: Path, info: Path, when: int) -> Path:
    """Write the source distribution of what is laid out, and return its path."""
    name = info.name.removesuffix(".dist-info")
    (stage / "PKG-INFO").write_bytes((info / "METADATA").read_bytes())
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(stage.rglob("*")):
            if not path.is_file():
                continue
            entry = tarfile.TarInfo(f"{name}/{path.relative_to(stage).as_posix()}")
            entry.size, entry.mtime, entry.mode = path.stat().st_size, when, 0o644
            with path.open("rb") as file:
                archive.addfile(entry, file)
    target = out / f"{name}.tar.gz"
    staged = target.with_name(f".{target.name}")
    with staged.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=when) as packed:
        packed.write(tar.getvalue())
    os.replace(staged, target)
    return target
