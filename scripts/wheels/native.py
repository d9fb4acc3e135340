"""Building the library for one platform, with zig as its C compiler."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import build_native

from wheels import macho
from wheels.platforms import Platform

CACHE = build_native.ROOT / ".cache"
MAC_STUBS = build_native.ROOT / "packaging" / "macos"
PROTOTYPE = re.compile(r"^\w[\w *]*\b(lx_\w+)\(", re.MULTILINE)
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


def declared() -> set[str]:
    """Return the functions of loaderx.h."""
    header = build_native.HEADER.read_text(encoding="utf-8")
    return set(PROTOTYPE.findall(COMMENT.sub("", header)))


def zig() -> Path:
    """Return the zig of the environment that this runs in."""
    import ziglang  # here, as what does not compile does without it

    return Path(ziglang.__file__).resolve().parent / ("zig.exe" if os.name == "nt" else "zig")


def environment(platform: Platform) -> dict[str, str]:
    """Return the variables for a build, whose caches all lie in the checkout."""
    own = dict(os.environ)
    # A wheel is the same whoever builds it.
    for name in ("CGO_CFLAGS", "CGO_CPPFLAGS", "CGO_LDFLAGS", "GOEXPERIMENT", "GOFIPS140"):
        own.pop(name, None)
    return {
        **own,
        "GOOS": platform.goos,
        "GOARCH": platform.goarch,
        "GOAMD64": "v1",
        "GOARM64": "v8.0",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
        "GOFLAGS": "-modcacherw",
        "GOPATH": str(CACHE / "go"),
        "GOMODCACHE": str(CACHE / "go" / "mod"),
        "GOCACHE": str(CACHE / "go-build"),
        "TEST_TELEMETRY_DIR": str(CACHE / "go-telemetry"),
        "ZIG_GLOBAL_CACHE_DIR": str(CACHE / "zig"),
        "ZIG_LOCAL_CACHE_DIR": str(CACHE / "zig"),
    }


def compiler(platform: Platform) -> str:
    """Return the command line of the C compiler, as Go takes it."""
    words = [str(zig()), "cc", "-target", platform.triple]
    if platform.libc == "musl":
        words = [sys.executable, str(build_native.ROOT / "scripts" / "muslcc.py"), *words]
    return build_native.quote(words)


def build(platform: Platform, out: Path) -> Path:
    """Build the library and _cdef.py into a folder and return the library's path."""
    flags: list[str] = []
    if platform.libc == "macos":
        flags = [f"-L{MAC_STUBS}", f"-F{MAC_STUBS}"]
    library = build_native.build(
        out, cc=compiler(platform), env=environment(platform), link_flags=flags
    )
    if platform.libc == "macos":
        macho.finish(library, declared())
    return library


def vet(platform: Platform) -> Iterator[str]:
    """Run go vet for a platform; what it complains of is a complaint."""
    env = environment(platform)
    env |= {"CGO_ENABLED": "1", "CC": compiler(platform)}
    env["CGO_CFLAGS"] = build_native.c_flags(platform.goos)
    # Of the mode of the build, whose compiled C is in the cache then.
    command = ["go", "vet", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "./..."]
    done = subprocess.run(
        command, cwd=build_native.ROOT, env=env, check=False, capture_output=True, text=True
    )
    if done.returncode:
        yield f"go vet for {platform.goos}/{platform.goarch}:\n{done.stdout}{done.stderr}"
