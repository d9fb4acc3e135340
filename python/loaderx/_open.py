"""Opening a store: the arguments, the engine's open, and what was found."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from loaderx import _identity, _native
from loaderx.errors import CorruptStoreError, NotAStoreError, StoreMismatchError

CODECS = {"raw": 0, "zstd": 1, "zstd_dict": 2}
MODES = {"r": 0, "a": 1}
DENSE, RAGGED = 1, 2

_CODEC_NAMES = {number: name for name, number in CODECS.items()}


class Wanted(NamedTuple):
    """What the caller of a constructor asked for, checked. None: not given."""

    kind: int
    mode: str
    dtype: np.dtype[Any] | None
    item_shape: tuple[int, ...] | None
    codec: str | None
    dict_bytes: bytes | None
    allow_empty: bool

    def identity(self) -> bytes | None:
        """The identity to create a store with, or None when too little was given."""
        if self.dtype is None or (self.kind == DENSE and self.item_shape is None):
            return None
        return _identity.encode(self.dtype, self.item_shape)


class Opened(NamedTuple):
    """An open store: the engine's handle and what the store is."""

    handle: int
    dtype: np.dtype[Any]
    item_shape: tuple[int, ...] | None
    width: int
    codec: str
    allow_empty: bool


def as_path(path: Any, argument: str = "path") -> str:
    """Make the absolute path of a store; argument is what messages call it.

    Raises:
        TypeError: not a str, bytes or path object.
        ValueError: empty, holding a NUL, or starting with ``~``.
    """
    try:
        name = os.fsdecode(path)
    except TypeError:
        raise TypeError(
            f"{argument}: expected a str, bytes or path object, got {type(path).__name__} {path!r}"
        ) from None
    if not name:
        raise ValueError(f"{argument}: expected the folder of a store, got an empty path")
    try:
        os.fsencode(name)
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{argument}: expected what the file system can name, got {name!r} ({error.reason})"
        ) from None
    if "\0" in name:
        raise ValueError(f"{argument}: expected no NUL character, got {name!r}")
    if name.startswith("~"):
        raise ValueError(
            f"{argument}: expected one without a leading ~, which is not expanded, got {name!r}; "
            "use os.path.expanduser(path), or ./~ for a folder of that name"
        )
    return os.path.abspath(name)


def wanted(
    kind: int, mode: Any, dtype: Any, item_shape: Any, codec: Any, dict_bytes: Any, allow_empty: Any
) -> Wanted:
    """Check the arguments of a constructor. Raises TypeError and ValueError."""
    if codec is not None and (not isinstance(codec, str) or codec not in CODECS):
        raise ValueError(f"codec: expected one of {', '.join(map(repr, CODECS))}, got {codec!r}")
    if not isinstance(mode, str) or mode not in MODES:
        raise ValueError(f"mode: expected 'a' to read and append or 'r' to read, got {mode!r}")
    if not isinstance(allow_empty, (bool, np.bool_)):
        raise TypeError(f"allow_empty: expected True or False, got {allow_empty!r}")
    if dict_bytes is not None and not isinstance(dict_bytes, (bytes, bytearray, memoryview)):
        raise TypeError(f"dict_bytes: expected bytes, got {type(dict_bytes).__name__}")
    if dict_bytes is not None and codec in ("raw", "zstd"):
        raise ValueError(
            f"dict_bytes: expected none with codec {codec!r}, got {len(dict_bytes)} bytes"
        )
    found_dtype = None if dtype is None else _identity.as_dtype(dtype)
    found_shape = None if item_shape is None else _identity.as_item_shape(item_shape)
    if found_dtype is not None:
        _identity.record_width(found_dtype, found_shape or ())
    return Wanted(
        kind,
        mode,
        found_dtype,
        found_shape,
        codec,
        None if dict_bytes is None else bytes(dict_bytes),
        bool(allow_empty),
    )


