"""Transcript records and messages as they are written and read (TRX-3..8)."""

from __future__ import annotations

import json
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.transcript import (
    TRANSCRIPT_VERSION,
    AssistantMessage,
    Cost,
    CustomMessageRecord,
    ImageBlock,
    MessageRecord,
    Provenance,
    ProvenanceKind,
    Record,
    ResetRecord,
    SessionHeader,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    Usage,
    UserMessage,
    decode_message,
    decode_record,
    encode,
    text_of,
    tool_calls_of,
)

AT = "2026-05-13T12:00:00.000Z"
BASE = {"id": "a1b2c3d4", "parentId": None, "timestamp": AT}


@pytest.mark.spec("TRX-3")
def test_the_header() -> None:
    header = SessionHeader(version=TRANSCRIPT_VERSION, id="s1", timestamp=AT, cwd="/work")
    assert TRANSCRIPT_VERSION == 3
    assert json.loads(encode(header)) == {
        "type": "session",
        "version": 3,
        "id": "s1",
        "timestamp": AT,
        "cwd": "/work",
    }
    child = msgspec.json.decode(encode(header)[:-1] + b',"parentSession":"s0"}', type=SessionHeader)
    assert child.parent_session == "s0"


RECORDS: list[dict[str, Any]] = [
    {"type": "message", "message": {"role": "user", "content": "hi", "timestamp": 1}},
    {"type": "compaction", "summary": "S", "firstKeptEntryId": "x", "tokensBefore": 5},
    {
        "type": "compaction",
        "summary": "S",
        "firstKeptEntryId": "x",
        "tokensBefore": 5,
        "details": {"readFiles": []},
        "fromHook": True,
    },
    {"type": "branch_summary", "fromId": "x", "summary": "S"},
    {"type": "custom", "customType": "t", "data": {"n": 1}},
    {"type": "custom_message", "customType": "t", "content": "note", "display": False, "details": {"n": 1}},
    {
        "type": "custom_message",
        "customType": "t",
        "content": [{"type": "text", "text": "x"}],
        "display": False,
    },
    {"type": "model_change", "provider": "openai", "modelId": "gpt-5"},
    {"type": "thinking_level_change", "thinkingLevel": "high"},
    {"type": "label", "targetId": "x", "label": "mark"},
    {"type": "session_info", "name": "My talk"},
    {"type": "reset"},
    {"type": "reset", "firstKeptEntryId": "x"},
]


@pytest.mark.spec("TRX-4", "TRX-5")
@pytest.mark.parametrize("fields", RECORDS, ids=lambda fields: str(fields["type"]))
def test_every_record_type_survives_reading_and_writing(fields: dict[str, Any]) -> None:
    line = {**fields, **BASE}
    record = decode_record(json.dumps(line))
    assert (record.id, record.parent_id, record.timestamp) == ("a1b2c3d4", None, AT)
    assert json.loads(encode(record)) == line
    child = decode_record(json.dumps({**line, "parentId": "p"}))
    assert child.parent_id == "p"
    assert json.loads(encode(child))["parentId"] == "p"


@pytest.mark.spec("TRX-5")
def test_all_types_are_covered_and_unknown_ones_refused() -> None:
    tags = {kind.__struct_config__.tag for kind in get_args(Record)}
    assert tags == {fields["type"] for fields in RECORDS}
    with pytest.raises(msgspec.ValidationError):
        decode_record(json.dumps({**BASE, "type": "surprise"}))


@pytest.mark.spec("TRX-4")
@pytest.mark.parametrize("missing", ["id", "parentId", "timestamp"])
def test_the_base_fields_are_required(missing: str) -> None:
    line = {name: value for name, value in {**BASE, "type": "reset"}.items() if name != missing}
    with pytest.raises(msgspec.ValidationError):
        decode_record(json.dumps(line))


ASSISTANT: dict[str, Any] = {
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"},
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "hello"},
        {"type": "toolCall", "id": "c1", "name": "exec", "arguments": {"command": "ls"}},
    ],
    "api": "openai-completions",
    "provider": "openai",
    "model": "gpt-5",
    "usage": {
        "input": 1,
        "output": 2,
        "cacheRead": 3,
        "cacheWrite": 4,
        "totalTokens": 10,
        "cost": {"input": 0.5, "output": 0.25, "cacheRead": 0.0, "cacheWrite": 0.0, "total": 0.75},
    },
    "stopReason": "error",
    "errorMessage": "no",
    "timestamp": 7,
}
MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "hi", "timestamp": 1},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "see"},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        ],
        "timestamp": 1,
        "provenance": {
            "kind": "inter_session",
            "sourceSessionKey": "agent:a:main",
            "sourceChannel": "signal",
            "sourceTool": "sessions_send",
            "originSessionId": "s0",
        },
    },
    ASSISTANT,
    {
        "role": "toolResult",
        "toolCallId": "c1",
        "toolName": "exec",
        "content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}],
        "details": {"exit": 1},
        "isError": True,
        "timestamp": 8,
    },
]


