"""Hold the rules of CONTRIBUTING.md for Python that no linter knows.

Functions have at most 70 lines, every module, class and function with a public
name has a docstring (methods only in public modules), and the modules of the
package import each other one way. The lengths of files, and everything of Go
and C, are held by the tests in internal/tidy.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "loaderx"
GENERATED = {PACKAGE / "_cdef.py"}
MAX_FUNCTION_LINES = 70

# Which public modules a public module may reach, itself or through private ones,
# whose names begin with an underscore. The store and the sampler do not know
# each other, as in Go; __init__ may reach all.
PUBLIC_IMPORTS: dict[str, set[str]] = {
    "errors": set(),
    "zrecord": {"errors"},
    "zsampler": {"errors"},
    "dataloader": {"errors", "zrecord", "zsampler"},
    "utils": {"errors", "zrecord"},
}

Definition = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def sources() -> list[Path]:
    """Return every Python file that somebody wrote."""
    found = [*PACKAGE.rglob("*.py"), *(ROOT / "python").glob("*.py")]
    found += [*(ROOT / "python" / "tests").rglob("*.py"), *(ROOT / "scripts").rglob("*.py")]
    return sorted(set(found) - GENERATED)


def long_functions(path: Path, tree: ast.Module) -> Iterator[str]:
    """Yield a complaint for each function with too many lines."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > MAX_FUNCTION_LINES:
                yield (
                    f"{path}:{node.lineno}: {node.name} has {lines} lines, "
                    f"the limit is {MAX_FUNCTION_LINES}"
                )


def missing_docstrings(path: Path, tree: ast.Module) -> Iterator[str]:
    """Yield a complaint for each public name that does not say what it is."""
    if not ast.get_docstring(tree):
        yield f"{path}:1: the module has no docstring"
    scopes: list[ast.Module | ast.ClassDef] = [tree]
    while scopes:
        for node in scopes.pop().body:
            if not isinstance(node, Definition) or node.name.startswith("_"):
                continue
            overload = any("overload" in ast.unparse(d) for d in node.decorator_list)
            if not ast.get_docstring(node) and not overload:
                yield f"{path}:{node.lineno}: {node.name} has no docstring"
            if isinstance(node, ast.ClassDef) and not path.stem.startswith("_"):
                scopes.append(node)


def is_type_checking(node: ast.AST) -> bool:
    """Report whether a node is a block that only type checkers read."""
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imported_modules(tree: ast.Module) -> Iterator[str]:
    """Yield the modules of the package that a module imports, wherever it does.

    Names are those below loaderx; what only type checkers read does not count.
    """
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if is_type_checking(node):
            continue
        pending.extend(ast.iter_child_nodes(node))
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("loaderx."):
                    yield alias.name.split(".")[1]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level == 0 and module.split(".")[0] != "loaderx":
                continue
            inner = module if node.level else module.partition(".")[2]
            names = [inner] if inner else [alias.name for alias in node.names]
            yield from (name.split(".")[0] for name in names)


def wrong_imports(modules: dict[str, Path], trees: dict[Path, ast.Module]) -> Iterator[str]:
    """Yield a complaint for each import that points up, or round in a circle."""
    below = {
        name: {found for found in imported_modules(trees[path]) if found in modules}
        for name, path in modules.items()
    }
    reached: dict[str, set[str]] = {}
    while len(reached) < len(below):
        free = [n for n in below if n not in reached and below[n] <= reached.keys()]
        if not free:
            circle = sorted(below.keys() - reached.keys())
            yield f"{PACKAGE}: these modules import each other, or one that does: {circle}"
            return
        for name in free:
            reached[name] = below[name].union(*(reached[other] for other in below[name]))
    for name in sorted(below.keys() - {"__init__"}):
        if name.startswith("_"):
            continue
        if name not in PUBLIC_IMPORTS:
            yield f"{modules[name]}: {name} has no place in the table of public modules"
            continue
        wrong = {n for n in reached[name] if not n.startswith("_")} - PUBLIC_IMPORTS[name]
        if wrong:
            may = sorted(PUBLIC_IMPORTS[name])
            yield f"{modules[name]}: {name} reaches {sorted(wrong)}: it may reach {may}"


def complaints() -> Iterator[str]:
    """Yield everything that is against the rules."""
    trees = {}
    for path in sources():
        tree = trees[path] = ast.parse(path.read_text(encoding="utf-8"), str(path))
        yield from long_functions(path, tree)
        if "tests" not in path.relative_to(ROOT).parts:
            yield from missing_docstrings(path, tree)
    modules = {path.stem: path for path in PACKAGE.glob("*.py") if path not in GENERATED}
    if "__init__" not in modules:
        yield f"{PACKAGE}: expected the package's modules here, found {sorted(modules)}"
    yield from wrong_imports(modules, trees)


def main() -> int:
    """Print the complaints and return the exit status."""
    found = list(complaints())
    for complaint in found:
        print(complaint, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
