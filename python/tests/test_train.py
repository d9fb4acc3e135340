"""Dictionaries: training them, stores that need one, and advice on codecs."""

from __future__ import annotations

import itertools
import os
import signal
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import output_of, same, same_list

from loaderx import _memory, _sample, _train
from loaderx._advise import AdviceRow, recommend
from loaderx.errors import CorruptStoreError, StoreClosedError, StoreMismatchError, ZrecordError
from loaderx.utils import Advice, advise, train_dict
from loaderx.zrecord import DICT_TIERS, DenseStore, RaggedStore


def similar(count: int, length: int = 600, seed: int = 0) -> Any:
    """Records that share much with each other: what dictionaries are for."""
    rng = np.random.default_rng(seed)
    base = rng.integers(0, 256, (20, length), np.uint8)
    records = base[rng.integers(20, size=count)].copy()
    records[np.arange(count)[:, None], rng.integers(length, size=(count, length // 20))] = 0
    return records


DATA = similar(1000)


@pytest.fixture(scope="module")
def trained() -> bytes:
    return train_dict(DATA, "fast")


def sources(tmp_path: Path) -> dict[str, Any]:
    """The same records in every form."""
    dense = DenseStore(tmp_path / "dense", np.uint8, DATA.shape[1:])
    dense.append(DATA)
    ragged = RaggedStore(tmp_path / "ragged", np.uint8)
    ragged.append(DATA)
    np.save(tmp_path / "data.npy", DATA)
    return {
        "array": DATA,
        "memory-mapped": np.load(tmp_path / "data.npy", mmap_mode="r"),
        "strided": np.repeat(DATA, 2, 1)[:, ::2],
        "dense": dense,
        "ragged": ragged,
        "list": list(DATA),
        "generator": (record for record in DATA),
        "bytes": [record.tobytes() for record in DATA],
    }


def test_every_form_of_source_gives_the_same(tmp_path: Path, trained: bytes) -> None:
    found = sources(tmp_path)
    for name, source in found.items():
        assert train_dict(source, "fast") == trained, name
    assert 20_000 < len(trained) <= DICT_TIERS["fast"]["size"]
    assert trained[:4] == b"\x37\xa4\x30\xec"
    found["dense"].close(), found["ragged"].close()


def test_a_dictionary_pays(tmp_path: Path, trained: bytes) -> None:
    sizes = {}
    for codec, dictionary in (("zstd", None), ("zstd_dict", trained)):
        with DenseStore(tmp_path / codec, np.uint8, (600,), codec, dictionary) as store:
            store.append(DATA)
            sizes[codec] = store.stats()["live_bytes"]
        with DenseStore(tmp_path / codec) as store:
            assert same(store[:], DATA) and store.has_dict() == (codec == "zstd_dict")
    assert sizes["zstd_dict"] * 2 < sizes["zstd"]
    assert (tmp_path / "zstd_dict" / "dict.zr").read_bytes() == trained


def test_the_file_appears_as_a_whole(
    tmp_path: Path, trained: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert train_dict(DATA, "fast", tmp_path / "d") == trained
    assert (tmp_path / "d").read_bytes() == trained
    monkeypatch.setattr("os.replace", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        train_dict(similar(1000, seed=1), "fast", tmp_path / "d")
    assert [p.name for p in tmp_path.iterdir()] == ["d"]
    assert (tmp_path / "d").read_bytes() == trained
    monkeypatch.setattr("os.replace", lambda *_: os.rename(tmp_path / "no", tmp_path / "where"))
    with pytest.raises(FileNotFoundError) as caught:
        train_dict(DATA, "fast", tmp_path / "d")
    assert caught.value.filename == str(tmp_path / "d") and caught.value.filename2 is None


def test_a_file_that_cannot_be_written_is_found_out_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loaderx._train.train", lambda *_: pytest.fail("trained"))
    (tmp_path / "file").touch()
    for path, error in [
        (tmp_path / "no" / "d", FileNotFoundError),
        (tmp_path / "file" / "d", NotADirectoryError),
        (tmp_path, IsADirectoryError),
    ]:
        with pytest.raises(error) as caught:
            train_dict(DATA, "fast", path)
        assert caught.value.filename == str(path)
    with pytest.raises(ValueError, match="too little|at least 8 records"):
        train_dict(DATA[:1], "fast", tmp_path / "d")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_small_source_gives_a_small_dictionary() -> None:
    with pytest.warns(UserWarning, match="small for .* 'balanced': expected at least 1048576") as w:
        small = train_dict(DATA[:100])
    assert w[0].filename == __file__
    assert 512 <= len(small) <= 100 * 600 // 8


@pytest.mark.parametrize(
    "source",
    [[], DATA[:0], DATA[:7], DATA[:3, :100], [b""] * 100, np.zeros(100, np.int64), iter([b"x"])],
    ids=["none", "no rows", "seven", "few bytes", "empty", "scalars", "iterator"],
)
def test_too_little_to_learn_from(source: Any) -> None:
    with pytest.raises(ValueError, match="expected at least 8 records and 4096 bytes .* got "):
        train_dict(source)


def test_records_that_are_all_the_same_give_a_dictionary_or_say_why() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            found = train_dict(np.zeros((100, 1000), np.uint8))
        except ValueError as error:
            assert "samples" in str(error)
        else:
            assert found[:4] == b"\x37\xa4\x30\xec"


WRONG: list[tuple[Any, type[Exception], str]] = [
    (lambda: train_dict("path"), TypeError, "source: expected an array, .* got str"),
    (lambda: train_dict(b"bytes"), TypeError, "got bytes"),
    (lambda: train_dict(5), TypeError, "got int"),
    (lambda: train_dict(None), TypeError, "got NoneType"),
    (lambda: train_dict({"a": DATA}), TypeError, "got dict"),
    (lambda: train_dict(np.uint8(5)), TypeError, "got uint8"),
    (lambda: train_dict(np.array(5)), ValueError, r"got one of shape \(\)"),
    (lambda: train_dict(np.array([None] * 9)), TypeError, "without Python objects, got object"),
    (lambda: train_dict([b"x", "y"]), TypeError, "record 1 to be an array or a buffer, got str"),
    (lambda: train_dict([np.array([None])]), TypeError, "record 0 without Python objects"),
    (
        lambda: train_dict(DATA, "huge"),
        ValueError,
        "tier: .* 'fast', 'balanced', 'max', got 'huge'",
    ),
    (lambda: train_dict(DATA, 3), TypeError, "tier: expected None or one of .*, got 3"),
    (lambda: train_dict(DATA, path=3), TypeError, "path: expected a str, .* got int 3"),
    (lambda: train_dict(DATA, path="~/d"), ValueError, "path: expected one without a leading ~"),
    (lambda: advise("path"), TypeError, "source: expected an array, .* got str"),
    (lambda: advise([]), ValueError, "at least one record of at least one byte, got none"),
    (lambda: advise(DATA[:0]), ValueError, "at least one record of at least one byte, got none"),
    (lambda: advise([b"", b""]), ValueError, "at least one record of at least one byte, got none"),
    (lambda: advise([np.zeros(2, "u1"), np.zeros(2)]), TypeError, "record 1 to be of dtype uint8"),
]


@pytest.mark.parametrize(("call", "error", "message"), WRONG)
def test_wrong_arguments(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_a_closed_store(tmp_path: Path) -> None:
    store = DenseStore(tmp_path / "s", np.uint8, ())
    store.close()
    for call in (train_dict, advise):
        with pytest.raises(StoreClosedError, match="expected an open store"):
            call(store)


# ---- the sample ----


def test_the_sample_is_spread_over_the_whole_source() -> None:
    data = np.arange(100_000, dtype=np.uint32).reshape(-1, 1).repeat(10, 1)  # 40 bytes a record
    for source in (data, iter(data)):
        sample = _sample.pieces(source, 40_000)
        assert 900 <= len(sample.sizes) <= 1000 and set(sample.sizes) == {40}
        assert sample.payload.nbytes == sample.sizes.sum()
        chosen = np.diff(sample.payload.view(np.uint32).reshape(-1, 10)[:, 0])
        assert chosen.min() > 0 and chosen.max() < 300  # about every hundredth, to the end


def test_large_records_are_cut() -> None:
    piece = _sample.PIECE
    data = np.arange(6, dtype=np.uint8)[:, None].repeat(5 * piece + 10, 1)
    everything = _sample.pieces(data, 1 << 30)
    assert everything.sizes.tolist() == ([piece] * 5 + [10]) * 6
    assert same(everything.payload, data.ravel())
    for source in (data, list(data), iter(data)):
        some = _sample.pieces(source, 6 * piece)
        assert 5 * piece <= some.payload.nbytes <= 6 * piece + 60 and max(some.sizes) <= piece
        assert len(set(some.payload.tolist())) >= 3  # of records far apart


def test_the_sample_of_a_ragged_store(tmp_path: Path) -> None:
    piece = _sample.PIECE
    lengths = [3, 0, 2 * piece + 5, 1, 0, piece, 9]
    with RaggedStore(tmp_path / "s", np.uint8, allow_empty=True) as store:
        store.append(np.full(n, i, np.uint8) for i, n in enumerate(lengths))
        sample = _sample.pieces(store, 1 << 30)
        assert sample.sizes.tolist() == [3, piece, piece, 5, 1, piece, 9]
        assert same(sample.payload, np.concatenate(store[:]))
        assert same_list(_sample.records(store, 1 << 30), store[:])
        assert len(_sample.records(store, 1)) == 1


def test_large_records_are_read_once_and_not_kept() -> None:
    source = np.zeros((4, 8 << 20), np.uint8)
    _sample.pieces(source[:1], 1 << 20)  # what is loaded at first is not counted
    tracemalloc.start()
    sample = _sample.pieces(source, 4 << 20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(sample.sizes) >= 16 and peak < 40 << 20, (len(sample.sizes), peak >> 20)


def test_memory_stays_bounded_however_long_the_iterable() -> None:
    record = np.zeros(10_000, np.uint8)
    tracemalloc.start()
    try:
        sample = _sample.pieces(itertools.repeat(record, 5000), 1_000_000)  # 50 MB in all
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 500_000 < sample.payload.nbytes <= 1_000_000 and peak < 6_000_000


def test_a_reused_array_is_copied() -> None:
    def records() -> Any:
        buffer = np.empty(8, np.uint8)
        for i in range(100):
            buffer[:] = i
            yield buffer

    sample = _sample.pieces(records(), 1 << 20)
    assert same(sample.payload, np.arange(100, dtype=np.uint8).repeat(8))
    assert [int(record[0]) for record in _sample.records(records(), 1 << 20)] == list(range(100))


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no way to send oneself a Ctrl-C")
def test_ctrl_c_while_training() -> None:
    code = """
        import os, signal, sys, threading
        import numpy as np
        from loaderx import _train, _sample, DenseStore
        data = np.random.default_rng(0).integers(0, 9, (20000, 4096), np.uint8)
        sample = _sample.pieces(data, 64 << 20)
        def handler(*_):
            raise KeyboardInterrupt
        signal.signal(signal.SIGINT, handler)
        class Running(threading.Thread):
            def start(self):
                super().start()
                if self.name == "loaderx-train":
                    os.kill(os.getpid(), signal.SIGINT)
        threading.Thread = Running
        try:
            _train.train(sample, 1 << 20)
        except KeyboardInterrupt:
            print("interrupted")
        sys.stdout.flush()
    """
    assert output_of(code) == "interrupted"


# ---- stores that have a dictionary, or should ----


def test_a_store_without_its_dictionary_is_never_made(tmp_path: Path) -> None:
    for make in (
        lambda: DenseStore(tmp_path / "s", np.uint8, (600,), "zstd_dict"),
        lambda: RaggedStore(tmp_path / "s", np.uint8, "zstd_dict"),
        lambda: RaggedStore(tmp_path / "s", np.uint8, "zstd_dict", b""),
        lambda: RaggedStore(tmp_path / "s", np.uint8, "zstd_dict", b"not a dictionary" * 99),
    ):
        with pytest.raises(ValueError, match="dict"):
            make()
        assert not (tmp_path / "s" / "store.zr").exists()
    with RaggedStore(tmp_path / "s", np.uint8) as store:  # the folder was left as it was
        store.append([b"x"])


@pytest.mark.parametrize("codec", ["raw", "zstd"])
def test_a_store_that_takes_none_refuses_one(tmp_path: Path, trained: bytes, codec: str) -> None:
    with pytest.raises(ValueError, match=f"expected none with codec '{codec}', got {len(trained)}"):
        RaggedStore(tmp_path / "s", np.uint8, codec, trained)
    with RaggedStore(tmp_path / "s", np.uint8, codec) as store:
        store.append([b"x"])
    (tmp_path / "s" / "dict.zr").write_bytes(trained)
    for mode in ("a", "r"):
        with pytest.raises(ZrecordError, match="dict.zr"):
            RaggedStore(tmp_path / "s", mode=mode)


def test_a_dictionary_that_is_not_the_stores(tmp_path: Path, trained: bytes) -> None:
    RaggedStore(tmp_path / "s", np.uint8, "zstd_dict", trained).close()
    RaggedStore(tmp_path / "s", np.uint8, "zstd_dict", trained).close()  # the same one: opens
    other = train_dict(similar(1000, seed=1), "fast")
    with pytest.raises(StoreMismatchError, match="dictionary"):
        RaggedStore(tmp_path / "s", np.uint8, "zstd_dict", other)
    file = tmp_path / "s" / "dict.zr"
    rotten = bytearray(trained)
    rotten[5000] ^= 1
    for content in (other, bytes(rotten), trained[:-1], b""):
        file.write_bytes(content)
        for mode in ("a", "r"):
            with pytest.raises(CorruptStoreError, match="dict.zr"):
                RaggedStore(tmp_path / "s", mode=mode)
    file.unlink()
    with pytest.raises(CorruptStoreError, match="dict.zr"):
        RaggedStore(tmp_path / "s")
    file.write_bytes(trained)
    RaggedStore(tmp_path / "s").close()


# ---- advice ----


def test_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loaderx._advise.GATHER_SECONDS", 0.001)
    for source in (DATA, list(DATA), iter(DATA)):
        found = advise(source)
        assert isinstance(found, Advice)
        assert [row.name for row in found.rows[:3]] == ["raw", "zstd", "zstd_dict fast"]
        raw, plain, fast = found.rows[:3]
        assert 0.9 < raw.ratio <= 1 and plain.ratio < fast.ratio and fast.dict_bytes > 0
        assert all(row.write > 0 and row.gather > 0 for row in found.rows)
        assert found.recommendation.startswith("Take zstd_dict ")
        text = str(found)
        assert all(row.name in text for row in found.rows) and found.recommendation in text
        assert "1000 of 1000 records" in text
    noise = np.random.default_rng(0).integers(0, 256, (300, 64), np.uint8)
    assert advise(noise).recommendation.startswith("Take raw: ")


def test_advice_on_large_records_needs_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loaderx._advise.GATHER_SECONDS", 0)
    taken: list[int] = []
    class_of = _memory.class_of

    def spy(nbytes: int) -> Any:
        taken.append(nbytes)
        return class_of(nbytes)

    monkeypatch.setattr(_memory, "class_of", spy)
    advise(np.zeros((4, 1 << 20), np.uint8))
    assert max(taken) == 16 << 20  # 16 records, and not 256
    taken.clear()
    advise([np.zeros(1, np.uint8), np.zeros(1 << 20, np.uint8)])
    assert max(taken) <= 32 << 20  # a gather of unknown size has room to spare


def row(codec: str, ratio: float, gather: float, tier: str | None = None) -> AdviceRow:
    return AdviceRow(codec, tier, 0, ratio, 100.0, gather)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([row("raw", 1, 900), row("zstd", 1.05, 100)], "Take raw: no codec"),
        ([row("raw", 1, 900), row("zstd", 2, 600)], "Take zstd: it makes the records 2.0 times"),
        ([row("raw", 1, 900), row("zstd", 2, 100)], "Take zstd: .*; raw is read at 900 MiB/s"),
        (
            [row("raw", 1, 1), row("zstd", 2, 1), row("zstd_dict", 2.2, 1, "fast")],
            "Take zstd: ",
        ),
        (
            [
                row("raw", 1, 1),
                row("zstd", 2, 1),
                row("zstd_dict", 3, 1, "fast"),
                row("zstd_dict", 3.1, 1, "max"),
            ],
            "Take zstd_dict fast: .*, where plain zstd makes them 2.0 times smaller",
        ),
    ],
)
def test_the_recommendation(rows: list[AdviceRow], expected: str) -> None:
    with pytest.raises(AssertionError, match=expected):
        raise AssertionError(recommend(rows))


def test_room_for_a_dictionary() -> None:
    def sample(count: int, size: int) -> _sample.Pieces:
        return _sample.Pieces(np.zeros(count * size, np.uint8), np.full(count, size))

    assert _train.room_for(sample(100, 10_000), 32768) == 32768
    assert _train.room_for(sample(10, 10_000), 32768) == 12_500
    assert _train.room_for(sample(8, 512), 32768) == 512
