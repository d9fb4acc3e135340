"""Many readers and one writer, in threads and in processes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import Child, same, same_list

from loaderx.errors import (
    ForkedProcessError,
    StoreBusyError,
    StoreReadOnlyError,
    UnsupportedStoreError,
)
from loaderx.zrecord import DenseStore, RaggedStore

DATA = np.arange(60, dtype=np.int32).reshape(20, 3)


@pytest.fixture
def path(tmp_path: Path) -> str:
    with DenseStore(tmp_path / "s", np.int32, (3,)) as store:
        store.append(DATA)
    return str(tmp_path / "s")


@pytest.fixture
def child() -> Iterator[Child]:
    with Child() as made:
        yield made


def test_readers_of_other_processes_see_what_is_there_until_they_refresh(path: str) -> None:
    with Child() as one, Child() as two, DenseStore(path) as writer:
        for reader, mode in ((one, "r"), (two, "a")):
            assert reader.ask(f"len(s := DenseStore({path!r}, mode={mode!r}))") == "20"
        for count in range(1, 4):
            writer.append(DATA[:5])
            for reader in (one, two):
                assert reader.ask("len(s)") == str(20 + 5 * (count - 1))
                assert reader.ask("len(s[:])") == str(20 + 5 * (count - 1))
                assert reader.ask("s.refresh()") == "None"
                assert reader.ask("int(s[:].sum())") == str(DATA.sum() + count * DATA[:5].sum())
        with pytest.raises(StoreBusyError, match="has the store open"):
            writer.delete(0)
        assert one.ask("s.close()") == "None"
        with pytest.raises(StoreBusyError, match="has the store open"):
            writer.compact()
        two.kill()  # what it held goes with it
        writer.delete(slice(5, None))
        writer.compact()
        assert same(writer[:], DATA[:5])


def test_a_second_writer_is_refused_until_the_first_closes(path: str, child: Child) -> None:
    with DenseStore(path) as first:
        first.append(DATA[:1])
        assert child.ask(f"len(s := DenseStore({path!r}))") == "21"
        record = "np.zeros((1, 3), np.int32)"
        for change in (f"s.append({record})", "s.delete(0)", "s.compact()"):
            answer = child.ask(change)
            assert answer.startswith("StoreBusyError: ") and "is the writer" in answer
            assert "journal.zr" in answer
        assert child.ask("len(s[:])") == "21"  # it goes on as a reader
        first.append(DATA[:1])
    assert child.ask(f"s.append({record})") == "22"  # and finds out what it had missed
    assert child.ask("len(s)") == "23"
    with DenseStore(path, mode="r") as reader:
        assert len(reader) == 23


def test_the_role_is_taken_at_the_first_change(path: str, child: Child) -> None:
    with DenseStore(path) as idle:
        assert len(idle) == 20
        assert child.ask(f"(s := DenseStore({path!r})).append(np.ones((2, 3), np.int32))") == "20"
        with pytest.raises(StoreBusyError, match="is the writer"):
            idle.append(DATA)
        child.kill()
        idle.refresh()  # what the other appended is there; nobody holds the role
        assert idle.append(DATA[:1]) == 22


def test_a_writer_in_another_thread_of_this_process(path: str) -> None:
    with DenseStore(path) as one, DenseStore(path) as two:
        failed: list[BaseException] = []

        def work(store: Any) -> None:
            try:
                store.append(DATA[:1])
            except StoreBusyError as error:
                failed.append(error)

        threads = [threading.Thread(target=work, args=(s,)) for s in (one, two)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(failed) == 1
        one.refresh(), two.refresh()
        assert len(one) == len(two) == 21


def test_readers_against_a_writer(path: str) -> None:
    """Readers that open and refresh all the time see whole batches only."""
    stop = threading.Event()
    wrong: list[Any] = []

    def read() -> None:
        seen = 20
        with DenseStore(path, mode="r") as reader:
            while not stop.is_set():
                reader.refresh()
                found = reader[:]
                if len(found) < seen or len(found) % 4 or (found[20:] != 7).any():
                    wrong.append(found)
                seen = len(found)

    readers = [threading.Thread(target=read) for _ in range(2)]
    with DenseStore(path) as writer:
        for thread in readers:
            thread.start()
        for count in range(100):
            writer.append(np.full((4, 3), 7, np.int32))
            if count % 10 == 0:
                writer.sync()
        stop.set()
        for thread in readers:
            thread.join()
    assert not wrong


def test_creating_at_the_same_time(tmp_path: Path) -> None:
    path = str(tmp_path / "new")
    code = f"len(s := DenseStore({path!r}, np.int32, (3,)))"
    with Child() as one, Child() as two:
        assert [one.ask(code), two.ask(code)] == ["0", "0"]
        with DenseStore(path, np.int32, (3,)) as third:
            assert len(third) == 0


def test_a_folder_that_cannot_be_written(path: str) -> None:
    """mode="r", and the default mode until the first change, write nothing."""
    without: list[str] = []
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("the superuser can write everywhere, and there is no setpriv")
        without = ["setpriv", "--inh-caps=-all", "--bounding-set=-dac_override,-dac_read_search"]
    code = f"""
