"""The tree that a config text parses into: values that remember where they stand.

Every node carries the offsets of its own text, so that one parser serves reading,
error messages with line numbers and writes that keep comments. Nothing here knows
what the settings mean.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

Path: TypeAlias = tuple[str | int, ...]

_LINE_END = re.compile(r"\r\n|\n|\r")
_PLAIN_SEGMENT = re.compile(r"[A-Za-z0-9_$*-]+")


class Scalar(Struct, frozen=True):
    """A string, number, boolean or null."""

    value: str | int | float | bool | None
    start: int
    end: int


class Member(Struct, frozen=True):
    """One `key: value` of an object; the key's own span includes its quotes."""

    key: str
    key_start: int
    key_end: int
    value: Node


class Object(Struct, frozen=True):
    members: tuple[Member, ...]
    start: int
    end: int


class Array(Struct, frozen=True):
    items: tuple[Node, ...]
    start: int
    end: int


Node: TypeAlias = Scalar | Object | Array


class Position(Struct, frozen=True):
    """Where an offset stands for a person: both count from 1, columns in code points."""

    line: int
    column: int


class Document(Struct, frozen=True):
    """A parsed text: the tree, the text it came from and the name to call it in messages."""

    name: str
    text: str
    root: Node
    line_starts: tuple[int, ...]

    def position(self, offset: int) -> Position:
        return position_of(self.line_starts, offset)


def line_starts_of(text: str) -> tuple[int, ...]:
    """Offsets at which the lines of a text begin, as editors count lines."""
    return (0, *(found.end() for found in _LINE_END.finditer(text)))


def position_of(line_starts: Sequence[int], offset: int) -> Position:
    line = bisect.bisect_right(line_starts, offset)
    return Position(line=line, column=offset - line_starts[line - 1] + 1)


def member_of(node: Node | None, key: str) -> Member | None:
    """The member of an object with this key; None when there is none or it is no object."""
    if not isinstance(node, Object):
        return None
    return next((member for member in node.members if member.key == key), None)


def find(root: Node, path: Path) -> Node | None:
    """The node at a path, or None."""
    node: Node | None = root
    for step in path:
        if isinstance(step, str):
            member = member_of(node, step)
            node = None if member is None else member.value
        elif isinstance(node, Array) and 0 <= step < len(node.items):
            node = node.items[step]
        else:
            return None
    return node


def nearest_offset(root: Node, path: Path) -> int:
    """The offset of the node at a path or, where it is absent, of its nearest parent.

    The root stands for "the file as a whole", so an absent section points at its start.
    """
    for length in range(len(path), 0, -1):
        node = find(root, path[:length])
        if node is not None:
            return node.start
    return root.start


def plain(node: Node) -> Any:
    """The bare value of a node: dicts, lists and scalars."""
    if isinstance(node, Object):
        return {member.key: plain(member.value) for member in node.members}
    if isinstance(node, Array):
        return [plain(item) for item in node.items]
    return node.value


def format_path(path: Path) -> str:
    """`agents.list[1].id`; a segment that is not a plain word is quoted in brackets."""
    parts: list[str] = []
    for step in path:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        elif _PLAIN_SEGMENT.fullmatch(step):
            parts.append(f".{step}" if parts else step)
        else:
            shown = step if len(step) <= 60 else step[:60] + "…"
            parts.append(f"[{msgspec.json.encode(_printable(shown)).decode()}]")
    return "".join(parts)


def parse_path(text: str) -> Path:
    """Read a dotted path: `a.b[0].c`, `a.0.c` and `a["b.c"].d` are all understood.

    A bare number stays a word here, because a map may have it as a key; whoever walks
    the path decides. Raises ValueError with the place that could not be read.
    """
    path: list[str | int] = []
    at = 0
    while at < len(text):
        if text[at] == "[":
            step, at = _bracket_step(text, at)
            path.append(step)
        else:
            if path and text[at] != ".":
                raise ValueError(f'expected "." or "[" at character {at + 1} of the path')
            at += 1 if path else 0
            end = at
            while end < len(text) and text[end] not in ".[":
                end += 1
            if end == at:
                raise ValueError(f"empty segment at character {at + 1} of the path")
            path.append(text[at:end])
            at = end
    if not path:
        raise ValueError("the path is empty")
    return tuple(path)


def _bracket_step(text: str, at: int) -> tuple[str | int, int]:
    quote = text[at + 1 : at + 2]
    if quote in ('"', "'"):
        close = text.find(quote + "]", at + 2)
        if close == -1:
            raise ValueError(f"the bracket at character {at + 1} of the path is not closed")
        return text[at + 2 : close], close + 2
    close = text.find("]", at)
    inside = text[at + 1 : close] if close != -1 else ""
    if not (inside.isascii() and inside.isdigit() and len(inside) <= 9):
        raise ValueError(
            f"expected a number or a quoted name in the bracket at character {at + 1} of the path"
        )
    return int(inside), close + 1


def _printable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
