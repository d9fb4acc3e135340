"""Writes the golden stores of format version 5, with the loaderx that is installed.

Run once for a version of the format, and never again for it: what is in
``golden/version5`` has to be read for ever. The stores of the folder that it
writes to must not be there yet.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from loaderx.utils import train_dict
from loaderx.zrecord import DenseStore, RaggedStore

TARGET = Path(__file__).parent / "golden" / "version5"
COUNT = 12
# Where the redo area of journal.zr begins: what follows it is zeros, which are cut
# off, as a copy of a store may.
REDO_START = 8192
REDO_ALIGN = 64


def record(kind: str, i: int) -> Any:
    """Record i, of which every byte is known."""
    shape = (4, 3) if kind == "dense" else [(i % 5 + 1, 4), (), (i + 1,)][i % 3]
    first = np.arange(int(np.prod(shape)), dtype="<i4").reshape(shape)
    return np.asarray(first % 7 + i * 100, dtype="<i4")


def made(kind: str, codec: str, path: Path) -> Any:
    """An open store of COUNT records, all of them durable."""
    trained = None
    if codec == "zstd_dict":
        trained = train_dict([record(kind, i) for i in range(400)], "fast")
    if kind == "dense":
        store: Any = DenseStore(path, np.dtype("<i4"), (4, 3), codec, trained)
    else:
        store = RaggedStore(path, np.dtype("<i4"), codec, trained)
    store.append([record(kind, i) for i in range(COUNT)])
    store.sync()
    return store


def stores(work: Path) -> Iterator[tuple[str, str, str, Path, list[Any]]]:
    """Name, kind, codec, folder and records of each."""
    for kind in ("dense", "ragged"):
        for codec in ("raw", "zstd", "zstd_dict"):
            path = work / f"{kind}_{codec}"
            made(kind, codec, path).close()
            yield path.name, kind, codec, path, [record(kind, i) for i in range(COUNT)]
            path = work / f"{kind}_{codec}_after_delete"
            with made(kind, codec, path) as store:
                store.delete([1, 4, COUNT - 1])
                wanted = list(store)
            yield path.name, kind, codec, path, wanted
        # The writer is killed: its records are committed and not synced.
        path, copy = work / f"{kind}_open", work / f"{kind}_killed_writer"
        with made(kind, "raw", path) as store:
            store.append([record(kind, i) for i in range(COUNT, COUNT + 3)])
            shutil.copytree(path, copy)
            wanted = list(store)
        yield copy.name, kind, "raw", copy, wanted
        # The power goes: of a delete only the redo record has reached the disk.
        path, copy = work / f"{kind}_cut", work / f"{kind}_redo_record"
        made(kind, "zstd", path).close()
        with (DenseStore if kind == "dense" else RaggedStore)(path) as store:
            store.append([record(kind, COUNT)])
            store.sync()  # the delete finds nothing to make durable first
            shutil.copytree(path, copy)
            store.delete([2, 5])
            shutil.copyfile(path / "journal.zr", copy / "journal.zr")
            wanted = list(store)
        yield copy.name, kind, "zstd", copy, wanted


def cut_zeros(journal: Path) -> None:
    """Leave the part of journal.zr that says something."""
    data = journal.read_bytes()
    used = max(REDO_START, len(data.rstrip(b"\0")))
    journal.write_bytes(data[: -(-used // REDO_ALIGN) * REDO_ALIGN])


def main() -> None:
    """Write the stores, what they hold, and a manifest."""
    TARGET.mkdir(parents=True)
    manifest = {}
    with tempfile.TemporaryDirectory() as work:
        for name, kind, codec, path, wanted in stores(Path(work)):
            shutil.copytree(path, TARGET / name)
            cut_zeros(TARGET / name / "journal.zr")
            arrays = {f"r{i:05d}": array for i, array in enumerate(wanted)}
            np.savez_compressed(TARGET / f"{name}.npz", **arrays)
            manifest[name] = {"codec": codec, "kind": kind, "records": len(wanted)}
    (TARGET / "manifest.json").write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
