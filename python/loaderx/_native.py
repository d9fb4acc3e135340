"""The shared library: finding it, loading it at first use, and its guards.

Everything else calls the engine as ``_native.lib.lx_...`` and never keeps what
``lib`` is, because that changes. Before the first use ``lib`` loads the library
when it is asked for a function; after it, ``lib`` is the library itself, so the
guard costs a call nothing; in a forked child it raises ForkedProcessError,
because a Go runtime does not survive a fork and a call into it would hang.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from types import SimpleNamespace
from typing import Any

from loaderx import _elf, _room
from loaderx.errors import ForkedProcessError, from_status

# A native call does at most about this many bytes, so that Ctrl-C, which waits
# for a call to return, is never far away.
CALL_BYTES = 64 << 20

# Lower limits of the format, for tests: 0 is the format's own (lx_open_options).
limits = SimpleNamespace(chunk=0, segment=0, record=0)

_INDEX = 1
_NAMES = {"darwin": "libloaderx.dylib", "win32": "loaderx.dll"}


class _Unloaded:
    """Stands for ``ffi``, ``lib`` or ``scratch`` until one of them is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        _load()
        return getattr(globals()[self._name], attribute)


class Forked:
    """Stands for ``lib`` in a child forked after the library was loaded: any use raises.

    Also what a pickled store, sampler or loader becomes there. If unpickling
    itself raised, a pool of forked workers would wait for ever.
    """

    def __getattr__(self, attribute: str) -> Any:
        raise ForkedProcessError(
            "loaderx was in use before this process was forked, and does not survive a fork: "
            "expected the spawn or forkserver start method, or a fork before the first store is "
            f"opened, got a fork of process {os.getppid()}"
        )

    def __getitem__(self, index: Any) -> Any:
        return self.use

    def __len__(self) -> int:
        return int(self.use)

    def __iter__(self) -> Any:
        return self.use

    def __next__(self) -> Any:
        return self.use


class _Scratch(threading.local):
    """What each thread keeps to hand to calls: a lx_error, and room for a number."""

    def __init__(self) -> None:
        self.error = ffi.new("lx_error *")
        self.number = ffi.new("int64_t *")


ffi: Any = _Unloaded("ffi")
lib: Any = _Unloaded("lib")
scratch: Any = _Unloaded("scratch")
forked = False

_load_lock = threading.Lock()


def library_path() -> str:
    """Where the shared library of this installation is, whether or not it is there."""
    name = _NAMES.get(sys.platform, "libloaderx.so")
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), name)


def loaded() -> bool:
    """Whether the library is in use in this process."""
    return not isinstance(lib, (_Unloaded, Forked))


def require_usable() -> None:
    """Raise ForkedProcessError in a forked child, before it takes a lock left held by the fork."""
    if forked:
        lib.lx_abi_version()


def _load() -> None:
    """Load the library, once. Raises ImportError saying what is in the way."""
    global ffi, lib, scratch
    with _load_lock:
        if not isinstance(lib, _Unloaded):
            return
        path = library_path()
        try:
            definitions = importlib.import_module("loaderx._cdef").ffi
        except ModuleNotFoundError as error:
            if error.name != "loaderx._cdef":
                raise
            raise ImportError(_not_built(f"{__package__}._cdef"), path=path) from None
        if not os.path.exists(path):
            raise ImportError(_not_built(path), path=path)
        lack = _room.lack()
        if lack is not None:
            raise ImportError(f"cannot load {path}: {lack}", path=path)
        library = _open(definitions, path)
        got, expected = _version(definitions, library, path), library.LX_ABI_VERSION
        if got == 0:
            raise ImportError(
                f"cannot use {path}: this C library keeps thread-local variables in another way "
                "than musl 1.2, for which it was built; use loaderx on a system with musl 1.2 "
                "or with glibc",
                path=path,
            )
        if got != expected:
            raise ImportError(
                f"cannot use {path}: expected version {expected} of its interface, got {got}; "
                "the installation mixes two versions of loaderx, so install it again",
                path=path,
            )
        ffi = definitions
        scratch = _Scratch()
        lib = library  # last: it says that the others are there


def _not_built(what: str) -> str:
    return (
        f"this installation of loaderx has no {what}: expected the library to be built; "
        "install a wheel, or run `pip install ./python` in a checkout, with Go and a C compiler"
    )


def _open(definitions: Any, path: str) -> Any:
    """dlopen, with the reason and the remedy when it fails."""
    if (wrong := _elf.complaint(path)) is not None:
        raise ImportError(f"cannot load {path}: {wrong}", path=path)
    try:
        return definitions.dlopen(path)
    except OSError as error:
        text = str(error)
        if "static TLS" in text:
            remedy = (
                "other libraries have used up the space for thread-local variables; use loaderx "
                "before them, or set GLIBC_TUNABLES=glibc.rtld.optional_static_tls=2048"
            )
        elif "initial-exec TLS" in text:
            remedy = (
                "musl does not load what Go builds without the link step of the wheels; install a "
                "wheel: pip install --only-binary loaderx loaderx"
            )
        elif "ELF" in text or "architecture" in text or "not a valid Win32" in text:
            remedy = (
                "it was built for another system or processor; install loaderx again on this one"
            )
        else:
            remedy = "install loaderx again, or look for the missing system library"
        raise ImportError(f"cannot load {path}: {text}; {remedy}", path=path) from error


def _version(definitions: Any, library: Any, path: str) -> int:
    """Ask a library for the version of its interface; one that is not ours cannot say."""
    try:
        return int(library.lx_abi_version())
    except (AttributeError, definitions.error) as error:
        raise ImportError(
            f"cannot use {path}: expected loaderx's library, with a function lx_abi_version, got "
            f"another one ({error}); something has replaced the file, so install loaderx again: "
            "pip install --force-reinstall --no-deps loaderx",
            path=path,
        ) from error


def _after_fork_in_child() -> None:
    """Make the library unusable here. A load cut short by the fork counts as one."""
    global ffi, lib, forked, _load_lock
    if loaded() or _load_lock.locked():
        forked = True
        lib = Forked()
        if isinstance(ffi, _Unloaded):
            ffi = lib
    _load_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def error_of(status: int, error: Any, path: str | None = None) -> Exception:
    """Make the exception for a status and the lx_error that the call filled.

    Args:
        status: what the call returned, not LX_OK.
        error: its ``lx_error *``.
        path: the store, for when the error names no file.
    """
    where = os.fsdecode(ffi.string(error.path))
    return from_status(
        status,
        ffi.string(error.message).decode("utf-8", "replace"),
        path=where or path,
        # An index that is out of range may be any; a record's is never negative.
        index=error.index if error.index >= 0 or status == _INDEX else None,
        offset=error.offset if error.offset >= 0 else None,
        errno=error.os_errno or None,
    )


def check(status: int, error: Any) -> None:
    """Raise the exception for a status unless it is LX_OK."""
    if status:
        raise error_of(status, error)
