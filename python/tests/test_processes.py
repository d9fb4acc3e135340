"""Pickles, forks, spawned processes and the end of the interpreter."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import output_of, run_python, same, script_output

from loaderx import _native
from loaderx.dataloader import DataLoader
from loaderx.errors import NotAStoreError, StoreMismatchError
from loaderx.zrecord import DenseStore, RaggedStore
from loaderx.zsampler import Sampler

DATA = np.arange(60, dtype=np.int32).reshape(20, 3)


@pytest.fixture
def path(tmp_path: Path) -> str:
    with DenseStore(tmp_path / "s", np.int32, (3,)) as store:
        store.append(DATA)
    return str(tmp_path / "s")


@pytest.mark.parametrize("mode", ["r", "a"])
def test_a_store_pickles_as_its_path(path: str, mode: str) -> None:
    with DenseStore(path, mode=mode) as store:
        for twin in (pickle.loads(pickle.dumps(store)), copy.deepcopy(store), copy.copy(store)):
            with twin:
                assert type(twin) is DenseStore and twin.mode == mode and twin.path == path
                assert same(twin[:], DATA)


def test_unpickling_never_creates_a_store(path: str) -> None:
    with DenseStore(path, np.int32, (3,)) as store:
        pickled = pickle.dumps(store)
    shutil.rmtree(path)
    with pytest.raises(NotAStoreError):
        pickle.loads(pickled)
    assert not os.path.exists(path)


@pytest.mark.parametrize("other", [("i4", (4,), "zstd"), ("u4", (3,), "zstd"), ("i4", (3,), "raw")])
def test_unpickling_compares_the_identity(path: str, other: Any) -> None:
    with DenseStore(path) as store:
        pickled = pickle.dumps(store)
    shutil.rmtree(path)
    DenseStore(path, *other).close()
    with pytest.raises(StoreMismatchError, match="changed since it was pickled: expected"):
        pickle.loads(pickled)


def test_a_ragged_store_pickles(tmp_path: Path) -> None:
    with RaggedStore(tmp_path / "r", "u1", allow_empty=True) as store:
        store.append([b"abc", b""])
        with pickle.loads(pickle.dumps(store)) as twin:
            assert [r.tobytes() for r in twin] == [b"abc", b""] and twin.allow_empty


def test_a_sampler_pickles_with_its_step() -> None:
    sampler = Sampler(1000, 12, Sampler.Mode.IID, 7, rank=1, world_size=3)
    sampler.seek(5)
    for twin in (pickle.loads(pickle.dumps(sampler)), copy.deepcopy(sampler)):
        assert repr(twin) == repr(sampler)
        assert same(twin.next(), sampler.indices_at(5))


def test_a_loader_pickles_with_its_step(path: str) -> None:
    with DenseStore(path) as store:
        with DataLoader({"x": store}, 2, 4) as loader:
            expected = [next(loader) for _ in range(5)][3:]
            loader.seek(3)
            with pickle.loads(pickle.dumps(loader)) as twin:
                assert twin.step == 3
                for batch in expected:
                    assert same(next(twin)["x"], batch["x"])
                twin._streams["x"].close()


FORK = """
    import gc, os, sys, warnings
    warnings.simplefilter("ignore", DeprecationWarning)
    import numpy as np
    from loaderx import DataLoader, DenseStore, ForkedProcessError, Sampler
    store = DenseStore(sys.argv[1])
    sampler = Sampler(20, 4)
    loader = DataLoader({"x": store}, batch_size=4)
    batch = next(loader)["x"]
    state, evaluation = loader.state_dict(), loader.epoch()
    half = iter(evaluation)
    next(half)
    big = store[np.zeros(200_000, int)]
    child = os.fork()
    if child == 0:
        uses = {
            "one": lambda: store[0],
            "set": lambda: store[:],
            "empty": lambda: store[[]],
            "len": lambda: len(store),
            "append": lambda: store.append(batch),
            "sync": store.sync,
            "open": lambda: DenseStore(sys.argv[1]),
            "create": lambda: DenseStore(sys.argv[1] + "2", "u1", ()),
            "sampler": lambda: Sampler(20, 4),
            "draw": sampler.next,
            "drawn": lambda: sampler.indices_at(3),
            "next": lambda: next(loader),
            "seek": lambda: loader.seek(3),
            "batch_at": lambda: loader.batch_at(0),
            "epoch": loader.epoch,
            "pass": lambda: iter(evaluation),
            "half": lambda: next(half),
            "load": lambda: loader.load_state_dict(state),
        }
        for name, use in uses.items():
            try:
                use()
                os.write(1, f"{name} worked\\n".encode())
            except ForkedProcessError as error:
                if "spawn or forkserver" not in str(error):
                    os.write(1, str(error).encode())
            except BaseException as error:
                os.write(1, f"{name}: {error!r}\\n".encode())
        repr(store), repr(loader), repr(sampler)
        expected = batch.copy()
        loader.close()
        store.close()
        del store, sampler, loader, half, evaluation, uses, batch, big
        gc.collect()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert len(store) == 20 and (store[:] == np.arange(60).reshape(20, 3)).all()
    store.append(store[:2])
    sampler.next()
    next(loader)
    loader.close()
    store.close()
    with DenseStore(sys.argv[1]) as again:
        print(len(again))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_gets_an_error_at_once_and_harms_nothing(path: str) -> None:
    assert output_of(FORK, path) == "22"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_forked_before_the_first_use_works(path: str) -> None:
    code = """
        import os, sys
        import loaderx
        child = os.fork()
        with loaderx.DenseStore(sys.argv[1], mode="r") as store:
            assert len(store[:]) == 20
        if child == 0:
            os._exit(0)
        print(os.waitpid(child, 0)[1])
    """
    assert output_of(code, path) == "0"


