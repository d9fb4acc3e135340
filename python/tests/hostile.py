"""What the tests of hostile stores share: records, ways to open, and what must not happen.

Whatever a store's files hold, opening and reading it raises one of loaderx's
exceptions or gives the right records; it changes no byte of the store, and
none of anything else.
"""

from __future__ import annotations

import faulthandler
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import forge
import numpy as np
import pytest
from support import same, same_list

from loaderx.errors import CorruptRecordError, ZrecordError
from loaderx.utils import train_dict
from loaderx.zrecord import DenseStore, RaggedStore

KINDS = ["dense", "ragged"]
ALL_CODECS = ["raw", "zstd", "zstd_dict"]
# "create": with all that would create a store, if there were none.
WAYS = ["r", "a", "create"]
MODES = ["r", "a"]
ITEM = (2, 3)
COUNT = 5
SHAPES = [(6,), (2, 3), (1,), (), (4, 1)]
CLASS: dict[str, Any] = {"dense": DenseStore, "ragged": RaggedStore}
# A test that takes longer hangs: the process ends, with every thread's stack.
HANG_SECONDS = 300


def records(kind: str) -> list[Any]:
    """COUNT records, of which no byte is 0: behind the end of a file are zeros."""
    # 200 bytes are enough for either.
    shapes = [ITEM] * COUNT if kind == "dense" else SHAPES
    numbers = np.random.default_rng(1).integers(1, 255, 200, np.uint8).tobytes()
    sizes = np.cumsum([0] + [4 * int(np.prod(shape)) for shape in shapes])
    return [
        np.frombuffer(numbers[a:b], np.int32).reshape(shape)
        for shape, a, b in zip(shapes, sizes, sizes[1:])
    ]


@lru_cache
def dictionary(seed: int = 0) -> bytes:
    """A small dictionary."""
    rng = np.random.default_rng(seed)
    trained: bytes = train_dict([rng.integers(0, 9, 1000, np.int32) for _ in range(80)], "fast")
    return trained


def forged(kind: str, codec: str = "raw", version: int = 5, **how: Any) -> forge.Forged:
    """A right store of the records."""
    trained = dictionary() if codec == "zstd_dict" else None
    return forge.forge(kind, codec, records(kind), version=version, dictionary=trained, **how)


def opened(kind: str, path: Path, way: str = "r") -> Any:
    """Open a store that was forged."""
    if way != "create":
        return CLASS[kind](path, mode=way)
    return DenseStore(path, np.int32, ITEM) if kind == "dense" else RaggedStore(path, np.int32)


def tree(path: Path) -> dict[str, Any]:
    """Everything in a folder, as it is: type, mode, times and contents, links not followed."""
    found: dict[str, Any] = {}
    for name in sorted([path, *path.rglob("*")]) if os.path.lexists(path) else []:
        info = name.lstat()
        content: Any = None
        if stat.S_ISLNK(info.st_mode):
            content = os.readlink(name)
        elif stat.S_ISREG(info.st_mode):
            # Some are sparse and large: their size is what counts.
            content = name.read_bytes() if info.st_size < 1 << 24 else info.st_size
        found[str(name)] = info.st_mode, info.st_mtime_ns, info.st_ino, content
    return found


@contextmanager
def unchanged(path: Path) -> Iterator[None]:
    """Whatever the block does, it changes nothing in a folder."""
    before = tree(path)
    try:
        yield
    finally:
        assert tree(path) == before


@pytest.fixture(autouse=True)
def guard(tmp_path: Path) -> Iterator[Path]:
    """A folder that is no store's, in which nothing may change; and an end to hanging."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "0.chunk").write_bytes(bytes(range(1, 200)))
    (outside / "note").write_text("not yours")
    assert sys.__stderr__ is not None
    faulthandler.dump_traceback_later(HANG_SECONDS, exit=True, file=sys.__stderr__)
    try:
        with unchanged(outside):
            yield outside
    finally:
        faulthandler.cancel_dump_traceback_later()


def refused(
    error: type[ZrecordError],
    match: str,
    kind: str,
    path: Path,
    file: str = "",
    ways: Iterable[str] = WAYS,
) -> None:
    """Opening raises exactly this error, which names the file, and changes nothing."""
    named = str(path / file) if file else str(path)
    for way in ways:
        with unchanged(path), pytest.raises(error, match=match) as caught:
            opened(kind, path, way).close()
        assert type(caught.value) is error
        assert caught.value.path == named and named in str(caught.value)


def reads(
    kind: str, path: Path, ways: Iterable[str] = WAYS, wanted: list[Any] | None = None
) -> None:
    """The store opens and gives the records, and that changes nothing."""
    wanted = records(kind) if wanted is None else wanted
    for way in ways:
        with unchanged(path), opened(kind, path, way) as store:
            assert len(store) == len(wanted)
            assert same_list([store[i] for i in range(len(wanted))], wanted)
            assert same_list(list(store[:]), wanted)
            assert same_list(list(store), wanted)


def refuses_records(match: str, kind: str, path: Path, bad: Iterable[int]) -> None:
    """Reading a bad record raises CorruptRecordError, alone and among others.

    The rest reads, and a verification reports exactly the bad ones.
    """
    bad, wanted = sorted(bad), records(kind)
    good = [i for i in range(len(wanted)) if i not in bad]
    for way in MODES:
        with unchanged(path), opened(kind, path, way) as store:
            assert len(store) == len(wanted)
            for i in bad:
                for index in (i, [i], [*good, i, *good], np.repeat(i, 300)):
                    refuses_record(match, store, path, index, i)
            assert same_list(list(store[good]), [wanted[i] for i in good])
            assert all(same(store[i], wanted[i]) for i in good)
            report = store.verify()
            assert sorted(found.index for found in report.bad) == bad and not report.ok


def refuses_record(match: str, store: Any, path: Path, index: Any, bad: int) -> None:
    """Reading index raises CorruptRecordError, of record bad."""
    for read in (store.__getitem__, store.gather):
        if isinstance(index, int) and read == store.gather:
            continue
        with pytest.raises(CorruptRecordError, match=match) as caught:
            read(index)
        found = caught.value
        assert type(found) is CorruptRecordError and found.index == bad
        assert found.path is not None and Path(found.path).parent == path
        assert found.path in str(found) and f"record {bad} " in str(found)
