"""Readahead: while batches come from the disk, the ones after them are asked for too.

Which records a step has follows from its number, so the disk can be told of
tickets that nobody works on yet. What is drawn for that is kept for when the
ticket's turn comes. While the system reads nothing from disk for this process,
the data are in memory, and nothing is asked: that is looked at now and then.
"""

from __future__ import annotations

import time

from loaderx._order import Order
from loaderx._stats import bytes_from_disk
from loaderx._steps import IndexArray
from loaderx._streams import Reader

# How many tickets lie between the one at work and the one that is asked for.
TICKETS = 2
# How long what was found out about the disk counts.
LOOK_SECONDS = 0.05
# Drawn tickets that are kept: more than there are under way.
_MOST = 64

Draw = tuple[IndexArray, "list[int]"]


class Ahead:
    """The draws of an order, and what is asked for before its time.

    Any thread may use it: two may at worst look at the disk, or draw, twice.
    """

    def __init__(self, order: Order, reader: Reader) -> None:
        self._order = order
        self._reader = reader
        self._kept: dict[tuple[int, int], Draw] = {}
        self._from_disk = bytes_from_disk()
        self._reading = False
        self._look_at = 0.0

    def draw(self, step: int, steps: int) -> Draw:
        """The indices of a ticket, as Order.draw."""
        return self._kept.pop((step, steps), None) or self._order.draw(step, steps)

    def ask(self, step: int, steps: int) -> None:
        """Ask for the records of a ticket to come. What is wrong with it shows in its turn."""
        if steps < 1 or not self._order.own or not self._is_reading():
            return
        if len(self._kept) >= _MOST:
            self._kept.clear()  # tickets of another size, or from before a seek
        try:
            index, counts = self._order.draw(step, steps)
            self._kept[step, steps] = index, counts
            self._reader.ask(self._reader.locate(index))
        except Exception:
            return  # a store that was closed, say: reading will tell

    def _is_reading(self) -> bool:
        """Whether the system has lately read from disk for this process."""
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + LOOK_SECONDS
            found = bytes_from_disk()
            self._reading = found is not None and found != self._from_disk
            self._from_disk = found
        return self._reading
