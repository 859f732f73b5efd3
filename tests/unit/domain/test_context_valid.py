"""The repaired message list: pairing, blanks, ids, alternation; total on any input (TRX-12)."""

from __future__ import annotations

from typing import Any, cast, get_args

import pytest

from openclaw.domain.context import Dialect, make_valid
from openclaw.domain.transcript import (
    AssistantBlock,
    AssistantMessage,
    ImageBlock,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
)

DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
NO_RESULT = "No result was recorded for this call. It may or may not have run."
ABORTED = "The run was aborted before this call returned a result."
IMAGE = ImageBlock("AAAA", "image/png")


def user(text: str, at: int = 1) -> UserMessage:
    return UserMessage(text, at)


def says(*blocks: AssistantBlock | str, stop: StopReason | None = None, api: str = "") -> AssistantMessage:
    content = tuple(TextBlock(block) if isinstance(block, str) else block for block in blocks)
    return AssistantMessage(content, 2, stop_reason=stop, api=api)


def call(call_id: str, name: str = "exec") -> ToolCallBlock:
    return ToolCallBlock(call_id, name, {"x": 1})


def result(call_id: str, text: str = "done", name: str = "exec", error: bool = False) -> ToolResultMessage:
    return ToolResultMessage(call_id, name, (TextBlock(text),), 3, is_error=error)


def missing(call_id: str, text: str = NO_RESULT, name: str = "exec") -> ToolResultMessage:
    return ToolResultMessage(call_id, name, (TextBlock(text),), 2, is_error=True)


# -- pairing ---------------------------------------------------------------------------------------------


@pytest.mark.spec("TRX-12")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_valid_list_is_left_as_it_is(dialect: Dialect) -> None:
    messages = (user("go"), says("on it", call("a"), call("b")), result("a"), result("b"), says("ready"))
    assert make_valid(messages, dialect) == messages
    assert make_valid((), dialect) == ()


@pytest.mark.spec("TRX-12")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_missing_result_is_made_up(dialect: Dialect) -> None:
    messages = (user("go"), says(call("a"), call("b")), result("b"), user("next"))
    assert make_valid(messages, dialect) == (
        user("go"),
        says(call("a"), call("b")),
        missing("a"),
        result("b"),
        user("next"),
    )
    aborted = (user("go"), says(call("a"), stop="aborted"))
    assert make_valid(aborted, dialect) == (*aborted, missing("a", ABORTED))
    failed = (user("go"), says(call("a"), stop="error"))
    assert make_valid(failed, dialect) == (*failed, missing("a"))


@pytest.mark.spec("TRX-12")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_orphans_and_second_results_are_dropped(dialect: Dialect) -> None:
    messages = (
        user("go"),
        result("a", "too early"),
        says(call("a")),
        result("b", "orphan"),
        result("a", "first"),
        result("a", "second"),
        says("ok"),
    )
    assert make_valid(messages, dialect) == (user("go"), says(call("a")), result("a", "first"), says("ok"))


@pytest.mark.spec("TRX-12")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_result_that_came_late_moves_to_its_call(dialect: Dialect) -> None:
    messages = (
        user("go"),
        says(call("a"), call("b")),
        user("mirrored"),
        result("b"),
        result("a"),
        says("ok"),
    )
    assert make_valid(messages, dialect) == (
        user("go"),
        says(call("a"), call("b")),
        result("a"),
        result("b"),
        user("mirrored"),
        says("ok"),
    )


@pytest.mark.spec("TRX-12")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_repeated_call_id_gets_a_new_one_and_keeps_its_own_result(dialect: Dialect) -> None:
    messages = (
        user("go"),
        says(call("a")),
        says(call("a"), call("a")),
        result("a", "two"),
        result("a", "three"),
    )
    assert make_valid(messages, dialect) == (
        user("go"),
        says(call("a")),
        missing("a"),
        says(call("a_2"), call("a_3")),
        result("a_2", "two"),
        result("a_3", "three"),
    )


@pytest.mark.spec("TRX-12")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_calls_that_cannot_be_replayed_are_dropped_with_their_results(dialect: Dialect) -> None:
    without = ToolCallBlock("a", "exec", cast(Any, None))
    unnamed = ToolCallBlock("b", " ", {})
    messages = (
        user("go"),
        says("hm", without, unnamed),
        result("a"),
        result("b"),
        says(without),
        user("so?"),
    )
    assert make_valid(messages, dialect)[:2] == (user("go"), says("hm"))
    assert len(make_valid(messages, dialect)) == 3
    # A call with no arguments at all is fine.
    plain = (user("go"), says(ToolCallBlock("a", "session_status", {})), result("a", name="session_status"))
    assert make_valid(plain, dialect) == plain


@pytest.mark.spec("TRX-12")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_results_are_kept_whole_without_details(dialect: Dialect) -> None:
    stored = ToolResultMessage("a", "other", (IMAGE, TextBlock(" "), TextBlock("x")), 9, True, {"big": 1})
    kept = make_valid((user("go"), says(call("a")), stored), dialect)[2]
    assert kept == ToolResultMessage("a", "exec", (IMAGE, TextBlock("x")), 9, True)
    empty = ToolResultMessage("a", "exec", (TextBlock("\n"),), 9)
    assert make_valid((user("go"), says(call("a")), empty), dialect)[2] == ToolResultMessage(
        "a", "exec", (TextBlock("(no output)"),), 9
    )


# -- names -----------------------------------------------------------------------------------------------


