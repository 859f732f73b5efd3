"""What is shown of a turn besides its answer: levels, and the words for them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain import showing
from openclaw.domain.entry import SessionEntry
from openclaw.domain.showing import ShownLevels, Used, resolve_shown
from openclaw.domain.transcript import (
    AssistantMessage,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
)


def entry(**fields: Any) -> SessionEntry:
    return SessionEntry(session_id="s", updated_at=0, **fields)


def call(name: str, **arguments: Any) -> ToolCallBlock:
    return ToolCallBlock("c", name, arguments)


def result(text: str, *, failed: bool = False) -> ToolResultMessage:
    return ToolResultMessage("c", "exec", (TextBlock(text),) if text else (), 0, failed)


@pytest.mark.spec("CMD-10")
@pytest.mark.parametrize(
    ("inline", "stored", "default", "level"),
    [
        (None, None, None, "off"),
        (None, None, "on", "on"),
        (None, "off", "on", "off"),
        ("full", "off", "on", "full"),
        (None, "full", None, "full"),
        ("loud", "on", None, "on"),
        (None, "loud", "full", "full"),
    ],
)
def test_the_nearest_choice_of_verbosity_wins(
    inline: str | None, stored: str | None, default: str | None, level: str
) -> None:
    shown = resolve_shown(entry(verbose_level=stored), verbose=inline, verbose_default=default)
    assert shown.verbose == level
    assert (shown.reasoning, shown.usage) == (None, "off")


@pytest.mark.spec("CMD-10", "CMD-11")
def test_reasoning_and_usage_come_from_message_and_session() -> None:
    assert resolve_shown(entry(reasoning_level="on")).reasoning == "on"
    assert resolve_shown(entry(reasoning_level="on"), reasoning="stream").reasoning == "stream"
    assert resolve_shown(entry(reasoning_level="on"), reasoning="off").reasoning == "off"
    assert resolve_shown(entry(reasoning_level="on"), reasoning="maybe").reasoning == "on"
    assert resolve_shown(entry(response_usage="full")) == ShownLevels("off", None, "full")
    assert ShownLevels() == resolve_shown(entry())


@pytest.mark.spec("CMD-10")
@pytest.mark.parametrize(
    ("asked", "line"),
    [
        (call("list"), "[tool] list"),
        (call("exec", timeout=5, command="ls\n -la"), "[tool] exec: ls -la"),
        (call("read", path="a.txt", offset=3), "[tool] read: a.txt"),
        (call("sessions_send", sessionKey="main", message="hi"), "[tool] sessions_send: hi"),
        (call("odd", count=3), '[tool] odd: {"count":3}'),
        (call("odd", command={"a": 1}), '[tool] odd: {"a":1}'),
        (call("exec", command="  "), "[tool] exec"),
        (call("we\nird\x00", x=1), '[tool] we ird: {"x":1}'),
    ],
)
def test_a_call_is_one_line(asked: ToolCallBlock, line: str) -> None:
    assert showing.calls_text((asked,)) == line


@pytest.mark.spec("CMD-10")
def test_long_arguments_are_cut_and_secrets_masked() -> None:
    exact = call("exec", command="x" * showing.ARGUMENT_CHARS)
    assert showing.calls_text((exact,)) == f"[tool] exec: {'x' * showing.ARGUMENT_CHARS}"
    longer = call("exec", command="x" * (showing.ARGUMENT_CHARS + 1))
    assert showing.calls_text((longer,)) == f"[tool] exec: {'x' * showing.ARGUMENT_CHARS}…"
    hidden = call("exec", command="curl -H 'X: hunter2-hunter2-hunter2'")
    told = showing.calls_text((hidden, call("list")), frozenset({"hunter2-hunter2-hunter2"}))
    assert "hunter2-hunter2" not in told and told.endswith("\n[tool] list")


@pytest.mark.spec("CMD-10")
def test_results_stand_under_their_tools() -> None:
    told = showing.results_text((result(" two lines\nhere \n"), result("no", failed=True), result("")))
    assert told == "[result] exec\ntwo lines\nhere\n\n[failed] exec\nno\n\n[result] exec"
    assert showing.results_text((result("y" * showing.RESULT_CHARS),)).endswith("y")
    cut = showing.results_text((result("y" * (showing.RESULT_CHARS + 1)),))
    assert cut == f"[result] exec\n{'y' * showing.RESULT_CHARS}…"
    secret = frozenset({"hunter2-hunter2-hunter2"})
    assert "hunter2-hunter2" not in showing.results_text((result("is hunter2-hunter2-hunter2"),), secret)


@pytest.mark.spec("CMD-10")
def test_thinking_is_taken_out_of_a_message() -> None:
    blocks = (ThinkingBlock(" one "), TextBlock("said"), ThinkingBlock("  "), ThinkingBlock("two"))
    message = AssistantMessage(blocks, 0, "api", "p", "m", None, "stop", None)
    assert showing.thinking_of(message) == "one\n\ntwo"
    assert showing.thinking_text(" one ") == "[thinking]\none"
    assert showing.thinking_text("z" * (showing.THINKING_CHARS + 1)).endswith("z…")
    assert showing.thinking_text("z" * showing.THINKING_CHARS).endswith("zz")


@pytest.mark.spec("CMD-11")
def test_the_usage_line() -> None:
    used = Used(12_345, 67, 1_000, 0.01234, "p/m", context=500, window=1000)
    assert showing.usage_line("off", used) == ""
    assert showing.usage_line("full", None) == ""
    assert showing.usage_line("tokens", used) == "[usage] 12,345 tokens in, 67 out"
    whole = "[usage] 12,345 tokens in, 67 out; 1,000 of them cached; about $0.0123; context 50 %; p/m"
    assert showing.usage_line("full", used) == whole
    assert showing.usage_line("full", Used(1, 2)) == "[usage] 1 tokens in, 2 out; cost not known"
    assert showing.usage_line("full", Used(1, 2, cost_usd=0.0)).endswith("about $0.0000")


@pytest.mark.spec("COMP-5", "COMP-11")
def test_the_notes_about_a_compaction() -> None:
    assert "12,000 → 3,000 tokens" in showing.compaction_ended_text((12_000, 3_000))
    assert "/compact undo" in showing.compaction_ended_text((2, 1))
    assert "Nothing was summarised" in showing.compaction_ended_text(None)
    assert "summarised" in showing.COMPACTION_BEGINS


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=400), st.dictionaries(st.text(max_size=10), st.text(max_size=400), max_size=3))
def test_whatever_a_model_calls_is_one_short_line(name: str, arguments: dict[str, Any]) -> None:
    line = showing.calls_text((ToolCallBlock("c", name, arguments),))
    assert len(line.splitlines()) == 1
    assert len(line) <= 2 * showing.ARGUMENT_CHARS + 20
