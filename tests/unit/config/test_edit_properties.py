"""Edits of arbitrary texts: the right value changes, nothing else does, no comment is lost."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.config.edit import set_value, unset
from openclaw.config.json5 import parse
from openclaw.config.nodes import Node, Object, find, plain
from tests.unit.config.json5_texts import KEYS, OBJECTS, VALUES, spelled
from tests.unit.config.test_json5_properties import same

pytestmark = pytest.mark.spec("CFG-6")

Path = tuple[str | int, ...]


def paths_in(value: Any, base: Path = ()) -> list[Path]:
    """Every path of a value, itself left out."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path for key, part in parts for path in ((*base, key), *paths_in(part, (*base, key)))]


def value_at(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


def comments_outside(text: str, start: int, end: int) -> int:
    """How many of the generated comments stand outside a span."""
    outside = text[:start] + "\n" + text[end:]
    return len(re.findall(r"/\* c \*/|// line|/\* \*\n\* / ' \" \*/|// ' \" \} \]", outside))


@given(st.data(), OBJECTS, VALUES)
@settings(max_examples=150, deadline=None)
def test_replacing_changes_that_value_alone(data: st.DataObject, tree: dict[str, Any], new: Any) -> None:
    text = data.draw(spelled(tree))
    paths = paths_in(tree)
    if not paths:
        return
    path = data.draw(st.sampled_from(paths))
    expected = copy.deepcopy(tree)
    value_at(expected, path[:-1])[path[-1]] = new
    result = set_value(text, path, new)
    assert same(plain(parse(result).root), expected)
    old = find(parse(text).root, path)
    assert old is not None
    assert result.startswith(text[: old.start])
    assert result.endswith(text[old.end :])


@given(st.data(), OBJECTS, KEYS, VALUES)
@settings(max_examples=150, deadline=None)
def test_inserting_adds_one_value_and_keeps_every_comment(
    data: st.DataObject, tree: dict[str, Any], key: str, new: Any
) -> None:
    text = data.draw(spelled(tree))
    holders = [(), *(path for path in paths_in(tree) if isinstance(value_at(tree, path), dict | list))]
    holder = data.draw(st.sampled_from(holders))
    expected = copy.deepcopy(tree)
    parent = value_at(expected, holder)
    if isinstance(parent, list):
        path: Path = (*holder, len(parent))
        parent.append(new)
    else:
        path = (*holder, key)
        if key in parent:
            return
        parent[key] = new
    result = set_value(text, path, new)
    assert same(plain(parse(result).root), expected)
    added = find(parse(result).root, path)
    assert added is not None
    assert comments_outside(result, added.start, added.end) >= comments_outside(text, 0, 0)


@given(st.data(), OBJECTS)
@settings(max_examples=150, deadline=None)
def test_removing_takes_that_value_alone_and_keeps_the_comments_around_it(
    data: st.DataObject, tree: dict[str, Any]
) -> None:
    text = data.draw(spelled(tree))
    paths = paths_in(tree)
    if not paths:
        return
    path = data.draw(st.sampled_from(paths))
    expected = copy.deepcopy(tree)
    del value_at(expected, path[:-1])[path[-1]]
    result = unset(text, path)
    assert same(plain(parse(result).root), expected)
    start, end = _span(parse(text).root, path)
    assert comments_outside(result, 0, 0) >= comments_outside(text, start, end)


@given(st.data(), OBJECTS, VALUES)
@settings(max_examples=100, deadline=None)
def test_setting_and_unsetting_a_new_key_gives_the_same_settings(
    data: st.DataObject, tree: dict[str, Any], new: Any
) -> None:
    text = data.draw(spelled(tree))
    there = set_value(text, ("fresh-key", "below"), new)
    back = unset(there, ("fresh-key",))
    assert same(plain(parse(back).root), plain(parse(text).root))


def _span(root: Node, path: Path) -> tuple[int, int]:
    node = find(root, path)
    parent = find(root, path[:-1])
    assert node is not None
    start = node.start
    if isinstance(parent, Object):
        start = next(member.key_start for member in parent.members if member.key == path[-1])
    return start, node.end
