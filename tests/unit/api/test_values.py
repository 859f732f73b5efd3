"""Values that are read from what a gateway sent."""

from __future__ import annotations

import msgspec
import pytest

from openclaw.api.failures import ToolFailed, tool_refusal
from openclaw.api.values import History, SessionInfo
from openclaw.errors import Forbidden


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
