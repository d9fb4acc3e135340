"""What an exception says of the store: that it is damaged, unchanged, or to be opened again."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from support import output_of, run_python, same

from loaderx.errors import StoreReadOnlyError
from loaderx.zrecord import DenseStore

linux_only = pytest.mark.skipif(
    sys.platform != "linux", reason="file sizes and root's rights are limited on Linux only"
)
DATA = np.arange(100, dtype=np.uint64).reshape(50, 2)

# A store with an append that is not synced, and a handle that may not write any
# more: the slot of the next checkpoint lies behind the limit.
POISONED = """
    import resource, signal, sys, warnings
    import numpy as np
    from loaderx import DenseStore, StoreIOError
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    warnings.simplefilter("always")
    data = np.arange(100, dtype=np.uint64).reshape(50, 2)
    store = DenseStore(sys.argv[1], np.uint64, (2,), codec="raw")
    store.append(data)
    store.sync()
    store.append(data)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, resource.RLIM_INFINITY))
    try:
        store.sync()
    except StoreIOError as error:
        print("sync", error.errno)
"""


@linux_only
@pytest.mark.parametrize(
    ("then", "expected"),
    [
        (
            """
    try:
        store.close()
    except StoreIOError as error:
        print("close", error.errno, "since the last sync" in str(error), store.closed)
    store.close()
""",
            "close 27 True True",
        ),
        (
            """
    try:
        with store:
            pass
    except StoreIOError as error:
        print("with", error.errno, store.closed)
""",
            "with 27 True",
        ),
        (
            """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with store:
                raise ValueError("the block's own")
        except ValueError as error:
            print(error, [w.category.__name__ for w in caught], store.closed)
""",
            "the block's own ['RuntimeWarning'] True",
        ),
        (
            """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del store
    print([w.category.__name__ for w in caught], "closing it failed" in str(caught[0].message))
""",
            "['RuntimeWarning'] True",
        ),
    ],
    ids=["close", "with", "with an exception", "dropped"],
)
def test_closing_a_store_that_cannot_be_synced(then: str, expected: str, tmp_path: Path) -> None:
    assert output_of(POISONED + then, tmp_path / "s").splitlines() == ["sync 27", expected]
    with DenseStore(tmp_path / "s") as store:
        assert same(store[:], np.concatenate([DATA, DATA]))


@linux_only
def test_the_interpreter_ends_with_such_a_store_open(tmp_path: Path) -> None:
    done = run_python(POISONED, tmp_path / "s")
    assert (done.returncode, done.stdout) == (0, "sync 27\n")
    assert "RuntimeWarning" in done.stderr and "Traceback" not in done.stderr, done.stderr


@linux_only
def test_a_delete_that_is_recorded_is_not_refused(tmp_path: Path) -> None:
    code = """
        import resource, signal, sys
        import numpy as np
        from loaderx import DenseStore, StoreIOError
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        store = DenseStore(sys.argv[1], np.uint64, (1,), codec="raw")
        store.append(np.arange(20000, dtype=np.uint64)[:, None])
        store.sync()
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
        for call in (lambda: store.delete([15000]), lambda: store[0]):
            try:
                call()
            except StoreIOError as error:
                print(error.errno, "open" in str(error))
        store.close()
    """
    assert output_of(code, tmp_path / "s").splitlines() == ["27 True"] * 2
    with DenseStore(tmp_path / "s", mode="r") as store:
        assert len(store) == 19999 and store[15000] == [19999]


@linux_only
def test_files_that_may_not_be_read_are_no_damage(tmp_path: Path) -> None:
    """And deleting what verify() names deletes nothing."""
    code = """
        import ctypes, os, sys
        if os.geteuid() == 0:
            # Root without its capabilities (capset, for itself, none) obeys file modes.
            none = (ctypes.c_uint32 * 6)(*[0] * 6)
            head = (ctypes.c_uint32 * 2)(0x20080522, 0)
            assert ctypes.CDLL(None).capset(head, none) == 0
        from loaderx import DenseStore, StoreIOError
        for file in ("0.chunk", "0.loc", "0.sum", "meta.zr", "journal.zr", "store.zr"):
            path = os.path.join(sys.argv[1], file)
            os.chmod(path, 0)
            for mode in "ra":
                try:
                    with DenseStore(sys.argv[1], mode=mode) as store:
                        store.delete(store.verify().bad)
                    print("no error:", file, mode)
                except StoreIOError as error:
                    print(type(error).__name__, error.errno)
            os.chmod(path, 0o644)
    """
    with DenseStore(tmp_path / "s", np.uint64, (2,), codec="zstd") as store:
        store.append(DATA)
    assert output_of(code, tmp_path / "s").splitlines() == ["StoreIOError 13"] * 12
    with DenseStore(tmp_path / "s") as store:
        assert same(store[:], DATA) and store.verify().ok


@pytest.mark.skipif(sys.platform == "win32", reason="links are of POSIX")
@pytest.mark.parametrize("file", ["0.chunk", "0.loc", "0.sum"])
def test_a_refused_append_leaves_a_store_that_works(file: str, tmp_path: Path) -> None:
    with DenseStore(tmp_path / "s", np.uint64, (2,), codec="raw") as store:
        store.append(DATA)
    os.link(tmp_path / "s" / file, tmp_path / "other")
    with DenseStore(tmp_path / "s") as store:
        with pytest.raises(StoreReadOnlyError, match=file):
            store.append(DATA)
        store.sync()
        os.remove(tmp_path / "other")
        assert store.append(DATA) == 50 and len(store) == 100
