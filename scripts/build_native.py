"""Build the native half of loaderx: the shared library and its declarations.

This is the only native build there is. make, pip (python/setup.py) and the
wheels all come here, so a flag or a check is written once. The result is two
files in one folder, which is normally the Python package:

    libloaderx.so, libloaderx.dylib or loaderx.dll
        ./cabi, built by Go as a C shared library.
    _cdef.py
        The declarations of cabi/loaderx.h as a module of cffi's out-of-line
        ABI mode, so that importing loaderx needs neither the header nor a C
        parser.

GOOS, GOARCH, GOFLAGS, CGO_CFLAGS and the other variables of the environment
mean here what they mean to the go command.
"""

from __future__ import annotations

import argparse
import binascii
import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = ROOT / "cabi" / "loaderx.h"
EXPORTS = ROOT / "cabi" / "exports.map"
ZSTD = ROOT / "packaging" / "zstd.h"
PACKAGE = ROOT / "python" / "loaderx"

LIBRARY_NAMES = {"darwin": "libloaderx.dylib", "windows": "loaderx.dll"}

# The library is stripped, and what nothing calls is left out: of the zstd inside
# that is a good part.
C_FLAGS = ["-O2", "-g0", "-ffunction-sections", "-fdata-sections"]
C_FLAGS_OF = {
    # C frames are never unwound, and the tables for it are 1 % of the library.
    "linux": ["-fno-asynchronous-unwind-tables"],
    # zig's linker takes no list of exports: loaderx.h marks its functions, and the
    # marks of zstd's headers are taken away.
    "darwin": [
        "-fvisibility=hidden",
        *("-DZSTDLIB_VISIBLE=", "-DZSTDLIB_STATIC_API=", "-DZSTDERRORLIB_VISIBLE="),
        *("-DZDICTLIB_VISIBLE=", "-DZDICTLIB_STATIC_API="),
        *("-DZBUFFLIB_VISIBLE=", "-DZBUFFLIB_API=", "-DZBUFFLIB_STATIC_API="),
    ],
}

CDEF = re.compile(r"/\* cdef begins \*/\n(.*)/\* cdef ends \*/", re.DOTALL)


class BuildError(Exception):
    """The build cannot be done here. The message says why, and what to do."""


def build(
    out: Path,
    *,
    cc: str | None = None,
    env: Mapping[str, str] | None = None,
    link_flags: Sequence[str] = (),
) -> Path:
    """Build both files into the folder out and return the library's path.

    cc is the C compiler's command line, by default that of the go command
    ($CC, else its own choice). env is the environment, by default this
    process's. link_flags are more words for the C compiler when it links.
    """
    environment = dict(os.environ if env is None else env)
    environment["CGO_ENABLED"] = "1"
    if cc:
        environment["CC"] = cc
    check(environment)
    if module_flags():
        environment["GOWORK"] = "off"  # of a workspace that it was unpacked in
    out.mkdir(parents=True, exist_ok=True)
    write_cdef(out / "_cdef.py")
    goos = go_env("GOOS", environment)
    environment.setdefault("CGO_CFLAGS", c_flags(goos))
    target = out / LIBRARY_NAMES.get(goos, "libloaderx.so")
    with tempfile.TemporaryDirectory(prefix="loaderx-build-") as scratch:
        # Go writes a header beside the library, which nobody needs.
        library = Path(scratch) / target.name
        link(library, linker_flags(goos, link_flags), environment)
        replace_file(library, target)
    return target


def link(library: Path, flags: str, env: Mapping[str, str]) -> None:
    """Run go build of ./cabi as a C shared library."""
    command = [
        "go",
        "build",
        "-buildmode=c-shared",
        "-trimpath",
        "-buildvcs=false",  # works in a checkout that git does not trust
        *module_flags(),
        f"-ldflags={flags}",
        "-o",
        str(library),
        "./cabi",
    ]
    done = subprocess.run(command, cwd=ROOT, env=dict(env), check=False)
    if done.returncode:
        raise BuildError(
            f"the Go build of the shared library failed (exit status {done.returncode}); "
            f"its messages are above. The command was, in {ROOT}:\n  {shlex.join(command)}"
        )


