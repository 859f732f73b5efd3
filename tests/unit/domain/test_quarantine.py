"""Entries that a provider refused: which ones are suspected, and what stands in their place."""

from __future__ import annotations

from typing import Any

from openclaw.domain.quarantine import LEFT_OUT, QUARANTINE, leave_out, quarantined_ids, suspects
from openclaw.domain.transcript import (
    AssistantMessage,
    CustomRecord,
    LabelRecord,
    Message,
    MessageRecord,
    Record,
    StopReason,
    TextBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
)

NOBODY: frozenset[str] = frozenset()


def record(number: int, message: Message) -> MessageRecord:
    return MessageRecord(id=f"e{number}", parent_id=f"e{number - 1}", timestamp="", message=message)


def user(number: int) -> MessageRecord:
    return record(number, UserMessage(f"words {number}", number))


def answer(number: int, reason: StopReason = "stop") -> MessageRecord:
    calls = (ToolCallBlock(f"c{number}", "look", {}),) if reason == "toolUse" else (TextBlock("said"),)
    return record(number, AssistantMessage(calls, number, stop_reason=reason))


def result(number: int) -> MessageRecord:
    return record(number, ToolResultMessage(f"c{number - 1}", "look", (TextBlock("seen"),), number))


def custom(number: int, data: Any, kind: str = QUARANTINE) -> CustomRecord:
    return CustomRecord(
        id=f"e{number}", parent_id=f"e{number - 1}", timestamp="", custom_type=kind, data=data
    )


def test_only_what_came_since_the_last_accepted_request_is_suspected() -> None:
    records: list[Record] = [user(1), answer(2), user(3), answer(4, "toolUse"), result(5), result(6)]
    assert suspects(records, frozenset({"e3"})) == ("e5", "e6")


def test_what_was_said_just_now_is_spared_and_an_older_refused_message_is_not() -> None:
    records: list[Record] = [user(1), answer(2), user(3), answer(4, "error"), user(5)]
    assert suspects(records, frozenset({"e5"})) == ("e3",)
    assert suspects(records[:3], frozenset({"e3"})) == ()


def test_what_is_left_out_already_is_not_suspected_again() -> None:
    records: list[Record] = [answer(1, "length"), user(2), user(3), custom(4, {"entryIds": ["e2"]}), user(5)]
    assert suspects(records, frozenset({"e5"})) == ("e3",)


def test_a_transcript_without_an_accepted_answer_is_suspected_from_its_beginning() -> None:
    assert suspects([user(1), answer(2, "aborted"), user(3)], NOBODY) == ("e1", "e3")
    assert suspects([], NOBODY) == ()


def test_quarantine_records_are_read_leniently() -> None:
    records: list[Record] = [
        user(1),
        custom(2, {"entryIds": ["a", "b"]}),
        custom(3, {"entryIds": "a"}),
        custom(4, None),
        custom(5, {"entryIds": ["c"]}, kind="other"),
        custom(6, {"entryIds": ["d"], "reason": "x"}),
    ]
    assert quarantined_ids(records) == {"a", "b", "d"}


def test_a_note_stands_in_place_of_each_kind_of_message() -> None:
    for one in (user(1), answer(2), result(3)):
        left = leave_out(one)
        assert isinstance(left, MessageRecord)
        content = left.message.content
        assert content in (LEFT_OUT, (TextBlock(LEFT_OUT),))
        assert (left.id, type(left.message)) == (one.id, type(one.message))
    kept = leave_out(result(3))
    assert isinstance(kept, MessageRecord) and isinstance(kept.message, ToolResultMessage)
    assert kept.message.tool_call_id == "c2"
    label = LabelRecord(id="e9", parent_id=None, timestamp="", target_id="e1", label="x")
    assert leave_out(label) is label
