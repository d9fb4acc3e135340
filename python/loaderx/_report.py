"""What a verification found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
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

    index: int
    path: str
    offset: int | None
    reason: str

    def __index__(self) -> int:
        return self.index


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