@pytest.mark.spec("TRX-6", "TRX-7", "TRX-8")
@pytest.mark.parametrize("fields", MESSAGES, ids=lambda fields: str(fields["role"]))
def test_every_message_survives_reading_and_writing(fields: dict[str, Any]) -> None:
    message = decode_message(json.dumps(fields))
    assert json.loads(encode(message)) == fields
    record = MessageRecord(id="1", parent_id=None, timestamp=AT, message=message)
    assert decode_record(encode(record)) == record


@pytest.mark.spec("TRX-7")
def test_the_four_kinds_of_blocks() -> None:
    message = decode_message(json.dumps(ASSISTANT))
    assert message.content == (
        ThinkingBlock("hm", "sig"),
        ThinkingBlock("hm"),
        TextBlock("hello"),
        ToolCallBlock("c1", "exec", {"command": "ls"}),
    )
    assert isinstance(message, AssistantMessage)
    assert message.usage == Usage(1, 2, 3, 4, 10, Cost(0.5, 0.25, 0.0, 0.0, 0.75))
    image = {
        "role": "assistant",
        "content": [{"type": "image", "data": "A", "mimeType": "x"}],
        "timestamp": 1,
    }
    with pytest.raises(msgspec.ValidationError):
        decode_message(json.dumps(image))


@pytest.mark.spec("TRX-6", "TRX-8")
def test_the_words_of_stop_reasons_and_provenance() -> None:
    assert set(get_args(StopReason)) == {"stop", "length", "toolUse", "error", "aborted"}
    assert set(get_args(ProvenanceKind)) == {"external_user", "inter_session", "internal_system"}
    for wrong in ({**ASSISTANT, "stopReason": "tired"}, {**MESSAGES[0], "provenance": {"kind": "friend"}}):
        with pytest.raises(msgspec.ValidationError):
            decode_message(json.dumps(wrong))


@pytest.mark.spec("TRX-8")
def test_provenance_is_beside_the_text() -> None:
    message = UserMessage("hi", 1, Provenance(kind="inter_session", source_session_key="k"))
    assert json.loads(encode(message)) == {
        "role": "user",
        "content": "hi",
        "timestamp": 1,
        "provenance": {"kind": "inter_session", "sourceSessionKey": "k"},
    }


@pytest.mark.spec("TRX-5", "TRX-14")
def test_only_custom_messages_can_be_hidden() -> None:
    shown = decode_record(json.dumps({**BASE, "type": "custom_message", "customType": "t", "content": "x"}))
    assert isinstance(shown, CustomMessageRecord)
    assert shown.display is True
    assert isinstance(decode_record(json.dumps({**BASE, "type": "reset"})), ResetRecord)


@pytest.mark.spec("TRX-7")
def test_text_and_calls_of_a_message() -> None:
    assistant = decode_message(json.dumps(ASSISTANT))
    assert text_of(assistant) == "hello"
    assert tool_calls_of(assistant) == (ToolCallBlock("c1", "exec", {"command": "ls"}),)
    two = UserMessage((TextBlock("a"), ImageBlock("AAAA", "image/png"), TextBlock("b")), 1)
    assert text_of(two) == "a\nb"
    assert text_of(UserMessage(" as is ", 1)) == " as is "
    assert text_of(UserMessage((), 1)) == ""
    assert tool_calls_of(two) == ()
    assert tool_calls_of(ToolResultMessage("c1", "exec", (TextBlock("x"),), 1)) == ()
    assert text_of(ToolResultMessage("c1", "exec", (TextBlock("x"),), 1)) == "x"


@pytest.mark.spec("TRX-6", "TRX-7")
@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.builds(TextBlock, st.text(max_size=5))
        | st.builds(ThinkingBlock, st.text(max_size=5), st.none() | st.text(max_size=3))
        | st.builds(
            ToolCallBlock,
            st.text(max_size=3),
            st.text(max_size=3),
            st.dictionaries(st.text(max_size=2), st.integers(-9, 9) | st.text(max_size=2), max_size=2),
        ),
        max_size=4,
    ),
    st.integers(0, 2**50),
)
def test_any_assistant_message_survives(blocks: list[Any], timestamp: int) -> None:
    message = AssistantMessage(tuple(blocks), timestamp, stop_reason="stop")
    assert decode_message(encode(message)) == message
