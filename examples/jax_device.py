"""Batches on a JAX device, with copies made ahead.

python examples/jax_device.py
"""

from __future__ import annotations

import itertools
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import jax
import numpy as np

from loaderx import DataLoader, DenseStore

Arrays = dict[str, jax.Array]


def on_device(loader: Iterable[Any], device: jax.Device, ahead: int = 2) -> Iterator[Arrays]:
    """Have so many batches on their way to the device while one is worked on.

    JAX holds on to a batch's memory for as long as it needs it, so nothing has
    to be released. On a CPU it takes the memory as it is, without a copy.
    """
    copies: deque[Arrays] = deque()
    for batch in loader:
        copies.append(jax.device_put(batch, device))
        if len(copies) > ahead:
            yield copies.popleft()
    yield from copies


def main() -> None:
    """Add up batches on the device, and here."""
    device = jax.devices()[0]
    with tempfile.TemporaryDirectory() as folder:
        with (
            DenseStore(f"{folder}/image", np.uint8, (28, 28), codec="raw") as image,
            # JAX has no int64 unless it is told to: int32 is what it would make of it.
            DenseStore(f"{folder}/label", np.int32, ()) as label,
        ):
            image.append(np.random.default_rng(0).integers(0, 255, (2000, 28, 28)).astype("u1"))
            label.append(np.arange(2000, dtype=np.int32))
            total = jax.jit(lambda batch: (batch["image"].sum(), batch["label"].sum()))
            with DataLoader({"image": image, "label": label}, batch_size=64) as loader:
                batches = on_device(loader, device)
                found = [total(batch) for batch in itertools.islice(batches, 50)]
                expected = [loader.batch_at(step) for step in range(50)]
    equal = all(
        (int(a), int(b)) == (int(batch["image"].sum(dtype=np.uint32)), int(batch["label"].sum()))
        for (a, b), batch in zip(found, expected)
    )
    print(f"50 batches on {device.platform}, equal: {equal}")


if __name__ == "__main__":
    main()