from loaderx.zrecord import DenseStore
for mode in "ra":
    with DenseStore({path!r}, mode=mode) as store:
        assert len(store[:]) == 20 and store.verify().ok and store.stats()["records"] == 20
        store.refresh()
        store.snapshot({path + "-copies"!r} + "/" + mode)
        for change in (lambda: store.append(store[:1]), lambda: store.delete(0), store.compact):
            try:
                change()
            except Exception as error:
                print(mode, type(error).__name__)
"""
    before = {p.name: p.stat().st_mtime_ns for p in Path(path).iterdir()}
    for file in Path(path).iterdir():
        file.chmod(0o444)
    Path(path).chmod(0o555)
    try:
        done = subprocess.run(
            [*without, sys.executable, "-c", code], capture_output=True, text=True, timeout=60
        )
    finally:
        Path(path).chmod(0o755)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["r", "StoreReadOnlyError"] * 3 + ["a", "StoreReadOnlyError"] * 3
    assert {p.name: p.stat().st_mtime_ns for p in Path(path).iterdir()} == before


def test_store_files_that_are_symbolic_links(path: str, tmp_path: Path) -> None:
    """Caches of data sets are made of them. They can be read, and are not written through."""
    (tmp_path / "links").mkdir()
    for file in Path(path).iterdir():
        (tmp_path / "links" / file.name).symlink_to(file)
    with DenseStore(tmp_path / "links", mode="r") as reader:
        assert same(reader[:], DATA) and reader.verify().ok
    before = {p.name: p.read_bytes() for p in Path(path).iterdir()}
    with DenseStore(tmp_path / "links") as store:
        assert same(store[:], DATA)
        with pytest.raises((StoreReadOnlyError, UnsupportedStoreError, OSError)):
            store.append(DATA)
    assert {p.name: p.read_bytes() for p in Path(path).iterdir()} == before


# ---- loaderx 1.7.7 ----


@pytest.fixture(scope="session")
def version_177(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with loaderx 1.7.7 in it, for the PYTHONPATH of another process."""
    if sys.version_info < (3, 10):
        pytest.skip("loaderx 1.7.7 needs Python 3.10")
    site = str(tmp_path_factory.mktemp("reference") / "site")
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        + ["--no-deps", "--only-binary", ":all:", "--retries", "0", "--timeout", "10"]
        + ["--target", site, "loaderx==1.7.7", "msgpack"],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        pytest.skip(f"loaderx 1.7.7 cannot be installed: {done.stderr.strip()[-200:]}")
    return site


@pytest.mark.reference
@pytest.mark.parametrize("kind", ["dense", "ragged"])
def test_each_version_respects_the_locks_of_the_other(
    tmp_path: Path, version_177: str, kind: str
) -> None:
    path = str(tmp_path / "s")
    cls: Any = DenseStore if kind == "dense" else RaggedStore
    new = f"{cls.__name__}({path!r}, np.int32{', (3,)' if kind == 'dense' else ''})"
    with Child(PYTHONPATH=version_177) as old:
        data = "np.arange(60, dtype=np.int32).reshape(20, 3)"
        assert old.ask(f"len(s := {new})") == "0"
        assert old.ask(f"s.append({data if kind == 'dense' else f'list({data})'})") == "0"
        for mode in "ra":
            with pytest.raises(StoreBusyError, match="meta.zr.*loaderx 1.x"):
                cls(path, mode=mode)
        assert old.ask("s.close()") == "None"
        for mode in "ra":
            with cls(path, mode=mode) as store:
                assert same_list(list(store), list(DATA))
                assert "busy" in old.ask(f"{cls.__name__}({path!r})")
        assert old.ask(f"len(s := {cls.__name__}({path!r}))") == "20"  # reading changed nothing
        old.ask("s.close()")


