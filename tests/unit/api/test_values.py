"""Values that are read from what a gateway sent."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.api.failures import ToolFailed, tool_refusal
from openclaw.api.values import History, SessionInfo, text_of
from openclaw.errors import Forbidden

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": "plain"}, "plain"),
        (
            {"content": [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]},
            "a\nb",
        ),
        ({"content": [{"type": "thinking", "text": "no"}]}, ""),
        ({"content": [{"type": "text"}, {"type": "text", "text": None}, "x"]}, ""),
        ({}, ""),
    ],
)
def test_the_words_of_a_message(message: dict[str, Any], text: str) -> None:
    assert text_of(message) == text


@given(st.dictionaries(st.sampled_from(["content", "role"]), JSON))
@settings(max_examples=200, deadline=None)
def test_any_message_has_words_or_none(message: dict[str, Any]) -> None:
    assert isinstance(text_of(message), str)


def test_a_history_tells_who_said_what() -> None:
    messages = [{"role": "user", "content": "hi"}, {"role": "toolResult", "content": []}, {"content": "odd"}]
    history = msgspec.convert({"sessionKey": "main", "messages": messages, "newer": 1}, History)
    assert history.texts == (("user", "hi"), ("None", "odd"))
    assert (history.next_offset, history.truncated) == (None, False)


def test_a_row_keeps_what_it_knows_and_passes_over_the_rest() -> None:
    row = {"key": "main", "agentId": "main", "kind": "main", "sessionId": "s", "updatedAt": 1, "brandNew": {}}
    info = msgspec.convert(row, SessionInfo)
    assert (info.key, info.session_id, info.updated_at, info.label) == ("main", "s", 1, None)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({**row, "updatedAt": "yesterday"}, SessionInfo)


@pytest.mark.spec("TOOL-7")
@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        ({"code": "forbidden", "message": "not yours"}, Forbidden, "not yours"),
        ({"code": "error", "message": "broken"}, ToolFailed, "broken"),
        ({}, ToolFailed, "sessions_list gave no reason"),
        (None, ToolFailed, "sessions_list gave no reason"),
    ],
)
def test_what_a_tool_refused(error: object, kind: type[Exception], message: str) -> None:
    raised = tool_refusal("sessions_list", error)
    assert (type(raised), raised.message, raised.fields) == (kind, message, {"tool": "sessions_list"})
