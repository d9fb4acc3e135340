"""Small files that appear and disappear as a whole, a power cut included."""

from __future__ import annotations

import contextlib
import os


def publish(path: str, content: bytes) -> None:
    """Write a file, replacing what is there, so that nobody ever finds half of it.

    Raises:
        OSError: it could not be written; what was there before is still there.
    """
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
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


def remove(path: str) -> None:
    """Remove a file durably; one that is not there is removed already."""
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)
    _sync_folder(os.path.dirname(path))


def _sync_folder(folder: str) -> None:
    """Make the names in a folder durable. Windows has no way to, and no need."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
