"""The loader: batches of aligned streams, in step order, made ahead by threads.

::

    loader = DataLoader({"image": images, "label": labels}, batch_size=64)
    for batch in loader:                    # endless
        train(batch["image"], batch["label"])
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Callable, Literal, Union

from loaderx import _native, _state, _stats
from loaderx._arguments import as_int
from loaderx._buffers import BufferRing, as_buffers
from loaderx._epoch import Epoch, check_tail, plan_of
from loaderx._feed import Feed, OnStep
from loaderx._mode import Mode
from loaderx._order import Order, order_of
from loaderx._random import generator, takes_rng, with_rng
from loaderx._ring import ENDLESS
from loaderx._settle import Kept, facts_of, settle
from loaderx._streams import as_ragged
from loaderx._ticket import Job
from loaderx.zrecord import DenseStore, RaggedStore

__all__ = ["BufferRing", "DataLoader"]

Stores = Mapping[str, Union[DenseStore, RaggedStore]]

_LAST_STEP = (1 << 63) - 2


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
        streams: stores of equal length by name; at least one, not empty. For a
            Mix a dict of such dicts, by source: the streams of all sources have
            the same names and types, and a batch also has "source", the number
            of each record's source in the order of the mix: int32, (batch,).
        num_workers: threads at most; without a transform no more than there
            are processors. 0 makes each batch when it is asked for.
        batch_size: records in a batch, of all ranks together.
        prefetch_size: batches made ahead, at least 1.
        mode: the order, a Sampler.Mode or its number: SEQUENTIAL 0, IID 1,
            CYCLIC 2.
        seed: of the order and of a transform's rng, 0 to 2**64 - 1.
        transform: called with each batch on a worker; what it returns is what
            the consumer gets. One that must be given two arguments, or whose
            second is named rng, is called with ``(batch, rng)``: a NumPy
            Generator of its own for each seed, step and rank, so that the same
            step is always transformed in the same way.
        sampler: what the order is, if not that of batch_size and mode. A Mix
            draws from several sources, a TokenBudget or LengthBuckets forms
            batches of records of like lengths; batch_size and mode hold for a
            Mix only. A Sampler, MixSampler or BudgetSampler replaces seed, rank
            and world_size too, whatever these say, and is taken up at its step. Or
            an object with ``indices_at(step)`` or ``next()`` that gives 1-D integer
            arrays, which are copied.
        rank, world_size: which part of each batch this loader gives. rank="auto"
            takes both from torch.distributed if that is initialised, else from
            RANK and WORLD_SIZE in the environment. A sampler of one's own gives the
            part itself, and says so by attributes of the same names.
        ragged: what a ragged stream gives: "list" arrays, "packed" a RaggedBatch,
            "padded" what its pad() gives, an array filled up with zeros and the
            lengths. For other padding, call pad() in the transform.
        max_memory: bytes that batches may take, as they are read, until they are given;
            one is always made. Batches in the making count as the largest so far.
            So batches of one size stay within it, others exceed it by one batch for
            each worker at most. None: prefetch_size says it.
        buffers: a BufferRing, memory of the caller's that dense streams are read into.
        on_step: called in the consumer's thread before each batch is given, with
            ``step``, ``waited`` (seconds for this batch) and ``ready`` (batches
            made ahead) as attributes of its argument. Until it returns, that batch is
            the next one: state_dict() has its step.

    Raises:
        TypeError, ValueError: an argument outside what is described above; for
            streams of unequal length each is named.
        StoreClosedError: a stream is closed.
    """

    def __init__(
        self,
        streams: Stores | Mapping[str, Stores],
        num_workers: int = 4,
        batch_size: int = 256,
        prefetch_size: int = 4,
        mode: int = Mode.CYCLIC,
        seed: int = 42,
        transform: Callable[..., Any] | None = None,
        *,
        sampler: Any = None,
        rank: int | Literal["auto"] = 0,
        world_size: int = 1,
        ragged: str = "list",
        max_memory: int | None = None,
        buffers: BufferRing | None = None,
        on_step: OnStep | None = None,
    ) -> None:
        self._num_workers = as_int("num_workers", num_workers, 0, 1 << 16)
        self._prefetch_size = as_int("prefetch_size", prefetch_size, 1, 1 << 30)
        self._max_memory = max_memory
        if max_memory is not None:
            self._max_memory = as_int("max_memory", max_memory, 1, (1 << 63) - 1)
        for name, value in (("transform", transform), ("on_step", on_step)):
            if value is not None and not callable(value):
                raise TypeError(f"{name}: expected a callable or None, got {type(value).__name__}")
        settled = settle(
            streams, sampler, batch_size, mode, seed, rank, world_size, as_ragged(ragged)
        )
        self._streams, self._sampler = settled.streams, settled.sampler
        self._seed, self._rank, self._world_size = settled.seed, settled.rank, settled.world_size
        self._buffers = as_buffers(buffers)
        if self._buffers is not None:
            self._buffers.require_fits(settled.reader.first(), settled.local)
        self._transform = transform
        self._on_step = on_step
        self._fingerprints = _state.fingerprints(self._streams)
        if isinstance(sampler, Kept):
            self._fingerprints = _state.as_before(self._fingerprints, sampler.fingerprints)
        self._workers = self._num_workers
        if transform is None:
            self._workers = min(self._workers, int(_native.lib.lx_parallelism()))
        random = self._random() if takes_rng(transform) else None
        self._job = Job(
            settled.reader,
            order_of(self._sampler),
            with_rng(transform),
            random,
            # Workers are parallel enough; only one alone lets the engine use other processors.
            0 if self._workers <= 1 else 1,
            _stats.Stats(settled.reader.names),
            ragged,
            settled.even,
        )
        self._feed = self._feed_of(self._job.order, settled.step, ENDLESS)

    def _random(self) -> Callable[[int], Any]:
        """What makes a step's generator. It does not hold the loader, which workers must not."""
        seed, rank = self._seed, self._rank
        return lambda step: generator(seed, step, rank)

    def _feed_of(self, order: Order, step: int, end: int) -> Feed:
        """Make a feed of this loader's batches in some order."""
        return Feed(
            self._job.ordered(order),
            self._workers,
            self._prefetch_size,
            step,
            end,
            self._on_step,
            self._max_memory,
            self._buffers,
        )

    @property
    def step(self) -> int:
        """The step of the batch that next() gives."""
        return self._feed.step

    @property
    def closed(self) -> bool:
        """Whether the loader was closed, by close() or by an error."""
        return self._feed.ring.closed

    def __iter__(self) -> DataLoader:
        return self

    def __next__(self) -> Any:
        """The batch of the next step.

        Raises:
            LoaderClosedError: after close().
            ForkedProcessError: in a forked child.
            ZrecordError: called by the loader's own transform, sampler or on_step.
            Exception: what the transform, the sampler, on_step or a store raised for
                this step, with a note that says so. The loader is closed then.
        """
        return self._feed.next()

    next = __next__

    def seek(self, step: int) -> None:
        """Make next() go on with that step, at least 0.

        Raises:
            TypeError: the sampler has only next().
            LoaderClosedError: after close().
        """
        step = as_int("step", step, 0, _LAST_STEP)
        self._feed.require_open()
        self._feed.require_outside("seek")
        self._require_pure("seek")
        self._feed.seek(step)

    def batch_at(self, step: int) -> Any:
        """The batch of any step, as next() gives it; made here, and changes nothing.

        Raises:
            TypeError: the sampler has only next().
            LoaderClosedError: after close().
            Exception: as next(), but the loader stays open.
        """
        step = as_int("step", step, 0, _LAST_STEP)
        self._feed.require_open()
        self._require_pure("batch_at")
        result = self._job.run(step, 1, Exception)
        if result.error is not None:
            raise result.error
        return result.batches[0]

    def epoch(self, steps: int | None = None, tail: str = "keep", *, number: int = 0) -> Epoch:
        """A finite pass: an object with a length, which every ``iter()`` begins anew.

        It has workers of its own and leaves the step of the loader as it is, so a
        pass for evaluation may come in the middle of training. Which batches it
        gives depends on its arguments alone: for training pass by pass, count
        with ``number``.

        Args:
            steps: None for a pass over all records: in SEQUENTIAL order from the
                first to the last, with CYCLIC one cycle, with IID as many draws,
                with a TokenBudget or LengthBuckets one cycle of its plan, where
                tail has to be "drop" if records are left over. Otherwise so many
                batches of the endless order, from step ``number * steps`` on.
            tail: what becomes of the records behind the last full batch. "keep"
                gives them in a smaller batch; "drop" leaves them out; "pad" fills
                their batch up with records from the beginning of the pass, and
                ``padding`` of the result says how many. Several ranks need "drop"
                or "pad" if there are any.
            number: which pass, at least 0.

        Raises:
            ValueError: an argument out of range, or tail has to be chosen.
            TypeError: the sampler does not say how long a pass is, or has only next().
            LoaderClosedError: after close().
        """
        self._feed.require_open()
        self._require_pure("epoch")
        order: Order = self._job.order
        if steps is None:
            order, begin, batches, padding = plan_of(self._sampler, order, number, tail)
        else:
            check_tail(tail)
            batches, padding = as_int("steps", steps, 0, _LAST_STEP), 0
            number = as_int("number", number, 0, _LAST_STEP // max(1, batches) - 1)
            begin = number * batches
        return Epoch(order, begin, batches, padding, self._feed, self._feed_of)

    def state_dict(self) -> dict[str, Any]:
        """What it takes to go on with the next batch elsewhere: data that survives JSON.

        It has the step of the batch that next() gives, whatever was made ahead,
        the settings the batch depends on, and of each stream what tells it from
        another. rank and world_size are there to be read, and never compared.
        A closed loader still gives it.

        Raises:
            TypeError: the sampler has only next().
            ForkedProcessError: in a forked child.
        """
        _native.require_usable()
        self._require_pure("state_dict")
        return {
            "version": _state.VERSION,
            "step": self.step,
            "seed": self._seed,
            **facts_of(self._sampler),
            "rank": self._rank,
            "world_size": self._world_size,
            "streams": copy.deepcopy(self._fingerprints),
        }

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True) -> None:
        """Go on where the loader was that gave this state.

        The number of workers, of batches made ahead and of ranks may differ: the
        batches are the same. Nothing changes if the state is refused.

        Args:
            state_dict: from state_dict(), also through JSON.
            strict: False takes streams that are other stores, such as copies.

        Raises:
            ValueError: a field that does not fit; the message names it.
            TypeError: not a state, or the sampler has only next().
            LoaderClosedError: after close().
        """
        self._feed.require_open()
        self.seek(_state.step_of(state_dict, self.state_dict(), strict))

    def stats(self) -> dict[str, Any]:
        """Where the time went, passes included; seconds unless it says otherwise.

        - ``steps``: batches given; ``seconds``: from when the first was asked for
          until the last, or the first of its ticket.
        - ``waiting_for_data``: of these, what the consumer waited for batches;
          ``waiting_for_consumer``: the rest, in which it did something else.
        - ``sampling``, ``reading`` (by stream), ``transforming``: what making the
          batches took, of all workers together.
        - ``bytes``: read, by stream; ``queue_depth``: how many batches were ready
          when the first of a ticket was asked for, on average.
        - ``cached``: an estimate of the share of bytes that did not come from disk,
          taken from all that the process had read from disk since the loader was
          made; too high where records are compressed. None if the system does
          not tell, or nothing was read.

        Raises:
            ForkedProcessError: in a forked child.
        """
        _native.require_usable()
        self._feed.account_all()
        return self._job.stats.numbers()

    def report(self) -> str:
        """stats() as text to print. The last line says what limits the loop."""
        return _stats.table(self.stats())

    def close(self) -> None:
        """Stop the workers. The stores stay open; a second call does nothing.

        It may be called from anywhere, a signal handler or the loader's own
        transform included.

        Batches in the making are given up. A worker inside a long transform is
        not waited for beyond half a second; it ends after that batch.
        """
        self._feed.close()

    def __enter__(self) -> DataLoader:
        self._feed.require_open()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        self._feed.require_open()
        arguments: dict[str, Any] = {
            "streams": self._streams,
            "num_workers": self._num_workers,
            "prefetch_size": self._prefetch_size,
            "seed": self._seed,
            "transform": self._transform,
            "sampler": Kept(self._sampler, self._fingerprints),
            "rank": self._rank,
            "world_size": self._world_size,
            "ragged": self._job.ragged,
            "max_memory": self._max_memory,
            "buffers": self._buffers,
            "on_step": self._on_step,
        }
        return _restore, (type(self), arguments, self.step)

    def __repr__(self) -> str:
        streams = ", ".join(map(repr, self._streams))
        state = "closed" if self.closed else f"step={self.step}"
        return (
            f"{type(self).__name__}({{{streams}}}, sampler={self._sampler!r}, "
            f"num_workers={self._num_workers}, prefetch_size={self._prefetch_size}, {state})"
        )

    def _require_pure(self, method: str) -> None:
        if not self._job.order.pure:
            raise TypeError(
                f"{method}: expected a sampler with indices_at(step), "
                f"got {type(self._sampler).__name__}, which has only next()"
            )


def _restore(
    cls: type[DataLoader], arguments: dict[str, Any], step: int
) -> DataLoader | _native.Forked:
    """Make an unpickled loader, at the step where it was."""
    if _native.forked:
        return _native.Forked()
    loader = cls(**arguments)
    if loader._job.order.pure:
        loader.seek(step)
    return loader
