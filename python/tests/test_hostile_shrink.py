"""A file that another program cuts while it is mapped: row 44 of the table of hostile inputs.

Reading behind the end of a mapped file is a fault of the processor. The Go
runtime turns it into an error, on any thread, unless somebody else's handler
takes the signal first.
"""

from __future__ import annotations

import sys
from pathlib import Path

import hostile
import numpy as np
import pytest
from support import output_of, run_python

from loaderx.zrecord import DenseStore, RaggedStore

guard = hostile.guard

if sys.platform == "win32":
    pytest.skip("Windows does not cut a file that is mapped", allow_module_level=True)

COUNT, WIDTH = 6000, 96

SHRINK = """
    import faulthandler, os, sys, threading
    if sys.argv[1] == "before":
        faulthandler.enable()
    import numpy as np
    from loaderx import CorruptRecordError, DataLoader, DenseStore, RaggedStore, ZrecordError
    with DenseStore(sys.argv[2] + "/dense-raw", mode="r") as store:
        store[0]
    if sys.argv[1] == "after":
        faulthandler.enable()

    def in_thread(read):
        def run():
            try:
                read()
            except CorruptRecordError as error:
                found.append(error)
        found = []
        threads = [threading.Thread(target=run) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 3, found
        raise found[0]

    def in_loader(store, workers, last):
        loader = DataLoader({"x": store}, workers, 100, mode=0)
        loader.seek(last // 100)
        with loader:
            for _ in range(3):
                next(loader)

    def attempts(store, last):
        all_of_them = np.arange(len(store))
        yield "one", lambda: store[last]
        yield "few", lambda: store[[0, last]]
        yield "all", lambda: store[all_of_them]
        yield "shared by threads", lambda: store[np.tile(all_of_them, 10)]
        yield "iteration", lambda: list(store)
        yield "a thread", lambda: in_thread(lambda: store[last])
        yield "a thread, all", lambda: in_thread(lambda: store[all_of_them])
        yield "a loader", lambda: in_loader(store, 1, last)
        yield "a loader of 4", lambda: in_loader(store, 4, last)

    for name in sorted(os.listdir(sys.argv[2])):
        kind = DenseStore if "dense" in name else RaggedStore
        path = os.path.join(sys.argv[2], name)
        file = os.path.join(path, sys.argv[3])
        # The records at both ends of the file: workers place theirs in any order.
        table = np.fromfile(os.path.join(path, "0.loc"), "<u4").reshape(-1, 4)
        ends = [0, len(table) - 1]
        if file.endswith(".chunk"):
            ends = [table[:, 0].argmin(), table[:, 0].argmax()]
        first, last = (int(i) // (1 if kind is DenseStore else 2) for i in ends)
        with open(file, "rb") as whole:
            content = whole.read()
        for cut in (len(content) - 10, len(content) // 2 & ~4095, len(content) // 2 + 100, 0):
            for mode in ("r", "a"):
                with kind(path, mode=mode) as store:
                    right = store[first]
                    store[:]  # all of it is mapped
                    os.truncate(file, cut)
                    for what, attempt in attempts(store, last):
                        try:
                            attempt()
                        except CorruptRecordError as error:
                            assert error.index is not None and path in str(error), error
                        else:
                            print("no error:", name, cut, mode, what)
                    if cut:
                        assert np.array_equal(store[first], right)
                    try:
                        assert not store.verify().ok, (name, cut)
                    except ZrecordError:
                        pass
                    try:
                        store.stats()
                    except ZrecordError:
                        pass
                    with open(file, "r+b") as again:
                        again.write(content)
    print("alive")
"""


def write(path: Path, kinds: list[str], count: int = COUNT) -> Path:
    """Stores whose files take many pages."""
    numbers = np.random.default_rng(0).integers(1, 255, (count, WIDTH), np.uint8)
    for kind in kinds:
        form, codec = kind.split("-")
        if form == "dense":
            with DenseStore(path / kind, np.uint8, (WIDTH,), codec) as dense:
                dense.append(numbers)
                if codec == "raw":  # places follow no formula then, and the table is read
                    dense.delete(count - 1)
                    dense.append(numbers[-1:])
        else:
            with RaggedStore(path / kind, np.uint8, codec) as ragged:
                ragged.append(numbers)
    return path


@pytest.mark.parametrize("handler", ["none", "before"])
@pytest.mark.parametrize("file", ["0.chunk", "0.loc"])
def test_a_file_that_is_cut_is_a_corrupt_record(handler: str, file: str, tmp_path: Path) -> None:
    kinds = ["dense-raw", "dense-zstd", "ragged-raw", "ragged-zstd"]
    path = write(tmp_path / "stores", kinds)
    assert output_of(SHRINK, handler, path, file) == "alive"


ARITHMETIC = """
    import os, sys
    import numpy as np
    from loaderx import CorruptRecordError, DenseStore
    path = sys.argv[1]
    for fill in (0, 7):
        with DenseStore(f"{path}/{fill}", np.uint8, (96,), "raw") as store:
            store.append(np.full((20_000, 96), fill, np.uint8))
            store.sync()
            store[:]
            size = os.path.getsize(f"{path}/{fill}/0.chunk")
            for cut in (size - 1, size - 96, size // 2 + 100, 4096, 0):
                os.truncate(f"{path}/{fill}/0.chunk", cut)
                every = np.arange(20_000)
                behind = every[cut // 96 :][:5000]
                for index in (19_999, [0, 19_999], behind, every, every[::-1]):
                    try:
                        store[index]
                    except CorruptRecordError as error:
                        assert error.index is not None and error.index >= cut // 96
                    else:
                        print("no error", fill, cut, index)
    print("alive")
"""


def test_records_of_zeros_are_not_made_up(tmp_path: Path) -> None:
    """Behind the end, the rest of the last page reads as zeros, without a fault."""
    assert output_of(ARITHMETIC, tmp_path) == "alive"


def test_faulthandler_enabled_after_loading_takes_the_signal(tmp_path: Path) -> None:
    """As the documentation says: its handler comes before the runtime's, and ends the process."""
    path = write(tmp_path / "stores", ["dense-raw"])
    done = run_python(SHRINK, "after", path, "0.chunk")
    assert done.returncode < 0 and "alive" not in done.stdout, done
    assert "Fatal Python error: Bus error" in done.stderr


def test_without_mappings_there_is_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with faulthandler enabled after loading."""
    monkeypatch.setenv("LOADERX_NO_MMAP", "1")
    path = write(tmp_path / "stores", ["dense-raw", "ragged-zstd"], 500)
    assert output_of(SHRINK, "after", path, "0.chunk") == "alive"
