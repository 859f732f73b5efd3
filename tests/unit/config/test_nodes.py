"""Paths, places and lookups in a parsed document."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.config.json5 import parse
from openclaw.config.nodes import find, format_path, member_of, nearest_offset, parse_path, plain
from tests.unit.config.json5_texts import CHARS

pytestmark = pytest.mark.spec("CFG-3")

DOCUMENT = parse('{\n  a: {b: [1, {c: "x"}]},\n  "k.l": null,\n}')


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("session", "dmScope"), "session.dmScope"),
        (("agents", "list", 1, "id"), "agents.list[1].id"),
        (("channels", "telegram", "groups", "*"), "channels.telegram.groups.*"),
        (("models", "openai/gpt-4.1", "alias"), 'models["openai/gpt-4.1"].alias'),
        (("x", ""), 'x[""]'),
        (("-100", "$schema"), "-100.$schema"),
        ((), ""),
    ],
)
def test_paths_read_well(path: tuple[str | int, ...], text: str) -> None:
    assert format_path(path) == text
    if path:
        assert parse_path(text) == path


def test_long_and_broken_names_are_shown_safely() -> None:
    assert format_path(("a b" * 50,)) == '["' + ("a b" * 50)[:60] + '…"]'
    assert format_path(("x y\ud800",)) == '["x y?"]'


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a.b[0].c", ("a", "b", 0, "c")),
        ("a.0.c", ("a", "0", "c")),
        ("a['b.c'].d", ("a", "b.c", "d")),
        ('["x y"]', ("x y",)),
        ("list[12]", ("list", 12)),
    ],
)
def test_paths_are_understood(text: str, path: tuple[str | int, ...]) -> None:
    assert parse_path(text) == path


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "the path is empty"),
        (".a", "empty segment at character 1"),
        ("a..b", "empty segment at character 3"),
        ("a.", "empty segment at character 3"),
        ("a[0]b", 'expected "." or "[" at character 5'),
        ("a[x]", "expected a number or a quoted name in the bracket at character 2"),
        ("a[", "expected a number or a quoted name in the bracket at character 2"),
        ("a[1", "expected a number or a quoted name in the bracket at character 2"),
        ("a[9999999999]", "expected a number or a quoted name in the bracket at character 2"),
        ('a["b', "the bracket at character 2 of the path is not closed"),
    ],
)
def test_unreadable_paths_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match="path") as caught:
        parse_path(text)
    assert complaint in str(caught.value)


@given(
    st.lists(
        st.text(CHARS, max_size=8) | st.integers(0, 99),
        min_size=1,
        max_size=5,
    )
)
@settings(max_examples=200, deadline=None)
def test_formatting_never_fails(steps: list[str | int]) -> None:
    assert isinstance(format_path(tuple(steps)), str)


def test_find_and_nearest() -> None:
    node = find(DOCUMENT.root, ("a", "b", 1, "c"))
    assert node is not None
    assert plain(node) == "x"
    assert find(DOCUMENT.root, ("a", "b", 2)) is None
    assert find(DOCUMENT.root, ("a", "b", -1)) is None
    assert find(DOCUMENT.root, ("a", 0)) is None
    assert find(DOCUMENT.root, ("a", "b", "c")) is None
    assert find(DOCUMENT.root, ()) is DOCUMENT.root
    assert nearest_offset(DOCUMENT.root, ("a", "b", 1, "nope", "deep")) == DOCUMENT.text.index("{c:")
    assert nearest_offset(DOCUMENT.root, ("nope",)) == 0
    assert member_of(DOCUMENT.root, "k.l") is not None
    assert member_of(None, "a") is None


def test_positions_count_every_kind_of_line_end() -> None:
    document = parse("{\r\na: 1,\rb: 2,\nc: 3}")
    lines = [document.position(document.text.index(key)).line for key in "abc"]
    assert lines == [2, 3, 4]
    assert document.position(0).column == 1
