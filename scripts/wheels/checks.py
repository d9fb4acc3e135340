"""What a finished wheel or source distribution must be. Each function yields complaints."""

from __future__ import annotations

import email
import io
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import build_native

from wheels import sources
from wheels.binaries import Library, read
from wheels.native import declared
from wheels.pack import LIBRARIES
from wheels.platforms import GLIBC, MACOS, Platform

MOST_BYTES = 4 << 20
# The project's own, and those of what is linked into the library.
LICENSES = ("licenses/LICENSE", "licenses/THIRD_PARTY_LICENSES")
MACHINES = {
    ("linux", "amd64"): ("ELF", "EM_X86_64"),
    ("linux", "arm64"): ("ELF", "EM_AARCH64"),
    ("darwin", "amd64"): ("Mach-O", "x86_64"),
    ("darwin", "arm64"): ("Mach-O", "ARM64"),
    ("windows", "amd64"): ("PE", "IMAGE_FILE_MACHINE_AMD64"),
    ("windows", "arm64"): ("PE", "IMAGE_FILE_MACHINE_ARM64"),
}
# What every system of a kind has.
NEEDED = {
    "glibc": r"libc\.so\.6|libpthread\.so\.0|libdl\.so\.2|ld-linux-(x86-64|aarch64)\.so\.[12]",
    "musl": r"libc\.so|libc\.musl-(x86_64|aarch64)\.so\.1",
    "macos": r"/usr/lib/lib(System\.B|resolv\.9)\.dylib"
    r"|/System/Library/Frameworks/CoreFoundation\.framework/.*",
    "windows": r"(?i)kernel32\.dll|ntdll\.dll|msvcrt\.dll|ucrtbase\.dll|api-ms-win-crt-.*\.dll",
}


# A link of Markdown to a file: neither an address nor a place in the text itself.
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)")


def some(names: set[str]) -> str:
    """Return a few of many names, and how many there are."""
    listed = sorted(names)
    return f"{listed[:5]}" + (f" (of {len(listed)})" if len(listed) > 5 else "")


def check_library(platform: Platform, path: Path) -> Iterator[str]:
    """Hold a library against its tag, the header and the limits."""
    library, size = read(path), path.stat().st_size
    expected = MACHINES[platform.goos, platform.goarch]
    if (library.format, library.machine) != expected:
        yield f"expected {expected}, got a library for {(library.format, library.machine)}"
        return
    header = declared()
    if len(header) < 10:
        yield f"the functions of {build_native.HEADER} were not recognized: got {sorted(header)}"
    more = library.exports - header
    if more or header - library.exports:
        yield (
            f"expected the exports of loaderx.h, got {some(more)} beside them, and not "
            f"{some(header - library.exports)}"
        )
    if size > MOST_BYTES:
        yield f"expected at most {MOST_BYTES} bytes, got {size}"
    if not library.stripped:
        yield "expected a stripped library, got one with symbols or debugging information"
    if library.unsigned:
        yield f"expected a signature, as this system loads nothing without one: {library.unsigned}"
    odd = {n for n in library.needed if not re.fullmatch(NEEDED[platform.libc], n)}
    if odd or not library.needed:
        yield f"expected to need what every system has, got {sorted(library.needed)}"
    yield from check_oldest(platform, library)


def check_oldest(platform: Platform, library: Library) -> Iterator[str]:
    """Hold a library against the oldest system that its tag names."""
    promised = {"glibc": GLIBC, "macos": MACOS}.get(platform.libc, ())
    if platform.libc == "macos" and library.oldest != promised:
        yield f"expected a library for macOS {MACOS}, got one for {library.oldest}"
    if platform.libc != "macos" and library.oldest > promised:
        yield f"expected symbols of glibc up to {promised}, got {library.oldest}"
    if platform.libc == "glibc" and not library.oldest:
        yield "expected a library for glibc, got one that needs no symbol of it"
    if platform.libc == "musl" and library.static_tls:
        yield (
            "musl does not load a library whose thread-local variables have fixed places: "
            f"{library.static_tls[:3]} (of {len(library.static_tls)})"
        )


