"""A session with the installed package, for Pythons that cannot run the whole suite.

    python session.py FOLDER        an empty folder for stores

It needs nothing but loaderx and what loaderx needs.
"""

from __future__ import annotations

import platform
import sys
import threading
from pathlib import Path

import numpy as np

from loaderx import DataLoader, DenseStore, RaggedStore
from loaderx.errors import RecordIndexError


def dense(folder: Path, codec: str) -> None:
    """Append, gather, delete, compact and verify, and open again."""
    path = folder / f"dense-{codec}"
    images = np.random.default_rng(1).integers(0, 9, (500, 12, 12), np.uint8)
    with DenseStore(path, images.dtype, images.shape[1:], codec=codec) as store:
        assert store.append(images) == 0 and len(store) == 500
        index = np.random.default_rng(2).integers(-500, 500, 2000)
        assert np.array_equal(store[index], images[index])
        try:
            store[500]
        except RecordIndexError as error:
            assert "500" in str(error)
        else:
            raise AssertionError("record 500 of 500 was read")
        store.delete([0, 7])
        store.compact()
        assert store.verify().ok and len(store) == 498
    with DenseStore(path, mode="r") as store:
        assert np.array_equal(store[1], images[1])


def ragged(folder: Path) -> None:
    """The same for records of any shape, with many readers."""
    tokens = [np.arange(n % 50 + 1, dtype=np.int32) for n in range(300)]
    with RaggedStore(folder / "ragged", np.int32) as store:
        store.append(tokens)
        wrong: list[int] = []

        def read(seed: int) -> None:
            for i in np.random.default_rng(seed).integers(0, 300, 200):
                if not np.array_equal(store[int(i)], tokens[i]):
                    wrong.append(int(i))

        threads = [threading.Thread(target=read, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong, wrong


def loader(folder: Path) -> None:
    """Random batches of a store, in the order of a seed."""
    store = DenseStore(folder / "dense-zstd", mode="r")
    with DataLoader({"image": store}, batch_size=32, seed=3) as first:
        batches = [next(first)["image"].copy() for _ in range(10)]
    with DataLoader({"image": store}, batch_size=32, seed=3) as second:
        assert all(np.array_equal(next(second)["image"], batch) for batch in batches)
    store.close()


def main() -> int:
    """Run all parts in the folder that the arguments name."""
    folder = Path(sys.argv[1])
    for codec in ("raw", "zstd"):
        dense(folder, codec)
    ragged(folder)
    loader(folder)
    print(f"ok Python {platform.python_version()} on {platform.machine()}, NumPy {np.__version__}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
