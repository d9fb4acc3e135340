"""The loaders that are held against each other: a batch of images and labels a step.

Each draws random batches of 256 from the same records and is used as its
documentation has it, with its own defaults where there are any, and four workers
where a number has to be said. A label is the number of its record, so that any
batch can be checked whatever order it was drawn in.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path

from bench_lib.data import DataSet
from bench_lib.loaders.base import Contender


@dataclass(frozen=True)
class Entry:
    """Where a loader is found, which environment it runs in, which codecs it has."""

    module: str
    maker: str
    environment: str = "main"
    codecs: tuple[str, ...] = ("raw",)
    color: str = "other"


STORES = ("raw", "zstd")

REGISTRY: dict[str, Entry] = {
    "loaderx": Entry("stores", "Loaderx", codecs=STORES, color="ours"),
    "naive": Entry("plain", "Naive", color="yardstick"),
    "torch": Entry("torch_loader", "Torch", "torch"),
    "grain": Entry("plain", "Grain"),
    "spdl": Entry("plain", "Spdl"),
    "loaderx_1.7.7": Entry("stores", "Reference177", "1.7.7", STORES, "reference"),
    "loaderx_2.8.19": Entry("stores", "Reference2819", "2.8.19", STORES, "reference"),
}


def create(name: str, folder: Path, data: DataSet, codec: str, augmented: bool) -> Contender:
    """Make a loader's contender in this process.

    Raises:
        ModuleNotFoundError: its library is not installed.
    """
    entry = REGISTRY[name]
    module = importlib.import_module(f"bench_lib.loaders.{entry.module}")
    made: Contender = getattr(module, entry.maker)(folder, data, codec, augmented)
    return made
