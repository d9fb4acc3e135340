"""Every wrong argument of the operations on whole stores is a clear exception."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import same_list

from loaderx import errors
from loaderx.zrecord import DenseStore, RaggedStore

DATA = np.arange(24, dtype=np.int32).reshape(4, 2, 3)


@pytest.fixture(params=["dense", "ragged"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    if request.param == "dense":
        made: Any = DenseStore(tmp_path / "s", np.int32, (2, 3))
    else:
        made = RaggedStore(tmp_path / "s", np.int32)
    with made:
        made.append(list(DATA))
        made.sync()
        yield made


# What cannot index a store, and what is said of it.
INDICES: list[tuple[Any, type[Exception], str]] = [
    (None, TypeError, "got None"),
    (Ellipsis, TypeError, "got Ellipsis"),
    (1.0, TypeError, "got float 1.0"),
    (np.float32(1), TypeError, "got float32"),
    ("1", TypeError, "got str '1'"),
    (b"1", TypeError, "got bytes"),
    (True, TypeError, "the single bool True"),
    (np.True_, TypeError, "the single bool True"),
    ({1}, TypeError, "got set"),
    ({1: 2}, TypeError, "got dict"),
    (object(), TypeError, "got a? ?object"),
    (slice(1.5), TypeError, "slice indices must be integers"),
    ([1.0], TypeError, "got float 1.0 at position 0 of 1"),
    ([0, None], TypeError, "got None at position 1 of 2"),
    ([0, "1"], TypeError, "got str '1' at position 1"),
    ([[0, 1]], TypeError, "at position 0 of 1"),
    ([0, True], TypeError, "got bool True at position 1"),
    ((0, slice(1)), TypeError, "got slice"),
    (np.zeros((2, 2), int), ValueError, r"1-D array of indices, got one of shape \(2, 2\)"),
    (np.zeros(2), TypeError, "array of dtype float64"),
    (np.array(["0"]), TypeError, "array of dtype <U1"),
    (np.ones(3, bool), ValueError, "boolean mask of length 4.*got length 3"),
    ([True] * 5, ValueError, "boolean mask of length 4.*got length 5"),
    (np.ones((4, 1), bool), ValueError, r"shape \(4, 1\)"),
    (4, IndexError, "index 4 is out of range for 4 records"),
    (-5, IndexError, "index -5 is out of range for 4 records"),
    ([0, 4], IndexError, "index 4 is out of range for 4 records"),
    (np.array([-9, 0]), IndexError, "index -9 is out of range for 4 records"),
    (1 << 70, IndexError, "is out of range for 4 records"),
    ([1 << 63], IndexError, "is out of range for 4 records"),
    (np.array([1 << 63], np.uint64), IndexError, "is out of range for 4 records"),
]
INDEXED: dict[str, Callable[[Any, Any], Any]] = {
    "delete": lambda s, i: s.delete(i),
    "gather": lambda s, i: s.gather(i),
    "brackets": lambda s, i: s[i],
    "getitems": lambda s, i: s.__getitems__(i),
    "lengths": lambda s, i: s.lengths(i),
}


@pytest.mark.parametrize("method", INDEXED)
@pytest.mark.parametrize(("index", "error", "message"), INDICES, ids=[repr(i[0]) for i in INDICES])
def test_what_cannot_index(
    store: Any, method: str, index: Any, error: type[Exception], message: str
) -> None:
    if method == "lengths" and (index is None or isinstance(store, DenseStore)):
        return  # None is all records there, and dense stores have no such method
    if method in ("gather", "getitems") and isinstance(index, int) and abs(index) < 1 << 60:
        if index is not True:
            error, message = TypeError, f"expected a set of records .* single index {index}"
    with pytest.raises(error, match=message) as caught:
        INDEXED[method](store, index)
    where = getattr(caught.value, "path", None) or str(caught.value)
    assert store.path in where or "slice indices" in message
    assert same_list(list(store), list(DATA))


OTHERS: list[tuple[str, Callable[[Any], Any], type[Exception], str]] = [
    (
        "compact",
        lambda s: s.compact(5),
        TypeError,
        "progress: expected None or a function .* int 5",
    ),
    ("verify", lambda s: s.verify("x"), TypeError, "progress: expected None or .* got str 'x'"),
    ("upgrade", lambda s: s.upgrade([]), TypeError, r"progress: expected None or .* got list \[\]"),
    (
        "snapshot",
        lambda s: s.snapshot(s.path + "-c", True),
        TypeError,
        "progress: expected None or a function of .at, total., got bool True",
    ),
    ("snapshot", lambda s: s.snapshot(None), TypeError, "dest: expected a str, .* got NoneType"),
    ("snapshot", lambda s: s.snapshot(3), TypeError, "dest: expected a str, .* got int 3"),
    ("snapshot", lambda s: s.snapshot(""), ValueError, "dest: .* got an empty path"),
    ("snapshot", lambda s: s.snapshot("a\0b"), ValueError, "dest: expected no NUL"),
    ("snapshot", lambda s: s.snapshot("~/c"), ValueError, "dest: .*os.path.expanduser"),
    ("snapshot", lambda s: s.snapshot(s.path), ValueError, "dest: expected a folder outside"),
    (
        "snapshot",
        lambda s: s.snapshot(s.path + "/../s/x"),
        ValueError,
        "a folder outside the store",
    ),
    ("snapshot", lambda s: s.snapshot(__file__), errors.ZrecordError, "test_arguments_whole.py"),
    ("snapshot", lambda s: s.snapshot(__file__ + "/x"), errors.ZrecordError, "arguments_whole.py"),
]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [pytest.param(*case[1:], id=f"{n} {case[0]}") for n, case in enumerate(OTHERS)],
)
def test_other_arguments(store: Any, call: Any, error: type[Exception], message: str) -> None:
    folder = Path(store.path)
    before = sorted(folder.parent.rglob("*"))
    with pytest.raises(error, match=message):
        call(store)
    assert sorted(folder.parent.rglob("*")) == before
    store.append([DATA[0]])
    assert len(store) == 5


USES: list[tuple[str, Callable[[Any], Any]]] = [
    ("delete", lambda s: s.delete(0)),
    ("delete nothing", lambda s: s.delete([])),
    ("delete a slice", lambda s: s.delete(slice(2))),
    ("compact", lambda s: s.compact()),
    ("stats", lambda s: s.stats()),
    ("verify", lambda s: s.verify()),
    ("snapshot", lambda s: s.snapshot(s.path + "-copy")),
    ("upgrade", lambda s: s.upgrade()),
    ("refresh", lambda s: s.refresh()),
    ("gather nothing", lambda s: s.gather([])),
    ("lengths", lambda s: s.lengths() if isinstance(s, RaggedStore) else s.stats()),
    ("no lengths", lambda s: s.lengths([]) if isinstance(s, RaggedStore) else s.stats()),
]


@pytest.mark.parametrize("use", [u for _, u in USES], ids=[name for name, _ in USES])
def test_every_use_after_close(store: Any, use: Callable[[Any], Any]) -> None:
    store.close()
    with pytest.raises(errors.StoreClosedError, match="expected an open store") as caught:
        use(store)
    assert store.path in str(caught.value) and caught.value.path == store.path
    assert not Path(store.path + "-copy").exists()


def test_close_within_a_task(store: Any) -> None:
    """Closing the store under a task ends the task with an error, and hangs nothing."""
    for task, arguments in (("verify", ()), ("snapshot", (store.path + "-copy",)), ("compact", ())):
        with type(store)(store.path) as other:
            if task == "compact":
                store.close()
                other.append([DATA[0]] * 3)
                other.delete(0)
            calls = itertools.count()

            def progress(at: int, total: int, other: Any = other, calls: Any = calls) -> None:
                if next(calls) == 0:
                    other.close()

            try:
                getattr(other, task)(*arguments, progress)
            except errors.StoreClosedError:
                pass
            assert other.closed and next(calls) >= 1
    with type(store)(store.path) as again:
        assert again.verify().ok
