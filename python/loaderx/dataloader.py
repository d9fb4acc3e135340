"""The loader: batches of aligned streams, in step order, made ahead by threads.

::

    loader = DataLoader({"image": images, "label": labels}, batch_size=64)
    for batch in loader:                    # endless
        train(batch["image"], batch["label"])
"""

from __future__ import annotations

import atexit
import threading
import weakref
from typing import Any, Callable

from loaderx import _native
from loaderx._order import order_of
from loaderx._ring import Failed, Ring, Taken
from loaderx._ticket import Job
from loaderx.errors import LoaderClosedError
from loaderx.zrecord import DenseStore, RaggedStore
from loaderx.zsampler import Mode, Sampler, as_int

__all__ = ["DataLoader"]

# How long close() waits for workers that are in the middle of a batch.
_JOIN_SECONDS = 0.5


class DataLoader:
    """An endless iterator of batches ``{name: values}``.

    Every stream is read at the same indices: a dense store gives one array
    ``(batch, *item_shape)``, a ragged store a list of arrays. Batches come in
    step order, whatever the number of workers, and the batch of a step depends
    on the seed and the step alone. Arrays are the consumer's, to keep and to
    write to.

    Workers are threads. They run ahead of the consumer by about prefetch_size
    batches, or by a few MiB of small ones, and end while there is nothing to
    do. The loader never closes its stores. close() it, or just let go of it.

    Args:
        streams: stores of equal length by name; at least one, not empty.
        num_workers: threads at most; without a transform no more than there
            are processors. 0 makes each batch when it is asked for.
        batch_size: records in a batch, of all ranks together.
        prefetch_size: batches made ahead, at least 1.
        mode: the order, a Sampler.Mode or its number: SEQUENTIAL 0, IID 1,
            CYCLIC 2.
        seed: of the order, 0 to 2**64 - 1.
        transform: called with each batch on a worker; what it returns is what
            the consumer gets.
        sampler: a Sampler, or an object with ``indices_at(step)`` or ``next()``
            that gives 1-D integer arrays. It replaces batch_size, mode, seed,
            rank and world_size; a Sampler is taken up at its step.
        rank, world_size: which part of each batch this loader gives.

    Raises:
        TypeError, ValueError: an argument outside what is described above; for
            streams of unequal length each is named.
        StoreClosedError: a stream is closed.
    """

    def __init__(
        self,
        streams: dict[str, DenseStore | RaggedStore],
        num_workers: int = 4,
        batch_size: int = 256,
        prefetch_size: int = 4,
        mode: int = Mode.CYCLIC,
        seed: int = 42,
        transform: Callable[[dict[str, Any]], Any] | None = None,
        *,
        sampler: Any = None,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        self._num_workers = as_int("num_workers", num_workers, 0, 1 << 16)
        self._prefetch_size = as_int("prefetch_size", prefetch_size, 1, 1 << 30)
        if transform is not None and not callable(transform):
            raise TypeError(
                f"transform: expected a callable or None, got {type(transform).__name__}"
            )
        self._streams = _as_streams(streams)
        length = _common_length(self._streams)
        step = 0
        if sampler is None:
            sampler = Sampler(length, batch_size, mode, seed, rank=rank, world_size=world_size)
        elif isinstance(sampler, Sampler):
            if sampler.length != length:
                raise ValueError(
                    f"sampler: expected one for the streams' length {length}, "
                    f"got length {sampler.length}"
                )
            step = sampler.step
        self._sampler = sampler
        self._transform = transform
        workers = self._num_workers
        if transform is None:
            workers = min(workers, int(_native.lib.lx_parallelism()))
        # Workers are parallel enough; only one alone lets the engine use other processors.
        self._job = Job(self._streams, order_of(sampler), transform, 0 if workers <= 1 else 1)
        self._ring = Ring(self._job, workers, self._prefetch_size, step)
        self._turn = threading.Lock()
        _open_loaders.add(self)

    @property
    def step(self) -> int:
        """The step of the batch that next() gives."""
        return self._ring.consumed

    @property
    def closed(self) -> bool:
        """Whether the loader was closed, by close() or by an error."""
        return self._ring.closed

    def __iter__(self) -> DataLoader:
        return self

    def __next__(self) -> Any:
        """The batch of the next step.

        Raises:
            LoaderClosedError: after close().
            ForkedProcessError: in a forked child.
            Exception: what the transform, the sampler or a store raised for this
                step, with a note that says so. The loader is closed then.
        """
        self._require_open()
        with self._turn:
            found = self._make() if self._num_workers == 0 else self._wait()
        if isinstance(found, Taken):
            return found.batch
        self._ring.close()
        raise found.error

    next = __next__

    def seek(self, step: int) -> None:
        """Make next() go on with that step, at least 0.

        Raises:
            TypeError: the sampler has only next().
            LoaderClosedError: after close().
        """
        step = as_int("step", step, 0, (1 << 63) - 2)
        self._require_open()
        self._require_pure("seek")
        with self._turn:
            self._ring.seek(step)

    def batch_at(self, step: int) -> Any:
        """The batch of any step, as next() gives it; made here, and changes nothing.

        Raises:
            TypeError: the sampler has only next().
            LoaderClosedError: after close().
            Exception: as next(), but the loader stays open.
        """
        step = as_int("step", step, 0, (1 << 63) - 2)
        self._require_open()
        self._require_pure("batch_at")
        result = self._job.run(step, 1, Exception)
        if result.error is not None:
            raise result.error
        return result.batches[0]

    def close(self) -> None:
        """Stop the workers. The stores stay open; a second call does nothing.

        Batches in the making are given up. A worker inside a long transform is
        not waited for beyond half a second; it ends after that batch.
        """
        if _native.forked:
            self._ring.closed = True
            return
        self._ring.close()
        self._ring.join(_JOIN_SECONDS)
        _open_loaders.discard(self)

    def __enter__(self) -> DataLoader:
        self._require_open()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __del__(self) -> None:
        # Only this: collection may run while the ring's lock is held. Workers see it soon.
        ring = getattr(self, "_ring", None)
        if ring is not None:
            ring.closed = True

    def __reduce__(self) -> tuple[Any, ...]:
        self._require_open()
        sampler = self._sampler
        arguments = (
            self._streams,
            self._num_workers,
            self._prefetch_size,
            self._transform,
            sampler,
        )
        return _restore, (type(self), arguments, self.step)

    def __repr__(self) -> str:
        streams = ", ".join(map(repr, self._streams))
        state = "closed" if self.closed else f"step={self.step}"
        return (
            f"{type(self).__name__}({{{streams}}}, sampler={self._sampler!r}, "
            f"num_workers={self._num_workers}, prefetch_size={self._prefetch_size}, {state})"
        )

    def _wait(self) -> Taken | Failed:
        """Wait for the batch that workers make. Ctrl-C leaves the loader as it was."""
        while True:
            found = self._ring.take()
            if isinstance(found, Failed):
                return found
            if isinstance(found, Taken):
                if found.hire:
                    self._ring.hire()
                return found
            self._require_open()
            self._ring.hire()
            found.lock.acquire()

    def _make(self) -> Taken | Failed:
        """Make the batch here. Ctrl-C leaves the loader as it was."""
        step = self._ring.consumed
        result = self._job.run(step, 1, Exception)
        if result.error is not None:
            return Failed(result.error)
        self._ring.consumed = step + 1
        return Taken(result.batches[0], False)

    def _require_open(self) -> None:
        _native.require_usable()
        if self._ring.closed:
            raise LoaderClosedError(
                f"expected an open loader, got one that was closed at step {self.step}"
            )

    def _require_pure(self, method: str) -> None:
        if not self._job.order.pure:
            raise TypeError(
                f"{method}: expected a sampler with indices_at(step), "
                f"got {type(self._sampler).__name__}, which has only next()"
            )


def _as_streams(streams: Any) -> dict[str, DenseStore | RaggedStore]:
    """Check the streams. Raises TypeError and ValueError."""
    if not isinstance(streams, dict):
        raise TypeError(f"streams: expected a dict of stores by name, got {type(streams).__name__}")
    if not streams:
        raise ValueError("streams: expected at least one store, got an empty dict")
    for name, store in streams.items():
        if not isinstance(name, str):
            raise TypeError(
                f"streams: expected names that are str, got {type(name).__name__} {name!r}"
            )
        if not isinstance(store, (DenseStore, RaggedStore)):
            raise TypeError(
                f"streams: expected {name!r} to be a DenseStore or RaggedStore, "
                f"got {type(store).__name__}"
            )
    return dict(streams)


def _common_length(streams: dict[str, DenseStore | RaggedStore]) -> int:
    """The one length of all streams. Raises ValueError."""
    lengths = {name: len(store) for name, store in streams.items()}
    named = ", ".join(f"{name!r} has {length}" for name, length in lengths.items())
    if len(set(lengths.values())) != 1:
        raise ValueError(f"streams: expected stores of equal length, got: {named}")
    if 0 in lengths.values():
        raise ValueError(f"streams: expected stores that hold records, got: {named}")
    return next(iter(lengths.values()))


def _restore(
    cls: type[DataLoader], arguments: tuple[Any, ...], step: int
) -> DataLoader | _native.Forked:
    """Make an unpickled loader, at the step where it was."""
    if _native.forked:
        return _native.Forked()
    streams, num_workers, prefetch_size, transform, sampler = arguments
    loader = cls(
        streams, num_workers, prefetch_size=prefetch_size, transform=transform, sampler=sampler
    )
    if loader._job.order.pure:
        loader.seek(step)
    return loader


_open_loaders: weakref.WeakSet[DataLoader] = weakref.WeakSet()


@atexit.register
def _close_open_loaders() -> None:
    """Stop workers before the interpreter takes things apart under them."""
    for loader in list(_open_loaders):
        loader.close()
