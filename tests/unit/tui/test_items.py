"""Messages as things to draw."""

from __future__ import annotations

from datetime import UTC
from typing import Any

import pytest

from openclaw.protocol.messages import text_of
from openclaw.tui.items import MAX_RESULT_CHARS, Item, items_of, run_of, with_result
from tests.unit.tui.messages import agent, person, result

Json = dict[str, Any]


def test_who_said_what() -> None:
    (said,) = items_of(person(3, "hello\x1b[2J"), UTC)
    assert said == Item("m3", "person", "hello\ufffd[2J", "1970-01-01 00:00")
    answer, call = items_of(agent(4, "let me see", calls=("c1",)))
    assert (answer.kind, answer.text, answer.item_id) == ("agent", "let me see", "m4")
    assert (call.kind, call.text, call.state, call.item_id) == ("tool", "look at=c1", "running", "m4:0")
    assert '"at": "c1"' in call.details
    assert [item.kind for item in items_of(agent(5, "", calls=("a", "b")))] == ["tool", "tool"]
    assert items_of(agent(6, "")) == []
    system: Json = {"role": "system", "content": "reset\nhere", "__openclaw": {"seq": 7}}
    assert items_of(system) == [Item("m7", "mark", "reset here")]
    assert items_of(system | {"content": ""}) == []


def test_what_is_not_text_is_named() -> None:
    message = person(1, "see")
    message["content"] += [
        {"type": "image", "bytes": 12},
        {"type": "audio"},
        {"type": "thinking", "text": "x"},
    ]
    (item,) = items_of(message)
    assert item.text == "see\n[image, 12 bytes]\n[audio]"
    assert items_of({"role": "user", "content": [5, None]})[0].text == "(nothing)"
    assert text_of({"content": 7}) == text_of(None) == ""
    assert (
        text_of({"content": [{"type": "text", "text": "a"}, {"type": "text"}, {"type": "text", "text": "b"}]})
        == "a\nb"
    )


def test_a_tool_call_with_its_answer() -> None:
    (call,) = items_of(agent(1, "", calls=("c1",)))
    done = with_result(call, result(2, "c1", "found \x07it"))
    assert (done.state, done.item_id) == ("done", "m1:0")
    assert done.details.endswith("→ found \ufffdit") and '"at"' in done.details
    failed = with_result(None, result(3, "lost", "", failed=True))
    assert (failed.item_id, failed.text, failed.state, failed.details) == ("m3", "look", "failed", "")
    long = with_result(None, result(4, "c", "x" * (MAX_RESULT_CHARS + 1)))
    assert len(long.details) == MAX_RESULT_CHARS + len("→ \n…")
    exact = with_result(None, result(4, "c", "x" * MAX_RESULT_CHARS))
    assert exact.details == "→ " + "x" * MAX_RESULT_CHARS


@pytest.mark.parametrize(
    "arguments", [None, {}, "", "text", [1, 2], {"a": {"b": "\x1b"}}, {str(n): "v" * 999 for n in range(99)}]
)
def test_whatever_a_model_passes_to_a_tool_is_one_safe_line(arguments: Any) -> None:
    message: Json = {
        "role": "assistant",
        "content": [{"type": "toolCall", "name": "n\x1b", "arguments": arguments}],
    }
    (item,) = items_of(message)
    assert len(item.text) < 200 and "\x1b" not in item.text + item.details and "\n" not in item.text
    assert len(item.details) <= MAX_RESULT_CHARS


def test_the_run_of_a_message() -> None:
    assert run_of(person(1, "x", "r7")) == run_of(agent(1, "x", "r7")) == "r7"
    assert run_of({"__openclaw": 5}) == ""
