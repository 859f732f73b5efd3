"""Lines of a transcript: what is read, what is written, and what neither may break."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from openclaw.domain.jsonl import (
    MAX_ID_CHARS,
    UnreadableLine,
    derived_id,
    header_line,
    iso_of,
    ms_of,
    read_line,
    read_object,
    read_upgraded,
    record_line,
)
from openclaw.domain.transcript import decode_message, decode_record, text_of
from tests.unit.store.legacy.making import assistant, at, dump, record, user

LONE = "\\ud83d"


def line(value: Any) -> bytes:
    return dump(value).encode() + b"\n"


def read(value: Any) -> Any:
    return read_line(line(value), "f:1")


@pytest.mark.spec("TRX-3", "TRX-4")
def test_the_header_and_the_base_of_a_record() -> None:
    first = json.loads(header_line("s1", 1_767_225_600_000, "/w", "s0"))
    assert first == {
        "type": "session", "version": 3, "id": "s1", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/w",
        "parentSession": "s0",
    }  # fmt: skip
    assert "parentSession" not in json.loads(header_line("s1", 0, "/w"))
    written = record_line("label", "0000000a", "00000009", 1000, b'{"targetId":"x","label":"y"}')
    assert written == (
        b'{"type":"label","id":"0000000a","parentId":"00000009","timestamp":"1970-01-01T00:00:01.000Z",'
        b'"targetId":"x","label":"y"}\n'
    )
    bare = record_line("reset", "a", None, 0, b"{}")
    assert bare == b'{"type":"reset","id":"a","parentId":null,"timestamp":"1970-01-01T00:00:00.000Z"}\n'


def test_times() -> None:
    assert iso_of(-5) == "1970-01-01T00:00:00.000Z" and iso_of(1 << 60) == "9999-12-31T23:59:59.999Z"
    assert ms_of("2026-01-01T00:00:00.123Z") == 1_767_225_600_123
    assert ms_of("2026-01-01T01:00:00.123+01:00") == ms_of("2026-01-01T00:00:00.123") == 1_767_225_600_123
    assert ms_of("1960-01-01T00:00:00Z") == 0
    assert ms_of(12.9) == 12 and ms_of(0) == 0 and ms_of(253_402_300_799_999) == 253_402_300_799_999
    unreadable: list[Any] = [True, None, "yesterday", -1, 253_402_300_800_000, float("nan"), [], ""]
    for bad in unreadable:
        assert ms_of(bad) is None


@pytest.mark.spec("TRX-6", "TRX-7", "DB-4")
@pytest.mark.parametrize(
    "value",
    [
        user(1, "hello"),
        user(2, "from another", "00000001", provenance={"kind": "inter_session", "sourceTool": "x"}),
        assistant(3, "said", "00000002"),
        assistant(4, "x", None, extra={"kept": 1.5}),
        record(5, None, "message", message={
            "role": "toolResult", "toolCallId": "c", "toolName": "t", "content": [], "isError": False,
            "timestamp": 1,
        }),
        record(6, None, "message", message={
            "role": "assistant", "timestamp": 1, "content": [
                {"type": "thinking", "thinking": "hm", "thinkingSignature": "s"},
                {"type": "toolCall", "id": "c", "name": "n", "arguments": {"a": [1]}},
            ],
        }),
        record(7, None, "message", message={
            "role": "user", "timestamp": 1,
            "content": [{"type": "image", "data": "AA", "mimeType": "image/png"}],
        }),
    ],
)  # fmt: skip
def test_a_message_line_comes_back_as_it_was(value: Any) -> None:
    found = read(value)
    assert found.type == "message" and found.understood and found.audience == "people"
    assert found.role == value["message"]["role"] and found.parent_id == value["parentId"]
    assert found.text == text_of(decode_message(found.body))
    written = record_line(found.type, found.entry_id, found.parent_id, found.created_at, found.body)
    assert written == line(value)


@pytest.mark.spec("TRX-5", "DB-4")
@pytest.mark.parametrize(
    ("value", "audience"),
    [
        (record(1, None, "compaction", summary="s", firstKeptEntryId="a", tokensBefore=9), "model"),
        (record(1, None, "branch_summary", fromId="a", summary="s"), "model"),
        (record(1, None, "custom_message", customType="c", content="x", display=False), "model"),
        (record(1, None, "custom", customType="c", data={"b": 1, "a": 2}), "internal"),
        (record(1, None, "model_change", provider="p", modelId="m"), "internal"),
        (record(1, None, "thinking_level_change", thinkingLevel="high"), "internal"),
        (record(1, None, "label", targetId="a", label="l"), "internal"),
        (record(1, None, "session_info", name="n"), "internal"),
        (record(1, None, "reset"), "internal"),
    ],
)
def test_every_type_of_entry_is_known(value: Any, audience: str) -> None:
    found = read(value)
    assert (found.type, found.audience, found.understood, found.role) == (value["type"], audience, True, None)
    written = record_line(found.type, found.entry_id, found.parent_id, found.created_at, found.body)
    assert written == line(value) and decode_record(written)


@pytest.mark.spec("TRX-8")
def test_provenance_and_words() -> None:
    sent = read(user(1, "Café AU lait", provenance={"kind": "inter_session"}))
    assert sent.provenance == "inter_session" and sent.words == "cafe au lait"
    assert read(user(1, "x")).provenance is None
    said = read(assistant(1, "<think>secret thought</think>Visible words"))
    assert said.words == "visible words" and said.text == "<think>secret thought</think>Visible words"
    result = {"role": "toolResult", "toolCallId": "c", "toolName": "t", "timestamp": 1, "content": [
        {"type": "text", "text": "noise"}]}  # fmt: skip
    assert read(record(1, None, "message", message=result)).words == ""


@pytest.mark.spec("TRX-13")
@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"nonsense\n", "not JSON"),
        (b'{"type":"message","id":"cut', "not JSON"),
        (b"[1]\n", "not a JSON object"),
        (b'"text"\n', "not a JSON object"),
        (b'{"a":' + b"[" * 70 + b"]" * 70 + b"}\n", "64"),
        (b"[" * 200_000 + b"]" * 200_000, "nested"),
    ],
    ids=["words", "cut", "list", "text", "deep", "abyss"],
)
def test_a_line_that_is_no_record_says_why(raw: bytes, reason: str) -> None:
    with pytest.raises(UnreadableLine, match=reason):
        read_line(raw, "f:1")


@pytest.mark.spec("TRX-13")
def test_what_would_poison_a_session_is_cleaned() -> None:
    lone = read_line(line(user(1, "a€b")).replace("€".encode(), LONE.encode()), "f:1")
    assert lone.text == "a\ufffdb" and b"\\ud83d" not in lone.body
    pair = read_line(line(user(1, "a€b")).replace("€".encode(), b"\\ud83d\\ude42"), "f:1")
    assert pair.text == "a🙂b"
    assert read_line(line(user(1, "a€b")).replace("€".encode(), b"\\u0000"), "f:1").text == "ab"
    assert read_line(line(user(1, "a€b")).replace("€".encode(), b"\xff"), "f:1").text == "a\ufffdb"
    assert read_line(line(user(1, "a€b")).replace("€".encode(), b"\x7f\xc2\x85"), "f:1").text == "ab"
    assert read_object(b'{"a":NaN}') != {"a": None} and set(read_object(b'{"a":NaN}')) == {"a"}


@pytest.mark.spec("TRX-13", "ENT-11")
def test_one_bad_field_costs_only_itself() -> None:
    odd = assistant(1, "kept", usage={"input": "many"}, stopReason="because", model="m2")
    odd["message"]["content"] += [{"type": "sound", "data": "x"}, 5]
    found = read(odd)
    message: Any = decode_message(found.body)
    assert found.understood and found.text == "kept"
    assert (message.usage, message.stop_reason, message.model) == (None, None, "m2")
    nameless = {"role": "toolResult", "toolCallId": "c", "content": "out", "timestamp": 1}
    result: Any = decode_message(read(record(1, None, "message", message=nameless)).body)
    assert (result.tool_name, result.tool_call_id, text_of(result)) == ("tool", "c", "out")
    cost = assistant(1, "kept")
    cost["message"]["usage"]["cost"]["total"] = float("nan")
    assert decode_message(read(cost).body).timestamp == cost["message"]["timestamp"]
    broken: Any = decode_message(read(user(1, "x", timestamp=1.5)).body)
    assert broken.timestamp == ms_of(at(1))


@pytest.mark.parametrize(
    "value",
    [
        record(1, None, "message", message={"role": "bashExecution", "command": "ls", "timestamp": 1}),
        record(1, None, "message", message="text"),
        record(1, None, "message", message={"role": "toolResult", "content": [], "timestamp": 1}),
        record(1, None, "telemetry", n=1),
        record(1, None, "compaction", summary=5),
        {"id": "a", "parentId": None, "timestamp": "x"},
    ],
)
def test_a_record_that_is_not_understood_is_kept_and_harms_nobody(value: Any) -> None:
    found = read(value)
    assert (found.type, found.understood, found.audience, found.words) == ("custom", False, "internal", "")
    body = msgspec.json.decode(found.body)
    assert body["customType"] == "imported" and body["data"]["id"] == value["id"]
    written = record_line(found.type, found.entry_id, found.parent_id, found.created_at, found.body)
    assert type(decode_record(written)).__name__ == "CustomRecord"


def test_ids_and_times_that_are_missing() -> None:
    nameless = user(1, "x")
    del nameless["id"]
    assert read_line(line(nameless), "f:7").entry_id == derived_id("f:7") != derived_id("f:8")
    assert read({**nameless, "id": "y" * (MAX_ID_CHARS + 1)}).entry_id == derived_id("f:1")
    assert read({**nameless, "id": "y" * MAX_ID_CHARS}).entry_id == "y" * MAX_ID_CHARS
    assert read({**nameless, "id": ""}).entry_id == read({**nameless, "id": 5}).entry_id == derived_id("f:1")
    rootless = user(3, "x")
    del rootless["parentId"]
    assert read(rootless).parent_id is None
    timeless = {**user(4, "x"), "timestamp": "?"}
    assert read(timeless).created_at == timeless["message"]["timestamp"]
    assert read_upgraded({"type": "reset", "id": "a", "timestamp": "?"}).created_at == 0
