"""delete_aligned: the same records go from several stores, also after an interruption."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import Child, same_list
from test_maintain import swapped

from loaderx.errors import (
    CorruptStoreError,
    RecordIndexError,
    StoreBusyError,
    StoreClosedError,
    StoreMismatchError,
    StoreReadOnlyError,
)
from loaderx.utils import delete_aligned
from loaderx.zrecord import DenseStore, RaggedStore

RECORDS = {
    "image": list(np.arange(60, dtype=np.uint8).reshape(10, 6)),
    "label": list(np.arange(10)),
    "token": [np.arange(n, dtype=np.int32) for n in range(1, 11)],
}


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[dict[str, Any]]:
    made: dict[str, Any] = {
        "image": DenseStore(tmp_path / "image", np.uint8, (6,)),
        "label": DenseStore(tmp_path / "label", np.int64, ()),
        "token": RaggedStore(tmp_path / "token", np.int32),
    }
    for name, store in made.items():
        store.append(RECORDS[name])
        store.sync()
    yield made
    for store in made.values():
        store.close()


def intent(tmp_path: Path) -> Path:
    return tmp_path / ".image.delete_aligned.json"


def ids(stores: dict[str, Any]) -> list[int]:
    headers = [(Path(store.path) / "store.zr").read_bytes() for store in stores.values()]
    return [int.from_bytes(header[24:28], "little") for header in headers]


def check(stores: dict[str, Any], gone: list[int]) -> None:
    for name, store in stores.items():
        assert same_list(list(store), swapped(RECORDS[name], gone)), name


class Interrupted(DenseStore):
    """A store whose deletion is interrupted before it begins."""

    def delete(self, index: Any) -> None:
        raise KeyboardInterrupt


class InterruptedAfter(DenseStore):
    """A store whose deletion is interrupted after it is done."""

    def delete(self, index: Any) -> None:
        super().delete(index)
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("index", "gone"),
    [
        (3, [3]),
        ([0, -1, 0], [0, 9]),
        (slice(None, None, 2), [0, 2, 4, 6, 8]),
        (np.arange(10) > 7, [8, 9]),
        ([], []),
    ],
    ids=["one", "list", "slice", "mask", "none"],
)
@pytest.mark.parametrize("form", [dict, list, tuple])
def test_the_same_records_go(
    stores: Any, tmp_path: Path, form: Any, index: Any, gone: list[int]
) -> None:
    delete_aligned(stores if form is dict else form(stores.values()), index)
    check(stores, gone)
    assert not list(tmp_path.glob(".*"))
    delete_aligned(stores, 0)  # and once more: nothing is remembered
    assert {len(store) for store in stores.values()} == {10 - len(gone) - 1}


@pytest.mark.parametrize("index", [[1, -1], np.arange(10) % 8 == 1, slice(1, 10, 8)], ids=str)
@pytest.mark.parametrize("at", [Interrupted, InterruptedAfter])
def test_a_second_call_finishes_the_job(stores: Any, tmp_path: Path, at: Any, index: Any) -> None:
    stores["label"].__class__ = at
    with pytest.raises(KeyboardInterrupt) as caught:
        delete_aligned(stores, index)
    assert len(stores["image"]) == 8 and len(stores["token"]) == 10
    (note,) = caught.value.__notes__
    lag = [stores["label"].path] * (at is Interrupted) + [stores["token"].path]
    assert f"these stores lag: {', '.join(lag)}; call it again" in note and str(tmp_path) in note
    stores["label"].__class__ = DenseStore
    kept = json.loads(intent(tmp_path).read_text())
    assert kept == {
        "version": 1,
        "stores": [store.path for store in stores.values()],
        "ids": ids(stores),
        "length": 10,
        "index": [1, 9],
    }
    with pytest.raises(ValueError, match="unfinished, and these stores lag: .*expected its index"):
        delete_aligned(stores, [1, 8])
    message = (
        "a deletion is unfinished: expected its stores .*image, .*label, .*token, got .*image, "
        ".*token; finish it with the same stores, .* removing .image.delete_aligned.json"
    )
    with pytest.raises(StoreMismatchError, match=message):
        delete_aligned([stores["image"], stores["token"]], index)
    backwards = dict(reversed(stores.items()))
    delete_aligned(backwards, index)
    check(stores, [1, 9])
    assert not intent(tmp_path).exists()


@pytest.mark.parametrize("how", ["moved", "symlinked folder", "symlinked stores"])
def test_it_is_finished_under_another_path(stores: Any, tmp_path: Path, how: str) -> None:
    stores["label"].__class__ = Interrupted
    with pytest.raises(KeyboardInterrupt):
        delete_aligned(stores, [3, 4])
    for store in stores.values():
        store.close()
    there = tmp_path / "there"
    if how == "moved":
        there.mkdir()
        for path in [*map(Path, (s.path for s in stores.values())), intent(tmp_path)]:
            path.rename(there / path.name)
    elif how == "symlinked folder":
        there.symlink_to(tmp_path)
    else:
        there.mkdir()
        for name in stores:
            (there / name).symlink_to(tmp_path / name)
    again = {
        name: (RaggedStore if name == "token" else DenseStore)(there / name) for name in stores
    }
    delete_aligned(again, [3, 4])
    check(again, [3, 4])
    for store in again.values():
        store.close()
    assert not intent(tmp_path).exists() and not intent(there).exists()


def test_stores_that_get_their_ids_on_the_way(tmp_path: Path) -> None:
    made = {}
    for name in ("image", "label"):  # of format version 4, which has none
        shutil.copytree(Path(__file__).parent / "golden" / "dense_dict_i4", tmp_path / name)
        made[name] = DenseStore(tmp_path / name)
    assert ids(made) == [0, 0]
    length = len(made["image"])
    made["label"].__class__ = Interrupted
    with pytest.raises(KeyboardInterrupt):
        delete_aligned(made, 0)
    made["label"].__class__ = DenseStore
    assert json.loads(intent(tmp_path).read_text())["ids"] == ids(made) and all(ids(made))
    delete_aligned(made, 0)
    assert {len(store) for store in made.values()} == {length - 1}
    for store in made.values():
        store.close()


def test_other_stores_at_the_path_do_not_finish_it(stores: Any, tmp_path: Path) -> None:
    stores["label"].__class__ = Interrupted
    with pytest.raises(KeyboardInterrupt):
        delete_aligned(stores, [3, 4])
    stores["token"].close()
    Path(stores["token"].path).rename(tmp_path / "aside")
    with RaggedStore(tmp_path / "token", np.int32) as other:
        other.append(RECORDS["token"])
        with pytest.raises(StoreMismatchError, match="removing .image.delete_aligned.json"):
            delete_aligned({**stores, "token": other}, [3, 4])
        assert len(other) == 10


def test_interrupted_before_anything_is_done(stores: Any, tmp_path: Path) -> None:
    class First(Interrupted):
        pass

    stores["image"].__class__ = First
    with pytest.raises(KeyboardInterrupt) as caught:
        delete_aligned(stores, 3)
    assert not intent(tmp_path).exists() and not hasattr(caught.value, "__notes__")
    check(stores, [])


def test_killed_before_anything_was_done(stores: Any, tmp_path: Path) -> None:
    paths = [store.path for store in stores.values()]
    kept = {"version": 1, "stores": paths, "ids": ids(stores), "length": 10, "index": [3]}
    intent(tmp_path).write_text(json.dumps(kept))
    # Another index, and another store first: what was remembered was never begun.
    delete_aligned(dict(reversed(stores.items())), [5])
    check(stores, [5])
    assert not intent(tmp_path).exists()


def test_killed_after_all_was_done(stores: Any, tmp_path: Path) -> None:
    paths = [store.path for store in stores.values()]
    kept = json.dumps(
        {"version": 1, "stores": paths, "ids": ids(stores), "length": 11, "index": [3]}
    )
    intent(tmp_path).write_text(kept)
    delete_aligned(stores, 3)  # the same index: this was the second call
    check(stores, [])
    assert not intent(tmp_path).exists()
    intent(tmp_path).write_text(kept)
    delete_aligned(stores, 4)
    check(stores, [4])


def test_a_changed_store_cannot_be_continued(stores: Any, tmp_path: Path) -> None:
    stores["label"].__class__ = Interrupted
    with pytest.raises(KeyboardInterrupt):
        delete_aligned(stores, [3, 4])
    stores["label"].__class__ = DenseStore
    stores["token"].append(RECORDS["token"][:1])
    with pytest.raises(ValueError, match="expected each store to have 10 or 8 records, got 11 in"):
        delete_aligned(stores, [3, 4])


def test_stores_of_unequal_length(stores: Any, tmp_path: Path) -> None:
    stores["image"].delete(0)
    message = (
        "equal length, got: .*image has 9, .*label has 10.* lag are the longer ones: .*label, "
    )
    with pytest.raises(ValueError, match=message):
        delete_aligned(stores, 0)
    assert not intent(tmp_path).exists()


def test_a_store_that_cannot_be_written(stores: Any, tmp_path: Path) -> None:
    path = stores["token"].path
    for other in (RaggedStore(path, mode="r"), RaggedStore(path)):
        stores["token"].close()
        with RaggedStore(path) as writer:
            if other.mode == "a":
                writer.append(RECORDS["token"][:1]), writer.sync()
                other.refresh()
                for name in ("image", "label"):
                    stores[name].append(RECORDS[name][:1])
            with pytest.raises((StoreBusyError, StoreReadOnlyError)) as caught:
                delete_aligned({**stores, "token": other}, 0)
            assert not hasattr(caught.value, "__notes__")
        assert len(other) == len(stores["image"]) == len(stores["label"])
        assert not intent(tmp_path).exists()
        other.close()


def test_another_reader_is_in_the_way(stores: Any, tmp_path: Path) -> None:
    with Child() as child:
        child.ask(f"(s := RaggedStore({stores['token'].path!r}, mode='r'))")
        with pytest.raises(StoreBusyError) as caught:
            delete_aligned(stores, 2)
        assert "these stores lag" in caught.value.__notes__[0]
        child.ask("s.close()")
    delete_aligned(stores, 2)
    check(stores, [2])


@pytest.mark.parametrize("name", ["image", "token"])
def test_a_reader_of_this_process_is_noticed_first(stores: Any, tmp_path: Path, name: str) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    with type(stores[name])(tmp_path / "link" / name, mode="r"):
        with pytest.raises(StoreBusyError, match="another one in this process, .*mode='r'"):
            delete_aligned(stores, 2)
        check(stores, [])
        assert not intent(tmp_path).exists()
    delete_aligned(stores, 2)
    check(stores, [2])


def test_a_reader_of_the_first_store_leaves_nothing_begun(stores: Any, tmp_path: Path) -> None:
    with Child() as child:
        child.ask(f"(s := DenseStore({stores['image'].path!r}, mode='r'))")
        with pytest.raises(StoreBusyError) as caught:
            delete_aligned(stores, 0)
        child.ask("s.close()")
    assert not hasattr(caught.value, "__notes__") and not intent(tmp_path).exists()
    check(stores, [])


@pytest.mark.parametrize("text", ["", "[]", '{"version": 2}', "{}", '{"version": 1, "stores": 3}'])
def test_an_intent_that_cannot_be_understood(stores: Any, tmp_path: Path, text: str) -> None:
    intent(tmp_path).write_text(text)
    with pytest.raises(CorruptStoreError, match="remove the file") as caught:
        delete_aligned(stores, 0)
    assert caught.value.path == str(intent(tmp_path))
    check(stores, [])


WRONG: list[tuple[Any, Any, type[Exception], str]] = [
    (lambda s: [], 0, ValueError, "stores: expected at least one store, got none"),
    (lambda s: s["image"], 0, TypeError, "expected several stores, .* got DenseStore"),
    (lambda s: 5, 0, TypeError, "got int"),
    (lambda s: [s["image"], "x"], 0, TypeError, "at position 1, got str"),
    (lambda s: [s["image"], s["image"]], 0, ValueError, "each store once, got .*image twice"),
    (lambda s: s, 10, RecordIndexError, "index 10 is out of range for 10 records"),
    (lambda s: s, [0, -11], RecordIndexError, "index -11 is out of range"),
    (lambda s: s, 1.5, TypeError, "got float 1.5"),
    (lambda s: s, [True], ValueError, "boolean mask of length 10"),
    (lambda s: s, None, TypeError, "got None"),
]


@pytest.mark.parametrize(("which", "index", "error", "message"), WRONG)
def test_wrong_arguments(
    stores: Any, tmp_path: Path, which: Any, index: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        delete_aligned(which(stores), index)
    check(stores, [])
    assert not intent(tmp_path).exists()


def test_a_closed_store(stores: Any) -> None:
    stores["token"].close()
    with pytest.raises(StoreClosedError, match="token"):
        delete_aligned(stores, 0)
    assert len(stores["image"]) == 10


def test_the_bad_records_of_a_report(stores: Any) -> None:
    chunk = Path(stores["image"].path) / "0.chunk"
    content = bytearray(chunk.read_bytes())
    content[-1] ^= 1
    chunk.write_bytes(content)
    report = stores["image"].verify()
    assert not report.ok
    delete_aligned(stores, report.bad)
    check(stores, [9])
