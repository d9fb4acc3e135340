"""Quick start: write real arrays, draw random batches, train on them.

Two kinds of data, which most machines with Python can have at once:

    handwritten digits   1,797 images of 8 x 8 that scikit-learn carries, with
                         their labels: two dense stores
    Python's own source  every .py file of the standard library, each as one
                         record of bytes: a ragged store

Run it with "make quickstart". It writes three stores, reopens them, checks
every record, draws batches in each mode of the sampler, and trains a softmax
classifier on the digits. It fails if anything differs, or if the classifier
does not come above 90 %.
"""

from __future__ import annotations

import shutil
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from loaderx.dataloader import DataLoader
from loaderx.zrecord import DenseStore, RaggedStore
from loaderx.zsampler import Sampler

BATCHES = 256


def python_sources() -> list[Path]:
    """Return the .py files of the standard library, without installed packages."""
    library = Path(sysconfig.get_path("stdlib"))
    installed = {"site-packages", "dist-packages"}
    return [
        path
        for path in sorted(library.rglob("*.py"))
        if path.is_file() and not installed.intersection(path.relative_to(library).parts)
    ]


def expect(condition: bool, what: str) -> None:
    """End the quick start if something is not as it should be."""
    if not condition:
        sys.exit(f"quickstart: expected {what}")


def write_stores(folder: Path, images: Any, labels: Any, files: list[Path]) -> None:
    """Write one store for each array, and one for the files."""
    # A dense store holds records of one shape: here one image, and one number.
    with DenseStore(folder / "images", images.dtype, images.shape[1:]) as store:
        store.append(images)
    with DenseStore(folder / "labels", labels.dtype, labels.shape[1:]) as store:
        store.append(labels)
    # A ragged store holds records of any length. It takes any iterable, so the
    # files need not fit into memory together. Some of them are empty.
    with RaggedStore(folder / "sources", np.uint8, allow_empty=True) as store:
        store.append(np.fromfile(path, np.uint8) for path in files)


def check_records(folder: Path, images: Any, labels: Any, files: list[Path]) -> None:
    """Reopen the stores and compare every record with where it came from."""
    with DenseStore(folder / "images", mode="r") as store:
        expect(store.dtype == images.dtype, f"dtype {images.dtype}, got {store.dtype}")
        expect(np.array_equal(store[:], images), "the images that were written")
    with DenseStore(folder / "labels", mode="r") as store:
        expect(np.array_equal(store[:], labels), "the labels that were written")
    with RaggedStore(folder / "sources", mode="r") as store:
        expect(len(store) == len(files), f"{len(files)} records, got {len(store)}")
        for record, path in zip(store, files):
            expect(record.tobytes() == path.read_bytes(), f"the bytes of {path}")


def draw_batches(streams: dict[str, Any], sources: dict[str, Any], batch_size: int) -> None:
    """Draw batches in each mode and compare every one with the sources.

    The order is a pure function of mode, seed and step, so a sampler of one's
    own says what the loader's next batch has to be.
    """
    length = len(next(iter(streams.values())))
    for mode in Sampler.Mode:
        expected = Sampler(length, batch_size, mode=mode, seed=7)
        with DataLoader(streams, batch_size=batch_size, mode=mode, seed=7) as loader:
            started = time.perf_counter()
            batches = [next(loader) for _ in range(BATCHES)]
            seconds = time.perf_counter() - started
        for step, batch in enumerate(batches):
            for name, values in batch.items():
                records = (sources[name][i] for i in expected.indices_at(step))
                same = len(values) == batch_size and all(map(np.array_equal, values, records))
                expect(same, f"records {name} of step {step} in mode {mode.name}")
        rate = f"{BATCHES / seconds:,.0f} batches/s"
        print(f"  {'+'.join(streams)}, {mode.name}: {BATCHES} batches of {batch_size}, {rate}")


class TrainingOrder:
    """The order of a sampler, over the records set aside for training.

    A loader takes any object with indices_at(step) for its sampler.
    """

    def __init__(self, records: Any, batch_size: int) -> None:
        self.records = records
        self.sampler = Sampler(len(records), batch_size, seed=1)

    def indices_at(self, step: int) -> Any:
        """Return the store's indices for the batch of one step."""
        return self.records[self.sampler.indices_at(step)]


def softmax(scores: Any) -> Any:
    """Return the probabilities that rows of scores stand for."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def features(images: Any) -> Any:
    """Return images as rows of numbers from 0 to 1, and a 1 for the bias."""
    rows = images.reshape(len(images), -1) / np.float32(16)
    return np.concatenate([rows, np.ones((len(rows), 1), np.float32)], axis=1)


def train(streams: dict[str, Any], records: Any, batch_size: int, steps: int) -> Any:
    """Train a softmax classifier by gradient descent and return its weights."""

    def collate(batch: dict[str, Any]) -> dict[str, Any]:
        return {"x": features(batch["image"]), "y": np.eye(10, dtype=np.float32)[batch["label"]]}

    weights = np.zeros((65, 10), np.float32)
    order = TrainingOrder(records, batch_size)
    with DataLoader(streams, batch_size=batch_size, sampler=order, transform=collate) as loader:
        started = time.perf_counter()
        for _ in range(steps):
            batch = next(loader)
            error = softmax(batch["x"] @ weights) - batch["y"]
            weights -= 0.5 * batch["x"].T @ error / batch_size
        seconds = time.perf_counter() - started
    print(f"  {steps} steps of {batch_size} images, {steps / seconds:,.0f} steps/s")
    return weights


def held_out_split(count: int) -> tuple[Any, Any]:
    """Return the records to train on and those to judge by, a fifth of all."""
    shuffled = np.random.default_rng(0).permutation(count)
    return np.sort(shuffled[count // 5 :]), np.sort(shuffled[: count // 5])


def stages(folder: Path) -> Iterator[str]:
    """Run the quick start, naming each stage as it begins."""
    digits = load_digits()
    images, labels = digits.images.astype(np.uint8), digits.target
    files = python_sources()
    empty = sum(path.stat().st_size == 0 for path in files)

    yield f"writing {len(images)} images and {len(files)} Python files ({empty} empty)"
    write_stores(folder, images, labels, files)

    yield "reopening the stores and checking every record"
    check_records(folder, images, labels, files)

    yield "drawing batches in each mode and checking them"
    with DenseStore(folder / "images") as image_store, DenseStore(folder / "labels") as label_store:
        streams = {"image": image_store, "label": label_store}
        draw_batches(streams, {"image": images, "label": labels}, batch_size=256)
        with RaggedStore(folder / "sources") as source_store:
            draw_batches({"source": source_store}, {"source": source_store[:]}, batch_size=16)

        yield "training a softmax classifier on four fifths of the digits"
        training, held_out = held_out_split(len(image_store))
        weights = train(streams, training, batch_size=128, steps=2000)
        guesses = (features(image_store[held_out]) @ weights).argmax(axis=1)
        accuracy = float((guesses == label_store[held_out]).mean())
    print(f"  accuracy on the {len(held_out)} images held out: {accuracy:.1%}")
    expect(accuracy > 0.9, "an accuracy above 90 %")


def main() -> None:
    """Run in the folder named on the command line, which is made anew."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "quickstart")
    shutil.rmtree(folder, ignore_errors=True)
    started = time.perf_counter()
    for stage in stages(folder):
        print(stage, flush=True)
    print(f"done in {time.perf_counter() - started:.1f} s; the stores are in {folder.resolve()}")


if __name__ == "__main__":
    main()
