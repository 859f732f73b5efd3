"""Keeps files and functions small enough to read: `python -m scripts.check_sizes`.

A file holds at most 400 lines, a function at most 60, over src, tests, scripts and benchmarks. What must be
longer stands in one of the two lists below with its own limit and a reason; an entry that is no longer needed
fails as well, so that the lists only ever name what is true.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

FILE_LINES = 400
FUNCTION_LINES = 60
FOLDERS = ("src", "tests", "scripts", "benchmarks")
SUFFIXES = ("", ".py", ".sh", ".sql", ".js", ".css", ".html")


class Exemption(NamedTuple):
    limit: int
    reason: str


# path -> its own limit
_SCHEMA = "the whole durable state, read as one text beside its twin for the other database"
LONG_FILES: Mapping[str, Exemption] = {
    "src/openclaw/store/sql/schema.sql": Exemption(600, _SCHEMA),
    "src/openclaw/store/sql/schema_postgres.sql": Exemption(600, _SCHEMA),
}
# path::Class.function -> its own limit
LONG_FUNCTIONS: Mapping[str, Exemption] = {}


def measure_files(root: Path) -> Iterator[tuple[str, Path, int]]:
    """Yields (name, path, lines) of every source file below the watched folders."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            hidden = any(
                part.startswith(".") or part == "__pycache__" for part in path.relative_to(root).parts
            )
            if path.is_file() and path.suffix in SUFFIXES and not hidden:
                lines = path.read_text(encoding="utf-8").count("\n")
                yield path.relative_to(root).as_posix(), path, lines


def measure_functions(name: str, source: str) -> Iterator[tuple[str, int, int]]:
    """Yields (name, first line, lines) of every function of one file, nested ones and methods included."""

    def visit(node: ast.AST, prefix: str) -> Iterator[tuple[str, int, int]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner = f"{prefix}{child.name}"
                if not isinstance(child, ast.ClassDef):
                    yield (
                        f"{name}::{inner}",
                        child.lineno,
                        (child.end_lineno or child.lineno) - child.lineno + 1,
                    )
                yield from visit(child, f"{inner}.")
            else:
                yield from visit(child, prefix)

    yield from visit(ast.parse(source, name), "")


def find_problems(
    root: Path, long_files: Mapping[str, Exemption], long_functions: Mapping[str, Exemption]
) -> list[str]:
    """One line per file or function over its limit, and per exemption that nothing needs."""
    problems: list[str] = []
    needed: set[str] = set()

    def judge(name: str, place: str, lines: int, limit: int, exemptions: Mapping[str, Exemption]) -> None:
        if lines <= limit:
            return
        needed.add(name)
        own_limit = exemptions[name].limit if name in exemptions else limit
        if lines > own_limit:
            problems.append(f"{place}: {lines} lines, allowed {own_limit}")

    for name, path, lines in measure_files(root):
        judge(name, name, lines, FILE_LINES, long_files)
        if path.suffix == ".py":
            for function, line, length in measure_functions(name, path.read_text(encoding="utf-8")):
                place = f"{name}:{line} {function.rpartition('::')[2]}"
                judge(function, place, length, FUNCTION_LINES, long_functions)
    for name in [*long_files, *long_functions]:
        if name not in needed:
            problems.append(
                f"{name}: the exemption is no longer needed; take it out of scripts/check_sizes.py"
            )
    return problems


def main(arguments: Sequence[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    root = Path(given[0]) if given else Path(__file__).resolve().parent.parent
    # Another folder has none of the files that are named here.
    files, functions = ({}, {}) if given else (LONG_FILES, LONG_FUNCTIONS)
    problems = find_problems(root, files, functions)
    for problem in problems:
        print(problem)
    if not problems:
        exempt = len(files) + len(functions)
        print(f"{sum(1 for _ in measure_files(root))} files within their budgets, {exempt} exemptions")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
