"""RaggedBatch: ragged records in one piece, and dense ones made of them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import same, same_list

from loaderx import _native, _ragged
from loaderx.zrecord import RaggedBatch, RaggedStore

RNG = np.random.default_rng(8)
FLAT = [RNG.integers(0, 100, n).astype(np.int32) for n in RNG.integers(1, 40, 60)]
PLANES = [RNG.integers(0, 100, (n, 2, 3)).astype(np.int32) for n in RNG.integers(1, 9, 60)]
MIXED = [*FLAT[:20], *PLANES[:20], np.array(7, np.int32), *FLAT[20:39]]
KINDS = {"flat": FLAT, "planes": PLANES, "mixed": MIXED}


def batch_of(tmp_path: Path, records: list[Any], dtype: Any = np.int32) -> RaggedBatch:
    with RaggedStore(tmp_path / "s", dtype, allow_empty=True) as store:
        store.append(records)
        return store.gather(slice(None))


@pytest.mark.parametrize("codec", ["raw", "zstd"])
@pytest.mark.parametrize("records", KINDS.values(), ids=KINDS)
def test_gather_packs_what_indexing_lists(tmp_path: Path, codec: str, records: list[Any]) -> None:
    index = RNG.integers(-60, 60, 200)
    wanted = [records[i] for i in index]
    with RaggedStore(tmp_path / "s", np.int32, codec) as store:
        store.append(records)
        for _ in range(2):  # with a wrong guess of the room, and with a right one
            batch = store.gather(index)
            assert same_list(batch.to_list(), wanted) and same_list(list(batch), wanted)
            assert same(batch.values, np.concatenate([record.ravel() for record in wanted]))
            assert same(batch.offsets, np.cumsum([0, *(record.size for record in wanted)]))
            assert [tuple(shape) for shape in batch.shapes] == [record.shape for record in wanted]
            assert same(batch.lengths, np.array([record.size for record in wanted]))
            assert len(batch) == 200 and batch.dtype == np.int32
        assert isinstance(batch.shapes, list if records is MIXED else np.ndarray)
        assert batch.values.flags.writeable and batch.offsets.dtype == np.int64
        assert same(store.lengths(index), batch.lengths)
        assert same(store.lengths(), np.array([record.size for record in records]))
        assert same(store.lengths(-1), np.array([records[-1].size]))
        assert same_list(store.__getitems__(index), wanted)


@pytest.mark.parametrize("records", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize(("nbytes", "count"), [(1, 1000), (100, 7), (1000, 3), (1 << 20, 1)])
def test_calls_of_every_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, records: list[Any], nbytes: int, count: int
) -> None:
    monkeypatch.setattr(_native, "CALL_BYTES", nbytes)
    monkeypatch.setattr(_ragged, "CALL_RECORDS", count)
    ask, calls = _ragged._ask, []

    def counted(call: Any, index: Any, *rest: Any) -> Any:
        calls.append(len(index))
        return ask(call, index, *rest)

    monkeypatch.setattr(_ragged, "_ask", counted)
    with RaggedStore(tmp_path / "s", np.int32) as store:
        store.append(records)
        for _ in range(2):
            batch = store.gather(range(60))
            assert same_list(batch.to_list(), records)
            assert isinstance(batch.shapes, list if records is MIXED else np.ndarray)
        assert store.lengths().tolist() == [record.size for record in records]
    assert 0 < max(calls) <= count


@pytest.mark.parametrize("records", KINDS.values(), ids=KINDS)
def test_a_call_within_a_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, records: list[Any]
) -> None:
    """As a signal handler or a finalizer makes one: the outer one keeps its answer."""
    ask, within = _ragged._ask, False
    with RaggedStore(tmp_path / "s", np.int32) as store:
        store.append(records)

        def nested(*call: Any) -> Any:
            nonlocal within
            answer = ask(*call)
            if not within:
                within = True
                assert same_list(store[range(59, -1, -1)], records[::-1])
                assert same_list(store.gather([7, 3]).to_list(), [records[7], records[3]])
                within = False
            return answer

        monkeypatch.setattr(_ragged, "_ask", nested)
        for _ in range(2):
            assert same_list(store[range(60)], records)
            assert same_list(store.gather(range(60)).to_list(), records)
            assert same(store.lengths(), np.array([record.size for record in records]))


def test_no_records_and_empty_ones(tmp_path: Path) -> None:
    with RaggedStore(tmp_path / "s", np.float16, allow_empty=True) as store:
        none = store.gather([])
        assert (len(none), none.values.dtype, none.to_list()) == (0, np.float16, [])
        assert same(none.offsets, np.zeros(1, np.int64)) and same(store.lengths(), none.lengths)
        assert [part.shape for part in none.pad()] == [(0, 0), (0,)]
        store.append([np.empty((0, 2), np.float16), np.empty((3, 0), np.float16)])
        both = store.gather([0, 1])
        assert both.values.size == 0 and both.shapes.tolist() == [[0, 2], [3, 0]]
        assert [record.shape for record in both] == [(0, 2), (3, 0)]
        assert [part.shape for part in store.gather([1]).pad()] == [(1, 3, 0), (1,)]
        dense, lengths = store.gather([0, 0]).pad(multiple_of=4)
        assert dense.shape == (2, 0, 2) and lengths.tolist() == [0, 0]


def test_indexing_a_batch(tmp_path: Path) -> None:
    batch = batch_of(tmp_path, PLANES)
    assert same(batch[3], PLANES[3]) and same(batch[-1], PLANES[-1])
    for cut in (slice(2, 9), slice(None), slice(7, 3), slice(None, None, -1), slice(50, 2, -7)):
        part = batch[cut]
        assert isinstance(part, RaggedBatch) and same_list(list(part), PLANES[cut])
        assert part.offsets[0] == 0 and part.offsets[-1] == len(part.values)
    mixed = batch_of(tmp_path / "m", MIXED)
    assert same_list(list(mixed[30:50]), MIXED[30:50])
    assert same_list(list(mixed[50:30:-3]), MIXED[50:30:-3])
    batch[0][...] = -1  # a view
    assert (batch.values[: PLANES[0].size] == -1).all()
    assert repr(batch) == f"RaggedBatch(60 records, {sum(p.size for p in PLANES)} of int32)"
    assert same_list(list(pickle.loads(pickle.dumps(batch))), list(batch))


def padded(records: list[Any], value: Any, length: int) -> Any:
    """The loop that 1.7.7's README shows."""
    out = np.full((len(records), length, *records[0].shape[1:]), value, records[0].dtype)
    for i, record in enumerate(records):
        out[i, : len(record)] = record[:length]
    return out


