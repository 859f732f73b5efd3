"""Change one setting in a config text and leave everything else as the person wrote it.

Works on spans of the parsed text: comments, order, quotes and indentation outside the
changed value stay byte for byte. Pure functions from text to text; files are `write`'s.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from openclaw.config.json5 import MAX_DEPTH, after_blanks, is_identifier, parse
from openclaw.config.nodes import (
    Array,
    Member,
    Node,
    Object,
    Path,
    Scalar,
    find,
    format_path,
    parse_path,
    plain,
)
from openclaw.config.references import expand
from openclaw.config.values import REDACTED

_INLINE_WIDTH = 80
_EMPTY_FILE = "{}\n"


def set_value(text: str, path: str | Path, value: Any, *, env: Mapping[str, str] | None = None) -> str:
    """The text with one value set; missing parents are created, a list grows by its next index.

    Where the new value equals what a `${NAME}` in the file resolves to, or is the
    placeholder that stands for a hidden secret, the old text stays.
    Raises Json5Error for a broken text, ValueError for a path that leads nowhere.
    """
    text = text if text.strip() else _EMPTY_FILE
    root = parse(text).root
    steps = _steps(root, path)
    depth = _existing_depth(root, steps)
    node = find(root, steps[:depth])
    assert node is not None
    if depth == len(steps):
        value = _keep_written(node, value, env or {})
        if _same(plain(node), value):
            return text
        style = _Style(text, root, _line_indent(text, node.start))
        return text[: node.start] + style.render(value) + text[node.end :]
    for step in reversed(steps[depth + 1 :]):
        value = {step: value} if isinstance(step, str) else [value]
    if isinstance(node, Object):
        return _insert(text, root, node, str(steps[depth]), value)
    if isinstance(node, Array):
        return _insert(text, root, node, None, value)
    if node.value is None and depth:
        return set_value(text, steps[:depth], {steps[depth]: value})
    raise ValueError(f"{format_path(steps[:depth]) or 'the file'} is not an object")


def unset(text: str, path: str | Path) -> str:
    """The text without one value, its comma gone too; unchanged when there is no such value."""
    if not text.strip():
        return text
    root = parse(text).root
    steps = _steps(root, path)
    if find(root, steps) is None:
        return text
    parent = find(root, steps[:-1])
    if isinstance(parent, Object):
        spans = [(member.key_start, member.value.end) for member in parent.members]
        index = [member.key for member in parent.members].index(str(steps[-1]))
    else:
        assert isinstance(parent, Array) and isinstance(steps[-1], int)
        spans = [(item.start, item.end) for item in parent.items]
        index = steps[-1]
    return _cut(text, spans, index)


def patch(text: str, changes: Mapping[str, Any], *, env: Mapping[str, str] | None = None) -> str:
    """Merge a tree of changes: objects merge, null removes, anything else replaces."""
    return _patch(text, (), changes, env or {})


def _patch(text: str, base: Path, changes: Mapping[str, Any], env: Mapping[str, str]) -> str:
    for key, value in changes.items():
        path = (*base, key)
        if value is None:
            text = unset(text, path)
        elif isinstance(value, Mapping) and isinstance(find(parse(text).root, path), Object):
            text = _patch(text, path, value, env)
        else:
            text = set_value(text, path, value, env=env)
    return text


# -- paths ---------------------------------------------------------------------------------------


def _steps(root: Node, path: str | Path) -> Path:
    """A path whose steps fit the document: a number addresses a list, a word an object."""
    written = parse_path(path) if isinstance(path, str) else path
    if not written:
        raise ValueError("the path is empty")
    steps: Path = ()
    for step in written:
        node = find(root, steps)
        if isinstance(node, Array) and isinstance(step, str):
            if not (step.isascii() and step.isdigit() and len(step) <= 9):
                raise ValueError(f"{format_path(steps)} is a list; {step[:40]!r} is not a position in it")
            step = int(step)
        elif isinstance(node, Object):
            step = str(step)
        steps = (*steps, step)
    return steps


def _existing_depth(root: Node, steps: Path) -> int:
    """How many steps of a path the document has already."""
    length = next(count for count in range(len(steps), -1, -1) if find(root, steps[:count]) is not None)
    node = find(root, steps[:length])
    if isinstance(node, Array) and length < len(steps) and steps[length] != len(node.items):
        raise ValueError(
            f"{format_path(steps[:length])} has {len(node.items)} items; {steps[length]} is not the next"
        )
    return length


def _keep_written(node: Node, value: Any, env: Mapping[str, str]) -> Any:
    """The new value, with the text of the file wherever that means the same."""
    if isinstance(node, Object) and isinstance(value, Mapping):
        old = {member.key: member.value for member in node.members}
        return {
            key: _keep_written(old[key], part, env) if key in old else part for key, part in value.items()
        }
    if isinstance(node, Array) and isinstance(value, list | tuple):
        pairs = list(zip(node.items, value, strict=False))
        return [_keep_written(item, part, env) for item, part in pairs] + list(value[len(pairs) :])
    if isinstance(node, Scalar) and isinstance(node.value, str) and isinstance(value, str):
        expansion = expand(node.value, env)
        if value == REDACTED or (not expansion.missing and expansion.text == value):
            return node.value
    return value


def _same(old: Any, new: Any) -> bool:
    return type(old) is type(new) and bool(old == new)


# -- inserting -----------------------------------------------------------------------------------


def _insert(text: str, root: Node, parent: Object | Array, key: str | None, value: Any) -> str:
    """Put a new element last: behind the comments of the one before it, in the style of the file."""
    ends = [member.value.end for member in parent.members] if isinstance(parent, Object) else []
    ends = [item.end for item in parent.items] if isinstance(parent, Array) else ends
    close = parent.end - 1
    content_end = len(text[:close].rstrip())
    outer = _line_indent(text, parent.start)
    one_line = bool(ends) and not _has_break(text[parent.start : parent.end])
    style = _Style(text, root, outer)
    indent = _element_indent(text, parent) or outer + style.unit
    style.indent = outer if one_line else indent
    element = style.render(value) if key is None else f"{style.key(key, parent)}: {style.render(value)}"
    last = ends[-1] if ends else content_end
    comma = after_blanks(text, last)
    trailing_comma = bool(ends) and text[comma] == ","
    head = text[:last] + ("," if ends and not trailing_comma else "") + text[last:content_end]
    tail = element + ("," if trailing_comma else "")
    if one_line:
        return f"{head} {tail}{text[content_end:]}"
    rest = text[content_end:] if ends else f"{style.newline}{outer}{text[close:]}"
    return f"{head}{style.newline}{indent}{tail}{rest}"


def _element_indent(text: str, parent: Object | Array) -> str | None:
    """The indentation of the elements that stand on lines of their own, if one does."""
    starts = (
        [member.key_start for member in parent.members]
        if isinstance(parent, Object)
        else [item.start for item in parent.items]
    )
    for start in reversed(starts):
        indent = _line_indent(text, start)
        line_start = _line_start(text, start)
        if line_start + len(indent) == start and line_start > parent.start:
            return indent
    return None


class _Style:
    """How this file is written: quotes around keys, indentation, line ends."""

    def __init__(self, text: str, root: Node, indent: str) -> None:
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self.indent = indent
        self.unit = (_element_indent(text, root) if isinstance(root, Object) else None) or "  "
        self.bare_keys = isinstance(root, Object) and _bare(text, root.members)
        self.text = text

    def key(self, key: str, parent: Object | Array | None = None) -> str:
        siblings = parent.members if isinstance(parent, Object) else ()
        bare = _bare(self.text, siblings) if siblings else self.bare_keys
        return key if bare and is_identifier(key) else _quoted(key)

    def render(self, value: Any, depth: int = 0) -> str:
        """A value as text, its lines indented to stand at `indent`."""
        if depth > MAX_DEPTH:
            raise ValueError(f"the value is nested deeper than {MAX_DEPTH} levels")
        if isinstance(value, Mapping):
            parts = [f"{self.key(str(key))}: {self.render(part, depth + 1)}" for key, part in value.items()]
            return self.block("{", parts, "}", depth)
        if isinstance(value, list | tuple):
            parts = [self.render(part, depth + 1) for part in value]
            inline = "[" + ", ".join(parts) + "]"
            plain_parts = not any(isinstance(part, Mapping | list | tuple) for part in value)
            return (
                inline if plain_parts and len(inline) <= _INLINE_WIDTH else self.block("[", parts, "]", depth)
            )
        if isinstance(value, str):
            return _quoted(value)
        if isinstance(value, float) and not math.isfinite(value):
            return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
        if isinstance(value, bool) or value is None:
            return {True: "true", False: "false", None: "null"}[value]
        if isinstance(value, int | float):
            return repr(value)
        raise ValueError(f"a value of type {type(value).__name__} cannot be written to the config")

    def block(self, opening: str, parts: Sequence[str], closing: str, depth: int) -> str:
        if not parts:
            return opening + closing
        inner = self.newline + self.indent + self.unit * (depth + 1)
        return (
            opening
            + inner
            + f",{inner}".join(parts)
            + self.newline
            + self.indent
            + self.unit * depth
            + closing
        )


def _bare(text: str, members: Sequence[Member]) -> bool:
    return bool(members) and text[members[-1].key_start] not in "\"'"


def _quoted(text: str) -> str:
    try:
        return msgspec.json.encode(text).decode()
    except UnicodeEncodeError:
        raise ValueError("the text holds half of a surrogate pair; write the character itself") from None


# -- removing ------------------------------------------------------------------------------------


def _cut(text: str, spans: Sequence[tuple[int, int]], index: int) -> str:
    start, end = spans[index]
    comma = after_blanks(text, end)
    if text[comma] == ",":
        text = text[:comma] + text[comma + 1 :]  # comments between the value and its comma stay
    elif index:
        before = after_blanks(text, spans[index - 1][1])
        text = text[:before] + text[before + 1 :]
        start, end = start - 1, end - 1
    line_start = _line_start(text, start)
    line_end = end + len(text[end:]) - len(text[end:].lstrip(" \t"))
    alone = not text[line_start:start].strip()
    if alone and text[line_end : line_end + 1] in ("\n", "\r"):
        line_end += 2 if text.startswith("\r\n", line_end) else 1
        return text[:line_start] + text[line_end:]
    if index and not alone and text[line_end : line_end + 1] in ("}", "]"):
        start = len(text[:start].rstrip(" \t"))
        return text[:start] + text[end:]
    return text[:start] + text[line_end:]


def _line_start(text: str, offset: int) -> int:
    return max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1


def _line_indent(text: str, offset: int) -> str:
    """The blanks with which the line of an offset begins."""
    start = _line_start(text, offset)
    line = text[start:offset]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _has_break(text: str) -> bool:
    return any(line_break in text for line_break in "\n\r\u2028\u2029")