@pytest.mark.spec("TRX-12")
@pytest.mark.parametrize(("dialect", "longest"), [("openai", 40), ("anthropic", 64)])
def test_call_ids_are_made_safe_for_the_provider(dialect: Dialect, longest: int) -> None:
    raw = ["call|1:ü", "call;1:ü", "", "", "x" * longest, "x" * (longest + 1)]
    answers = [result(one, f"r{at}") for at, one in enumerate(raw)]
    valid = make_valid([user("go"), says(*(call(one) for one in raw)), *answers], dialect)
    assistant = valid[1]
    assert isinstance(assistant, AssistantMessage)
    ids = [block.id for block in assistant.content if isinstance(block, ToolCallBlock)]
    assert ids == [
        "call_1__",
        "call_1___2",
        "call",
        "call_3",
        "x" * longest,
        "x" * (longest - 2) + "_4",
    ]
    results = [message for message in valid[2:] if isinstance(message, ToolResultMessage)]
    assert [message.tool_call_id for message in results] == ids
    assert [message.content[0] for message in results] == [TextBlock(f"r{at}") for at in range(6)]


@pytest.mark.spec("TRX-12")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_new_id_never_meets_an_old_one(dialect: Dialect) -> None:
    valid = make_valid((user("go"), says(call("a"), call("a_2"), call("a"))), dialect)
    assert [message.tool_call_id for message in valid if isinstance(message, ToolResultMessage)] == [
        "a",
        "a_2",
        "a_3",
    ]


@pytest.mark.spec("TRX-12")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_tool_names_are_made_safe(dialect: Dialect) -> None:
    valid = make_valid(
        (user("go"), says(call("a", "fs.read file" + "x" * 80)), result("a", name="?")), dialect
    )
    name = "fs_read_file" + "x" * 52
    assert valid[1] == says(call("a", name))
    assert valid[2] == result("a", name=name)


# -- blanks and thinking ---------------------------------------------------------------------------------


@pytest.mark.spec("TRX-12")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_blank_blocks_and_empty_messages_go(dialect: Dialect) -> None:
    messages = (
        UserMessage((TextBlock(" "), IMAGE, ImageBlock("", "image/png"), TextBlock("see")), 1),
        says(" \n", "seen", ""),
        user(" \t"),
        UserMessage((TextBlock(""),), 1),
        UserMessage((), 1),
        says(""),
        says(),
        user(" kept as it is "),
    )
    assert make_valid(messages, dialect) == (
        UserMessage((IMAGE, TextBlock("see")), 1),
        says("seen"),
        user(" kept as it is "),
    )


@pytest.mark.spec("TRX-12")
def test_thinking_is_replayed_only_signed_and_where_it_was_made() -> None:
    signed, unsigned = ThinkingBlock("hm", "sig"), ThinkingBlock("hm")
    made = says(signed, unsigned, "so", api="anthropic-messages")
    messages = (user("go"), made)
    assert make_valid(messages, "anthropic")[1] == says(signed, "so", api="anthropic-messages")
    assert make_valid(messages, "openai")[1] == says("so", api="anthropic-messages")
    assert make_valid(messages, "anthropic", keep_thinking=False)[1] == says("so", api="anthropic-messages")
    elsewhere = (user("go"), says(signed, "so", api="openai-completions"))
    assert make_valid(elsewhere, "anthropic")[1] == says("so", api="openai-completions")
    assert make_valid(elsewhere, "openai") == elsewhere
    # Blocks of one message keep their order.
    late = (user("go"), says("so", signed, api="anthropic-messages"))
    assert make_valid(late, "anthropic") == late
    # A signature may stand alone, but a message of nothing else is no answer.
    empty = ThinkingBlock("", "sig")
    with_call = (user("go"), says(empty, call("a"), api="anthropic-messages"), result("a"))
    assert make_valid(with_call, "anthropic") == with_call
    assert make_valid((user("go"), says(signed, api="anthropic-messages")), "anthropic") == (user("go"),)


# -- alternation -----------------------------------------------------------------------------------------


@pytest.mark.spec("TRX-12")
def test_neighbours_are_merged_where_alternation_is_needed() -> None:
    messages = (
        user("a", 1),
        UserMessage((TextBlock("b"), IMAGE), 5),
        user("c", 7),
        says("x"),
        says("y", call("q")),
    )
    merged = make_valid(messages, "anthropic")
    assert merged == (
        UserMessage((TextBlock("a"), TextBlock("b"), IMAGE, TextBlock("c")), 7),
        says("x", "y", call("q")),
        missing("q"),
    )
    assert make_valid(messages, "openai") == (*messages, missing("q"))


@pytest.mark.spec("TRX-12")
def test_a_merged_turn_opens_with_its_latest_thinking() -> None:
    first = says(ThinkingBlock("one", "s1"), "x", api="anthropic-messages")
    last = AssistantMessage(
        (ThinkingBlock("two", "s2"), TextBlock("y")),
        8,
        api="anthropic-messages",
        model="m",
        stop_reason="stop",
    )
    assert make_valid((user("go"), first, last), "anthropic")[1] == AssistantMessage(
        (ThinkingBlock("two", "s2"), TextBlock("x"), TextBlock("y")),
        8,
        api="anthropic-messages",
        model="m",
        stop_reason="stop",
    )


@pytest.mark.spec("TRX-12")
def test_a_conversation_opens_with_a_user_turn_where_needed() -> None:
    messages = (says("an injected note"), user("hi"))
    opened = make_valid(messages, "anthropic")
    assert isinstance(opened[0], UserMessage)
    assert (opened[0].content, opened[0].timestamp) == ("(The conversation starts here.)", 2)
    assert opened[0].provenance is not None
    assert opened[0].provenance.kind == "internal_system"
    assert opened[1:] == messages
    assert make_valid(messages, "openai") == messages
