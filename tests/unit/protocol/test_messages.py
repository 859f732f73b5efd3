"""Messages as a client reads them: words, files, calls and marks, whatever stands in them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.protocol.messages import arguments_of, blocks_of, calls_of, files_of, marks_of, text_of
from openclaw.protocol.rows import client_message

MIXED: dict[str, Any] = {
    "role": "assistant",
    "content": [
        {"type": "thinking", "text": "hm"},
        {"type": "text", "text": "one"},
        {"type": "image", "bytes": 512},
        {"type": "toolCall", "name": "read", "arguments": {"path": "a.md", "limit": 5}},
        {"type": "text", "text": ""},
        {"type": "text", "text": "two"},
        {"type": "file", "bytes": "many"},
        "loose",
    ],
}


def test_words_files_and_calls_are_told_apart() -> None:
    assert text_of(MIXED) == "one\ntwo" and text_of(MIXED, between="") == "onetwo"
    assert files_of(MIXED) == ["[image, 512 bytes]", "[file]"]
    assert [call["name"] for call in calls_of(MIXED)] == ["read"]
    assert text_of({"content": "plain"}) == "plain" and text_of(None) == text_of({}) == ""
    assert text_of({"content": [{"type": "text"}, {"type": "text", "text": None}]}) == ""
    assert blocks_of({"content": "plain"}) == [{"type": "text", "text": "plain"}]


def test_marks_are_those_that_the_gateway_sets() -> None:
    shown = client_message({"role": "user", "content": "hi"}, entry_id="e1", seq=3, run_id="r")
    assert marks_of(shown) == {"id": "e1", "seq": 3, "runId": "r"}
    assert marks_of({}) == marks_of({"__openclaw": "odd"}) == {}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (None, ""),
        ({}, ""),
        ({"path": "a.md", "limit": 5, "deep": {"x": [1]}}, 'path=a.md limit=5 deep={"x":[1]}'),
        ("a plain text", "a plain te"),
        ([1, 2], "[1,2]"),
        ({"long": "x" * 99}, f"long={'x' * 10}"),
        ({str(number): number for number in range(9)}, "0=0 1=1 2=2 3=3 4=4 5=5 6=6 7=7"),
    ],
)
def test_arguments_are_told_in_few_words(arguments: Any, words: str) -> None:
    assert arguments_of({"arguments": arguments}, 10) == words


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: (
    st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(("content", "type", "text", "bytes", "arguments", "__openclaw")), inner, max_size=4)
), max_leaves=12))  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_nothing_that_comes_is_believed(value: Any) -> None:
    message = value if isinstance(value, dict) else {"content": value, "__openclaw": value}
    assert isinstance(text_of(message), str) and isinstance(marks_of(message), dict)
    assert all(isinstance(word, str) for word in files_of(message))
    assert all(len(arguments_of(call, 10)) < 500 for call in calls_of(message))
