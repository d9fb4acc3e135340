"""The library is loaded late, and what is in its way is an ImportError."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest
from support import output_of, run_python

import loaderx

PACKAGE = Path(loaderx.__file__).parent


def test_import_does_not_load_the_library() -> None:
    code = """
        import sys
        import loaderx, loaderx.errors, loaderx.zrecord, loaderx.zsampler, loaderx.dataloader
        from loaderx import _native, DataLoader, DenseStore, RaggedStore, Sampler
        assert not _native.loaded()
        assert "_cffi_backend" not in sys.modules and "loaderx._cdef" not in sys.modules
        Sampler(10, 2)
        print(_native.loaded())
    """
    assert output_of(code) == "True"


def test_import_brings_nothing_but_numpy_and_the_standard_library() -> None:
    code = """
        import sys
        import numpy
        before = set(sys.modules)
        import loaderx.zrecord, loaderx.dataloader
        new = {name.partition(".")[0] for name in set(sys.modules) - before}
        print(*sorted(new - set(getattr(sys, "stdlib_module_names", new))))
    """
    expected = "loaderx" if sys.version_info >= (3, 10) else ""
    assert output_of(code) == expected


def test_public_names() -> None:
    for name in loaderx.__all__:
        assert getattr(loaderx, name) is not None
    assert set(loaderx.__all__) <= set(dir(loaderx))
    assert loaderx.__version__ == "3.0.0"
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        loaderx.Nothing  # noqa: B018
    assert loaderx.DenseStore.__module__ == "loaderx.zrecord"
    assert (PACKAGE / "py.typed").exists()


def test_the_public_modules_are_attributes() -> None:
    code = """
        import sys
        import loaderx
        early = [name for name in sys.modules if name.startswith("loaderx.")]
        assert {"utils", "errors", "zrecord"} <= set(dir(loaderx))
        print(early, loaderx.utils.train_dict.__name__, loaderx.errors.StoreBusyError.__name__,
              loaderx.zrecord.__name__, loaderx.zsampler.__name__, loaderx.dataloader.__name__)
    """
    assert output_of(code) == (
        "[] train_dict StoreBusyError loaderx.zrecord loaderx.zsampler loaderx.dataloader"
    )


def imports() -> dict[str, set[str]]:
    """The modules of the package, each with those it imports anywhere in it."""
    found: dict[str, set[str]] = {}
    for path in PACKAGE.glob("*.py"):
        used: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("loaderx"):
                home = (node.module or "").partition(".")[2]
                used |= {home} if home else {alias.name for alias in node.names}
        if path.stem not in ("__init__", "_cdef"):
            found[path.stem] = used
    return found


def reached(graph: dict[str, set[str]], name: str) -> set[str]:
    """All modules that a module needs, itself only if it is in a circle."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for used in graph.get(waiting.pop(), set()) - found:
            found.add(used)
            waiting.append(used)
    return found


def test_imports_point_one_way() -> None:
    graph = imports()
    assert {"errors", "_native", "zrecord", "zsampler", "dataloader"} <= graph.keys()
    for name in graph:
        assert name not in reached(graph, name), f"{name} is in a circle of imports"
    assert graph["errors"] == graph["_room"] == set()
    assert {name for name, used in graph.items() if "_room" in used} == {"_native"}
    assert not {"zsampler", "dataloader"} & reached(graph, "zrecord")
    assert not {"zrecord", "dataloader"} & reached(graph, "zsampler")
    assert not [name for name, used in graph.items() if "dataloader" in used]


def test_only_one_module_knows_the_library() -> None:
    for path in PACKAGE.glob("*.py"):
        if path.stem not in ("_native", "_cdef"):
            text = path.read_text(encoding="utf-8")
            assert ".dlopen(" not in text and "loaderx._cdef" not in text, path


FAILING = """
    import sys
    import loaderx._native as native
    from loaderx import DenseStore, Sampler
    {setup}
    for make in (lambda: DenseStore(sys.argv[1], "u1", ()), lambda: Sampler(1, 1)):
        try:
            make()
        except ImportError as error:
            print(error)
        else:
            print("loaded")
"""


@pytest.mark.parametrize(
    ("setup", "expected"),
    [
        ("native.library_path = lambda: '/nowhere/libloaderx.so'", "pip install ./python"),
        ("sys.modules['loaderx._cdef'] = None", "pip install ./python"),
        (
            "open(sys.argv[1] + 'x', 'w').write('text'); "
            "native.library_path = lambda: sys.argv[1] + 'x'",
            "cannot load",
        ),
        (
            "import resource; resource.setrlimit(resource.RLIMIT_AS, (900 << 20,) * 2)",
            "too little address space for the Go runtime: expected at least 1024 MiB free, got",
        ),
        ("native._room.tasks_left = lambda: 3", "expected room for 16, got 3"),
        (
            "import importlib; ffi = importlib.import_module('loaderx._cdef').ffi; "
            "lib = type('Lib', (), {'LX_ABI_VERSION': 1, 'lx_abi_version': lambda self: 7})(); "
            "native._open = lambda *a: lib",
            "expected version 1 of its interface, got 7",
        ),
    ],
)
def test_what_is_in_the_way_of_loading(setup: str, expected: str, tmp_path: Path) -> None:
    if "resource" in setup and sys.platform != "linux":
        pytest.skip("address space is limited and measured on Linux only")
    done = run_python(FAILING.format(setup=setup), tmp_path / "s")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 2 and all(expected in line for line in lines), done.stdout
    assert not (tmp_path / "s").exists()


def test_room_is_measured() -> None:
    code = """
        import resource
        from loaderx import _room
        assert _room.address_space_left() is None or resource.getrlimit(resource.RLIMIT_AS)[0] > 0
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
        left = _room.address_space_left()
        block = bytearray(64 << 20)
        print(1 << 30 < left < 8 << 30, left - _room.address_space_left() >= 60 << 20)
    """
    if sys.platform != "linux":
        pytest.skip("address space is limited and measured on Linux only")
    assert output_of(code) == "True True"