@pytest.mark.parametrize("records", [FLAT, PLANES], ids=["flat", "planes"])
def test_pad(tmp_path: Path, records: list[Any]) -> None:
    batch = batch_of(tmp_path, records)
    longest = max(map(len, records))
    dense, lengths = batch.pad()
    assert same(dense, padded(records, 0, longest))
    assert same(lengths, np.array(list(map(len, records))))
    dense, lengths = batch.pad(-1, multiple_of=16)
    assert dense.shape[1] % 16 == 0 and 0 <= dense.shape[1] - longest < 16
    assert same(dense, padded(records, -1, dense.shape[1]))
    dense, lengths = batch.pad(5, max_length=3)
    assert same(dense, padded(records, 5, 3)) and lengths.max() == 3
    dense, lengths = batch.pad(max_length=3, multiple_of=4)
    assert same(dense[:, :3], padded(records, 0, 3)) and dense.shape[1] == 4
    assert (dense[:, 3] == 0).all()
    assert same_list(list(batch), records)  # nothing of it has changed
    dense[...] = 1
    assert same_list(list(batch), records)


PADDING: list[tuple[list[Any], dict[str, Any], type[Exception], str]] = [
    (MIXED, {}, ValueError, r"one number of dimensions, got \[0, 1, 3\]"),
    ([np.int32(4)], {}, ValueError, r"got scalars, of shape \(\)"),
    (
        [np.ones((2, 3), np.int32), np.ones((2, 4), np.int32)],
        {},
        ValueError,
        r"first axis only, got shape \(2, 3\) at position 0 and \(2, 4\) at position 1",
    ),
    (FLAT, {"value": 0.5}, ValueError, "value: expected one that an element of int32 can be"),
    (FLAT, {"value": 1 << 31}, ValueError, "value: expected .* got 2147483648"),
    (FLAT, {"value": "x"}, ValueError, "value: expected .* got 'x'"),
    (FLAT, {"value": None}, ValueError, "value: expected .* got None"),
    (FLAT, {"value": [1, 2]}, ValueError, r"value: expected .* got \[1, 2\]"),
    (FLAT, {"multiple_of": 0}, ValueError, "multiple_of: expected at least 1, got 0"),
    (FLAT, {"multiple_of": 1.5}, TypeError, "multiple_of: expected an integer, got float 1.5"),
    (FLAT, {"multiple_of": True}, TypeError, "multiple_of: expected an integer, got bool True"),
    (FLAT, {"max_length": 0}, ValueError, "max_length: expected at least 1, got 0"),
    (FLAT, {"max_length": "9"}, TypeError, "max_length: expected an integer, got str '9'"),
]


