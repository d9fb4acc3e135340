"""What an ImportError says when the library is there and cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import run_python

from loaderx import _native


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
