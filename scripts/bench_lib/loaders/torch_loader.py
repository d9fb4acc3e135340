"""PyTorch's DataLoader, with four worker processes that read a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bench_lib.backends.base import library
from bench_lib.data import Array
from bench_lib.loaders.base import WORKERS, Contender, augment

DRAWS = 1 << 40


class Batches:
    """A dataset whose index is a list of places, and whose item is a batch."""

    def __init__(self, images: Array, labels: Array, augmented: bool) -> None:
        self._images, self._labels, self._augmented = images, labels, augmented

    def __len__(self) -> int:
        return len(self._labels)

    def __getitem__(self, place: list[int]) -> dict[str, Any]:
        batch = {"image": np.asarray(self._images[place]), "label": self._labels[place]}
        return augment(batch) if self._augmented else batch


class Torch(Contender):
    """A map-style dataset, a batch sampler that never ends, and workers."""

    modules = ("torch.utils.data",)

    def start(self) -> Iterator[Any]:
        """Make the loader and its workers."""
        utils = library("torch.utils.data")
        found = Batches(*self.mapped(), self.augmented)
        order = utils.RandomSampler(found, num_samples=DRAWS)
        batches = utils.BatchSampler(order, self.data.batch, drop_last=True)
        loader = utils.DataLoader(found, batch_size=None, sampler=batches, num_workers=WORKERS)
        self._iterator: Any = iter(loader)
        made: Iterator[Any] = self._iterator
        return made

    def arrays(self, batch: Any) -> tuple[Array, Array]:
        """Arrays over the tensors."""
        return batch["image"].numpy(), batch["label"].numpy()

    def close(self) -> None:
        """End the workers, which the iterator does when it goes."""
        del self._iterator
