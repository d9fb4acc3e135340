"""The bytes that FORMAT.md shows are a store, and are what is written today."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from loaderx.zrecord import DenseStore

RECORDS = np.array([[1, 2], [3, 4], [5, 6]], "<u2")
FORMAT = Path(__file__).parents[2] / "FORMAT.md"


def documented() -> dict[str, bytes]:
    """The files of the dump, by name."""
    text = re.search(r"```dump\n(.*?)```", FORMAT.read_text(encoding="utf-8"), re.DOTALL)
    assert text is not None, f"no dump in {FORMAT}"
    files: dict[str, bytearray] = {}
    for line in text.group(1).splitlines():
        head = re.fullmatch(r"(\S+) \((\d+) bytes\)", line)
        if head is not None:
            current = files[head.group(1)] = bytearray(int(head.group(2)))
        else:
            offset, *octets = line.split()
            at = int(offset, 16)
            current[at : at + len(octets)] = bytes.fromhex("".join(octets))
    return {name: bytes(content) for name, content in files.items()}


def test_the_dump_is_the_store_it_says(tmp_path: Path) -> None:
    for name, content in documented().items():
        (tmp_path / name).write_bytes(content)
    with DenseStore(tmp_path, mode="r") as store:
        assert store.dtype == np.dtype("<u2")
        assert store.item_shape == (2,)
        assert store.codec == "raw"
        np.testing.assert_array_equal(store[:], RECORDS)


@pytest.mark.parametrize("name", ["meta.zr", "0.loc", "0.sum", "0.chunk"])
def test_the_dump_is_what_is_written_today(tmp_path: Path, name: str) -> None:
    with DenseStore(tmp_path / "three", np.dtype("<u2"), (2,), codec="raw") as store:
        store.append(RECORDS)
    assert (tmp_path / "three" / name).read_bytes() == documented()[name]


def test_the_header_differs_in_its_id_only(tmp_path: Path) -> None:
    with DenseStore(tmp_path / "three", np.dtype("<u2"), (2,), codec="raw"):
        pass
    written, shown = (tmp_path / "three" / "store.zr").read_bytes(), documented()["store.zr"]
    assert written[:24] == shown[:24]
    assert written[32:] == shown[32:]
