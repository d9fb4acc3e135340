"""The native build: what it refuses and how it says so, and what it makes."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import stat
import sys
import zipfile
from pathlib import Path

import build_native
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
HEADER = (ROOT / "cabi" / "loaderx.h").read_text(encoding="utf-8")
PROTOTYPE = re.compile(r"^\w[\w *]*\b(lx_\w+)\(", re.MULTILINE)


def program(folder: Path, name: str, script: str) -> None:
    """Put a shell script into a folder as a program of that name."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def empty_path(tmp_path: Path) -> dict[str, str]:
    """An environment whose PATH is one folder, with nothing in it yet."""
    return {"PATH": str(tmp_path)}


def test_no_go(empty_path: dict[str, str]) -> None:
    with pytest.raises(build_native.BuildError, match=r"Go 1\.\d+ or newer .* no 'go' on PATH"):
        build_native.check_go(empty_path)


@pytest.mark.parametrize(
    ("version", "enough"),
    [("go1.9.7", False), ("go1.21.3", False), ("go1.26", True), ("go2.0", True)],
)
def test_go_must_be_new_enough(
    empty_path: dict[str, str], tmp_path: Path, version: str, enough: bool
) -> None:
    program(tmp_path, "go", f"echo {version}")
    if enough:
        build_native.check_go(empty_path)
        return
    with pytest.raises(build_native.BuildError, match=f"'go' on PATH is {re.escape(version)}"):
        build_native.check_go(empty_path)


def test_go_that_fails_is_quoted(empty_path: dict[str, str], tmp_path: Path) -> None:
    program(tmp_path, "go", "echo go.mod is torn >&2; exit 1")
    with pytest.raises(build_native.BuildError, match="'go env GOVERSION' failed:\ngo.mod is torn"):
        build_native.check_go(empty_path)


def test_no_c_compiler(empty_path: dict[str, str], tmp_path: Path) -> None:
    program(tmp_path, "go", "echo nosuchcc -m64")
    with pytest.raises(build_native.BuildError, match="no 'nosuchcc -m64' on PATH"):
        build_native.check_c_compiler(empty_path)


def test_c_compiler_without_headers(empty_path: dict[str, str], tmp_path: Path) -> None:
    program(tmp_path, "go", "echo cc")
    program(tmp_path, "cc", "echo stdlib.h: not found >&2; exit 1")
    with pytest.raises(
        build_native.BuildError, match="(?s)cannot compile .*It said:\nstdlib.h: not"
    ):
        build_native.check_c_compiler(empty_path)


def test_no_sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(build_native, "HEADER", tmp_path / "loaderx.h")
    with pytest.raises(build_native.BuildError, match=r"not here: expected .*loaderx\.h"):
        build_native.check_sources()


def test_no_cffi(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "cffi", None)
    with pytest.raises(build_native.BuildError, match="pip install cffi"):
        build_native.write_cdef(tmp_path / "_cdef.py")


def test_a_failed_build_leaves_what_was_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(build_native, "check", lambda env: None)
    program(tmp_path, "go", 'test "$1" = env && echo linux && exit 0; exit 3')
    library = tmp_path / "libloaderx.so"
    library.write_bytes(b"the one before")
    with pytest.raises(build_native.BuildError, match="exit status 3"):
        build_native.build(tmp_path, env={"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"})
    assert library.read_bytes() == b"the one before"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["_cdef.py", "go", "libloaderx.so"]


@pytest.mark.parametrize("vendored", [False, True])
def test_a_source_distribution_keeps_to_its_modules(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, vendored: bool
) -> None:
    """GOFLAGS and a workspace around it would have the go command ask the network."""
    monkeypatch.setattr(build_native, "check", lambda env: None)
    monkeypatch.setattr(build_native, "ROOT", tmp_path)
    if vendored:
        (tmp_path / "vendor").mkdir()
        (tmp_path / "vendor" / "modules.txt").touch()
    program(
        tmp_path, "go", 'test "$1" = env && echo linux && exit 0; echo "$GOWORK $*" >said; exit 3'
    )
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    with pytest.raises(build_native.BuildError, match="exit status 3"):
        build_native.build(
            tmp_path / "out",
            env={"PATH": path, "GOFLAGS": "-mod=mod -modfile=x", "GOWORK": "there"},
        )
    workspace, *words = (tmp_path / "said").read_text(encoding="utf-8").split()
    assert workspace == ("off" if vendored else "there")
    assert [w for w in words if w.startswith("-mod")] == ["-mod=vendor", "-modfile="] * vendored


