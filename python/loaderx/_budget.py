"""Batches of records of like lengths: within a padded size, or of one count."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from loaderx import _native
from loaderx._arguments import as_int
from loaderx._steps import INT64_MAX, IndexArray, StepSampler, cut
from loaderx._subset import digest

# How many lengths are asked of a store at once.
_BLOCK = 1 << 18
# A padded size that no batch reaches, for plans that count records only.
_BOUNDLESS = 1 << 62


class _LengthPlan:
    """A plan for the lengths of a store's records. A DataLoader makes its order of it."""

    def __init__(self, store: Any) -> None:
        if not callable(getattr(store, "lengths", None)):
            store = as_lengths(store)
        self._store = store

    @property
    def store(self) -> Any:
        """The ragged store, or the lengths: a read-only array."""
        return self._store

    def lengths(self) -> np.ndarray[Any, Any]:
        """The lengths now: uint32 where that is enough, otherwise int64; (n,)."""
        if isinstance(self._store, np.ndarray):
            return self._store
        blocks = [
            _compact(self._store.lengths(range(start, min(start + _BLOCK, len(self._store)))))
            for start in range(0, len(self._store), _BLOCK)
        ]
        return np.concatenate([np.empty(0, np.uint32), *blocks])  # int64 if any block is

    # What the multiple is called among the arguments.
    MULTIPLE: ClassVar[str] = "multiple"

    def limits(self) -> tuple[int, int, int]:
        """The padded size, the records (0: no limit) and the multiple of a batch."""
        raise NotImplementedError

    def facts(self) -> dict[str, Any]:
        """What the order depends on, beside the lengths: data that survives JSON."""
        raise NotImplementedError

    def sampler(
        self, seed: int = 42, *, rank: int | Literal["auto"] = 0, world_size: int = 1
    ) -> BudgetSampler:
        """The order itself: what a DataLoader makes of a plan."""
        return BudgetSampler(self, seed, rank=rank, world_size=world_size)


class TokenBudget(_LengthPlan):
    """Batches of as many records as fit a padded size: the ``sampler`` of a DataLoader.

    ::

        loader = DataLoader({"text": tokens}, sampler=TokenBudget(8192, tokens), ragged="padded")

    The count of a batch, times its longest record, is at most max_tokens, so the
    count varies. Batches are formed of records of like lengths, in another
    composition and order in every cycle; in a cycle every record comes once,
    but for less than ``multiple`` that are left out, others in each. The plan
    depends on the seed and the lengths alone, and takes at most 16 bytes a record.

    Args:
        max_tokens: what a batch of all ranks may have when padded, in elements.
        store: the RaggedStore that has the lengths (``store.lengths()``), or the
            lengths themselves, a 1-D array of integers. A length of 0 counts as 1.
        max_records: records in a batch at most; None: as many as fit.
        multiple: the count of every batch is a multiple of it. For several ranks,
            one that each number of ranks to be used divides.

    Raises:
        TypeError, ValueError: an argument outside what is described above; or, when
            its order is made, a record that is longer than the budget allows.
    """

    def __init__(
        self, max_tokens: int, store: Any, *, max_records: int | None = None, multiple: int = 1
    ) -> None:
        super().__init__(store)
        self._max_tokens = as_int("max_tokens", max_tokens, 1, INT64_MAX)
        self._multiple = as_int("multiple", multiple, 1, INT64_MAX)
        self._max_records = max_records
        if max_records is not None:
            self._max_records = as_int("max_records", max_records, self._multiple, INT64_MAX)

    def limits(self) -> tuple[int, int, int]:
        """The padded size, the records (0: no limit) and the multiple of a batch."""
        return self._max_tokens, self._max_records or 0, self._multiple

    def facts(self) -> dict[str, Any]:
        """What the order depends on, beside the lengths: data that survives JSON."""
        return {
            "sampler": "TokenBudget",
            "max_tokens": self._max_tokens,
            "max_records": self._max_records,
            "multiple": self._multiple,
        }

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self._max_tokens}, {_described(self._store)}, "
            f"max_records={self._max_records}, multiple={self._multiple})"
        )


class LengthBuckets(_LengthPlan):
    """Batches of one size of records of like lengths: the ``sampler`` of a DataLoader.

    As TokenBudget, but what is fixed is the count, so that padding is little
    and the size in tokens varies. What is left of a cycle is dropped, other
    records in each.

    Args:
        batch_size: records in a batch of all ranks, at most those of the store.
        store: as for TokenBudget.
    """

    MULTIPLE = "batch_size"

    def __init__(self, batch_size: int, store: Any) -> None:
        super().__init__(store)
        self._batch_size = as_int("batch_size", batch_size, 1, 1 << 31)

    def limits(self) -> tuple[int, int, int]:
        """The padded size, the records (0: no limit) and the multiple of a batch."""
        return _BOUNDLESS, self._batch_size, self._batch_size

    def facts(self) -> dict[str, Any]:
        """What the order depends on, beside the lengths: data that survives JSON."""
        return {"sampler": "LengthBuckets", "batch_size": self._batch_size}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._batch_size}, {_described(self._store)})"


