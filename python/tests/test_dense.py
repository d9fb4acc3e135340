"""DenseStore: what is written comes back, by every kind of index."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import same

from loaderx import _native
from loaderx.errors import CorruptRecordError, StoreMismatchError
from loaderx.zrecord import DenseStore

CODECS = ["raw", "zstd"]
DATA = np.random.default_rng(1).integers(0, 50, (200, 3, 5)).astype(np.int32)

DTYPES: list[Any] = [
    "?",
    "u1",
    ">i4",
    "f2",
    "<f8",
    "c16",
    "M8[ns]",
    "m8[s]",
    "S3",
    "U2",
    "V5",
    [("id", "<i4"), ("w", ">f8", (2,))],
    np.dtype([("a", "u1"), ("b", "<f8")], align=True),
]


def make(path: Path, data: np.ndarray = DATA, **options: Any) -> DenseStore:
    store = DenseStore(path, data.dtype, data.shape[1:], **options)
    store.append(data)
    return store


@pytest.mark.parametrize("codec", CODECS)
def test_every_kind_of_index(tmp_path: Path, codec: str) -> None:
    make(tmp_path / "s", codec=codec).close()
    with DenseStore(tmp_path / "s") as store:
        assert (len(store), store.dtype, store.item_shape) == (200, np.dtype("i4"), (3, 5))
        assert (store.codec, store.mode, store.closed) == (codec, "a", False)
        assert store.path == str(tmp_path / "s") and not store.has_dict()
        assert same(store[7], DATA[7]) and same(store[-1], DATA[-1])
        assert same(store[np.uint8(3)], DATA[3])
        mask = np.arange(200) % 7 == 0
        for index in ([0, 5, 2], np.array([199, -200, 7]), slice(None), slice(-5, None, 2), mask):
            assert same(store[index], DATA[index])
            assert same(store.gather(index), store[index])
        assert same(store[0, 5, 2], DATA[[0, 5, 2]])
        assert same(store[[]], DATA[:0]) and same(store[5:2], DATA[:0])
        assert same(store[np.repeat(np.arange(200), 3)], np.repeat(DATA, 3, axis=0))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype(tmp_path: Path, codec: str, dtype: Any) -> None:
    dtype = np.dtype(dtype)
    raw = np.random.default_rng(2).integers(0, 2, 30 * 4 * dtype.itemsize).astype(np.uint8)
    data = np.zeros((30, 4), dtype)
    fields = [data] if dtype.names is None else [data[name] for name in dtype.names]
    for field in fields:
        field[...] = (
            np.resize(raw, field.size * field.itemsize)
            .view(field.dtype)[: field.size]
            .reshape(field.shape)
        )
    make(tmp_path / "s", data, codec=codec).close()
    with DenseStore(tmp_path / "s", dtype, (4,)) as store:
        assert store.dtype == dtype
        assert same(store[:], data)
        assert same(store[3], data[3])


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn"])
def test_extension_dtypes(tmp_path: Path, name: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    data = np.arange(24).reshape(6, 4).astype(getattr(ml_dtypes, name))
    make(tmp_path / "s", data).close()
    with DenseStore(tmp_path / "s") as store:
        assert store.dtype == data.dtype and same(store[:], data)


def test_scalar_records(tmp_path: Path) -> None:
    labels = np.arange(10, dtype=np.int64) * 3
    with make(tmp_path / "s", labels) as store:
        assert store.item_shape == ()
        assert type(store[4]) is np.int64 and store[4] == 12
        assert same(store[[1, 2]], labels[[1, 2]])
        assert list(store) == labels.tolist()
        assert store.append(np.array([7])) == 10
        assert store.append([np.int64(8), np.array(9)]) == 11
        assert store[10:].tolist() == [7, 8, 9]


def test_layouts_of_what_is_appended(tmp_path: Path) -> None:
    np.save(tmp_path / "d.npy", DATA)
    layouts = [
        DATA,
        np.asfortranarray(DATA),
        np.repeat(DATA, 2, axis=0)[::2],
        DATA.transpose(0, 2, 1).copy().transpose(0, 2, 1),
        DATA[::-1][::-1],
        np.load(tmp_path / "d.npy", mmap_mode="r"),
        np.broadcast_to(DATA[:1], DATA.shape),
    ]
    with DenseStore(tmp_path / "s", DATA.dtype, DATA.shape[1:]) as store:
        for number, layout in enumerate(layouts):
            assert store.append(layout) == number * len(DATA)
        expected = np.concatenate([np.asarray(layout) for layout in layouts])
        assert same(store[:], expected)


def test_lists_and_iterables_of_records(tmp_path: Path) -> None:
    with DenseStore(tmp_path / "s", DATA.dtype, DATA.shape[1:]) as store:
        assert store.append(list(DATA[:5])) == 0
        assert store.append(tuple(DATA[5:7])) == 5
        assert store.append(record for record in DATA[7:]) == 7
        assert same(store[:], DATA)


def test_one_array_filled_again_and_again(tmp_path: Path) -> None:
    def records() -> Any:
        buffer = np.empty((3, 5), np.int32)
        for record in DATA:
            buffer[:] = record
            yield buffer

    with DenseStore(tmp_path / "s", DATA.dtype, DATA.shape[1:]) as store:
        store.append(records())
        assert same(store[:], DATA)


def test_streamed_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "CALL_BYTES", 60 * 7)  # seven records a call
    monkeypatch.setattr("loaderx._parts.PART_BYTES", 60 * 9)
    with make(tmp_path / "s") as store:
        assert store.append(iter(DATA)) == 200
        assert len(store) == 400
        index = np.random.default_rng(3).permutation(400)
        assert same(store[index], np.concatenate([DATA, DATA])[index])


def test_chunks_and_segments_roll_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native.limits, "chunk", 1000)
    monkeypatch.setattr(_native.limits, "segment", 16)
    with make(tmp_path / "s", codec="raw") as store:
        store.append(DATA[::-1])
        assert same(store[:], np.concatenate([DATA, DATA[::-1]]))
    assert len(list((tmp_path / "s").glob("*.chunk"))) > 20
    assert len(list((tmp_path / "s").glob("*.loc"))) == 25


def test_iteration_sees_the_records_there_are(tmp_path: Path) -> None:
    with make(tmp_path / "s") as store:
        seen = 0
        for number, record in enumerate(store):
            assert same(record, DATA[number])
            if number < 3:
                store.append(record[None])
            seen += 1
        assert seen == 200 and len(store) == 203


def test_what_is_read_is_the_callers(tmp_path: Path) -> None:
    with make(tmp_path / "s") as store:
        batch, record = store[:10], store[0]
        assert batch.flags.writeable and record.flags.writeable
        batch[:], record[:] = -1, -1
        assert same(store[:10], DATA[:10])
    assert (batch == -1).all()  # and outlives the store


def test_getitems_is_a_list_of_records(tmp_path: Path) -> None:
    with make(tmp_path / "s") as store:
        found = store.__getitems__([4, 1])
        assert isinstance(found, list) and same(found[0], DATA[4]) and same(found[1], DATA[1])


def test_opening_again_compares(tmp_path: Path) -> None:
    make(tmp_path / "s", codec="raw").close()
    for given in [("i4", (3, 5)), ("i4", None), (None, (3, 5)), (None, None), ("i4", [3, 5])]:
        DenseStore(tmp_path / "s", *given).close()
    DenseStore(tmp_path / "s", codec="raw").close()
    for bad in [("i8", (3, 5)), (">i4", (3, 5)), ("i4", (5, 3)), ("f4", None), (None, (3,))]:
        with pytest.raises(StoreMismatchError) as caught:
            DenseStore(tmp_path / "s", *bad)
        assert "expected" in str(caught.value) and str(tmp_path / "s") in str(caught.value)
    with pytest.raises(StoreMismatchError, match="raw"):
        DenseStore(tmp_path / "s", codec="zstd")


def test_sync_and_close(tmp_path: Path) -> None:
    store = make(tmp_path / "s")
    store.sync()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del store  # nothing could be lost: no warning
    assert not [w for w in caught if issubclass(w.category, ResourceWarning)]
    store = make(tmp_path / "s")
    store.close()
    store.close()
    assert store.closed and "closed" in repr(store)


def test_dropping_unsynced_records_warns_and_saves_them(tmp_path: Path) -> None:
    store = make(tmp_path / "s")
    with pytest.warns(ResourceWarning, match="was not closed .* use it in a with statement"):
        del store
    with DenseStore(tmp_path / "s") as again:
        assert same(again[:], DATA)
        again.append(DATA)  # and the writer's lock is free


def test_repr_tells_all_of_it(tmp_path: Path) -> None:
    with make(tmp_path / "s", codec="raw") as store:
        text = repr(store)
    for part in ("DenseStore", str(tmp_path / "s"), "int32", "(3, 5)", "'raw'", "'a'", "200"):
        assert part in text


def test_a_damaged_frame_is_a_corrupt_record(tmp_path: Path) -> None:
    make(tmp_path / "s", codec="zstd").close()
    chunk = tmp_path / "s" / "0.chunk"
    chunk.write_bytes(bytes(b ^ 0x55 for b in chunk.read_bytes()))
    with DenseStore(tmp_path / "s", mode="r") as store:
        with pytest.raises(CorruptRecordError) as caught:
            store[3]
        assert caught.value.index == 3
        assert caught.value.path is not None and caught.value.path.endswith("0.chunk")
        with pytest.raises(CorruptRecordError):
            store[:]
