"""Reads from the test sources which requirement each test proves. No test is imported or run.

A marker `pytest.mark.spec("KEY-2", ...)` counts on a test function, on a class (for all its tests), in
`pytestmark` of a module or class, inside a `pytest.param(..., marks=...)`, and on an assigned test case:
`TestStore = pytest.mark.spec("DB-1")(StoreMachine.TestCase)`. A test that is skipped or expected to fail
proves nothing and does not count.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


class Proof(NamedTuple):
    """One test that proves one requirement; `line` is where the marker names it."""

    spec_id: str
    file: str
    line: int
    test: str
    is_long: bool


class MarkerError(Exception):
    """A marker cannot be read; the message starts with its place, `file:line`."""


@dataclass(frozen=True)
class _Marks:
    """What the markers on and around a test say together."""

    lines: dict[str, int]
    names: frozenset[str]

    def within(self, outer: _Marks) -> _Marks:
        return _Marks({**outer.lines, **self.lines}, outer.names | self.names)


def collect(tests: Path, root: Path) -> list[Proof]:
    """All proofs below the folder `tests`, by file and place; file names are relative to `root`."""
    proofs: list[Proof] = []
    for path in sorted(tests.rglob("*.py")):
        proofs += read_file(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
    return proofs


def read_file(file: str, source: str) -> list[Proof]:
    """The proofs of one test module. Raises MarkerError where a marker is not made of plain strings."""
    body = ast.parse(source, file).body
    return list(_read_body(file, body, _assigned_marks(file, body), ""))


def _read_body(file: str, body: Sequence[ast.stmt], outer: _Marks, prefix: str) -> Iterator[Proof]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            own = _assigned_marks(file, node.body).within(_marks(file, node.decorator_list))
            yield from _read_body(file, node.body, own.within(outer), f"{prefix}{node.name}::")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            yield from _proofs(file, prefix + node.name, _marks(file, node.decorator_list).within(outer))
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            if node.targets[0].id.startswith("Test"):
                yield from _proofs(
                    file, prefix + node.targets[0].id, _marks(file, [node.value]).within(outer)
                )
        elif isinstance(node, ast.If | ast.With | ast.Try):
            yield from _read_body(file, node.body, outer, prefix)


def _proofs(file: str, test: str, marks: _Marks) -> Iterator[Proof]:
    if not marks.names & {"skip", "xfail"}:
        for spec_id, line in marks.lines.items():
            yield Proof(spec_id, file, line, test, "long" in marks.names)


def _assigned_marks(file: str, body: Sequence[ast.stmt]) -> _Marks:
    """The marks of `pytestmark = ...` in a module or class body."""
    values = [
        node.value
        for node in body
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == "pytestmark" for target in node.targets)
    ]
    flat = [
        item
        for value in values
        for item in (value.elts if isinstance(value, ast.List | ast.Tuple) else [value])
    ]
    return _marks(file, flat)


def _marks(file: str, expressions: Sequence[ast.expr]) -> _Marks:
    lines: dict[str, int] = {}
    names: set[str] = set()
    for expression in expressions:
        # A mark as such holds for the whole test; one deeper inside (pytest.param) only for a case of it.
        whole = expression.func if isinstance(expression, ast.Call) else expression
        if isinstance(whole, ast.Attribute) and _is_mark(whole.value):
            names.add(whole.attr)
        for node in ast.walk(expression):
            if isinstance(node, ast.Call) and _is_spec(node.func):
                lines.update(_spec_ids(file, node))
    return _Marks(lines, frozenset(names))


def _is_mark(node: ast.expr) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name == "mark"


def _is_spec(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "spec" and _is_mark(node.value)


def _spec_ids(file: str, call: ast.Call) -> Iterator[tuple[str, int]]:
    if not call.args or call.keywords:
        raise MarkerError(f"{file}:{call.lineno}: the spec marker names no requirement")
    for argument in call.args:
        if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
            raise MarkerError(f"{file}:{call.lineno}: the spec marker takes plain strings only")
        yield argument.value, argument.lineno
