"""Finite passes: a loader's records once, or so many of its batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Callable, NamedTuple

import numpy as np

from loaderx._arguments import as_int
from loaderx._feed import Feed
from loaderx._mode import Mode
from loaderx._order import Order, joined
from loaderx._steps import IndexArray
from loaderx.errors import LoaderClosedError
from loaderx.zsampler import BudgetSampler, Sampler

TAILS = ("keep", "drop", "pad")
_INT64_MAX = (1 << 63) - 1

Start = Callable[[Order, int, int], Feed]


class Epoch:
    """A finite pass, which every ``iter()`` begins anew. Made by DataLoader.epoch.

    Attributes:
        padding: how many places of the last batch, of all ranks together, repeat
            records of the pass.
    """

    def __init__(
        self, order: Order, begin: int, batches: int, padding: int, owner: Feed, start: Start
    ) -> None:
        self.padding = padding
        self._order = order
        self._begin = begin
        self._batches = batches
        self._owner = owner
        self._start = start

    def __len__(self) -> int:
        return self._batches

    def __iter__(self) -> Iterator[Any]:
        """Begin the pass, with workers of its own. LoaderClosedError after the loader's close."""
        self._owner.require_open()
        end = self._begin + self._batches
        return Pass(self._start(self._order, self._begin, end), self._owner)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._batches} batches, padding={self.padding})"


class Pass:
    """The iterator of one pass. It ends early when its loader is closed."""

    def __init__(self, feed: Feed, owner: Feed) -> None:
        self._feed = feed
        self._owner = owner

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._feed.ended:
            self._feed.close()
            raise StopIteration
        if self._owner.ring.closed:
            self._feed.close()
        try:
            return self._feed.next()
        except LoaderClosedError:
            if self._feed.ended:  # another thread has taken the last batch, and closed
                raise StopIteration from None
            raise


class Places:
    """The order of one pass over all records: an Order, by place in the pass.

    Args:
        sampler: whose order it is.
        number: which pass. CYCLIC and IID have other places in each.
        tail: "keep", "drop" or "pad".
    """

    pure = True
    own = True

    def __init__(self, sampler: Sampler, number: int, tail: str) -> None:
        length, batch_size = sampler.records, sampler.batch_size
        full, rest = divmod(length, batch_size)
        self.batches = full if tail == "drop" or not rest else full + 1
        self.padding = batch_size - rest if tail == "pad" and rest else 0
        self.begin = number * self.batches
        self._rank = sampler.rank
        self._local = batch_size // sampler.world_size
        self._batch_size = batch_size
        self._length = length
        self._end = self.batches * batch_size if tail == "pad" else length
        # In the endless order a cycle of CYCLIC is one pass; the draws of IID have no end.
        span = {Mode.SEQUENTIAL: 0, Mode.IID: -(-length // batch_size) * batch_size}
        self._first = number * span.get(Mode(sampler.mode), length)
        if max(self._first + 2 * self._end, self.begin + self.batches) > _INT64_MAX:
            raise ValueError(f"number: expected a pass within 2**63 records, got {number}")
        self._by_place = sampler.by_place()

    def draw(self, step: int, steps: int) -> tuple[IndexArray, list[int]]:
        """The indices of this rank, as Order says."""
        return joined([self._batch(s - self.begin) for s in range(step, step + steps)])

    def done(self, step: int) -> None:
        """Nothing is kept."""

    def _batch(self, batch: int) -> IndexArray:
        start = batch * self._batch_size + self._rank * self._local
        stop = min(start + self._local, self._end)
        index = np.empty(stop - start, np.int64)
        while start < stop:
            # Beyond the records is padding: they come again from the first one on.
            place = start % self._length
            count = min(stop - start, self._length - place)
            at = len(index) - (stop - start)
            index[at : at + count] = self._by_place.fill(self._first + place, count)[:, 0]
            start += count
        return index


class Plan(NamedTuple):
    """A pass: the order it is in, from which step on, and how many batches it has."""

    order: Order
    begin: int
    batches: int
    padding: int


def plan_of(sampler: Any, order: Order, number: Any, tail: Any) -> Plan:
    """The plan of a whole pass.

    Args:
        sampler: whose order it is.
        order: the endless order of the loader.
        number: which pass.
        tail: "keep", "drop" or "pad".

    Raises:
        TypeError: a sampler that does not say how long a pass is.
        ValueError: tail or number is not what it may be.
    """
    check_tail(tail)
    number = as_int("number", number, 0, _INT64_MAX - 1)
    if isinstance(sampler, BudgetSampler) and order.own:
        _check_left_out(sampler, tail)
        as_int("number", number, 0, _INT64_MAX // sampler.cycle - 2)
        return Plan(order, number * sampler.cycle, sampler.cycle, 0)
    if not isinstance(sampler, Sampler) or not order.own:
        raise TypeError(
            "epoch: expected steps, because a mix, or a sampler of one's own, does not say how "
            f"long a pass is, got None for {type(sampler).__name__}"
        )
    rest = sampler.records % sampler.batch_size
    if tail == "keep" and rest and sampler.world_size > 1:
        raise ValueError(
            'tail: expected "drop" or "pad", because the '
            f"{rest} records behind the last full batch of {sampler.batch_size} cannot be shared "
            f"by {sampler.world_size} ranks alike, got {tail!r}"
        )
    places = Places(sampler, number, tail)
    return Plan(places, places.begin, places.batches, places.padding)


def _check_left_out(sampler: BudgetSampler, tail: str) -> None:
    """Batches of a budget vary in size, so that there is nothing to pad or to keep."""
    if tail != "drop" and sampler.left_out:
        raise ValueError(
            f'tail: expected "drop", because {sampler.left_out} of {sampler.length} records fill '
            f"no batch of {sampler.plan!r}, got {tail!r}"
        )


def check_tail(tail: Any) -> None:
    """Raise ValueError for a tail there is not."""
    if tail not in TAILS:
        raise ValueError(f"tail: expected one of {', '.join(map(repr, TAILS))}, got {tail!r}")
