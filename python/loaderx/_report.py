"""What a verification found."""

from __future__ import annotations

import sys
from dataclasses import dataclass


class BadRecord:
    """One record that cannot be trusted.

    It stands for its index wherever an index may stand: a list of them can be
    given to ``delete`` and ``delete_aligned`` as it is.

    Attributes:
        index: the record.
        path: the file that is wrong.
        offset: the byte offset in that file, or None where there is none.
        reason: what was expected and what was found.
    """

    # A store can have millions of them: no dict for each, and one text for all
    # that are bad for the same reason.
    __slots__ = ("_whole", "_why", "index", "offset", "path")

    def __init__(self, index: int, path: str, offset: int | None, reason: str) -> None:
        self.index, self.path, self.offset = index, sys.intern(path), offset
        begin = self._where()
        if reason.startswith(begin):
            self._why, self._whole = sys.intern(reason[len(begin) :]), False
        else:
            self._why, self._whole = reason, True

    @property
    def reason(self) -> str:
        return self._why if self._whole else self._where() + self._why

    def _where(self) -> str:
        """How the engine's messages begin."""
        at = "" if self.offset is None else f", offset {self.offset}"
        return f"record {self.index} ({self.path}{at}): "

    def __index__(self) -> int:
        return self.index

    def _key(self) -> tuple[object, ...]:
        return self.index, self.path, self.offset, self.reason

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, BadRecord) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        index, path, offset, reason = self._key()
        return f"BadRecord({index=}, {path=}, {offset=}, {reason=})"

    def __reduce__(self) -> tuple[object, ...]:
        return BadRecord, self._key()


@dataclass(frozen=True)
class VerifyReport:
    """What ``verify`` found. It is true if nothing is wrong.

    Attributes:
        ok: whether no record is bad.
        records: how many were looked at.
        bad: the records that are bad, in the order of their indices.
    """

    ok: bool
    records: int
    bad: list[BadRecord]

    def __bool__(self) -> bool:
        return self.ok