class BudgetSampler(StepSampler):
    """Endless batches of a TokenBudget or of LengthBuckets: int64 arrays of varying length.

    Args:
        plan: which of them.
        seed, rank, world_size: as for Sampler.
        length: the order is of so many records, the first ones. None: of all.

    Raises:
        TypeError, ValueError: an argument out of range, or a record that is longer
            than the budget allows; the message names it.
    """

    _FREE = "lx_budget_free"

    def __init__(
        self,
        plan: TokenBudget | LengthBuckets | Any,
        seed: int = 42,
        *,
        rank: int | Literal["auto"] = 0,
        world_size: int = 1,
        length: int | None = None,
    ) -> None:
        super().__init__(seed, rank, world_size)
        if not isinstance(plan, _LengthPlan):
            raise TypeError(
                f"plan: expected a TokenBudget or LengthBuckets, got {type(plan).__name__}"
            )
        self._plan = plan
        lengths = plan.lengths()
        if length is not None:
            lengths = _compact(lengths[: as_int("length", length, 1, len(lengths))])
        self._length = len(lengths)
        self._digest = digest(lengths)
        self._multiple = plan.limits()[2]
        self._require_shares(plan.MULTIPLE, self._multiple)
        if self._multiple > self._length:
            raise ValueError(
                f"{plan.MULTIPLE}: expected at most the number of records, {self._length}, "
                f"got {self._multiple}"
            )
        self._handle = self._new(lengths)
        cell, error = _native.ffi.new("int64_t *"), _native.scratch.error
        _native.check(_native.lib.lx_budget_batches(self._handle, cell, error), error)
        self._batches = int(cell[0])

    def _new(self, lengths: np.ndarray[Any, Any]) -> int:
        return self._made(
            _native.lib.lx_budget_new,
            _native.ffi.from_buffer(lengths),
            len(lengths),
            lengths.itemsize,
            *self._plan.limits(),
        )

    @property
    def plan(self) -> Any:
        """The TokenBudget or LengthBuckets."""
        return self._plan

    @property
    def length(self) -> int:
        """The number of records."""
        return self._length

    @property
    def cycle(self) -> int:
        """The number of batches in a cycle: step s is in cycle ``s // cycle``."""
        return self._batches

    @property
    def left_out(self) -> int:
        """How many records each cycle leaves out, because they fill no multiple."""
        return self._length % self._multiple

    def batches(self, step: int, steps: int) -> list[IndexArray]:
        """What indices_at gives for steps ``step`` to ``step + steps - 1``."""
        return cut(*self.draw(step, steps))

    def draw(self, step: int, steps: int) -> tuple[IndexArray, list[int]]:
        """The indices of those steps, one batch after another, and how many each has."""
        counts = np.empty(steps, np.int64)
        buffer, error = _native.ffi.from_buffer, _native.scratch.error
        status = _native.lib.lx_budget_counts(self._handle, step, steps, buffer(counts), error)
        _native.check(status, error)
        index = np.empty(int(counts.sum()), np.int64)
        status = _native.lib.lx_budget_fill(
            self._handle, step, steps, buffer(index), len(index), error
        )
        _native.check(status, error)
        return index, counts.tolist()

    def facts(self) -> dict[str, Any]:
        """What the order depends on beside seed and step: data that survives JSON."""
        return {**self._plan.facts(), "lengths": self._digest}

    def _arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (self._plan,), {"length": self._length}  # its store may have grown since

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._plan!r}, {self._tail()}"


def as_lengths(lengths: Any) -> np.ndarray[Any, Any]:
    """Take an argument as lengths, in an array that nobody else writes to.

    Raises:
        TypeError: neither a store that knows them nor an array of integers.
        ValueError: not 1-D, empty, or numbers that are no lengths.
    """
    if not isinstance(lengths, np.ndarray) or lengths.dtype.kind not in "iu":
        got = lengths.dtype if isinstance(lengths, np.ndarray) else type(lengths).__name__
        raise TypeError(
            f"store: expected a RaggedStore, or an array of lengths as integers, got {got}"
        )
    if lengths.ndim != 1 or not len(lengths):
        raise ValueError(
            f"store: expected a 1-D array of at least one length, got shape {lengths.shape}"
        )
    low, high = int(lengths.min()), int(lengths.max())
    if low < 0 or high > INT64_MAX:
        raise ValueError(f"store: expected lengths of 0 to 2**63 - 1, got {low} to {high}")
    compact = np.array(_compact(lengths))
    compact.flags.writeable = False
    return compact


def _compact(lengths: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The lengths in 4 bytes each where they fit."""
    fits = not len(lengths) or int(lengths.max()) < 1 << 32
    return np.ascontiguousarray(lengths, np.uint32 if fits else np.int64)


def _described(store: Any) -> str:
    return f"<{len(store)} lengths>" if isinstance(store, np.ndarray) else repr(store)