@pytest.mark.parametrize(("records", "arguments", "error", "message"), PADDING)
def test_what_cannot_be_padded(
    tmp_path: Path, records: Any, arguments: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        batch_of(tmp_path, records).pad(**arguments)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [("f4", np.nan), (">i2", -3), ("M8[s]", np.datetime64("NaT")), ("S3", b"ab")],
)
def test_pad_of_other_dtypes(tmp_path: Path, dtype: str, value: Any) -> None:
    records = [np.zeros(n, dtype) for n in (2, 1)]
    dense, _ = batch_of(tmp_path, records, dtype).pad(value)
    assert same(dense, padded(records, value, 2))


def test_pad_with_another_axis_of_zero(tmp_path: Path) -> None:
    dense, rows = batch_of(tmp_path, [np.zeros((n, 0, 2), np.int32) for n in (3, 1)]).pad()
    assert same(dense, np.zeros((2, 3, 0, 2), np.int32)) and rows.tolist() == [3, 1]


@pytest.mark.parametrize("dtype", ["V7", "V1", "M8", "m8", "M8[s]", "S3", "?", "u1,f4"])
def test_the_default_padding_is_zero_bytes(tmp_path: Path, dtype: str) -> None:
    size = np.dtype(dtype).itemsize
    ones = np.frombuffer(b"\1" * size, dtype)
    dense, rows = batch_of(tmp_path, [ones, np.repeat(ones, 3)], dtype).pad()
    assert dense.dtype == np.dtype(dtype) and rows.tolist() == [1, 3]
    assert [row.tobytes() for row in dense] == [b"\1" * size + b"\0" * 2 * size, b"\1" * size * 3]


USES: list[tuple[Any, type[Exception], str]] = [
    (lambda b: b[60], IndexError, "index 60 is out of range for RaggedBatch.60 records"),
    (lambda b: b[-61], IndexError, "index -61 is out of range"),
    (lambda b: b[1.0], TypeError, "expected an integer or a slice, got float"),
    (lambda b: b[True], TypeError, "got bool"),
    (lambda b: b[[1]], TypeError, "got list"),
    (lambda b: RaggedBatch(b.values[None], b.offsets, b.shapes), ValueError, "values: .* 1-D"),
    (lambda b: RaggedBatch([1], b.offsets, b.shapes), ValueError, "values: .* got list"),
    (lambda b: RaggedBatch(b.values, b.offsets[1:], b.shapes), ValueError, "offsets: .* of 61 for"),
]


@pytest.mark.parametrize(("use", "error", "message"), USES)
def test_wrong_arguments(tmp_path: Path, use: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        use(batch_of(tmp_path, FLAT))