def module_flags() -> list[str]:
    """Return what keeps the go command to the modules in a source distribution.

    They win over those in GOFLAGS, by which it would ask the network.
    """
    vendored = (ROOT / "vendor" / "modules.txt").is_file()
    return ["-mod=vendor", "-modfile="] if vendored else []


def c_flags(goos: str) -> str:
    """Return the value of CGO_CFLAGS, for every build of the C sources in Go packages.

    Go's cache keeps what was compiled by the flags, not by what the header
    says: so the flags have its checksum.
    """
    checksum = binascii.crc32(ZSTD.read_bytes())
    flags = [*C_FLAGS, *C_FLAGS_OF.get(goos, [])]
    return quote([*flags, f"-DLOADERX_ZSTD={checksum:#x}", "-include", str(ZSTD)])


def linker_flags(goos: str, more: Sequence[str] = ()) -> str:
    """Return the value of -ldflags: without debugging information, and on Linux stripped.

    On Linux only lx_* names are exported, too; on Windows those that cgo marks, which
    are the same. On macOS some of Go's runtime are as well, and names of functions
    stay: wheels/macho.py takes both out of what goes into a wheel. more are words for
    the C compiler, which links. The id that Go would give the library depends on the
    checkout's path.
    """
    # zig's linker, which makes the wheels, knows no -s for macOS, and keeps what
    # nothing calls with it on Windows, where there are no symbols without it.
    strip = ["-s", "-w"] if goos == "linux" else ["-w"]
    external = list(more)
    if goos == "linux":
        # -Xlinker rather than -Wl: the path may have commas in it. Go's own -s
        # is undone by a later -g, for some compilers.
        external += ["-Wl,--gc-sections,-s", "-Xlinker", f"--version-script={EXPORTS}"]
    words = [*strip, "-buildid="]
    if external:
        words.append(f"-extldflags={quote(external)}")
    return quote(words)


def quote(words: Sequence[str]) -> str:
    """Join words as the go command splits them: quotes, but nothing that escapes them."""
    quoted = []
    for word in words:
        free = [mark for mark in ("'", '"') if mark not in word]
        if not free:
            raise BuildError(
                f"{word!r} has both kinds of quotes in it, which Go's flags cannot carry: "
                f"is there one in the checkout's path, {ROOT}?"
            )
        plain = word and not any(c.isspace() or c in "'\"" for c in word)
        quoted.append(word if plain else free[0] + word + free[0])
    return " ".join(quoted)


def write_cdef(target: Path) -> None:
    """Write the cffi module for what stands between the header's two marks."""
    try:
        import cffi
    except ImportError:
        raise BuildError(
            "cffi is needed to build loaderx, and this Python does not have it "
            f"({sys.executable}): python -m pip install cffi"
        ) from None
    declarations = CDEF.search(HEADER.read_text(encoding="utf-8"))
    if declarations is None:
        raise BuildError(f"the marks 'cdef begins' and 'cdef ends' were not found in {HEADER}")
    ffi = cffi.FFI()
    ffi.set_source("loaderx._cdef", None)
    ffi.cdef(declarations.group(1))
    with tempfile.TemporaryDirectory(prefix="loaderx-build-") as scratch:
        module = Path(scratch) / target.name
        with contextlib.redirect_stdout(io.StringIO()):  # it names the scratch file
            ffi.emit_python_code(str(module))
        replace_file(module, target)


def replace_file(source: Path, target: Path) -> None:
    """Put a copy of source at target in one step.

    A process that has the old library mapped keeps it: writing into that file
    would crash it.
    """
    staged = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        shutil.copyfile(source, staged)
        staged.chmod(0o755 if target.suffix in (".so", ".dylib", ".dll") else 0o644)
        os.replace(staged, target)
    finally:
        staged.unlink(missing_ok=True)


