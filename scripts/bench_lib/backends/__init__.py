"""The contenders: how each library stores records and gives batches of them.

A backend is written the way its library's documentation has it done for records
that are read at random, with the library's own default number of threads.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench_lib.backends.base import Backend
from bench_lib.data import DataSet

BOTH = ("dense", "ragged")


@dataclass(frozen=True)
class Entry:
    """Where a backend is found.

    Attributes:
        module: below bench_lib.backends.
        maker: the class in it.
        options: keyword arguments of the class.
        layouts: "dense", "ragged" or both.
        environment: which one it runs in.
        color: of its bar: what is ours, a yardstick, or another library.
    """

    module: str
    maker: str
    options: dict[str, Any] = field(default_factory=dict)
    layouts: tuple[str, ...] = BOTH
    environment: str = "main"
    color: str = "other"


def _codecs(stem: str, module: str, maker: str, *codecs: str) -> dict[str, Entry]:
    return {f"{stem}_{codec}": Entry(module, maker, {"codec": codec}) for codec in codecs}


def _reference(version: str, codec: str) -> Entry:
    module = "wheel_" + version.replace(".", "")
    return Entry(module, "Reference", {"codec": codec}, BOTH, version, "reference")


def _ours(codec: str, layouts: tuple[str, ...] = BOTH, **options: Any) -> Entry:
    return Entry("ours", "Loaderx", {"codec": codec, **options}, layouts, color="ours")


REGISTRY: dict[str, Entry] = {
    "loaderx_raw": _ours("raw"),
    "loaderx_raw_out": _ours("raw", ("dense",), reuse=True),
    "loaderx_raw_table": _ours("raw", ("dense",), deleted=True),
    "loaderx_raw_packed": _ours("raw", ("ragged",), packed=True),
    "loaderx_zstd": _ours("zstd"),
    "loaderx_zstd_dict": _ours("zstd_dict"),
    "numpy_take": Entry("ram", "Take", {}, ("dense",), color="yardstick"),
    "numpy_take_out": Entry("ram", "Take", {"reuse": True}, ("dense",), color="yardstick"),
    "ram_list": Entry("ram", "RamList", {}, ("ragged",), color="yardstick"),
    "zstd_alone": Entry("frames", "Frames", {}, BOTH, color="yardstick"),
    "zstd_alone_1": Entry("frames", "Frames", {"threads": 1}, BOTH, color="yardstick"),
    "npy_memmap": Entry("ram", "Memmap", {}),
    **_codecs("hdf5", "arrays", "Hdf5", "raw", "gzip"),
    **_codecs("lmdb", "keyed", "Lmdb", "raw"),
    **_codecs("arrow", "columns", "ArrowIpc", "raw", "zstd"),
    **_codecs("parquet", "columns", "Parquet", "raw", "zstd"),
    **_codecs("array_record", "keyed", "ArrayRecord", "raw", "zstd"),
    **_codecs("bagz", "keyed", "Bagz", "raw", "zstd"),
    **_codecs("tiledb", "arrays", "TileDb", "raw", "zstd"),
    **_codecs("zarr3", "arrays", "Zarr3", "raw", "zstd"),
    **_codecs("blosc2", "arrays", "Blosc2", "zstd"),
    "loaderx_1.7.7_raw": _reference("1.7.7", "raw"),
    "loaderx_1.7.7_zstd": _reference("1.7.7", "zstd"),
    "loaderx_2.8.19_raw": _reference("2.8.19", "raw"),
    "loaderx_2.8.19_zstd": _reference("2.8.19", "zstd"),
}


def names(layout: str) -> list[str]:
    """Return the backends that store records of a layout, "dense" or "ragged"."""
    return [name for name, entry in REGISTRY.items() if layout in entry.layouts]


def create(name: str, folder: Path, data: DataSet) -> Backend:
    """Make a backend in this process.

    Raises:
        ModuleNotFoundError: its library is not installed.
    """
    entry = REGISTRY[name]
    module = importlib.import_module(f"bench_lib.backends.{entry.module}")
    made: Backend = getattr(module, entry.maker)(folder, data, **entry.options)
    made.name = name
    return made
