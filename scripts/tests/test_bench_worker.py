"""The benchmarks' processes: requests, answers, and errors over a pipe."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bench_lib import child, environment, loader_host, loaders
from bench_lib import data as sets
from bench_lib.data import DataSet
from bench_lib.hosts import save_source
from bench_lib.machine import PeakMemory, anonymous_bytes, tree
from bench_lib.timing import repeat
from bench_lib.worker import ContenderError, Worker

DATA = DataSet("784", "images", "uint8", (12,), 64, 8)


def test_serve_answers_in_order() -> None:
    source, sink = io.BytesIO(), io.BytesIO()
    for request in [("fractions:Fraction", (3, 4)), ("limit_denominator", (2,)), ("nothing", ())]:
        child.send(source, request)
    source.seek(0)
    child.serve(source, sink)
    sink.seek(0)
    assert child.receive(sink) == (True, None)
    good, half = child.receive(sink)
    assert good and (half.numerator, half.denominator) == (1, 1)
    good, text = child.receive(sink)
    assert not good and "AttributeError" in text
    with pytest.raises(EOFError):
        child.receive(sink)


def test_a_worker_works_and_ends() -> None:
    with Worker("it", sys.executable, "collections:Counter", (["a", "b", "a"],)) as worker:
        assert worker.call("most_common", 1) == [("a", 2)]
        assert worker.pid != os.getpid()
        assert worker.pid in tree(os.getpid())
        with pytest.raises(ContenderError, match=r"it, pop: KeyError: 'c'"):
            worker.call("pop", "c")
        assert worker.call("most_common", 1) == [("a", 2)]
    assert worker._process.returncode == 0


def test_a_worker_that_is_missing_is_an_error() -> None:
    with pytest.raises(ContenderError, match="it, no_such_module:Host: ModuleNotFoundError"):
        Worker("it", sys.executable, "no_such_module:Host")
    with pytest.raises(ContenderError, match="it: cannot run /no/such/python"):
        Worker("it", "/no/such/python", "collections:Counter")


def test_a_worker_that_dies_is_an_error() -> None:
    with pytest.raises(ContenderError, match="expected an answer to os:_exit, .* ended with 3"):
        Worker("it", sys.executable, "os:_exit", (3,))


def test_printing_does_not_disturb_the_pipe() -> None:
    with Worker("it", sys.executable, "code:InteractiveInterpreter") as worker:
        assert worker.call("runsource", "print('in the way')") is False
        assert worker.call("runsource", "import os; os.write(1, b'in the way')") is False


def test_peak_memory_sees_what_a_tree_takes() -> None:
    with Worker("it", sys.executable, "code:InteractiveInterpreter") as worker:
        before = anonymous_bytes(worker.pid)
        with PeakMemory(worker.pid, 0.001) as peak:
            worker.call("runsource", "kept = bytearray(b'x') * (64 << 20)")
            repeat(lambda: anonymous_bytes(worker.pid), 0.01)
        assert peak.bytes >= before + (60 << 20)


@pytest.fixture
def make_loader(tmp_path: Path) -> Iterator[Any]:
    save_source(tmp_path / "source", DATA, sets.dense(DATA), None)
    made: list[loader_host.LoaderHost] = []

    def make(name: str, codec: str, augmented: bool) -> loader_host.LoaderHost:
        folder, source = str(tmp_path / "it"), str(tmp_path / "source")
        made.append(loader_host.LoaderHost(name, folder, DATA, source, codec, augmented))
        return made[-1]

    yield make
    for host in made:
        host.close()


@pytest.mark.parametrize("augmented", [False, True])
@pytest.mark.parametrize(("name", "codec"), [("naive", "raw"), ("loaderx", "zstd")])
def test_loaders(make_loader: Any, name: str, codec: str, augmented: bool) -> None:
    host = make_loader(name, codec, augmented)
    host.write()
    assert host.start() > 0
    host.check(3)
    assert len(host.sample(0)) == 1


def test_a_wrong_batch_is_found(make_loader: Any) -> None:
    host = make_loader("naive", "raw", False)
    host.write()
    host.start()
    host._augmented = True  # so that mirrored records are expected
    with pytest.raises(AssertionError, match="naive, batch 0: wrong values in record"):
        host.check(1)


def test_every_loader_of_the_design_is_there() -> None:
    assert list(loaders.REGISTRY) == [
        "loaderx",
        "naive",
        "torch",
        "grain",
        "spdl",
        "loaderx_1.7.7",
        "loaderx_2.8.19",
    ]
    for entry in loaders.REGISTRY.values():
        assert environment.REQUIREMENTS[entry.environment].is_file()
