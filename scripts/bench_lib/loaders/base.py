"""What the benchmark asks of a loader, and the transform that all of them get."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench_lib.data import Array, DataSet

WORKERS = 4


def augment(batch: dict[str, Any]) -> dict[str, Any]:
    """Mirror every record with an odd label, one at a time: work that Python bounds."""
    for image, label in zip(batch["image"], batch["label"].tolist()):  # noqa: B905
        if label & 1:
            image[...] = image[..., ::-1].copy()
    return batch


class Contender:
    """A loader over images and labels.

    Args:
        folder: for its files.
        data: what the images are, and how many make a batch.
        codec: of its stores, where it has stores.
        augmented: whether augment() is applied to each batch.
    """

    # What is imported before the clock of the first batch starts.
    modules: tuple[str, ...] = ()

    def __init__(self, folder: Path, data: DataSet, codec: str, augmented: bool) -> None:
        self.folder, self.data, self.codec, self.augmented = folder, data, codec, augmented

    def write(self, images: Array, labels: Array) -> None:
        """Write what the loader reads: .npy files, unless it has a format of its own."""
        np.save(self.folder / "image.npy", images)
        np.save(self.folder / "label.npy", labels)

    def start(self) -> Iterator[Any]:
        """Open the files and begin; the iterator does not end."""
        raise NotImplementedError

    def arrays(self, batch: Any) -> tuple[Array, Array]:
        """The images and labels of a batch."""
        return batch["image"], batch["label"]

    def close(self) -> None:
        """Stop the loader and its workers."""

    def mapped(self) -> tuple[Array, Array]:
        """The .npy files, mapped."""
        images = np.load(self.folder / "image.npy", mmap_mode="r")
        return images, np.load(self.folder / "label.npy")
