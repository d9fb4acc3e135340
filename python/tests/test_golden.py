"""Stores written by loaderx 1.7.7 give exactly what they gave there, for ever."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import same, same_list

from loaderx.errors import UnsupportedStoreError
from loaderx.zrecord import DenseStore, RaggedStore

GOLDEN = Path(__file__).parent / "golden"
MANIFEST: dict[str, dict[str, Any]] = json.loads((GOLDEN / "manifest.json").read_text())


def as_dtype(described: Any) -> np.dtype[Any]:
    return np.dtype(described if isinstance(described, str) else [tuple(f) for f in described])


@pytest.fixture(params=MANIFEST)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("mode", ["r", "a"])
def test_reads_the_same(name: str, mode: str, tmp_path: Path) -> None:
    entry = MANIFEST[name]
    shutil.copytree(GOLDEN / name, tmp_path / name)
    files = {f.name: f.read_bytes() for f in (tmp_path / name).iterdir()}
    kind = DenseStore if entry["kind"] == "dense" else RaggedStore
    with kind(tmp_path / name, mode=mode) as store, np.load(GOLDEN / f"{name}.npz") as wanted:
        assert len(store) == entry["records"]
        assert store.dtype == as_dtype(entry["dtype"])
        assert store.codec == entry["codec"]
        assert store.has_dict() == (entry["codec"] == "zstd_dict")
        if entry["kind"] == "dense":
            assert store.item_shape == tuple(entry["item_shape"])
            records = list(wanted["records"])
            assert same(store[:], wanted["records"])
        else:
            records = [wanted[key] for key in sorted(wanted.files)]
            assert same_list(store[:], records)
        assert same_list(list(store), records)
        assert same_list([store[i] for i in range(-len(records), 0)], records)
    assert {f.name: f.read_bytes() for f in (tmp_path / name).iterdir()} == files


def test_opens_with_its_own_identity_given(name: str, tmp_path: Path) -> None:
    entry = MANIFEST[name]
    shutil.copytree(GOLDEN / name, tmp_path / name)
    dtype = as_dtype(entry["dtype"])
    if entry["kind"] == "dense":
        DenseStore(tmp_path / name, dtype, entry["item_shape"], codec=entry["codec"]).close()
    else:
        RaggedStore(tmp_path / name, dtype, codec=entry["codec"]).close()


def test_changing_one_is_not_done_yet(name: str, tmp_path: Path) -> None:
    entry = MANIFEST[name]
    shutil.copytree(GOLDEN / name, tmp_path / name)
    files = {f.name: f.read_bytes() for f in (tmp_path / name).iterdir()}
    kind = DenseStore if entry["kind"] == "dense" else RaggedStore
    with kind(tmp_path / name) as store:
        record = np.zeros(entry.get("item_shape", [1]), store.dtype)
        with pytest.raises(UnsupportedStoreError, match="version 4"):
            store.append([record])
        assert len(store) == entry["records"]
    assert {f.name: f.read_bytes() for f in (tmp_path / name).iterdir()} == files
