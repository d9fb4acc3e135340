"""Memory of the caller's own, such as pinned memory, that a loader reads into.

A loader leases a slot for each batch before it reads it, and keeps the lease
with the batch. A lease that nobody holds any more makes its slot free by
itself: so whatever becomes of a batch (a seek, an error, a loader that was let
go of), its slot comes back.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import numpy as np

from loaderx.zrecord import DenseStore, RaggedStore

Slot = Mapping[str, "np.ndarray[Any, Any]"]

# How long a wait for a free slot goes on before it is looked again.
_TURN_SECONDS = 0.02


class User(Protocol):
    """What leases slots: the ring of a loader or of a pass."""

    closed: bool

    def give_up(self) -> None:
        """Drop what was made ahead, so that its slots come back."""
        ...


class Lease:
    """The right to write to a slot, for as long as somebody holds it."""

    __slots__ = ("slot", "__weakref__")

    def __init__(self, slot: Slot) -> None:
        self.slot = slot


def _nobody() -> None:
    """The holder of a slot that was never leased."""


class BufferRing:
    """Arrays for a DataLoader to read dense streams into, instead of memory of its own.

    ::

        shape = (256, 224, 224, 3)
        tensors = [torch.empty(shape, dtype=torch.uint8, pin_memory=True) for _ in range(4)]
        ring = BufferRing({"image": tensor.numpy()} for tensor in tensors)
        for batch in DataLoader(streams, 4, 256, buffers=ring):
            image = torch.from_numpy(batch["image"]).to(device, non_blocking=True)
            ...                                # when the copy is done:
            ring.release()

    The loader makes as many batches ahead as there are free slots. A batch that
    was given is the consumer's until it is released; batches are released in the
    order in which they were given. batch_at() does not use the ring.

    A pass uses the ring of its loader, and several loaders may share one. Who waits
    for a slot while others hold batches that they have made ahead makes them give
    these up, and they make them again in their turn.

    Args:
        slots: for each batch, arrays by name of the stream: C-contiguous, writable,
            of the stream's dtype, of shape ``(n, *item_shape)`` with n at least the
            records of a batch of this rank. A smaller batch is a view of the first
            ones. Streams without an array are read into memory of the loader's.
        timeout: seconds that next() waits for a release when every slot is held.

    Raises:
        TypeError: a slot is not a dict of NumPy arrays, or timeout is no number.
        ValueError: no slot, an array that cannot be written to as it lies, or a
            timeout that is not above 0, or arrays that share memory.
    """

    def __init__(self, slots: Iterable[Slot], *, timeout: float = 10.0) -> None:
        self._slots = [dict(_checked(slot, place)) for place, slot in enumerate(slots)]
        if not self._slots:
            raise ValueError("slots: expected at least one, got none")
        _require_apart(self._slots)
        if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
            raise TypeError(f"timeout: expected a number of seconds, got {timeout!r}")
        if not timeout > 0:
            raise ValueError(f"timeout: expected seconds above 0, got {timeout!r}")
        self._timeout = timeout
        # Who holds each slot: it is free when nobody does. Nothing else says so, so
        # that no interrupt can part the one from the other.
        self._holders: list[Callable[[], Lease | None]] = [_nobody] * len(self._slots)
        self._given: dict[Lease, None] = {}
        self._released = threading.Condition()
        self._users: weakref.WeakSet[User] = weakref.WeakSet()
        self._awaiting: dict[User, None] = {}

    def __len__(self) -> int:
        """The number of slots."""
        return len(self._slots)

    @property
    def free(self) -> int:
        """How many slots could be read into now."""
        return sum(holder() is None for holder in self._holders)

    @property
    def held(self) -> int:
        """How many batches were given and not released."""
        return len(self._given)

    def release(self) -> None:
        """Give back the arrays of the oldest batch that was given and not released.

        Raises:
            ValueError: there is none.
        """
        with self._released:
            # Again if a signal handler has released the same one in between.
            while (lease := next(iter(self._given), None)) is not None:
                if self._given.pop(lease, False) is None:
                    break
            if lease is None:
                raise ValueError(
                    "release: expected a batch that was given and not released, got none"
                )
            del lease
            self._released.notify_all()

    def require_fits(
        self, streams: Mapping[str, DenseStore | RaggedStore], records: int | None
    ) -> None:
        """Raise ValueError for an array that does not fit its stream.

        Args:
            streams: what is read.
            records: in a batch of this rank; None: it is not known.
        """
        for place, slot in enumerate(self._slots):
            for name, array in slot.items():
                where = f"buffers: expected {name!r} of slot {place} to be"
                store = streams.get(name)
                if not isinstance(store, DenseStore):
                    dense = [n for n, s in streams.items() if isinstance(s, DenseStore)]
                    raise ValueError(f"{where} a dense stream, one of {dense}")
                if array.dtype != store.dtype:
                    raise ValueError(f"{where} of dtype {store.dtype}, got {array.dtype}")
                if array.ndim < 1 or array.shape[1:] != store.item_shape:
                    expected = ("n", *store.item_shape)
                    raise ValueError(f"{where} of shape {expected}, got {array.shape}")
                if records is not None and len(array) < records:
                    raise ValueError(f"{where} for {records} records, got {len(array)}")

    # ---- the loader's side ----

    def lease(self) -> Lease | None:
        """Lease a free slot; None: there is none."""
        with self._released:
            for place, holder in enumerate(self._holders):
                if holder() is None:
                    lease = Lease(self._slots[place])
                    self._holders[place] = weakref.ref(lease)
                    return lease
        return None

    def give(self, lease: Lease) -> None:
        """Keep a lease until release(). Of a second time nothing comes."""
        self._given[lease] = None

    def take_back(self, lease: Lease) -> None:
        """Undo give, for a batch that did not reach its consumer."""
        self._given.pop(lease, None)

    def join(self, user: User) -> None:
        """Note who leases slots, for as long as it exists."""
        with self._released:
            self._users.add(user)

    def is_awaited(self, user: User) -> bool:
        """Whether somebody else waits for a slot."""
        return bool(self._awaiting) and list(self._awaiting) != [user]

    def wait(self, user: User, over: Callable[[], bool]) -> None:
        """Wait until ``over`` says so, in short turns, and have others give up their slots.

        They make nothing ahead until fed().

        Raises:
            TimeoutError: all are held for as long as the timeout says.
        """
        deadline = time.monotonic() + self._timeout
        self._awaiting[user] = None
        while not over() and not user.closed:
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"next: expected one of {len(self)} buffers to be released within "
                    f"{self._timeout} s, got {self.held} held: call release() of the ring "
                    "for each batch"
                )
            self._ask_others(user)
            with self._released:
                if not over():
                    self._released.wait(_TURN_SECONDS)

    def _ask_others(self, user: User) -> None:
        """Have the others give up slots. Of its own, so that no name here keeps one of
        them alive, with its slots, while it is waited."""
        with self._released:
            others = [other for other in self._users if other is not user]
        for other in others:
            other.give_up()

    def fed(self, user: User) -> None:
        """Note that somebody waits no more."""
        self._awaiting.pop(user, None)

    def __reduce__(self) -> Any:
        raise TypeError(
            "buffers are memory of this process: expected a loader without them to be copied "
            "or pickled"
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} slots, free={self.free}, held={self.held})"


def as_buffers(buffers: Any) -> BufferRing | None:
    """Check the argument of that name. Raises TypeError."""
    if buffers is not None and not isinstance(buffers, BufferRing):
        raise TypeError(f"buffers: expected a BufferRing or None, got {type(buffers).__name__}")
    return buffers


def room(slot: Slot, name: str, records: int) -> np.ndarray[Any, Any] | None:
    """The place of a slot for so many records of a stream, or None. Raises ValueError."""
    array = slot.get(name)
    if array is None or len(array) == records:
        return array
    if len(array) < records:
        raise ValueError(f"buffers: expected room for {records} records, got {len(array)}")
    return array[:records]


def _require_apart(slots: list[dict[str, np.ndarray[Any, Any]]]) -> None:
    """Raise ValueError for arrays that lie in the same memory. They are C-contiguous."""
    spans = sorted(
        (array.__array_interface__["data"][0], array.nbytes, f"{name!r} of slot {place}")
        for place, slot in enumerate(slots)
        for name, array in slot.items()
        if array.nbytes
    )
    for (start, nbytes, before), (begin, _, after) in zip(spans, spans[1:]):
        if begin < start + nbytes:
            raise ValueError(f"slots: expected memory of its own for {after}, got that of {before}")


def _checked(slot: Any, place: int) -> Slot:
    if not isinstance(slot, Mapping):
        raise TypeError(
            f"slots: expected a dict of arrays for slot {place}, got {type(slot).__name__}"
        )
    for name, array in slot.items():
        if not isinstance(array, np.ndarray):
            raise TypeError(
                f"slots: expected an array for {name!r} of slot {place}, got {type(array).__name__}"
            )
        if not (array.flags.c_contiguous and array.flags.writeable):
            raise ValueError(
                f"slots: expected {name!r} of slot {place} to be C-contiguous and writable"
            )
    return slot
