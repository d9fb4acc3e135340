"""What an ImportError says when the library is there and cannot be used."""

from __future__ import annotations

import sys
from pathlib import Path

import _cffi_backend
import pytest
from support import run_python

from loaderx import _elf, _native


class Refusing:
    """Stands for cffi's definitions: the system's loader gives a reason."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def dlopen(self, path: str) -> None:
        raise OSError(f"cannot load library '{path}': {self.reason}")


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        (
            "libloaderx.so: cannot allocate memory in static TLS block",
            "use loaderx before them, or set GLIBC_TUNABLES=glibc.rtld.optional_static_tls=2048",
        ),
        (
            "Error relocating libloaderx.so: runtime.tlsg: initial-exec TLS resolves to dynamic "
            "definition in libloaderx.so",
            "pip install --only-binary loaderx loaderx",
        ),
        ("libloaderx.so: wrong ELF class: ELFCLASS32", "install loaderx again on this one"),
        ("(mach-o file, but is an incompatible architecture)", "install loaderx again on this one"),
        ("%1 is not a valid Win32 application", "install loaderx again on this one"),
        ("libc.so: cannot open shared object file", "look for the missing system library"),
    ],
)
def test_reasons_and_remedies(reason: str, remedy: str) -> None:
    with pytest.raises(ImportError) as caught:
        _native._open(Refusing(reason), "/there/libloaderx.so")
    text = str(caught.value)
    assert text.startswith("cannot load /there/libloaderx.so: ") and reason in text
    assert text.endswith(remedy) and caught.value.path == "/there/libloaderx.so"


@pytest.mark.skipif(sys.platform != "linux", reason="the library is no ELF file on this system")
def test_a_library_for_another_processor_or_cut_short(tmp_path: Path) -> None:
    """The system's loader would say that there is no such file, or end the process."""
    whole = Path(_native.library_path()).read_bytes()
    path = tmp_path / "libloaderx.so"
    path.write_bytes(whole)
    assert _elf.complaint(str(path)) is None
    path.write_bytes(whole[:18] + b"\x28\x00" + whole[20:])  # 32-bit ARM
    with pytest.raises(ImportError, match="built for another processor .*40, expected"):
        _native._open(None, str(path))
    for size in (64, 4096, 100_000, len(whole) // 2, len(whole) - 1000):
        path.write_bytes(whole[:size])
        with pytest.raises(ImportError, match=f"cut short .* got {size}"):
            _native._open(None, str(path))
    for content in (b"", b"\x7fELF", b"text" * 100):
        path.write_bytes(content)
        assert _elf.complaint(str(path)) is None  # the loader has words for these


def test_libc_with_thread_local_variables_elsewhere(tmp_path: Path) -> None:
    """lx_abi_version is 0 then, and nothing else of the library may be called."""
    code = """
        import sys
        import loaderx._native as native
        from loaderx import DenseStore
        class Library:
            LX_ABI_VERSION = 1
            def lx_abi_version(self):
                return 0
        native._open = lambda *a: Library()
        for _ in range(2):
            try:
                DenseStore(sys.argv[1], "u1", ())
            except ImportError as error:
                print(error)
    """
    done = run_python(code, tmp_path / "s")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 2 and all("in another way than musl 1.2" in line for line in lines)


def test_another_library_in_place_of_ours(tmp_path: Path) -> None:
    """It loads, and has none of our functions."""
    there = tmp_path / Path(_native.library_path()).name
    there.write_bytes(Path(_cffi_backend.__file__).read_bytes())
    code = """
        import sys
        import loaderx._native as native
        from loaderx import DenseStore
        native.library_path = lambda: sys.argv[1]
        for _ in range(2):
            try:
                DenseStore(sys.argv[2], "u1", ())
            except ImportError as error:
                print(error.path, error)
    """
    done = run_python(code, there, tmp_path / "s")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    for line in lines:
        assert line.startswith(f"{there} cannot use {there}: expected loaderx's library")
        assert "lx_abi_version" in line.partition("got another one (")[2]
        assert line.endswith(
            "install loaderx again: pip install --force-reinstall --no-deps loaderx"
        )
