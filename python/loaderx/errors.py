"""Every exception of loaderx, and the table from the engine's statuses to them.

``ZrecordError`` is the base of what a store can raise. Where Python has a
built-in for the case, the class is that too, so ``except IndexError`` or
``except FileNotFoundError`` work. Mistakes in arguments are plain ``ValueError``
and ``TypeError``, memory that cannot be had is ``MemoryError``.

All of them say what was expected, what was got and where, carry the place as
attributes, and survive pickling, because they cross process borders.
"""

from __future__ import annotations

import errno as _errno
from typing import Any

__all__ = [
    "CorruptRecordError",
    "CorruptStoreError",
    "ForkedProcessError",
    "LoaderClosedError",
    "NotAStoreError",
    "RecordIndexError",
    "StoreBusyError",
    "StoreClosedError",
    "StoreFullError",
    "StoreIOError",
    "StoreMismatchError",
    "StoreReadOnlyError",
    "UnsupportedStoreError",
    "ZrecordError",
]


class ZrecordError(RuntimeError):
    """The base of all errors of stores; raised itself for a fault in loaderx.

    Attributes:
        path: the file or store concerned, or None where that is not known.
        index: the record concerned, or None.
        offset: the byte offset in the file at ``path``, or None.
    """

    path: str | None = None
    index: int | None = None
    offset: int | None = None

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        index: int | None = None,
        offset: int | None = None,
    ) -> None:
        super().__init__(message)
        self.path = path
        self.index = index
        self.offset = offset

    def __reduce__(self) -> tuple[Any, ...]:
        # Not the inherited one: OSError would call the class with (errno, text).
        return _rebuild, (type(self), _message(self), getattr(self, "errno", None)), self.__dict__


class _SystemError(OSError, ZrecordError):
    """An error with an errno. OSError comes first, or errno would be lost."""

    _default_errno: int | None = None

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        index: int | None = None,
        offset: int | None = None,
        errno: int | None = None,
    ) -> None:
        number = errno or self._default_errno
        if number is None:
            OSError.__init__(self, message)
        else:
            OSError.__init__(self, number, message)
        self.path = path
        self.index = index
        self.offset = offset

    __reduce__ = ZrecordError.__reduce__


class RecordIndexError(ZrecordError, IndexError):
    """An index outside the store; ``.index`` is it."""


class StoreBusyError(ZrecordError):
    """Another handle holds the lock that is needed."""


class StoreClosedError(ZrecordError, ValueError):
    """The store was closed before the call."""


class LoaderClosedError(ZrecordError, ValueError):
    """The loader was closed, by its owner or by an error, before the call."""


class NotAStoreError(_SystemError, FileNotFoundError):
    """There is no store at that path."""

    _default_errno = _errno.ENOENT


class StoreMismatchError(ZrecordError, ValueError):
    """The store is of another kind, dtype, shape or codec than was asked for."""


class CorruptStoreError(ZrecordError):
    """The store as a whole cannot be trusted; ``.path`` is the file at fault."""


class CorruptRecordError(ZrecordError):
    """One record cannot be read: see ``.index``, ``.path`` and ``.offset``."""


class UnsupportedStoreError(ZrecordError):
    """A format version, a codec or an operation that this version does not do."""


class StoreFullError(_SystemError):
    """There is no room on the disk; nothing was changed."""

    _default_errno = _errno.ENOSPC


class StoreReadOnlyError(ZrecordError):
    """The store was opened for reading, or its files cannot be written."""


class StoreIOError(_SystemError):
    """The operating system failed; ``.errno`` says how."""


class ForkedProcessError(ZrecordError):
    """The process was forked after loaderx had been in use."""


def add_note(error: BaseException, note: str) -> None:
    """Add a note to an exception, as its add_note does from Python 3.11 on."""
    error.__dict__.setdefault("__notes__", []).append(note)


def _message(error: BaseException) -> str:
    """The message an error was made with: the last argument in every class here."""
    return str(error.args[-1]) if error.args else ""


def _rebuild(cls: type[ZrecordError], message: str, number: int | None) -> ZrecordError:
    """Make an unpickled error; its attributes follow as its state."""
    if issubclass(cls, _SystemError):
        return cls(message, errno=number)
    return cls(message)


# The numbers are those of loaderx.h. LX_ROOM (14) is no error and never comes here.
_BY_STATUS: dict[int, type[Exception]] = {
    1: RecordIndexError,
    2: StoreBusyError,
    3: StoreClosedError,
    4: NotAStoreError,
    5: StoreMismatchError,
    6: CorruptStoreError,
    7: CorruptRecordError,
    8: UnsupportedStoreError,
    9: StoreFullError,
    10: StoreReadOnlyError,
    11: ValueError,
    12: StoreIOError,
    13: MemoryError,
    15: ZrecordError,
}


def from_status(
    status: int,
    message: str,
    *,
    path: str | None = None,
    index: int | None = None,
    offset: int | None = None,
    errno: int | None = None,
) -> Exception:
    """Make the exception that stands for a status of the engine."""
    cls = _BY_STATUS.get(status, ZrecordError)
    if issubclass(cls, _SystemError):
        return cls(message, path=path, index=index, offset=offset, errno=errno)
    if issubclass(cls, ZrecordError):
        return cls(message, path=path, index=index, offset=offset)
    return cls(message)