def open_store(path: str, want: Wanted) -> Opened:
    """Open the store at path, or create it where the arguments allow.

    Raises:
        ValueError: there is none, and too little was given to create it.
        ZrecordError: one of its subclasses, as the engine found.
    """
    identity = want.identity()
    error = _native.ffi.new("lx_error *")
    with _handle_closed_on_error() as cell:
        with _options(want, identity) as options:
            status = _native.lib.lx_store_open(os.fsencode(path), options, cell, error)
        if status:
            failure = _native.error_of(status, error, path)
            if identity is None and want.mode == "a" and isinstance(failure, NotAStoreError):
                _refuse_half_an_identity(path, want)
            raise failure
        opened = _describe(cell[0], path, want.kind)
        _compare(path, want, opened)
    return opened


@contextmanager
def _handle_closed_on_error() -> Iterator[Any]:
    """A cell for a handle, which is closed if the block fails, Ctrl-C included."""
    cell = _native.ffi.new("lx_handle *")
    try:
        yield cell
    except BaseException:
        if cell[0] and not _native.forked:
            _native.lib.lx_store_close(cell[0], _native.ffi.NULL)
        raise


@contextmanager
def _options(want: Wanted, identity: bytes | None) -> Iterator[Any]:
    """The lx_open_options, with what they point to alive inside the block."""
    ffi = _native.ffi
    options = ffi.new("lx_open_options *")
    options.struct_bytes = ffi.sizeof("lx_open_options")
    options.kind = want.kind
    options.mode = MODES[want.mode]
    options.codec = -1 if want.codec is None else CODECS[want.codec]
    options.allow_empty = want.allow_empty
    options.chunk_limit = _native.limits.chunk
    options.segment_limit = _native.limits.segment
    options.record_limit = _native.limits.record
    text = ffi.NULL if identity is None else ffi.new("char[]", identity)
    options.identity = text
    if identity is not None and want.item_shape is not None:
        assert want.dtype is not None
        options.width = _identity.record_width(want.dtype, want.item_shape)
    dictionary = None if want.dict_bytes is None else ffi.from_buffer(want.dict_bytes)
    if dictionary is not None:
        options.dict = dictionary
        options.dict_bytes = len(dictionary)
    yield options
    del text, dictionary


def _refuse_half_an_identity(path: str, want: Wanted) -> None:
    """Say what is missing to create a store, if something was given for that."""
    given = [name for name in ("dtype", "item_shape") if getattr(want, name) is not None]
    if given:
        other = "item_shape" if given == ["dtype"] else "dtype"
        raise ValueError(
            f"there is no store at {path}: expected dtype and item_shape to create one, "
            f"got {given[0]} without {other}"
        ) from None


def _describe(handle: int, path: str, kind: int) -> Opened:
    """Ask the engine what was opened, and believe only what fits together."""
    ffi, lib = _native.ffi, _native.lib
    error, info = ffi.new("lx_error *"), ffi.new("lx_store_info *")
    _native.check(lib.lx_store_info_of(handle, info, error), error)
    text = ffi.new("char[]", info.identity_bytes)
    _native.check(lib.lx_store_identity(handle, text, info.identity_bytes, error), error)
    try:
        dtype, item_shape = _identity.decode(
            bytes(ffi.buffer(text, info.identity_bytes)), info.width if kind == DENSE else None
        )
    except ValueError as reason:
        file = os.path.join(path, "store.zr")
        raise CorruptStoreError(f"{file}: {reason}", path=file) from None
    if not info.lockable:
        warnings.warn(
            f"the file system of {path} cannot lock: the store is open for reading, and nothing "
            "keeps another process from changing it",
            RuntimeWarning,
            stacklevel=5,
        )
    codec = _CODEC_NAMES.get(info.codec, f"codec {info.codec}")
    return Opened(handle, dtype, item_shape, int(info.width), codec, bool(info.allow_empty))


def _compare(path: str, want: Wanted, opened: Opened) -> None:
    """Refuse a store that differs from what was given of dtype and item_shape.

    The engine compares whole identities, and codecs; this is for halves.
    """
    for name in ("dtype", "item_shape"):
        expected, got = getattr(want, name), getattr(opened, name)
        if expected is not None and expected != got:
            raise StoreMismatchError(
                f"{path} is a store of another type: expected {name} {expected}, got {got}",
                path=path,
            )
