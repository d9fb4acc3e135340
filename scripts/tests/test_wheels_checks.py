"""The checks of finished wheels: each wrong library or wheel gets its complaint."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from wheels import binaries, checks, native, sources
from wheels.binaries import Library
from wheels.platforms import PLATFORMS, Platform

GLIBC, MUSL = PLATFORMS["manylinux_2_17_x86_64"], PLATFORMS["musllinux_1_2_x86_64"]
MACOS, WINDOWS = PLATFORMS["macosx_12_0_arm64"], PLATFORMS["win_amd64"]

GOOD = {
    GLIBC: Library("ELF", "EM_X86_64", native.declared(), {"libc.so.6"}, True, (2, 14)),
    MUSL: Library("ELF", "EM_X86_64", native.declared(), {"libc.so"}, True),
    MACOS: Library(
        "Mach-O", "ARM64", native.declared(), {"/usr/lib/libSystem.B.dylib"}, True, (12, 0)
    ),
    WINDOWS: Library("PE", "IMAGE_FILE_MACHINE_AMD64", native.declared(), {"KERNEL32.dll"}, True),
}


def complaints(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    library: Library,
    platform: Platform,
    size: int = 4 << 20,
) -> list[str]:
    path = tmp_path / "library"
    with path.open("wb") as file:
        file.truncate(size)
    monkeypatch.setattr(checks, "read", lambda path: library)
    return list(checks.check_library(platform, path))


@pytest.mark.parametrize("platform", GOOD, ids=lambda p: p.tag)
def test_good_libraries(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, platform: Platform
) -> None:
    assert complaints(monkeypatch, tmp_path, GOOD[platform], platform) == []


@pytest.mark.parametrize(
    ("platform", "change", "message"),
    [
        (GLIBC, {"machine": "EM_AARCH64"}, "got a library for"),
        (GLIBC, {"exports": native.declared() | {"ZSTD_free"}}, "ZSTD_free"),
        (WINDOWS, {"exports": native.declared() - {"lx_abi_version"}}, "not .*lx_abi_version"),
        (MACOS, {"stripped": False}, "expected a stripped library"),
        (MACOS, {"exports": native.declared() | {"crosscall2"}}, "crosscall2"),
        (MACOS, {"unsigned": "there is none"}, "expected a signature, .*: there is none"),
        (GLIBC, {"needed": {"libc.so.6", "libzstd.so.1"}}, "libzstd"),
        (WINDOWS, {"needed": {"libwinpthread-1.dll"}}, "libwinpthread"),
        (MUSL, {"needed": set()}, "expected to need what every system has"),
        (GLIBC, {"oldest": (2, 34)}, r"up to \(2, 17\), got \(2, 34\)"),
        (GLIBC, {"oldest": ()}, "needs no symbol of it"),
        (MUSL, {"oldest": (2, 2, 5)}, "symbols of glibc"),
        (MACOS, {"oldest": (13, 0)}, r"macOS \(12, 0\), got one for \(13, 0\)"),
        (MUSL, {"static_tls": ["relocation at 0x1"]}, "musl does not load .*0x1"),
    ],
)
def test_wrong_libraries(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    platform: Platform,
    change: dict[str, object],
    message: str,
) -> None:
    wrong = replace(GOOD[platform], **change)  # type: ignore[arg-type]
    found = complaints(monkeypatch, tmp_path, wrong, platform)
    assert len(found) == 1
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(found[0])


def test_large_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert complaints(monkeypatch, tmp_path, GOOD[GLIBC], GLIBC, 4194305) == [
        "expected at most 4194304 bytes, got 4194305"
    ]


SOURCE = """
#include <stdlib.h>
static __thread int own {model};
int lx_one(void) {{ return own++ + abs(rand()); }}
{more}
"""


def compile_library(tmp_path: Path, model: str, more: str, *options: str) -> Path:
    """Make a shared library with the machine's compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler: there is neither gcc nor cc on PATH")
    source, target = tmp_path / "one.c", tmp_path / "one.so"
    source.write_text(SOURCE.format(model=model, more=more), encoding="utf-8")
    words = [compiler, "-shared", "-fPIC", *options, "-o", str(target), str(source)]
    subprocess.run(words, check=True)
    return target


def test_reading_elf(tmp_path: Path) -> None:
    with compile_library(tmp_path, "", "", "-s").open("rb") as file:
        if file.read(4) != b"\x7fELF":
            pytest.skip("this system's libraries are not ELF files")
    library = binaries.read(compile_library(tmp_path, "", "", "-s"))
    assert (library.format, library.exports, library.stripped) == ("ELF", {"lx_one"}, True)
    assert "libc.so.6" in library.needed and (2, 2) <= library.oldest < (3,)
    assert library.static_tls == []
    model = '__attribute__((tls_model("initial-exec")))'
    library = binaries.read(compile_library(tmp_path, model, "int lx_two(void) { return 2; }"))
    assert library.exports == {"lx_one", "lx_two"} and not library.stripped
    assert any("STATIC_TLS" in where for where in library.static_tls)
    assert any("relocation at 0x" in where for where in library.static_tls)


def test_other_files_are_no_libraries(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"text")
    with pytest.raises(ValueError, match="expected an ELF, Mach-O or PE file, .* 74657874"):
        binaries.read(path)


def test_wheel_with_another_library_or_none(tmp_path: Path) -> None:
    path = tmp_path / "loaderx.whl"
    for names in ([], ["loaderx/libloaderx.so", "loaderx/libzstd.so"], ["loaderx/loaderx.dll"]):
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(name, b"x")
        (complaint,) = checks.check_wheel(GLIBC, path)
        assert complaint == f"expected one library, loaderx/libloaderx.so, got {names}"


def test_sdist_with_dead_links(tmp_path: Path) -> None:
    """A file, a folder and an address are there; docs/b.md is not."""
    readme = b"[a](docs/a.md#x) [b](docs/b.md) [c](docs) [d](https://d) [e](#e)"
    path = tmp_path / "loaderx-1.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, content in (("README.md", readme), ("docs/a.md", b""), ("PKG-INFO", b"\n")):
            entry = tarfile.TarInfo(f"loaderx-1/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    found = [text for text in checks.check_sdist(path) if "links to" in text]
    assert found == ["expected what the README links to, and there is no ['docs/b.md']"]


def test_metadata() -> None:
    assert len(list(checks.check_metadata(b"Name: other\n"))) > 8
    whole = f"Name: loaderx\nVersion: {sources.version()}\nLicense-Expression: MIT\n"
    whole += "Requires-Python: >=3.9\nDescription-Content-Type: text/markdown\n"
    whole += "License-File: LICENSE\nClassifier: Typing :: Typed\n" + "Classifier: X\n" * 8
    whole += "Project-URL: A, b\n" * 3 + "Requires-Dist: cffi\n" * 2 + "\n"
    assert list(checks.check_metadata((whole + "text " * 300).encode())) == []
    assert list(checks.check_metadata(whole.encode())) == ["expected the README as the description"]
    links = whole + "text " * 300 + "[a](https://x/docs/a) [b](#b) ![c](docs/c.png) [d](docs/d#d)"
    (complaint,) = checks.check_metadata(links.encode())
    assert complaint.endswith("in the description, got ['docs/c.png', 'docs/d']")
    info = {"METADATA": b"", "WHEEL": b"Tag: py3-none-any\n", "RECORD": b""}
    assert "licenses/LICENSE" in next(iter(checks.check_info(GLIBC, info)))
