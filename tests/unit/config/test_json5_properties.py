"""The JSON5 reader against an independent one, and against anything at all."""

from __future__ import annotations

import json
import math
from typing import Any

import pyjson5
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.config.json5 import Json5Error, parse
from openclaw.config.nodes import Array, Node, Object, plain
from tests.unit.config.json5_texts import OBJECTS, VALUES, spelled

pytestmark = pytest.mark.spec("CFG-1")


def same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    if isinstance(left, dict) and isinstance(right, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and bool(left == right)


@given(st.data(), VALUES)
@settings(max_examples=300, deadline=None)
def test_reads_every_spelling_as_the_value_and_as_the_other_reader_does(
    data: st.DataObject, value: Any
) -> None:
    text = data.draw(spelled(value))
    read = plain(parse(text).root)
    assert same(read, value)
    assert same(read, pyjson5.decode(text))


@given(VALUES)
@settings(max_examples=100, deadline=None)
def test_reads_plain_json(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=True)
    assert same(plain(parse(text).root), value)


@given(st.data(), OBJECTS)
@settings(max_examples=100, deadline=None)
def test_every_span_reads_as_its_own_value(data: st.DataObject, value: Any) -> None:
    text = data.draw(spelled(value))
    document = parse(text)

    def visit(node: Node) -> None:
        own = text[node.start : node.end]
        assert same(plain(parse(own).root), plain(node))
        position = document.position(node.start)
        assert document.line_starts[position.line - 1] + position.column - 1 == node.start
        for part in node.items if isinstance(node, Array) else ():
            visit(part)
        for member in node.members if isinstance(node, Object) else ():
            key = text[member.key_start : member.key_end]
            assert plain(parse(f"{{{key}: 1}}").root) == {member.key: 1}
            visit(member.value)

    visit(document.root)


@given(st.text(st.sampled_from(list("{}[]:,\"'\\/*\n\r ab01.-+eExuINn\ufeff\u2028\0#\ud800é")), max_size=40))
@settings(max_examples=300, deadline=None)
def test_any_text_is_read_or_refused_with_a_place_inside_it(text: str) -> None:
    try:
        parse(text, "f")
    except Json5Error as error:
        assert 1 <= error.position.line <= text.count("\n") + text.count("\r") + 1
        assert error.position.column >= 1
        assert error.excerpt.isprintable() or "\n" in error.excerpt


@given(st.data(), OBJECTS)
@settings(max_examples=100, deadline=None)
def test_a_cut_text_is_refused_not_misread(data: st.DataObject, value: Any) -> None:
    text = data.draw(spelled(value))
    end = parse(text).root.end - 1
    with pytest.raises(Json5Error):
        parse(text[:end])
