"""Small files that appear and disappear as a whole, a power cut included, and folders."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator


def publish(path: str, content: bytes) -> None:
    """Write a file, replacing what is there, so that nobody ever finds half of it.

    Raises:
        OSError: it could not be written; what was there before is still there.
    """
    temporary = _temporary(path)
    try:
        with _naming(path):
            with open(temporary, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(temporary)
        raise
    _sync_folder(os.path.dirname(path))


def require_writable(path: str) -> None:
    """Find out whether publish could write a file, before the work of making its content.

    Raises:
        OSError: as publish would.
    """
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    with _naming(path):
        open(_temporary(path), "wb").close()
        os.remove(_temporary(path))


@contextlib.contextmanager
def folders_unmade_on_error(path: str) -> Iterator[None]:
    """Remove what work that failed has made of the folder path and those above, if empty."""
    missing = []
    while not os.path.lexists(path):
        missing.append(path)
        path = os.path.dirname(path)
    try:
        yield
    except BaseException:
        for folder in missing:
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        raise


def remove(path: str) -> None:
    """Remove a file durably; one that is not there is removed already."""
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)
    _sync_folder(os.path.dirname(path))


def _temporary(path: str) -> str:
    return f"{path}.{os.getpid()}.tmp"


@contextlib.contextmanager
def _naming(path: str) -> Iterator[None]:
    """Let errors name the file that was asked for, and not the temporary one."""
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = path, None
        raise


def _sync_folder(folder: str) -> None:
    """Make the names in a folder durable. Windows has no way to, and no need."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