def check(env: Mapping[str, str]) -> None:
    """Raise BuildError unless the sources, Go and a C compiler are here."""
    check_sources()
    check_go(env)
    check_c_compiler(env)


def check_sources() -> None:
    """Refuse to start without the Go sources, as in a copy of python/ alone."""
    for path in (ROOT / "go.mod", HEADER, EXPORTS, ZSTD):
        if not path.is_file():
            raise BuildError(
                f"the Go sources of loaderx are not here: expected {path}. "
                "Build from a complete checkout"
            )


def check_go(env: Mapping[str, str]) -> None:
    """Refuse to start without a Go that is new enough for go.mod."""
    match = re.search(r"^go (\d+)\.(\d+)", (ROOT / "go.mod").read_text(encoding="utf-8"), re.M)
    if match is None:
        raise BuildError(f"no line 'go 1.x' in {ROOT / 'go.mod'}")
    needed = (int(match.group(1)), int(match.group(2)))
    wanted = f"Go {needed[0]}.{needed[1]} or newer"
    if shutil.which("go", path=env.get("PATH")) is None:
        raise BuildError(
            f"{wanted} is needed to build loaderx, and there is no 'go' on PATH. "
            "Get it from https://go.dev/dl/ and put its bin folder on PATH"
        )
    version = go_env("GOVERSION", env)
    found = re.match(r"go(\d+)\.(\d+)", version)
    if found and (int(found.group(1)), int(found.group(2))) < needed:
        raise BuildError(
            f"{wanted} is needed to build loaderx; 'go' on PATH is {version}. "
            "Get a newer one from https://go.dev/dl/"
        )


def check_c_compiler(env: Mapping[str, str]) -> None:
    """Refuse to start without a C compiler that finds its headers."""
    command = shlex.split(go_env("CC", env), posix=os.name != "nt")
    advice = (
        "Debian and Ubuntu: apt-get install gcc libc6-dev; Fedora: dnf install gcc; "
        "macOS: xcode-select --install; Windows: https://www.mingw-w64.org. "
        "Another compiler can be named in the environment variable CC"
    )
    if not command or shutil.which(command[0], path=env.get("PATH")) is None:
        raise BuildError(
            "a C compiler is needed to build loaderx, and there is no "
            f"'{' '.join(command)}' on PATH. {advice}"
        )
    trial = subprocess.run(
        [*command, "-E", "-x", "c", "-"],
        input=b"#include <stdlib.h>\n",
        capture_output=True,
        env=dict(env),
        check=False,
    )
    if trial.returncode:
        raise BuildError(
            f"the C compiler '{shlex.join(command)}' cannot compile a file that includes "
            f"stdlib.h. {advice}. It said:\n{trial.stderr.decode(errors='replace')}"
        )


def go_env(name: str, env: Mapping[str, str]) -> str:
    """Return one of the go command's settings."""
    done = subprocess.run(
        ["go", "env", name], cwd=ROOT, env=dict(env), check=False, capture_output=True, text=True
    )
    if done.returncode:
        raise BuildError(f"'go env {name}' failed:\n{done.stderr.strip()}")
    return done.stdout.strip()


def main() -> int:
    """Build from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--out", type=Path, default=PACKAGE, help="folder for both files (default: the package)"
    )
    parser.add_argument("--cc", help="C compiler, with its options (default: as go env CC)")
    parser.add_argument(
        "--check", action="store_true", help="only look whether Go and a C compiler are here"
    )
    parser.add_argument(
        "--cflags", action="store_true", help="only print the value of CGO_CFLAGS, for make"
    )
    arguments = parser.parse_args()
    try:
        if arguments.cflags:
            print(c_flags(go_env("GOOS", os.environ)))
            return 0
        if arguments.check:
            check({**os.environ, **({"CC": arguments.cc} if arguments.cc else {})})
            return 0
        library = build(arguments.out.resolve(), cc=arguments.cc)
    except BuildError as error:
        print(f"loaderx: {error}", file=sys.stderr)
        return 1
    print(f"{library} ({library.stat().st_size / 2**20:.2f} MiB)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
