"""Batches on a torch device, without and with pinned memory.

    python examples/torch_device.py [DEVICE]

DEVICE is cpu, cuda, cuda:1 ...; by default cuda where there is one.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch

from loaderx import BufferRing, DataLoader, DenseStore

Tensors = dict[str, torch.Tensor]


def on_device(loader: Iterable[Any], device: torch.device) -> Iterator[Tensors]:
    """Move each batch when it is asked for: simple, and enough where batches are small."""
    for batch in loader:
        yield {name: torch.from_numpy(values).to(device) for name, values in batch.items()}


def pinned_ring(streams: dict[str, DenseStore], batch_size: int, slots: int) -> BufferRing:
    """Memory that a device copies from by itself, for the loader to read into."""

    def empty(store: DenseStore) -> Any:
        dtype = torch.from_numpy(np.empty(0, store.dtype)).dtype
        shape = (batch_size, *store.item_shape)
        # Memory is pinned for an accelerator only.
        return torch.empty(shape, dtype=dtype, pin_memory=torch.cuda.is_available()).numpy()

    return BufferRing({name: empty(store) for name, store in streams.items()} for _ in range(slots))


def on_device_pinned(
    loader: Iterable[Any], ring: BufferRing, device: torch.device
) -> Iterator[Tensors]:
    """Let a batch be copied while the one before is worked on, then release its memory."""
    copies: deque[tuple[Tensors, Any]] = deque()
    for batch in loader:
        # copy=True: on a CPU, to() would give the ring's own memory.
        moved = {
            name: torch.from_numpy(values).to(device, non_blocking=True, copy=True)
            for name, values in batch.items()
        }
        done = None
        if device.type == "cuda":
            done = torch.cuda.Event()
            done.record()
        copies.append((moved, done))
        if len(copies) > 1:
            yield _finished(copies, ring)
    while copies:
        yield _finished(copies, ring)


def _finished(copies: deque[tuple[Tensors, Any]], ring: BufferRing) -> Tensors:
    """Wait for the oldest copy, and give its memory back to the loader."""
    moved, done = copies.popleft()
    if done is not None:
        done.synchronize()
    ring.release()
    return moved


def main() -> None:
    """Read the same batches in both ways."""
    device = torch.device(
        sys.argv[1] if len(sys.argv) > 1 else "cuda" if torch.cuda.is_available() else "cpu"
    )
    with tempfile.TemporaryDirectory() as folder:
        with (
            DenseStore(f"{folder}/image", np.uint8, (28, 28), codec="raw") as image,
            DenseStore(f"{folder}/label", np.int64, ()) as label,
        ):
            image.append(np.random.default_rng(0).integers(0, 255, (2000, 28, 28)).astype("u1"))
            label.append(np.arange(2000))
            streams = {"image": image, "label": label}
            ring = pinned_ring(streams, batch_size=64, slots=4)
            with DataLoader(streams, batch_size=64) as plain:
                first = list(itertools.islice(on_device(plain, device), 50))
            with DataLoader(streams, batch_size=64, buffers=ring) as pinned:
                batches = on_device_pinned(pinned, ring, device)
                second = list(itertools.islice(batches, 50))
    equal = all(torch.equal(a[name], b[name]) for a, b in zip(first, second) for name in a)
    kept = {str(tensor.device.type) for batch in second for tensor in batch.values()}
    print(f"{len(second)} batches on {', '.join(kept)}, equal: {equal}")


if __name__ == "__main__":
    main()
