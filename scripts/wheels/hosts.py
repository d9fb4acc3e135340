"""Programs in C that load the library of a wheel, for any platform.

The client of cabi/testdata, which calls every function of loaderx.h, becomes a
shared library; host.c loads it, and the library with it, into a process that
has threads already.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import build_native

from wheels import native
from wheels.tools import run

HERE = Path(__file__).resolve().parent
CLIENT = build_native.ROOT / "cabi" / "testdata"
INCLUDE = ["-I", str(build_native.HEADER.parent)]

# The garbage collector at every turn, with one thread of Go's or many.
PRESSURE: Sequence[Mapping[str, str]] = (
    {"GOGC": "5", "GOMAXPROCS": "1"},
    {"GOGC": "5", "GOMAXPROCS": "4"},
    {},
)


def build_client(
    folder: Path, compiler: Sequence[str], env: Mapping[str, str], windows: bool
) -> None:
    """Build the client, against the library that is in the folder.

    Its names are hidden: musl has a function err too, which would win.
    """
    options = ["-std=gnu11", "-O1", "-g0", "-fvisibility=hidden", *INCLUDE]
    if not windows:
        options.append("-fPIC")
    objects = []
    for source in sorted(CLIENT.glob("*.c")):
        objects.append(str(folder / f"{source.stem}.o"))
        # probe.c has the function that the host calls in place of main.
        named = ["-Dmain=client", "-c", str(source), "-o", objects[-1]]
        run([*compiler, *options, *named], env)
    link = ["-L", str(folder), "-lloaderx"]
    link += ["-lpthread"] if windows else ["-Wl,-rpath,$ORIGIN", "-pthread"]
    client = folder / ("client.dll" if windows else "client.so")
    words = ["-shared", "-o", str(client), str(HERE / "probe.c"), *objects, *link]
    run([*compiler, *options, *words], env)


def import_library(folder: Path, zig: str, env: Mapping[str, str]) -> None:
    """Make what linking to loaderx.dll needs, which the wheel does not carry."""
    names = folder / "loaderx.def"
    lines = ["LIBRARY loaderx.dll", "EXPORTS", *sorted(native.declared())]
    names.write_text("\n".join(lines) + "\n")
    run(
        [zig, "dlltool", "-m", "i386:x86-64", "-d", str(names), "-l", str(folder / "libloaderx.a")],
        env,
    )


def build(
    folder: Path,
    library: Path,
    compiler: Sequence[str],
    env: Mapping[str, str],
    windows: bool = False,
) -> list[str]:
    """Build host and client into a folder, with a copy of the library.

    Returns the words that run them, but for the folder for stores.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(library, folder / library.name)
    if windows:
        import_library(folder, compiler[0], env)
    build_client(folder, compiler, env, windows)
    host = folder / ("host.exe" if windows else "host")
    link = ["-lpthread"] if windows else ["-pthread", "-ldl"]
    words = ["-std=gnu11", "-O1", "-g0", "-o", str(host), str(HERE / "host.c"), *link]
    run([*compiler, *words], env)
    return [str(host), str(folder / "client.dll") if windows else str(folder / "client.so")]


def load(
    folder: Path, command: Sequence[str], env: Mapping[str, str], rounds: int = len(PRESSURE)
) -> str:
    """Run the host some times, each with other settings of Go's runtime."""
    said = ""
    for i, pressure in enumerate(PRESSURE[-rounds:]):
        stores = folder / f"stores{i}"
        shutil.rmtree(stores, ignore_errors=True)
        stores.mkdir()
        said = run([*command, str(stores)], {**env, **pressure}, cwd=folder)
        shutil.rmtree(stores)
    lines = said.splitlines()
    return f"{len(lines)} groups of checks, {rounds} times; {lines[-1].removeprefix('ok ')}"
