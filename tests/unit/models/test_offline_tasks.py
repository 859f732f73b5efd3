"""The offline model's orders: which message calls which tool, and what helpers say."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw.models.offline_tasks import answer_as_helper, follow_up, read_order


@pytest.mark.parametrize(
    ("said", "tool", "arguments"),
    [
        ("write notes.txt: hello there", "write", {"path": "notes.txt", "content": "hello there"}),
        ("Write a file a/b.md with two\nlines", "write", {"path": "a/b.md", "content": "two\nlines"}),
        ("read notes.txt", "read", {"path": "notes.txt"}),
        ("ask agent:main:bob: well?", "sessions_send", {"sessionKey": "agent:main:bob", "message": "well?"}),
        ("ask main: hi", "sessions_send", {"sessionKey": "main", "message": "hi"}),
        ("spawn helper: count", "sessions_spawn", {"task": "count"}),
        ("Start a helper to count sheep", "sessions_spawn", {"task": "count sheep"}),
    ],
)  # fmt: skip
def test_an_order_is_read(said: str, tool: str, arguments: dict[str, Any]) -> None:
    order = read_order(said)
    assert order is not None
    assert (order.tool, order.arguments) == (tool, arguments)


@pytest.mark.parametrize(
    "said",
    [
        "",
        "please read this",
        "I would ask main: hi",
        "write",
        "read two files",
        "ask: x",
        "write x: " + "y" * 3000,
    ],
)
def test_ordinary_talk_is_no_order(said: str) -> None:
    assert read_order(said) is None


def test_whoever_starts_a_helper_waits_for_it() -> None:
    order = follow_up("sessions_spawn", '{"status":"accepted","runId":"r"}')
    assert order is not None and order.tool == "sessions_yield"
    assert follow_up("sessions_spawn", '{"status":"forbidden","error":"no"}') is None
    assert follow_up("sessions_spawn", "not JSON") is None
    assert follow_up("sessions_list", '{"status":"accepted"}') is None


def test_helpers_say_something_useful() -> None:
    task = answer_as_helper("[Inter-session message]\n[Subagent Task]\n\ncount the sheep")
    assert task is not None and "count the sheep" in task
    assert (answer_as_helper("Your task has ended with status: success.") or "").startswith("Result: ")
    heard = answer_as_helper("[Sub-agent finished]\nTask: x\nStatus: success\nResult: 42\nStats: n/a")
    assert heard == "A helper has finished.\nStatus: success\nResult: 42"
    assert answer_as_helper("hello") is None
