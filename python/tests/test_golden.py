"""Stores of loaderx 1.7.7 and of format version 5 give exactly what they gave, for ever."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import same, same_list
from test_maintain import swapped

from loaderx import _native
from loaderx._maintain import MaintainedStore
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


def test_the_first_append_upgrades_it(name: str, tmp_path: Path) -> None:
    entry = MANIFEST[name]
    shutil.copytree(GOLDEN / name, tmp_path / name)
    kind = DenseStore if entry["kind"] == "dense" else RaggedStore
    with kind(tmp_path / name) as store:
        records = [*store, np.zeros(entry.get("item_shape", [3]), store.dtype)]
        assert store.append(records[-1:]) == entry["records"]
        assert same_list(list(store), records)
    assert (tmp_path / name / "meta.zr").read_bytes()[4] == 5
    with kind(tmp_path / name, mode="r") as store:
        assert same_list(list(store), records)


CHANGES = {
    "append": lambda store: store.append([store[0]]),
    "delete": lambda store: store.delete([0, -1]),
    "compact": lambda store: store.compact(),
    "upgrade": lambda store: store.upgrade(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_upgrades_it(name: str, change: str, tmp_path: Path) -> None:
    entry = MANIFEST[name]
    shutil.copytree(GOLDEN / name, tmp_path / name)
    kind = DenseStore if entry["kind"] == "dense" else RaggedStore
    with kind(tmp_path / name) as store:
        assert store.verify().ok and store.stats()["records"] == entry["records"]
        records = list(store)
        store.snapshot(tmp_path / "copy")
        if not records and change in ("append", "delete"):
            return  # there is none to append again, or to delete
        CHANGES[change](store)
        if change == "append":
            records.append(records[0])
        elif change == "delete":
            records = swapped(records, [0, len(records) - 1])
        assert (tmp_path / name / "meta.zr").read_bytes()[4] == 5
        assert same_list(list(store), records)
        assert store.verify().ok and store.has_dict() == (entry["codec"] == "zstd_dict")
    with kind(tmp_path / name, mode="r") as store:
        assert same_list(list(store), records) and store.verify().ok
    assert (tmp_path / "copy" / "meta.zr").read_bytes()[4] == 5  # to have an id of its own
    with kind(tmp_path / "copy") as copy:
        assert len(copy) == entry["records"]


WRONG = {
    "append": lambda store: store.append([object()]),
    "append nothing": lambda store: store.append([]),
    "delete": lambda store: store.delete(10_000),
    "delete a float": lambda store: store.delete(1.5),
    "compact": lambda store: store.compact("progress"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_no_mistake_upgrades_it(name: str, wrong: str, tmp_path: Path) -> None:
    entry = MANIFEST[name]
    shutil.copytree(GOLDEN / name, tmp_path / name)
    files = {f.name: f.read_bytes() for f in (tmp_path / name).iterdir()}
    kind = DenseStore if entry["kind"] == "dense" else RaggedStore
    with kind(tmp_path / name) as store:
        with pytest.raises((TypeError, ValueError, IndexError)):
            WRONG[wrong](store)
        store.delete([])
        store.refresh()
        assert len(store) == entry["records"]
    assert {f.name: f.read_bytes() for f in (tmp_path / name).iterdir()} == files


@pytest.mark.parametrize("change", CHANGES)
def test_the_upgrade_before_a_change_is_a_task(
    name: str, change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So Ctrl-C ends it, and then the change is not made."""
    entry = MANIFEST[name]
    if not entry["records"]:
        pytest.skip("a store without records has none to append again, or to delete")

    def interrupted(self: Any, progress: Any) -> None:
        def interrupt(at: int, total: int) -> None:
            raise KeyboardInterrupt

        self._run(_native.lib.lx_upgrade_begin, interrupt)

    shutil.copytree(GOLDEN / name, tmp_path / name)
    kind = DenseStore if entry["kind"] == "dense" else RaggedStore
    monkeypatch.setattr(MaintainedStore, "_upgrade", interrupted)
    with kind(tmp_path / name) as store:
        records = list(store)
        with pytest.raises(KeyboardInterrupt):
            CHANGES[change](store)
        assert same_list(list(store), records)
    monkeypatch.undo()
    with kind(tmp_path / name) as store:
        assert same_list(list(store), records)
        store.append([records[0]])


def test_a_snapshot_is_of_version_5(name: str, tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / name, tmp_path / name)
    files = {f.name: f.read_bytes() for f in (tmp_path / name).iterdir()}
    kind = DenseStore if MANIFEST[name]["kind"] == "dense" else RaggedStore
    with kind(tmp_path / name, mode="r") as store:
        store.snapshot(tmp_path / "copy")
        records = list(store)
    assert {f.name: f.read_bytes() for f in (tmp_path / name).iterdir()} == files
    assert (tmp_path / "copy" / "meta.zr").read_bytes()[4] == 5
    assert (tmp_path / "copy" / "store.zr").read_bytes()[24:28] != bytes(4), "an id of its own"
    with kind(tmp_path / "copy", mode="r") as copy:
        assert same_list(list(copy), records)
        assert copy.verify().ok


# ---- of format version 5, which make_golden.py wrote ----

VERSION5 = GOLDEN / "version5"
MANIFEST5: dict[str, dict[str, Any]] = json.loads((VERSION5 / "manifest.json").read_text())


@pytest.mark.parametrize("name5", MANIFEST5)
def test_version_5_reads_the_same(name5: str, tmp_path: Path) -> None:
    """Closed, with deletes, of a killed writer, and with a redo record to be applied."""
    entry, path = MANIFEST5[name5], tmp_path / name5
    shutil.copytree(VERSION5 / name5, path)
    files = {f.name: f.read_bytes() for f in path.iterdir()}
    kind = DenseStore if entry["kind"] == "dense" else RaggedStore
    with np.load(VERSION5 / f"{name5}.npz") as wanted:
        records = [wanted[key] for key in sorted(wanted.files)]
    assert len(records) == entry["records"] > 0
    for mode in ("r", "a"):
        with kind(path, mode=mode) as store:
            assert (len(store), store.codec) == (entry["records"], entry["codec"])
            assert same_list(list(store), records)
            assert same_list(list(store[:]), records)
            assert store.verify().ok
        assert {f.name: f.read_bytes() for f in path.iterdir()} == files
    with kind(path) as store:  # and is written to
        store.append(records[:2])
        assert same_list(list(store), records + records[:2]) and store.verify().ok
    with kind(path, mode="r") as store:
        assert same_list(list(store), records + records[:2])
