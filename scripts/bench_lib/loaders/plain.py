"""Loaders over .npy files: a plain loop, Grain and SPDL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, SupportsIndex

import numpy as np

from bench_lib.backends.base import library
from bench_lib.data import Array
from bench_lib.loaders.base import WORKERS, Contender, augment


class Naive(Contender):
    """A loop that indexes the mapped files: ``image[p], label[p]``."""

    def start(self) -> Iterator[Any]:
        """Draw and index."""
        images, labels = self.mapped()
        rng = np.random.default_rng(0)
        while True:
            place = rng.integers(0, len(labels), self.data.batch)
            batch = {"image": np.asarray(images[place]), "label": labels[place]}
            yield augment(batch) if self.augmented else batch


class Source:
    """Records one at a time, as Grain reads them."""

    def __init__(self, images: Array, labels: Array) -> None:
        self._images, self._labels = images, labels

    def __len__(self) -> int:
        return len(self._labels)

    def __getitem__(self, index: SupportsIndex) -> dict[str, Any]:
        return {"image": self._images[index], "label": self._labels[index]}


# Batches that Grain makes ahead. Its default, 500, would be 32 GiB of large ones.
GRAIN_BUFFER = 16


class Grain(Contender):
    """Grain's dataset API with its default threads."""

    modules = ("grain",)

    def start(self) -> Iterator[Any]:
        """Shuffle, repeat, batch."""
        grain = library("grain")
        found = grain.MapDataset.source(Source(*self.mapped()))
        found = found.shuffle(seed=0).repeat().batch(self.data.batch)
        if self.augmented:
            found = found.map(augment)
        options = grain.ReadOptions(prefetch_buffer_size=GRAIN_BUFFER)
        made: Iterator[Any] = iter(found.to_iter_dataset(options))
        return made


class Spdl(Contender):
    """An SPDL pipeline whose stage gathers a batch, on four threads."""

    modules = ("spdl.pipeline",)

    def start(self) -> Iterator[Any]:
        """Build the pipeline and begin."""
        images, labels = self.mapped()
        rng = np.random.default_rng(0)

        def places() -> Iterator[Array]:
            while True:
                yield rng.integers(0, len(labels), self.data.batch)

        def read(place: Array) -> dict[str, Any]:
            batch = {"image": np.asarray(images[place]), "label": labels[place]}
            return augment(batch) if self.augmented else batch

        builder = library("spdl.pipeline").PipelineBuilder()
        builder = builder.add_source(places()).pipe(read, concurrency=WORKERS).add_sink(WORKERS)
        self._pipeline = builder.build(num_threads=WORKERS)
        self._pipeline.start()
        made: Iterator[Any] = self._pipeline.get_iterator()
        return made

    def close(self) -> None:
        """Stop the pipeline."""
        self._pipeline.stop()
