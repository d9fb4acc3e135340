"""The benchmarks of calls, of the sampler, of dictionaries and of cold data, on small sets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench_lib import calls, cold, dictionary, machine, sampler
from bench_lib import data as sets
from bench_lib.backends import ram
from bench_lib.data import DataSet

DATA = replace(calls.DATA, count=2000)


class Lmdb:
    """As much of lmdb as the calls need, which the tests' environment does not have."""

    def __init__(self) -> None:
        self._values: dict[bytes, bytes] = {}

    def open(self, path: str, **options: Any) -> Lmdb:
        return self

    @contextmanager
    def begin(self, **options: Any) -> Iterator[Lmdb]:
        yield self

    def put(self, key: bytes, value: bytes, append: bool) -> None:
        self._values[key] = value

    def get(self, key: bytes) -> bytes:
        return self._values[key]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> calls.CallsHost:
    monkeypatch.setattr(calls, "DATA", DATA)
    monkeypatch.setattr(calls, "library", lambda name: Lmdb())
    return calls.CallsHost(str(tmp_path / "calls"))


def test_calls(host: calls.CallsHost) -> None:
    host.check()
    found = host.run(1, 0)
    names = {rule.mine for rule in calls.RULES} | {rule.other for rule in calls.RULES}
    assert names - {*found} == {"", "over the native call", "import"}
    assert all(m.seconds > 0 for m in found.values())


def test_a_wrong_call_is_found(host: calls.CallsHost) -> None:
    host._records = host._records[::-1]
    with pytest.raises(AssertionError, match=r"ds\[i\], one record: wrong values"):
        host.check()


def test_sampler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "RECORDS", 20_000)
    host = sampler.SamplerHost("loaderx")
    host.check()
    found = host.run(1, 0)
    for rule in sampler.RULES:
        assert rule.mine in found and rule.other in found
    assert found["permutation 8192"].seconds > found["permutation 256"].seconds > 0


class Stuck:
    """A sampler that draws the same batch for ever."""

    def __init__(self, length: int, batch: int, mode: int, seed: int) -> None:
        self._batch = batch

    def next(self) -> Any:
        return np.arange(self._batch)


def test_a_wrong_sampler_is_found() -> None:
    host = sampler.SamplerHost("loaderx")
    host._sampler = Stuck
    with pytest.raises(AssertionError, match="loaderx: expected 0 to 999 once each"):
        host.check()


def test_dictionary_host_without_a_dictionary(tmp_path: Path) -> None:
    data = replace(dictionary.SETS[0], count=40, batch=8)
    host = dictionary.DictionaryHost(str(tmp_path / "it"), data)
    facts = host.write("zstd")
    host.check()
    assert facts["ratio"] > 2 and facts["ratio"] == facts["ratio_with_dictionary"]
    assert list(host.run(1, 0)) == ["zstd"]


def test_pread_gives_the_records(tmp_path: Path) -> None:
    data = DataSet("d", "images", "uint8", (100,), 50, 8)
    records = sets.dense(data)
    ram.Memmap(tmp_path, data).write(records)
    reader = cold.Pread(tmp_path, data)
    reader.open()
    index = np.array([49, 0, 7, 7])
    assert (reader.gather(index) == records[index]).all()
    reader.close()


def test_pages_that_were_read_are_resident(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(1 << 20))
    assert cold.resident(path) == 1.0
    path.write_bytes(b"")
    assert cold.resident(path) == 0.0


def test_disk_bytes_are_blocks(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    with open(tmp_path / "below" / "file", "wb") as file:
        file.write(bytes(range(256)) * 4096)
        file.truncate(1 << 30)
    assert 1 << 20 <= machine.disk_bytes(tmp_path) < 1 << 24
