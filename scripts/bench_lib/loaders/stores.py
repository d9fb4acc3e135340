"""The loader of this checkout and those of the published wheels, over their own stores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bench_lib.backends.base import library
from bench_lib.data import Array
from bench_lib.loaders.base import Contender, augment


class Loaderx(Contender):
    """loaderx as it is in this checkout; other arguments are its defaults."""

    modules = ("loaderx.dataloader", "loaderx.zrecord")

    def write(self, images: Array, labels: Array) -> None:
        """Write two stores."""
        from loaderx.zrecord import DenseStore

        for name, values in (("image", images), ("label", labels)):
            path = str(self.folder / name)
            with DenseStore(path, values.dtype, values.shape[1:], self.codec) as store:
                store.append(values)

    def start(self) -> Iterator[Any]:
        """Open the stores and make the loader."""
        from loaderx.dataloader import DataLoader
        from loaderx.zrecord import DenseStore

        streams = {name: DenseStore(str(self.folder / name)) for name in ("image", "label")}
        transform = augment if self.augmented else None
        self._loader = DataLoader(streams, batch_size=self.data.batch, transform=transform)
        return iter(self._loader)

    def close(self) -> None:
        """Close the loader."""
        self._loader.close()


class Reference177(Contender):
    """loaderx 1.7.7, whose interface this checkout keeps."""

    modules = ("loaderx.dataloader", "loaderx.zrecord")

    def write(self, images: Array, labels: Array) -> None:
        """Write two stores."""
        stores = library("loaderx.zrecord")
        for name, values in (("image", images), ("label", labels)):
            path = str(self.folder / name)
            with stores.DenseStore(path, values.dtype, values.shape[1:], self.codec) as store:
                store.append(values)

    def start(self) -> Iterator[Any]:
        """Open the stores and make the loader."""
        stores = library("loaderx.zrecord")
        streams = {n: stores.DenseStore(str(self.folder / n)) for n in ("image", "label")}
        extra = {"transform": augment} if self.augmented else {}
        maker = library("loaderx.dataloader").DataLoader
        self._loader: Any = maker(streams, batch_size=self.data.batch, **extra)
        made: Iterator[Any] = iter(self._loader)
        return made

    def close(self) -> None:
        """Close the loader."""
        self._loader.close()


class Reference2819(Contender):
    """loaderx 2.8.19; its batches are tensors, taken as arrays without a copy."""

    modules = ("loaderx", "loaderx.zrecord", "loaderx.sampler")

    def write(self, images: Array, labels: Array) -> None:
        """Write two containers."""
        stores = library("loaderx.zrecord")
        for name, values in (("image", images), ("label", labels)):
            path, codec = str(self.folder / name), self.codec
            with stores.DenseWriter(path, values.dtype, values.shape[1:], codec=codec) as writer:
                writer.append(values)

    def start(self) -> Iterator[Any]:
        """Open and bind the containers and make the loader."""
        loaderx, stores = library("loaderx"), library("loaderx.zrecord")
        allocator = loaderx.Allocator("cpu")
        # The loader does not hold what its views are of.
        self._kept: list[Any] = [allocator]
        streams = {}
        for name in ("image", "label"):
            store = stores.DenseStore(str(self.folder / name))
            self._kept.append(store)
            streams[name] = [store.bind(allocator)]
        sampler = library("loaderx.sampler").Sampler
        order = sampler(self.data.count, self.data.batch, sampler.Mode.CYCLIC, seed=42)
        extra = {"transform": self._transform} if self.augmented else {}
        self._loader: Any = loaderx.Loader(streams, order, **extra)
        made: Iterator[Any] = iter(self._loader)
        return made

    def _transform(self, shards: list[Any]) -> list[Any]:
        arrays = {name: np.from_dlpack(value) for name, value in shards[0].items()}
        if not arrays["image"].flags.writeable:
            arrays["image"] = arrays["image"].copy()
        return [augment(arrays)]

    def arrays(self, batch: Any) -> tuple[Array, Array]:
        """Arrays over the tensors, or what the transform made."""
        image, label = batch[0]["image"], batch[0]["label"]
        if self.augmented:
            return image, label
        return np.from_dlpack(image), np.from_dlpack(label)

    def close(self) -> None:
        """Close the loader."""
        self._loader.close()
