"""The rules for Python: each finds what it is for."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import tidy

HERE = Path("module.py")


def function(lines: int) -> ast.Module:
    """A module with a function of so many lines."""
    return ast.parse("def f():\n" + "    x = 1\n" * (lines - 1))


def test_long_functions() -> None:
    assert list(tidy.long_functions(HERE, function(70))) == []
    (complaint,) = tidy.long_functions(HERE, function(71))
    assert complaint == "module.py:1: f has 71 lines, the limit is 70"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"""Says."""\ndef f():\n    """Says."""\n', []),
        ("x = 1\n", ["module.py:1: the module has no docstring"]),
        ('"""Says."""\ndef f(): pass\n', ["module.py:2: f has no docstring"]),
        ('"""Says."""\ndef _f(): pass\n', []),
        ('"""Says."""\nclass C: pass\n', ["module.py:2: C has no docstring"]),
        (
            '"""Says."""\nclass C:\n    """Says."""\n    def m(self): pass\n',
            ["module.py:4: m has no docstring"],
        ),
        ('"""Says."""\n@overload\ndef f(): ...\n', []),
    ],
)
def test_missing_docstrings(text: str, expected: list[str]) -> None:
    assert list(tidy.missing_docstrings(HERE, ast.parse(text))) == expected


def test_methods_of_private_modules_may_be_silent() -> None:
    text = '"""Says."""\nclass C:\n    """Says."""\n    def m(self): pass\n'
    assert list(tidy.missing_docstrings(Path("_module.py"), ast.parse(text))) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import os, loaderx.errors", {"errors"}),
        ("from loaderx import _native, zrecord", {"_native", "zrecord"}),
        ("from loaderx._native import lib", {"_native"}),
        ("from . import errors", {"errors"}),
        ("from .errors import ZrecordError", {"errors"}),
        ("from numpy import errors", set()),
        ("def f():\n    from loaderx import utils", {"utils"}),
        ("if TYPE_CHECKING:\n    from loaderx import utils", set()),
    ],
)
def test_imported_modules(text: str, expected: set[str]) -> None:
    assert set(tidy.imported_modules(ast.parse(text))) == expected


def complaints(**modules: str) -> list[str]:
    """What is wrong with the imports of a package of these modules."""
    paths = {name: Path(f"{name}.py") for name in modules}
    trees = {paths[name]: ast.parse(text) for name, text in modules.items()}
    return list(tidy.wrong_imports(paths, trees))


def test_imports_that_are_right() -> None:
    everything = "from . import errors, zrecord, zsampler, dataloader"
    assert [] == complaints(
        __init__=everything,
        errors="",
        _native="from . import errors",
        zrecord="from . import _native",
        zsampler="from . import _native",
        _ticket="from . import zrecord",
        dataloader="from . import _ticket, zsampler",
    )


def test_imports_in_a_circle() -> None:
    (complaint,) = complaints(
        errors="from . import _a", _a="from . import _b", _b="from . import _a"
    )
    assert complaint.endswith("import each other, or one that does: ['_a', '_b', 'errors']")


def test_imports_that_point_up() -> None:
    (complaint,) = complaints(
        zrecord="", _order="from . import zrecord", zsampler="from . import _order"
    )
    assert complaint == "zsampler.py: zsampler reaches ['zrecord']: it may reach ['errors']"


def test_a_public_module_that_nobody_placed() -> None:
    (complaint,) = complaints(news="")
    assert "news has no place in the table" in complaint


def test_the_sources_are_found() -> None:
    names = {path.name for path in tidy.sources()}
    assert {"__init__.py", "setup.py", "tidy.py", "test_tidy.py"} <= names
    assert "_cdef.py" not in names