def check_wheel(platform: Platform, path: Path) -> Iterator[str]:
    """Check a wheel: its files, its metadata and its library."""
    with zipfile.ZipFile(path) as archive, tempfile.TemporaryDirectory() as scratch:
        names = archive.namelist()
        libraries = [n for n in names if Path(n).suffix in (".so", ".dylib", ".dll", ".pyd", ".a")]
        wanted = build_native.LIBRARY_NAMES.get(platform.goos, "libloaderx.so")
        if libraries != [f"loaderx/{wanted}"]:
            yield f"expected one library, loaderx/{wanted}, got {libraries}"
            return
        modules = {f"loaderx/{p.name}" for p in sources.module_files()}
        inside = {n for n in names if ".dist-info/" not in n}
        expected = {*modules, "loaderx/_cdef.py", *libraries}
        if inside != expected:
            yield f"expected the package and no more, the difference is {inside ^ expected}"
        if len(names) != len(set(names)):
            yield "expected each name once"
        info = {n.split("/", 1)[1]: archive.read(n) for n in names if ".dist-info/" in n}
        yield from check_info(platform, info)
        yield from check_library(platform, Path(archive.extract(libraries[0], scratch)))


def check_info(platform: Platform, info: dict[str, bytes]) -> Iterator[str]:
    """Check what .dist-info has, by name within it."""
    for name in ("METADATA", "WHEEL", "RECORD", *LICENSES):
        if name not in info:
            yield f"expected {name} in .dist-info, got {sorted(info)}"
            return
    tags = email.message_from_bytes(info["WHEEL"]).get_all("Tag")
    if tags != [platform.wheel_tag]:
        yield f"expected the tag {platform.wheel_tag} inside, got {tags}"
    yield from check_metadata(info["METADATA"])


def check_metadata(text: bytes) -> Iterator[str]:
    """Check that the metadata say all that an index shows."""
    metadata = email.message_from_bytes(text)
    for name, value in {
        "Name": "loaderx",
        "Version": sources.version(),
        "License-Expression": "MIT",
        "Requires-Python": ">=3.9",
        "Description-Content-Type": "text/markdown",
    }.items():
        if metadata[name] != value:
            yield f"expected {name}: {value} in the metadata, got {metadata[name]}"
    several = {"License-File": 1, "Classifier": 8, "Project-URL": 3, "Requires-Dist": 2}
    for name, least in several.items():
        if len(metadata.get_all(name, [])) < least:
            yield f"expected at least {least} of {name}, got {metadata.get_all(name)}"
    if "Typing :: Typed" not in metadata.get_all("Classifier", []):
        yield "expected the classifier Typing :: Typed, as the package has a py.typed"
    description = str(metadata.get_payload())
    if len(description) < 1000:
        yield "expected the README as the description"
    if relative := LINK.findall(description):
        yield f"expected links with addresses in the description, got {relative}"


def check_sdist(path: Path) -> Iterator[str]:
    """Check that the source distribution has all that a build needs, and nothing built."""
    root = path.name.removesuffix(".tar.gz")
    with tarfile.open(path) as archive:
        names = {m.name.removeprefix(f"{root}/") for m in archive.getmembers()}
        info = archive.extractfile(f"{root}/PKG-INFO")
        yield from check_metadata((info or io.BytesIO()).read())
        readme = archive.extractfile(f"{root}/README.md")
        links = set(LINK.findall((readme or io.BytesIO()).read().decode()))
    files = names | {str(parent) for name in names for parent in PurePosixPath(name).parents}
    if dead := links - files:
        yield f"expected what the README links to, and there is no {sorted(dead)}"
    modules = {f"loaderx/{p.name}" for p in sources.module_files()}
    go = {str(p.relative_to(sources.ROOT)) for p in sources.go_files()}
    zstd = "vendor/github.com/DataDog/zstd"
    vendored = {"vendor/modules.txt", f"{zstd}/zstd_compress.c", f"{zstd}/huf_decompress_amd64.S"}
    missing = {*modules, *go, *vendored, *sources.FILES.values()} - names
    if missing:
        yield f"expected {sorted(missing)}"
    made = [n for n in names if Path(n).name in LIBRARIES or n == "loaderx/_cdef.py"]
    if made:
        yield f"expected only sources, got {sorted(made)}"


def tool(*words: str) -> Iterator[str]:
    """Run a Python tool of the environment; what it complains of is a complaint."""
    command = [sys.executable, "-m", *words]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        yield f"{' '.join(words[:2])}: {done.stdout}{done.stderr}"


def check_auditwheel(platform: Platform, path: Path) -> Iterator[str]:
    """Have auditwheel, which runs on this kind of system only, agree with the tag."""
    command = [sys.executable, "-m", "auditwheel", "show", str(path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    flat = " ".join(done.stdout.split())
    if done.returncode or f'"{platform.tag}"' not in flat:
        yield f"auditwheel show: expected {platform.tag}, got {flat}{done.stderr}"
