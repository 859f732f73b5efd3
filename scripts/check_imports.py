"""Finds modules that nothing uses: `python -m scripts.check_imports`.

Every module under src/openclaw must be reached by imports from the doors of the package: the command,
`python -m openclaw`, `import openclaw`. An import counts at the top of a module, inside a function, or as a
string such as "openclaw.cli.status" or "openclaw.cli.status:command" in a table of lazily loaded things.
Docstrings do not count. Reads source only; nothing is imported.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

PACKAGE = "openclaw"
DOORS = ("openclaw", "openclaw.__main__", "openclaw.cli.main")

# Modules that stand ready for a part still to come, with the part that will use them. What they import
# themselves counts as used.
WAITING: Mapping[str, str] = {
    "openclaw.models.scripted": "tests of the engine",
    "openclaw.protocol.schema": "the page that documents the wire",
}


def find_modules(source_root: Path) -> dict[str, Path]:
    """Maps the dotted name of every module below `source_root`/openclaw to its file."""
    modules: dict[str, Path] = {}
    for path in sorted((source_root / PACKAGE).rglob("*.py")):
        parts = list(path.relative_to(source_root).with_suffix("").parts)
        if parts[-1] == "__init__":
            parts.pop()
        modules[".".join(parts)] = path
    return modules


def _docstrings(tree: ast.AST) -> set[int]:
    """The ids of all bare string statements, docstrings among them."""
    return {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def _absolute(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    if not node.level:
        return node.module or ""
    base = module.split(".")
    keep = len(base) - node.level + (1 if is_package else 0)
    return ".".join([*base[:keep], *([node.module] if node.module else [])])


def references(module: str, path: Path, source: str) -> Iterator[tuple[str, int]]:
    """Yields (dotted name, line) of everything that one module names; a `:` part marks a lazy table entry."""
    tree = ast.parse(source, str(path))
    bare = _docstrings(tree)
    is_package = path.name == "__init__.py"
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, module, is_package)
            yield base, node.lineno
            for alias in node.names:
                yield f"{base}.{alias.name}", node.lineno
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            name = _named_by_string(node.value, module, is_package)
            if name:
                yield name, node.lineno


def _named_by_string(text: str, module: str, is_package: bool) -> str:
    """The dotted name in a string entry; relative entries (".status:command") count from their package."""
    if re.fullmatch(rf"{PACKAGE}(\.\w+)+(:\w+)?", text):
        return text
    if re.fullmatch(r"\.\w+(\.\w+)*:\w+", text):
        package = module if is_package else module.rpartition(".")[0]
        return package + text
    return ""


def find_problems(source_root: Path, waiting: Mapping[str, str] = WAITING) -> list[str]:
    """One line per unreached module, per lazy entry that names no module, per needless line in `waiting`."""
    modules = find_modules(source_root)
    used, broken = _reach(modules, DOORS)
    ready, broken_too = _reach(modules, [*DOORS, *waiting])
    problems = broken | broken_too
    for module, path in modules.items():
        if module not in ready and not _is_empty_package(path):
            problems.add(f"{path}: nothing imports {module}")
    for module in waiting:
        if module in used or module not in modules:
            problems.add(f"{module}: no longer waits; take it out of scripts/check_imports.py")
    return sorted(problems)


def _reach(modules: Mapping[str, Path], doors: Sequence[str]) -> tuple[set[str], set[str]]:
    """Follows references from `doors`. Returns the modules found, and a line per entry that leads nowhere."""
    reached: set[str] = set()
    broken: set[str] = set()
    to_read = [door for door in doors if door in modules]
    while to_read:
        module = to_read.pop()
        if module in reached:
            continue
        reached.add(module)
        path = modules[module]
        for name, line in references(module, path, path.read_text(encoding="utf-8")):
            target, is_entry, _ = name.partition(":")
            if is_entry and target not in modules:
                broken.add(f"{path}:{line}: no module is called {target}")
            to_read += [found for found in _with_parents(target) if found in modules]
    return reached, broken


def _with_parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts) + 1)]


def _is_empty_package(path: Path) -> bool:
    """An `__init__.py` that holds no code is a folder's name plate, not a module to be used."""
    if path.name != "__init__.py":
        return False
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return all(isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) for node in body)


def main(arguments: Sequence[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    root = Path(given[0]) if given else Path(__file__).resolve().parent.parent
    problems = find_problems(root / "src")
    for problem in problems:
        print(problem)
    if not problems:
        print(f"{len(find_modules(root / 'src'))} modules, all in use or waiting ({len(WAITING)} wait)")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
