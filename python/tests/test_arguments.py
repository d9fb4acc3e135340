"""Every wrong argument is a clear exception, and changes nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import output_of

from loaderx import errors
from loaderx.zrecord import (
    DICT_TIER_DEFAULT,
    DICT_TIERS,
    MAX_RECORD_LEN,
    DenseStore,
    RaggedStore,
)

DATA = np.arange(24, dtype=np.int32).reshape(4, 2, 3)
BY_NAME = {"dense": DenseStore, "ragged": RaggedStore}


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[dict[str, Any]]:
    with DenseStore(tmp_path / "dense", np.int32, (2, 3)) as dense:
        with RaggedStore(tmp_path / "ragged", np.int32) as ragged:
            dense.append(DATA)
            ragged.append(list(DATA))
            yield {"dense": dense, "ragged": ragged}


OPENING: list[tuple[str, Callable[[Path], Any], type[Exception], str]] = [
    ("path is a number", lambda p: DenseStore(5), TypeError, "path: expected a str, bytes or path"),
    (
        "path is None",
        lambda p: RaggedStore(None, "u1"),
        TypeError,
        "path: expected .* got NoneType",
    ),
    ("path is empty", lambda p: DenseStore(""), ValueError, "got an empty path"),
    ("path has a NUL", lambda p: DenseStore("a\0b"), ValueError, "expected no NUL"),
    ("path has a tilde", lambda p: DenseStore("~/data"), ValueError, "os.path.expanduser"),
    ("nothing there", lambda p: DenseStore(p / "no"), errors.NotAStoreError, "no"),
    ("nothing there", lambda p: RaggedStore(p / "no"), FileNotFoundError, "no"),
    ("path is a file", lambda p: DenseStore(p / "file"), errors.NotAStoreError, "file"),
    (
        "path is a file",
        lambda p: DenseStore(p / "file", "u1", (2,)),
        errors.ZrecordError,
        "file",
    ),
    (
        "path is inside a file",
        lambda p: DenseStore(p / "file" / "x", "u1", (2,)),
        errors.ZrecordError,
        "file",
    ),
    ("folder of others", lambda p: DenseStore(p / "foreign"), errors.NotAStoreError, "foreign"),
    (
        "folder of others",
        lambda p: DenseStore(p / "foreign", "u1", (2,)),
        errors.ZrecordError,
        "foreign",
    ),
    (
        "half an identity",
        lambda p: DenseStore(p / "no", "u1"),
        ValueError,
        "expected dtype and item_shape to create one, got dtype without item_shape",
    ),
    (
        "half an identity",
        lambda p: DenseStore(p / "no", item_shape=(2,)),
        ValueError,
        "got item_shape without dtype",
    ),
    ("shape is an int", lambda p: DenseStore(p / "no", "u1", 5), TypeError, "sequence of ints"),
    ("shape of nothing", lambda p: DenseStore(p / "no", "u1", (2, 0)), ValueError, "at least 1"),
    ("objects", lambda p: RaggedStore(p / "no", object), TypeError, "without Python objects"),
    ("no dtype", lambda p: RaggedStore(p / "no", "f3"), TypeError, "numpy.dtype takes"),
    ("too wide", lambda p: DenseStore(p / "no", "u1", (1 << 20, 1 << 12)), ValueError, "at most"),
    (
        "codec",
        lambda p: DenseStore(p / "no", "u1", (), codec="gzip"),
        ValueError,
        "codec: expected one of 'raw', 'zstd', 'zstd_dict', got 'gzip'",
    ),
    ("codec", lambda p: RaggedStore(p / "no", "u1", codec=1), ValueError, "got 1"),
    ("mode", lambda p: DenseStore(p / "no", "u1", (), mode="w"), ValueError, "got 'w'"),
    ("mode", lambda p: RaggedStore(p / "no", "u1", mode=None), ValueError, "got None"),
    (
        "allow_empty",
        lambda p: RaggedStore(p / "no", "u1", allow_empty="yes"),
        TypeError,
        "allow_empty: expected True or False, got 'yes'",
    ),
    (
        "dictionary",
        lambda p: RaggedStore(p / "no", "u1", dict_bytes="x"),
        TypeError,
        "dict_bytes: expected bytes, got str",
    ),
    (
        "dictionary",
        lambda p: RaggedStore(p / "no", "u1", "raw", b"x"),
        ValueError,
        "expected none with codec 'raw', got 1 bytes",
    ),
    (
        "no dictionary",
        lambda p: RaggedStore(p / "no", "u1", "zstd_dict"),
        Exception,
        "dict",
    ),
    ("other kind", lambda p: DenseStore(p / "ragged"), errors.StoreMismatchError, "ragged"),
    ("other kind", lambda p: RaggedStore(p / "dense"), errors.StoreMismatchError, "dense"),
    (
        "other dtype",
        lambda p: RaggedStore(p / "ragged", ">i4"),
        errors.StoreMismatchError,
        "expected .*>i4.* <i4|>i4",
    ),
]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [pytest.param(*case[1:], id=f"{n} {case[0]}") for n, case in enumerate(OPENING)],
)
def test_opening(
    tmp_path: Path, stores: Any, call: Any, error: type[Exception], message: str
) -> None:
    (tmp_path / "file").write_text("not a store")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "photo.jpg").write_text("mine")
    before = sorted(str(p) for p in tmp_path.rglob("*"))
    with pytest.raises(error, match=message):
        call(tmp_path)
    assert sorted(str(p) for p in tmp_path.rglob("*")) == before
    assert len(stores["dense"]) == len(stores["ragged"]) == 4


APPENDING: list[tuple[str, Any, type[Exception], str]] = [
    ("dense", DATA.astype(np.int64), TypeError, "of dtype int32 .<i4., got int64 .<i8."),
    ("dense", DATA.astype(">i4"), TypeError, "got >i4"),
    ("dense", DATA.astype(float), TypeError, "got float64"),
    (
        "dense",
        DATA[0],
        ValueError,
        r"\(B, 2, 3\), got \(2, 3\); append one record as record\[None\]",
    ),
    (
        "dense",
        DATA.reshape(4, 6),
        ValueError,
        r"expected an array of shape \(B, 2, 3\), got \(4, 6\)",
    ),
    ("dense", np.int32(5), ValueError, r"got \(\)"),
    ("dense", DATA[:0], ValueError, "at least one record, got none"),
    ("dense", [], ValueError, "at least one record, got none"),
    ("dense", iter(()), ValueError, "at least one record, got none"),
    ("dense", DATA.tolist(), TypeError, "record 0 to be an array of dtype int32, got list"),
    ("dense", [DATA[0], DATA[1].T], ValueError, r"record 1 to be of shape \(2, 3\), got \(3, 2\)"),
    ("dense", [DATA[0], DATA[1].astype("u4")], TypeError, "record 1 to be of dtype int32"),
    ("dense", None, TypeError, "expected an iterable of records, got NoneType"),
    ("dense", 5, TypeError, "expected an iterable of records, got int"),
    ("dense", "text", TypeError, "expected an iterable of records, got str"),
    ("dense", b"bytes", TypeError, r"got bytes; append one record as \[record\]"),
    ("dense", {"a": DATA}, TypeError, "got dict"),
    ("dense", np.ma.masked_array(DATA, DATA > 3), TypeError, "without a mask"),
    (
        "ragged",
        [DATA.astype(np.int64)],
        TypeError,
        "record 0 to be of dtype int32 .<i4., got int64",
    ),
    ("ragged", [DATA, DATA.astype(">i4")], TypeError, "record 1 .* got >i4"),
    (
        "ragged",
        [DATA, DATA[:, :0]],
        ValueError,
        r"record 1 to hold at least one byte, got shape \(4, 0",
    ),
    ("ragged", [[1, 2]], TypeError, "record 0 to be an array of dtype int32, got list"),
    ("ragged", [5], TypeError, "record 0 to be an array of dtype int32, got int"),
    ("ragged", ["text"], TypeError, "got str"),
    ("ragged", [b"bytes"], TypeError, "got bytes, which is taken as uint8"),
    ("ragged", [None], TypeError, "got NoneType"),
    ("ragged", b"bytes", TypeError, r"append one record as \[record\]"),
    ("ragged", [], ValueError, "at least one record, got none"),
    ("ragged", (r for r in ()), ValueError, "at least one record, got none"),
    ("ragged", 5, TypeError, "expected an iterable of records, got int"),
    ("ragged", np.array(5, np.int32), TypeError, "expected an iterable of records, got ndarray"),
]


@pytest.mark.parametrize(
    ("kind", "records", "error", "message"),
    [pytest.param(*case, id=f"{n} {case[0]}") for n, case in enumerate(APPENDING)],
)
def test_appending(
    stores: dict[str, Any], kind: str, records: Any, error: type[Exception], message: str
) -> None:
    store = stores[kind]
    files = {f.name: f.stat().st_size for f in Path(store.path).iterdir()}
    with pytest.raises(error, match=message):
        store.append(records)
    assert len(store) == 4
    assert {f.name: f.stat().st_size for f in Path(store.path).iterdir()} == files
    assert store.append(DATA if kind == "dense" else [DATA]) == 4


OUTSIDE = [4, -5, [0, 4], [3, -5], np.array([0, 1, 2, 9]), 1 << 62, -(1 << 62)]


@pytest.mark.parametrize("kind", BY_NAME)
@pytest.mark.parametrize("index", OUTSIDE, ids=repr)
def test_index_outside_the_store(stores: dict[str, Any], kind: str, index: Any) -> None:
    with pytest.raises(IndexError, match="out of range for 4 records") as caught:
        stores[kind][index]
    assert isinstance(caught.value, errors.RecordIndexError)
    assert caught.value.index in np.atleast_1d(np.asarray(index))
    assert caught.value.path is not None and caught.value.path.startswith(stores[kind].path)


@pytest.mark.parametrize("kind", BY_NAME)
def test_nothing_to_index_in_an_empty_store(tmp_path: Path, kind: str) -> None:
    arguments = ("u1", (2,)) if kind == "dense" else ("u1",)
    with BY_NAME[kind](tmp_path / "empty", *arguments) as store:
        assert len(store) == 0 and list(store) == []
        assert len(store[:]) == len(store[[]]) == len(store[np.zeros(0, bool)]) == 0
        with pytest.raises(IndexError, match="out of range for 0 records"):
            store[0]


USES: list[tuple[str, Callable[[Any], Any]]] = [
    ("one", lambda s: s[0]),
    ("set", lambda s: s[[0, 1]]),
    ("empty set", lambda s: s[[]]),
    ("slice", lambda s: s[:]),
    ("gather", lambda s: s.gather([0])),
    ("getitems", lambda s: s.__getitems__([0])),
    ("len", len),
    ("iterate", list),
    ("append", lambda s: s.append(DATA)),
    ("append nothing", lambda s: s.append([])),
    ("sync", lambda s: s.sync()),
    ("has_dict", lambda s: s.has_dict()),
    ("with", lambda s: s.__enter__()),
    ("pickle", lambda s: s.__reduce__()),
]


@pytest.mark.parametrize("kind", BY_NAME)
@pytest.mark.parametrize("use", [u for _, u in USES], ids=[name for name, _ in USES])
def test_every_use_after_close(
    stores: dict[str, Any], kind: str, use: Callable[[Any], Any]
) -> None:
    store = stores[kind]
    store.close()
    with pytest.raises(errors.StoreClosedError, match="expected an open store") as caught:
        use(store)
    assert store.path in str(caught.value) and caught.value.path == store.path


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="no users to become on this system")
def test_a_folder_that_cannot_be_written() -> None:
    code = """
        import os, sys, tempfile
        from loaderx import DenseStore, Sampler, ZrecordError
        Sampler(1, 1)  # loads the library while it can be read
        folder = tempfile.mkdtemp()
        with DenseStore(folder + "/there", "u1", ()) as store:
            store.append([store.dtype.type(7)])
        for name in (folder, folder + "/there"):
            os.chmod(name, 0o555)
        for name in os.listdir(folder + "/there"):
            os.chmod(f"{folder}/there/{name}", 0o444)
        if os.geteuid() == 0:
            os.seteuid(65534)  # the superuser may write everywhere
        try:
            DenseStore(folder + "/new", "u1", ())
        except ZrecordError as error:
            print(type(error).__name__, folder in str(error), os.path.exists(folder + "/new"))
        with DenseStore(folder + "/there") as store:  # the default mode reads it all the same
            try:
                store.append(store[:])
            except ZrecordError as error:
                print(type(error).__name__, folder in str(error), store[:].tolist())
        if os.getuid() == 0:
            os.seteuid(0)
        for name in (folder, folder + "/there"):
            os.chmod(name, 0o755)
        __import__("shutil").rmtree(folder)
    """
    assert output_of(code).splitlines() == [
        "StoreReadOnlyError True False",
        "StoreReadOnlyError True [7]",
    ]


def test_paths_of_every_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (
        "plain",
        b"bytes",
        Path("object"),
        "deep/er/still",
        "sp ace é ☃",
        "~tilde"[1:],
        "./~x",
    ):
        with RaggedStore(name, "u1") as store:
            store.append([b"x"])
            assert os.path.isabs(store.path)
        monkeypatch.chdir("/")
        with RaggedStore(store.path) as again:
            assert len(again) == 1
        monkeypatch.chdir(tmp_path)


def test_a_relative_path_is_fixed_at_construction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with RaggedStore("here", "u1") as store:
        monkeypatch.chdir("/")
        store.append([b"x"])
        assert store.path == str(tmp_path / "here")


def test_constants() -> None:
    assert MAX_RECORD_LEN == 2**31
    assert DICT_TIER_DEFAULT == "balanced"
    assert DICT_TIERS == {
        "fast": {"size": 32768, "samples": 4194304},
        "balanced": {"size": 131072, "samples": 16777216},
        "max": {"size": 1048576, "samples": 67108864},
    }