def test_messages_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    """No traceback: one line, and an exit status."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["build_native.py", "--check"])
        patch.setenv("PATH", "")
        with pytest.raises(SystemExit) as exit_info:
            runpy.run_path(str(ROOT / "scripts" / "build_native.py"), run_name="__main__")
    assert exit_info.value.code == 1
    assert capsys.readouterr().err.startswith("loaderx: Go 1.")


def test_paths_of_every_kind_reach_the_linker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_native, "EXPORTS", Path("/a b,c/exports.map"))
    # Go splits both levels as a shell would, apart from escapes.
    *plain, external = shlex.split(build_native.linker_flags("linux", ["-L/x y"]))
    assert plain == ["-s", "-w", "-buildid="]
    words = shlex.split(external.partition("=")[2])
    assert words[0] == "-L/x y"
    assert words[-2:] == ["-Xlinker", "--version-script=/a b,c/exports.map"]
    assert shlex.split(build_native.linker_flags("darwin")) == ["-w", "-buildid="]
    monkeypatch.setattr(build_native, "EXPORTS", Path("/it's/exports.map"))
    with pytest.raises(build_native.BuildError, match="both kinds of quotes in it"):
        build_native.linker_flags("linux")


def test_flags_of_the_compiler_follow_the_header(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    header = tmp_path / "a b" / "zstd.h"
    header.parent.mkdir()
    header.write_text("one", encoding="utf-8")
    monkeypatch.setattr(build_native, "ZSTD", header)
    before = build_native.c_flags("linux")
    assert shlex.split(before)[-2:] == ["-include", str(header)]
    header.write_text("two", encoding="utf-8")
    assert build_native.c_flags("linux") != before
    assert "-fvisibility=hidden" in build_native.c_flags("darwin")


def test_declarations_are_those_of_the_header(tmp_path: Path) -> None:
    build_native.write_cdef(tmp_path / "_cdef.py")
    text = (tmp_path / "_cdef.py").read_text(encoding="utf-8")
    declared = PROTOTYPE.findall(HEADER)
    assert len(declared) > 10
    assert [name for name in declared if name not in text] == []


def test_header_without_marks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    header = tmp_path / "loaderx.h"
    header.write_text(HEADER.replace("cdef ends", "cdef"), encoding="utf-8")
    monkeypatch.setattr(build_native, "HEADER", header)
    with pytest.raises(build_native.BuildError, match="marks .* were not found"):
        build_native.write_cdef(tmp_path / "_cdef.py")


def test_who_has_the_old_library_keeps_it(tmp_path: Path) -> None:
    old, new = tmp_path / "lib.so", tmp_path / "new"
    old.write_bytes(b"old")
    new.write_bytes(b"new")
    with old.open("rb") as mapped:
        build_native.replace_file(new, old)
        assert mapped.read() == b"old"
    assert old.read_bytes() == b"new"


def test_the_wheel_has_the_package_and_nothing_else() -> None:
    wheels = list((ROOT / "dist").glob("loaderx-*.whl"))
    if not wheels:
        pytest.skip("no wheel in dist: make wheel")
    for wheel in wheels:
        assert re.fullmatch(r"loaderx-[\d.]+-py3-none-\w+\.whl", wheel.name)
        with zipfile.ZipFile(wheel) as archive:
            inside = {n for n in archive.namelist() if ".dist-info/" not in n}
            info = {n.partition(".dist-info/")[2] for n in archive.namelist()} - {""}
        package = ROOT / "python"
        sources = {str(p.relative_to(package)) for p in (package / "loaderx").rglob("*.py")}
        native = set(build_native.LIBRARY_NAMES.values()) | {"libloaderx.so"}
        assert len([n for n in inside if Path(n).name in native]) == 1
        made = {f"loaderx/{n}" for n in native} | {"loaderx/_cdef.py"}
        assert inside - made == (sources - made) | {"loaderx/py.typed"}
        assert {"METADATA", "licenses/LICENSE"} <= info
