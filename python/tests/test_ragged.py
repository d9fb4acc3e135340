"""RaggedStore: every record comes back with its own shape."""

from __future__ import annotations

import array
import mmap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import same, same_list

from loaderx import _native, _ragged
from loaderx.errors import StoreMismatchError
from loaderx.zrecord import RaggedStore

CODECS = ["raw", "zstd"]
RNG = np.random.default_rng(5)
TOKENS = [RNG.integers(0, 100, n).astype(np.int32) for n in RNG.integers(1, 90, 150)]
MIXED: list[Any] = [
    np.int32(4),
    np.arange(6, dtype=np.int32).reshape(2, 3),
    np.arange(4, dtype=np.int32),
    np.ones((1, 1, 1, 2), np.int32),
    np.array(9, np.int32),
]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("records", [TOKENS, MIXED], ids=["one dimension", "mixed"])
def test_every_kind_of_index(tmp_path: Path, codec: str, records: list[Any]) -> None:
    with RaggedStore(tmp_path / "s", np.int32, codec=codec) as store:
        assert store.append(records) == 0
    with RaggedStore(tmp_path / "s") as store:
        assert (len(store), store.dtype, store.codec) == (len(records), np.dtype("i4"), codec)
        assert same_list(store[:], records)
        assert same(store[1], records[1]) and same(store[-1], records[-1])
        assert store[0].shape == np.shape(records[0])
        assert same_list(store[3, 0, 3, -2], [records[3], records[0], records[3], records[-2]])
        assert store[[]] == [] and store[5:2] == []
        mask = np.arange(len(records)) % 2 == 0
        assert same_list(store[mask], records[::2])
        assert same_list(list(store), records)
        assert same_list(store.__getitems__([1, 2]), records[1:3])
        with pytest.raises(TypeError, match="single index 3"):
            store.gather(3)


@pytest.mark.parametrize(
    "dtype", ["u1", ">f8", "M8[s]", "S3", "U2", [("a", "u1"), ("b", "<i2")]], ids=str
)
def test_every_dtype(tmp_path: Path, dtype: Any) -> None:
    records = [np.zeros(n, dtype) for n in (3, 1, 7)]
    for record in records:
        if record.dtype.kind != "V":
            record[0] = 1
    with RaggedStore(tmp_path / "s", dtype) as store:
        store.append(records)
        assert same_list(store[:], records)


def test_what_is_read_is_the_callers(tmp_path: Path) -> None:
    with RaggedStore(tmp_path / "s", np.int32) as store:
        store.append(MIXED)
        for record in [*store[:], store[2]]:
            assert record.flags.writeable and record.flags.c_contiguous
            record[...] = -1
        assert same_list(store[:], MIXED)


def test_generators_and_reused_arrays(tmp_path: Path) -> None:
    def records() -> Any:
        buffer = np.empty(90, np.int32)
        for token in TOKENS:
            buffer[: len(token)] = token
            yield buffer[: len(token)]

    with RaggedStore(tmp_path / "s", np.int32) as store:
        assert store.append(records()) == 0
        assert store.append(iter(TOKENS)) == len(TOKENS)
        assert same_list(store[:], TOKENS + TOKENS)


def test_layouts_of_records(tmp_path: Path) -> None:
    plane = np.arange(24, dtype=np.int32).reshape(4, 6)
    records = [
        plane.T,
        plane[::2, ::-3],
        np.asfortranarray(plane),
        np.broadcast_to(plane[0], (3, 6)),
    ]
    with RaggedStore(tmp_path / "s", np.int32) as store:
        store.append(records)
        assert same_list(store[:], records)


def test_bytes_and_buffers_are_uint8_records(tmp_path: Path) -> None:
    anonymous = mmap.mmap(-1, 4)
    anonymous.write(b"mmap")
    given = [
        b"bytes",
        bytearray(b"array"),
        memoryview(b"view"),
        memoryview(b"abcdef")[::2],
        array.array("H", [258, 772]),
        anonymous,
        np.frombuffer(b"numpy", np.uint8),
    ]
    expected = [
        b"bytes",
        b"array",
        b"view",
        b"ace",
        array.array("H", [258, 772]).tobytes(),
        b"mmap",
        b"numpy",
    ]
    with RaggedStore(tmp_path / "s", np.uint8) as store:
        store.append(given)
        assert [record.tobytes() for record in store[:]] == expected
        assert all(record.dtype == np.uint8 and record.ndim == 1 for record in store[:])


@pytest.mark.parametrize("codec", CODECS)
def test_empty_records(tmp_path: Path, codec: str) -> None:
    empties = [
        np.empty(0, np.uint8),
        b"",
        np.empty((3, 0), np.uint8),
        b"x",
        np.empty((0, 2, 2), np.uint8),
    ]
    shapes = [(0,), (0,), (3, 0), (1,), (0, 2, 2)]
    with RaggedStore(tmp_path / "s", np.uint8, codec=codec, allow_empty=True) as store:
        store.append(empties)
        assert store.allow_empty
        assert [record.shape for record in store[:]] == shapes
        assert [record.shape for record in store[[0, 1]]] == shapes[:2]
        assert store[2].shape == (3, 0)
    with RaggedStore(tmp_path / "s") as store:  # the store's property, not the handle's
        assert store.allow_empty and "allow_empty" in repr(store)
        store.append([b""])
    RaggedStore(tmp_path / "t", np.uint8).close()
    with pytest.raises(StoreMismatchError):
        RaggedStore(tmp_path / "t", allow_empty=True)


def test_parts_and_calls_of_every_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loaderx._parts.PART_BYTES", 500)
    monkeypatch.setattr("loaderx._parts.PART_RECORDS", 7)
    monkeypatch.setattr("loaderx._parts.LARGE", 300)
    with RaggedStore(tmp_path / "s", np.int32) as store:
        store.append(TOKENS)
        assert same_list(store[:], TOKENS)
        for call_bytes in (1, 100, 1000):
            monkeypatch.setattr(_native, "CALL_BYTES", call_bytes)
            assert same_list(store[::-1], TOKENS[::-1])
        for records in (1, 3, 1000):
            monkeypatch.setattr(_ragged, "CALL_RECORDS", records)
            assert same_list(store[:], TOKENS)


def test_a_wrong_guess_of_the_room_costs_only_a_call(tmp_path: Path) -> None:
    small, big = np.ones(1, np.int32), np.ones((2, 1, 1, 5000), np.int32)
    with RaggedStore(tmp_path / "s", np.int32) as store:
        store.append([small] * 50 + [big] * 50)
        for _ in range(2):
            assert same_list(store[:50], [small] * 50)
            assert same_list(store[50:], [big] * 50)
            assert same_list(store[::7], ([small] * 50 + [big] * 50)[::7])


def test_arrays_of_a_set_share_one_buffer(tmp_path: Path) -> None:
    with RaggedStore(tmp_path / "s", np.int32) as store:
        store.append(TOKENS)
        starts = [record.__array_interface__["data"][0] for record in store[:10]]
        sizes = [record.nbytes for record in TOKENS[:10]]
        assert [b - a for a, b in zip(starts, starts[1:])] == sizes[:-1]


def test_repr_tells_all_of_it(tmp_path: Path) -> None:
    with RaggedStore(tmp_path / "s", np.int32, codec="raw") as store:
        text = repr(store)
    for part in ("RaggedStore", str(tmp_path / "s"), "int32", "'raw'", "'a'"):
        assert part in text