POOL = """
import multiprocessing, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)
from loaderx import DataLoader, DenseStore, ForkedProcessError, Sampler

def total(store, sampler, loader):
    found = []
    for use in (lambda: store[:].sum(), lambda: sampler.next()[0], lambda: next(loader)["x"][0, 0]):
        try:
            found.append(int(use()))
        except ForkedProcessError:
            found.append("forked")
    return found

if __name__ == "__main__":
    store, sampler = DenseStore(sys.argv[1], mode="r"), Sampler(20, 1, Sampler.Mode.SEQUENTIAL)
    loader = DataLoader({"x": store}, sampler=sampler)
    next(loader), sampler.seek(5)
    with multiprocessing.get_context(sys.argv[2]).Pool(1) as pool:
        print(*pool.apply(total, (store, sampler, loader)))
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_a_pool_of_processes(path: str, tmp_path: Path, method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} on this system")
    (tmp_path / "script.py").write_text(POOL)
    found = script_output(tmp_path / "script.py", path, method)
    assert found == ("forked forked forked" if method == "fork" else "1770 5 3")


EXITS = {
    "open store": "store = DenseStore(sys.argv[1]); store[:]",
    "loader running": "loader = DataLoader({'x': DenseStore(sys.argv[1])}, 4, 4); next(loader)",
    "loader with a slow transform": (
        "import threading; entered = threading.Event()\n"
        "def slow(batch):\n"
        "    entered.set()\n"
        "    return sum(i for i in range(200_000))\n"
        "loader = DataLoader({'x': DenseStore(sys.argv[1])}, 4, 4, transform=slow); next(loader)"
    ),
    "a pass half way": (
        "half = iter(DataLoader({'x': DenseStore(sys.argv[1])}, 4, 4).epoch()); next(half)"
    ),
    "gather in a daemon thread": (
        "import threading; store = DenseStore(sys.argv[1]); go = threading.Event()\n"
        "def work():\n"
        "    try:\n"
        "        while True: store[np.arange(20).repeat(5000)]; go.set()\n"
        "    except StoreClosedError: pass\n"
        "threading.Thread(target=work, daemon=True).start(); go.wait()"
    ),
    "in a cycle": "store = DenseStore(sys.argv[1]); store.me = store; store.append(store[:1])",
    "an iterator half way": "it = iter(DenseStore(sys.argv[1])); next(it)",
    "an exception": "store = DenseStore(sys.argv[1]); sys.exit(0)",
}


@pytest.mark.parametrize("how", EXITS)
def test_interpreter_exit(path: str, how: str) -> None:
    code = (
        "import sys\nimport numpy as np\n"
        "from loaderx import DataLoader, DenseStore, StoreClosedError\n" + EXITS[how]
    )
    assert output_of(code + "\nprint('end')" if "sys.exit" not in code else code, path) in (
        "end",
        "",
    )
    with DenseStore(path) as again:
        assert len(again) >= 20
        again.append(DATA[:1])  # closed well: not dirty, not locked


def test_what_is_still_held_at_exit_is_closed(path: str) -> None:
    code = """
        import sys, threading
        from loaderx import DenseStore
        def hold():
            store = DenseStore(sys.argv[1])
            store.append(store[:2])
            held.set()
            gate.acquire()  # for ever: the frame that holds the store never ends
        held, gate = threading.Event(), threading.Lock()
        gate.acquire()
        threading.Thread(target=hold, daemon=True).start()
        held.wait()
    """
    done = run_python(code, path)
    assert done.returncode == 0, done.stderr
    info = _native.ffi.new("lx_store_info *")
    with DenseStore(path, mode="r") as store:
        assert _native.lib.lx_store_info_of(store._handle, info, _native.ffi.NULL) == 0
        assert len(store) == 22 and not info.dirty


@pytest.mark.skipif(sys.platform == "win32", reason="no resource limits on Windows")
def test_sixty_four_file_descriptors(tmp_path: Path) -> None:
    code = """
        import resource, sys
        import numpy as np
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        from loaderx import DenseStore, RaggedStore, _native
        _native.limits.chunk, _native.limits.segment = 4096, 64
        data = np.arange(4000 * 100, dtype=np.int32).reshape(4000, 100)
        with DenseStore(sys.argv[1] + "/d", np.int32, (100,), codec="raw") as dense:
            with RaggedStore(sys.argv[1] + "/r", np.int32, codec="zstd") as ragged:
                dense.append(data)
                ragged.append(data)
                order = np.random.default_rng(0).permutation(4000)
                assert (dense[order] == data[order]).all()
                assert all((a == b).all() for a, b in zip(ragged[order], data[order]))
        with DenseStore(sys.argv[1] + "/d", mode="r") as dense:
            assert (dense[order] == data[order]).all()
        print("done")
    """
    assert output_of(code, tmp_path) == "done"
    assert len(list((tmp_path / "d").glob("*.chunk"))) > 300
