"""The command behind scripts/test_wheels.py: every wheel that can be loaded here, loaded.

What cannot be: macOS, which has no emulator, and Windows on arm64. Those wheels
are only inspected, by scripts/build_wheels.py.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import build_native

from wheels import hosts, tools
from wheels.build import OUT
from wheels.native import CACHE, environment, zig
from wheels.platforms import PLATFORMS, Platform
from wheels.tools import Failure, Unavailable

ROOT = build_native.ROOT
WORK = CACHE / "wheels-test"
HERE = Path(__file__).resolve().parent
PYTHONS = ("3.9", "3.10", "3.11", "3.12", "3.13")
# With --quick, the Pythons between the oldest and the newest run these alone.
QUICK = ("import", "loading", "errors", "dense", "ragged", "loader", "threads", "processes")

ARM_MUSL = ["musl"]
ARM_PYTHON = [
    *("python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib"),
    *("python3-numpy", "python3-cffi-backend", "python3-cffi", "python3-pycparser", "python3-ply"),
    *("libc6", "libgcc-s1", "libstdc++6", "libexpat1", "zlib1g", "libffi8", "libblas3"),
    *("liblapack3", "libgfortran5", "libssl3", "libcrypt1", "libbz2-1.0", "liblzma5", "libuuid1"),
]


def wheel_of(tag: str) -> Path:
    """Return the wheel for a tag."""
    found = sorted(OUT.glob(f"loaderx-*-{tag}.whl"))
    if len(found) != 1:
        raise Failure(f"expected one wheel for {tag} in {OUT}, got {[p.name for p in found]}")
    return found[0]


def unpacked(tag: str, folder: Path) -> Path:
    """Unpack a wheel into a folder and return the package's folder."""
    shutil.rmtree(folder, ignore_errors=True)
    with zipfile.ZipFile(wheel_of(tag)) as archive:
        archive.extractall(folder)
    return folder / "loaderx"


