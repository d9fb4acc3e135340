"""Wheels and the source distribution: what is in them, and the same bytes from the same files."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import re
import tarfile
import zipfile
from pathlib import Path

import build_native
import pytest
from wheels import checks, pack, sources
from wheels.platforms import GLIBC, PLATFORMS

WHEN = 1_700_000_000
NATIVE = {
    "linux": "libloaderx.so",
    "darwin": "libloaderx.dylib",
    "windows": "loaderx.dll",
}


def make_wheel(tmp_path: Path, tag: str, out: str) -> Path:
    """A wheel of small files, whose modes and times differ from run to run."""
    info, native, package = tmp_path / "loaderx-1.0.dist-info", tmp_path / "native", tmp_path / "p"
    for folder in (info / "licenses", native, package, tmp_path / out):
        folder.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Name: loaderx\n")
    (info / "licenses" / "LICENSE").write_text("MIT\n")
    library = native / NATIVE[PLATFORMS[tag].goos]
    library.write_bytes(b"library" * 100)
    library.chmod(0o777 if out == "a" else 0o600)
    os.utime(library, (len(out), len(out)))
    (package / "one.py").write_text("x = 1\n")
    when = pack.source_date()
    return pack.wheel(tmp_path / out, PLATFORMS[tag], [package / "one.py"], info, native, when)


@pytest.mark.parametrize("tag", sorted(PLATFORMS))
def test_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tag: str) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(WHEN))
    first, second = make_wheel(tmp_path, tag, "a"), make_wheel(tmp_path, tag, "bb")
    assert first.name == f"loaderx-1.0-py3-none-{tag}.whl"
    assert first.read_bytes() == second.read_bytes()
    library = f"loaderx/{NATIVE[PLATFORMS[tag].goos]}"
    with zipfile.ZipFile(first) as archive:
        assert archive.testzip() is None
        entries = {entry.filename: entry for entry in archive.infolist()}
        contents = {name: archive.read(name) for name in entries}
    assert entries.keys() == {
        "loaderx/one.py",
        library,
        *(f"loaderx-1.0.dist-info/{n}" for n in ("METADATA", "WHEEL", "RECORD")),
        "loaderx-1.0.dist-info/licenses/LICENSE",
    }
    # Sorted, with the metadata last, whatever order the folders are read in.
    assert list(entries) == [
        *sorted(name for name in entries if name.startswith("loaderx/")),
        *sorted(name for name in entries if not name.startswith("loaderx/")),
    ]
    for name, entry in entries.items():
        assert entry.external_attr >> 16 == (0o100755 if name == library else 0o100644), name
        assert entry.date_time == (2023, 11, 14, 22, 13, 20)
    assert f"Tag: py3-none-{tag}\n".encode() in contents["loaderx-1.0.dist-info/WHEEL"]
    listed = {}
    for name, digest, size in csv.reader(
        io.StringIO(contents["loaderx-1.0.dist-info/RECORD"].decode())
    ):
        listed[name] = (digest, size)
    assert listed.pop("loaderx-1.0.dist-info/RECORD") == ("", "")
    assert listed.keys() == entries.keys() - {"loaderx-1.0.dist-info/RECORD"}
    for name, (digest, size) in listed.items():
        sha = base64.urlsafe_b64encode(hashlib.sha256(contents[name]).digest()).rstrip(b"=")
        assert (digest, size) == (f"sha256={sha.decode()}", str(len(contents[name])))


def test_sdist_is_the_same_twice(tmp_path: Path) -> None:
    info = tmp_path / "loaderx-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: loaderx\n")
    made = []
    for name in ("a", "b"):
        stage = tmp_path / name
        (stage / "cabi").mkdir(parents=True)
        (stage / "setup.py").write_text("x\n")
        (stage / "cabi" / "main.go").write_text("package main\n")
        (stage / "setup.py").chmod(0o700 if name == "a" else 0o644)
        made.append(pack.sdist(stage, stage, info, WHEN))
    assert made[0].read_bytes() == made[1].read_bytes()
    with tarfile.open(made[0]) as archive:
        entries = archive.getmembers()
    assert [e.name for e in entries] == [
        f"loaderx-1.0/{n}" for n in ("PKG-INFO", "cabi/main.go", "setup.py")
    ]
    assert {(e.mode, e.mtime, e.uid, e.uname) for e in entries} == {(0o644, WHEN, 0, "")}


def test_time_of_entries(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "5")
    assert pack.source_date() == pack.ZIP_BEGINS
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    # Above the folder itself: git looks into that one whatever the variable says.
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.setattr(build_native, "ROOT", tmp_path)
    with pytest.raises(sources.SourceError, match="SOURCE_DATE_EPOCH in seconds"):
        pack.source_date()


def test_what_a_source_distribution_is_made_of() -> None:
    go = [path.relative_to(sources.ROOT).as_posix() for path in sources.go_files()]
    assert {"cabi/main.go", "cabi/loaderx.h", "cabi/exports.map", "engine/doc.go"} <= set(go)
    assert not [name for name in go if name.endswith("_test.go") or "testdata" in name]
    assert [name for name in sources.FILES if not (sources.ROOT / name).is_file()] == []
    modules = {path.name for path in sources.module_files()}
    assert {"__init__.py", "zrecord.py", "py.typed"} <= modules and "_cdef.py" not in modules


def test_the_description_leads_to_the_repository(tmp_path: Path) -> None:
    """It is the README, read where none of the files are that it links to."""
    stage = tmp_path / "stage"
    for source, target in sources.FILES.items():
        sources.copy(sources.ROOT / source, stage / target)
    for path in sources.module_files():
        sources.copy(path, stage / path.relative_to(sources.ROOT / "python"))
    readme = (sources.ROOT / "README.md").read_text(encoding="utf-8") + "[up](#loaderx)\n"
    (stage / "README.md").write_text(readme, encoding="utf-8")
    info = sources.metadata(stage, tmp_path / "info")
    metadata = (info / "METADATA").read_bytes()
    assert list(checks.check_metadata(metadata)) == []
    (source,) = re.findall(rb"^Project-URL: Source, (\S+)$", metadata, re.MULTILINE)
    links = checks.LINK.findall(readme)
    assert {"docs/packaging.md", "examples"} <= set(links)
    for link in links:
        assert (sources.ROOT / link).exists(), link
        kind = "raw" if link.endswith(".png") else "src"
        assert f"]({source.decode()}/{kind}/branch/main/{link})".encode() in metadata
    assert b"[up](#loaderx)" in metadata
    # Nothing else of it is another one.
    text = metadata.decode().partition("\n\n")[2]
    assert re.sub(f"{re.escape(source.decode())}/(src|raw)/branch/main/", "", text) == readme


def test_tags() -> None:
    assert len(PLATFORMS) == 8
    glibc = [p for p in PLATFORMS.values() if p.libc == "glibc"]
    assert {p.triple.rpartition("gnu.")[2] for p in glibc} == {f"{GLIBC[0]}.{GLIBC[1]}"}
    assert {(p.goos, p.goarch) for p in PLATFORMS.values()} == {
        (goos, goarch) for goos in NATIVE for goarch in ("amd64", "arm64")
    }