@pytest.mark.reference
@pytest.mark.parametrize("kind", ["dense", "ragged"])
@pytest.mark.parametrize("how", ["upgrade", "append", "delete", "compact"])
def test_an_upgraded_store_is_refused_by_177_and_left_alone(
    tmp_path: Path, version_177: str, kind: str, how: str
) -> None:
    path = str(tmp_path / "s")
    cls: Any = DenseStore if kind == "dense" else RaggedStore
    new = f"{cls.__name__}({path!r}, np.int32{', (3,)' if kind == 'dense' else ''})"
    with Child(PYTHONPATH=version_177) as old:
        data = "np.arange(60, dtype=np.int32).reshape(20, 3)"
        assert old.ask(f"len(s := {new})") == "0"
        old.ask(f"s.append({data if kind == 'dense' else f'list({data})'})")
        assert old.ask("s.delete(np.array([3, 19]))") == "None"
        assert old.ask("s.close()") == "None"
        left = list(DATA[:18])
        left[3] = DATA[18]
        with cls(path) as store:
            if how == "append":
                store.append([DATA[0]])
                left.append(DATA[0])
            elif how == "delete":
                store.delete(-1)
                left.pop()
            else:
                getattr(store, how)()
            assert same_list(list(store), left) and store.verify().ok
        before = {p.name: p.read_bytes() for p in Path(path).iterdir()}
        assert before["meta.zr"][4] == 5
        for call in (f"{cls.__name__}({path!r})", new):
            answer = old.ask(call)
            assert answer == "ZrecordError: invalid or unsupported zrecord store format"
    assert {p.name: p.read_bytes() for p in Path(path).iterdir()} == before
    with cls(path, mode="r") as store:
        assert same_list(list(store), left)


@pytest.mark.reference
def test_an_interrupted_upgrade_leaves_a_store_that_177_opens(
    tmp_path: Path, version_177: str
) -> None:
    path = str(tmp_path / "s")
    new = f"DenseStore({path!r}, np.int8, ())"
    with Child(PYTHONPATH=version_177) as old:
        assert old.ask(f"len(s := {new})") == "0"
        assert old.ask("s.append(np.zeros(300_000, np.int8))") == "0"  # more than a step does
        old.ask("s.close()")
        seen = []

        def interrupt(at: int, total: int) -> None:
            seen.append((at, total))
            raise KeyboardInterrupt

        with DenseStore(path) as store:
            for change in (
                lambda: store.upgrade(interrupt),
                lambda: store.upgrade(interrupt),
            ):
                with pytest.raises(KeyboardInterrupt):
                    change()
            assert all(0 < at < total == 300_000 for at, total in seen)
            assert (Path(path) / "meta.zr").read_bytes()[4] == 4 and len(store[:]) == 300_000
        assert old.ask(f"len(s := {new})") == "300000"
        assert old.ask("s.append(np.ones(1, np.int8))") == "300000"
        old.ask("s.close()")
        with DenseStore(path) as store:
            store.upgrade()
            assert len(store) == 300_001 and store.verify().ok


# ---- forks ----


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_holds_no_lock(path: str, child: Child) -> None:
    """The parent dies, the forked child lives on: the store is free for others."""
    code = f"""
import os, signal, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)
import numpy as np
from loaderx.zrecord import DenseStore
store = DenseStore({path!r})
store.append(np.ones((1, 3), np.int32))
store.sync()
child = os.fork()
if child == 0:
    print(os.getpid(), flush=True)
    signal.pause()
signal.pause()
"""
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    orphan = int(parent.stdout.readline())
    try:
        with DenseStore(path) as store:
            with pytest.raises(StoreBusyError):
                store.append(DATA)
        parent.kill()
        parent.wait()
        os.kill(orphan, 0)  # it lives
        with DenseStore(path) as store:
            assert store.append(DATA[:1]) == 21
            store.delete(0)
            store.compact()
            assert store.verify().ok
    finally:
        os.kill(orphan, 9)
        parent.stdout.close()


FORKED_USES = {
    "delete": lambda s: s.delete(0),
    "compact": lambda s: s.compact(),
    "stats": lambda s: s.stats(),
    "verify": lambda s: s.verify(),
    "snapshot": lambda s: s.snapshot(s.path + "-copy"),
    "upgrade": lambda s: s.upgrade(),
    "refresh": lambda s: s.refresh(),
    "gather": lambda s: s.gather([0]),
    "lengths": lambda s: s.lengths(),
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_use_in_a_forked_child(tmp_path: Path) -> None:
    with RaggedStore(tmp_path / "s", np.int32) as store:
        store.append(DATA)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            answers = []
            for name, use in FORKED_USES.items():
                try:
                    use(store)
                except ForkedProcessError:
                    continue
                except BaseException as error:
                    answers.append(f"{name}: {error!r}")
                else:
                    answers.append(f"{name} worked")
            os.write(writing, ", ".join(answers).encode() or b"all refused")
            os._exit(0)
        os.close(writing)
        with open(reading) as answer:
            assert answer.read() == "all refused"
        os.waitpid(child, 0)
        store.delete(0)
        assert len(store) == 19