def python_suite(version: str, quick: bool = False) -> str:
    """Install the native wheel into a fresh environment and run the package's tests.

    quick is for those of QUICK only.
    """
    python = tools.interpreters([version]).get(version)
    if python is None:
        raise Unavailable(f"there is no Python {version}, on PATH or in pyenv")
    folder = WORK / f"python{version}"
    run = folder / "run"
    tools.run([python, "-m", "venv", "--clear", str(folder)])
    run.mkdir()
    own = str(folder / "bin" / "python")
    env = {
        "PIP_CACHE_DIR": str(CACHE / "pip"),
        "RUSTUP_HOME": str(CACHE / "rustup"),
        "PYTHONNOUSERSITE": "1",
        "PYTHONPATH": "",
    }
    install = [own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    install += ["--only-binary", ":all:"]
    tools.run([*install, "-r", str(ROOT / "scripts" / "requirements-test.txt")], env)
    tools.run([*install, str(wheel_of("manylinux_2_17_x86_64"))], env)
    tests = ["-m", "pytest", "-q", "-c", str(ROOT / "python" / "pyproject.toml")]
    tests += ["--basetemp", str(folder / "tmp"), "-p", "no:cacheprovider"]
    here = ROOT / "python" / "tests"
    what = [here / f"test_{name}.py" for name in QUICK] if quick else [here]
    said = tools.run([own, *tests, *map(str, what)], env, run)
    last = said.strip().splitlines()[-1]
    return f"{last} of {', '.join(QUICK)}" if quick else last


def sdist_install() -> str:
    """Build the source distribution offline, with this machine's compiler, and use it."""
    archives = sorted(OUT.glob("loaderx-*.tar.gz"))
    if len(archives) != 1:
        raise Failure(f"expected one source distribution in {OUT}, got {archives}")
    folder = WORK / "sdist"
    tools.run([sys.executable, "-m", "venv", "--clear", str(folder)])
    own, env = str(folder / "bin" / "python"), {"PIP_CACHE_DIR": str(CACHE / "pip")}
    install = [own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    requirements = str(ROOT / "scripts" / "requirements-test.txt")
    tools.run([*install, "--only-binary", ":all:", "-r", requirements], env)
    # No proxy for Go modules, and settings that ask for one: everything is in the archive.
    offline = {
        "GOPROXY": "off",
        "GOFLAGS": "-mod=mod",
        "GOMODCACHE": str(folder / "no-modules"),
        "GOCACHE": str(CACHE / "go-build"),
    }
    options = ["--no-build-isolation", "--no-deps", "--no-index"]
    tools.run([*install, *options, str(archives[0])], {**env, **offline})
    return session([own], {"PYTHONPATH": ""})


def session(python: list[str], env: Mapping[str, str]) -> str:
    """Run session.py in a new folder."""
    stores = WORK / "session"
    shutil.rmtree(stores, ignore_errors=True)
    stores.mkdir(parents=True)
    said = tools.run([*python, str(HERE / "session.py"), str(stores)], env, stores)
    return said.strip().splitlines()[-1].removeprefix("ok ")


def zig_cc(platform: Platform) -> list[str]:
    """Return zig's command line as a C compiler for a platform."""
    return [str(zig()), "cc", "-target", platform.triple]


def musl_native() -> str:
    """The host of musl-gcc, on this machine's musl."""
    tag, folder = "musllinux_1_2_x86_64", WORK / "musl"
    compiler = [tools.need("musl-gcc", "musl-tools")]
    library = unpacked(tag, folder / "wheel") / "libloaderx.so"
    return hosts.load(folder, hosts.build(folder, library, compiler, {}), {})


def musl_arm64() -> str:
    """The host of zig, on Debian's musl of arm64, emulated."""
    platform, folder = PLATFORMS["musllinux_1_2_aarch64"], WORK / "musl-arm64"
    emulator = tools.need("qemu-aarch64-static", "qemu-user-static")
    root = tools.debian_root(folder / "debian", "arm64", ARM_MUSL)
    library = unpacked(platform.tag, folder / "wheel") / "libloaderx.so"
    # By itself zig links a program for musl statically, and such a one loads no library.
    compiler = [*zig_cc(platform), "-dynamic"]
    command = hosts.build(folder, library, compiler, environment(platform))
    return hosts.load(folder, [emulator, "-L", str(root), *command], {}, rounds=2)


def python_arm64() -> str:
    """Debian's Python of arm64, emulated."""
    tag, folder = "manylinux_2_17_aarch64", WORK / "python-arm64"
    emulator = tools.need("qemu-aarch64-static", "qemu-user-static")
    root = tools.debian_root(folder / "debian", "arm64", ARM_PYTHON)
    package = unpacked(tag, folder / "wheel")
    lib = root / "usr" / "lib" / "aarch64-linux-gnu"
    search = f"{lib / 'blas'}:{lib / 'lapack'}:{lib}"
    command = [emulator, "-L", str(root), "-E", f"LD_LIBRARY_PATH={search}"]
    python = [*command, str(root / "usr" / "bin" / "python3.11")]
    modules = root / "usr" / "lib" / "python3" / "dist-packages"
    return session(python, {"PYTHONPATH": f"{package.parent}:{modules}", "PYTHONHOME": ""})


def windows() -> str:
    """The host under wine, and the engine's tests of its Windows half."""
    platform, folder = PLATFORMS["win_amd64"], WORK / "windows"
    wine = tools.need("wine", "wine wine64")
    env = {**environment(platform), "WINEPREFIX": str(folder / "wine"), "WINEDEBUG": "-all"}
    library = unpacked(platform.tag, folder / "wheel") / "loaderx.dll"
    compiler = zig_cc(platform)
    command = hosts.build(folder, library, compiler, env, windows=True)
    stub = ["-shared", "-nostdlib", "-O1", "-s", str(HERE / "bcryptprimitives.c"), "-ladvapi32"]
    tools.run([wine, "wineboot", "--init"], env)
    system = folder / "wine" / "drive_c" / "windows" / "system32"
    tools.run([*compiler, *stub, "-o", str(system / "bcryptprimitives.dll")], env)
    files = str(folder / "vfs.test.exe")
    build = ["go", "test", "-c", "-trimpath", "-o", files, "./engine/internal/vfs"]
    tools.run(build, {**env, "CGO_ENABLED": "0"}, ROOT)
    tools.run([wine, files, "-test.v"], env, folder)
    return f"{hosts.load(folder, [wine, *command], env, rounds=2)}; engine/internal/vfs"


def trials(quick: bool) -> dict[str, Callable[[], str]]:
    """Return all trials, by name."""
    ends = (PYTHONS[0], PYTHONS[-1])
    return {
        **{
            f"glibc x86_64, Python {v}": partial(python_suite, v, quick and v not in ends)
            for v in PYTHONS
        },
        "sdist, offline": sdist_install,
        "musl x86_64, C host": musl_native,
        "glibc arm64, Python, qemu": python_arm64,
        "musl arm64, C host, qemu": musl_arm64,
        "Windows x86_64, C host, wine": windows,
    }


def attempt(name: str, trial: Callable[[], str]) -> tuple[str, str]:
    """Make one trial, and return what became of it and a few words."""
    print(f"== {name}", flush=True)
    start = time.monotonic()
    try:
        result, words = "ok", trial()
    except Unavailable as reason:
        result, words = "SKIPPED", str(reason)
    except (Failure, OSError, subprocess.SubprocessError, zipfile.BadZipFile) as failure:
        result, words = "FAILED", str(failure)
    print(f"   {result} in {time.monotonic() - start:.0f} s: {words}", flush=True)
    return result, words


def main() -> int:
    """Make the trials that the arguments name and return the exit status."""
    parser = argparse.ArgumentParser(prog="test_wheels.py", description="Load the wheels")
    parser.add_argument("--only", metavar="TEXT", help="only trials with this in their names")
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"a part of the tests on the Pythons between {PYTHONS[0]} and {PYTHONS[-1]}",
    )
    arguments = parser.parse_args()
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        print("loaderx: wheels are tested on Linux on x86-64", file=sys.stderr)
        return 1
    everything = trials(arguments.quick)
    chosen = {n: t for n, t in everything.items() if not arguments.only or arguments.only in n}
    results = {name: attempt(name, trial) for name, trial in chosen.items()}
    print()
    for name, (result, words) in results.items():
        print(f"{name:32}{result:8} {words.splitlines()[0] if words else ''}")
    print("macOS and Windows arm64 were inspected by make wheels, and cannot be loaded here")
    return 1 if not results or any(r == "FAILED" for r, _ in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
