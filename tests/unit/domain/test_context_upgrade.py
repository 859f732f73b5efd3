"""Older transcripts brought to version 3 in memory (TRX-3, TRX-12, TRX-13)."""

from __future__ import annotations

import copy
import json
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.context import rebuild_context, upgrade_records
from openclaw.domain.transcript import (
    CustomMessageRecord,
    MessageRecord,
    Record,
    TextBlock,
    decode_record,
    text_of,
)

AT = "2026-05-13T12:00:00.000Z"
AT_MS = 1_778_673_600_000
HEADER = {"type": "session", "id": "s1", "timestamp": AT, "cwd": "/w"}


def line(role: str, content: object, **more: object) -> dict[str, Any]:
    return {"type": "message", "timestamp": AT, "message": {"role": role, "content": content, **more}}


def line_id(index: int, session: str = "s1", extra: str = "") -> str:
    return sha256(f"{session}:{index}{extra}".encode()).hexdigest()[:8]


def decoded(upgraded: list[dict[str, Any]]) -> list[Record]:
    return [decode_record(json.dumps(one)) for one in upgraded if one["type"] != "session"]


VERSION_1: list[dict[str, Any]] = [
    HEADER,
    line("user", "old"),
    line("assistant", [{"type": "text", "text": "old answer"}]),
    line("user", "kept"),
    {"type": "compaction", "timestamp": AT, "summary": "S", "firstKeptEntryIndex": 3, "tokensBefore": 9},
    line("user", "new"),
]


@pytest.mark.spec("TRX-3")
def test_version_1_gets_ids_a_chain_and_a_kept_entry() -> None:
    upgraded = upgrade_records(VERSION_1)
    ids = [line_id(index) for index in range(1, 6)]
    assert upgraded[0] == {**HEADER, "version": 3}
    assert [one["id"] for one in upgraded[1:]] == ids
    assert [one["parentId"] for one in upgraded[1:]] == [None, *ids[:-1]]
    assert upgraded[4]["firstKeptEntryId"] == ids[2]
    assert "firstKeptEntryIndex" not in upgraded[4]
    assert all(len(record_id) == 8 and int(record_id, 16) >= 0 for record_id in ids)
    context = rebuild_context(decoded(upgraded), ids[-1])
    assert [text_of(message).splitlines()[-1] for message in context] == ["S", "kept", "new"]
    assert [message.timestamp for message in context] == [AT_MS] * 3


@pytest.mark.spec("TRX-3")
@pytest.mark.parametrize("index", [0, 99, -1, None, "3", [3]])
def test_a_kept_index_that_names_no_record_keeps_nothing(index: object) -> None:
    lines = [*VERSION_1[:4], {**VERSION_1[4], "firstKeptEntryIndex": index}]
    compacted = upgrade_records(lines)[-1]
    assert compacted["firstKeptEntryId"] == compacted["id"]
    records = decoded(upgrade_records(lines))
    assert len(rebuild_context(records, records[-1].id)) == 1


@pytest.mark.spec("TRX-3")
def test_a_kept_index_counts_lines_of_the_file() -> None:
    damaged: list[Any] = [
        HEADER,
        "not an object",
        line("user", "kept"),
        {**VERSION_1[4], "firstKeptEntryIndex": 2},
    ]
    upgraded = upgrade_records(damaged)
    assert len(upgraded) == 3
    assert upgraded[2]["firstKeptEntryId"] == upgraded[1]["id"] == line_id(2)


@pytest.mark.spec("TRX-3")
@pytest.mark.parametrize("role", ["hookMessage", "custom"])
def test_version_2_gets_the_renamed_custom_role(role: str) -> None:
    message = {"role": role, "customType": "hook", "content": "note", "display": False, "details": {"a": 1}}
    record = {"type": "message", "id": "aa", "parentId": None, "timestamp": AT, "message": message}
    upgraded = upgrade_records([{**HEADER, "version": 2}, record])
    assert upgraded[0]["version"] == 3
    assert "message" not in upgraded[1]
    assert decoded(upgraded) == [
        CustomMessageRecord(
            id="aa",
            parent_id=None,
            timestamp=AT,
            custom_type="hook",
            content="note",
            display=False,
            details={"a": 1},
        )
    ]
    bare = {**record, "message": {"role": role, "content": "note", "timestamp": 5}}
    assert decoded(upgrade_records([bare])) == [
        CustomMessageRecord(id="aa", parent_id=None, timestamp=AT, custom_type="custom", content="note")
    ]


@pytest.mark.spec("TRX-3", "TRX-4")
def test_a_tree_keeps_its_ids_and_branches() -> None:
    tree = [
        {**HEADER, "version": 2},
        {**line("user", "a", timestamp=7), "id": "1", "parentId": None},
        {**line("user", "b"), "id": "2", "parentId": "1"},
        {**line("user", "c"), "id": "3", "parentId": "1"},
        {**line("user", "lost its parent"), "id": "4"},
        {**line("user", "parent of a wrong kind"), "id": "5", "parentId": 7},
    ]
    upgraded = upgrade_records(tree)
    assert [(one["id"], one.get("parentId")) for one in upgraded[1:]] == [
        ("1", None),
        ("2", "1"),
        ("3", "1"),
        ("4", "3"),
        ("5", "4"),
    ]
    assert upgraded[1]["message"]["timestamp"] == 7
    kept = {"type": "compaction", "id": "6", "parentId": "5", "timestamp": AT, "summary": "S"}
    compacted = upgrade_records([*tree, {**kept, "firstKeptEntryId": "2", "tokensBefore": 1}])[-1]
    assert compacted["firstKeptEntryId"] == "2"


@pytest.mark.spec("TRX-3")
@pytest.mark.parametrize("version", [3, None, "2", 1, 0])
def test_known_versions_end_at_3(version: object) -> None:
    upgraded = upgrade_records([{**HEADER, "version": version}, line("user", "lost its id")])
    assert upgraded[0]["version"] == 3
    assert upgraded[1]["id"] == line_id(1)


@pytest.mark.spec("TRX-3")
def test_a_version_from_the_future_is_left_alone() -> None:
    lines: list[Any] = [{**HEADER, "version": 4}, {"type": "message"}, 5]
    assert upgrade_records(lines) == lines[:2]


@pytest.mark.spec("TRX-3")
def test_ids_are_the_same_on_every_reading_and_unique() -> None:
    assert upgrade_records(VERSION_1) == upgrade_records(VERSION_1)
    other = upgrade_records([{**HEADER, "id": "s2"}, *VERSION_1[1:]])
    assert other[1]["id"] == line_id(1, "s2")
    taken = {**line("user", "x"), "id": line_id(1)}
    upgraded = upgrade_records([HEADER, line("user", "y"), taken])
    assert [one["id"] for one in upgraded[1:]] == [line_id(1, extra=":"), line_id(1)]
    assert upgrade_records([line("user", "no header")])[0]["id"] == line_id(0, "None")
    odd = upgrade_records([{**line("user", "x"), "id": 12}, {**HEADER, "id": "\ud800"}])
    assert odd[0]["id"] == line_id(0, "?")


@pytest.mark.spec("TRX-12")
def test_tool_calls_without_arguments_are_dropped() -> None:
    good = {"type": "toolCall", "id": "b", "name": "exec", "arguments": {}}
    wrong: tuple[object, ...] = (None, "{}", [])
    bad = [{"type": "toolCall", "id": "a", "name": "exec", "arguments": value} for value in wrong]
    missing = {"type": "toolCall", "id": "a", "name": "exec"}
    text = {"type": "text", "text": "hi"}
    upgraded = upgrade_records([HEADER, line("assistant", [text, *bad, missing, good])])
    assert upgraded[1]["message"]["content"] == [text, good]
    assert len(decoded(upgraded)) == 1


@pytest.mark.spec("TRX-3", "TRX-6")
def test_plain_text_content_becomes_blocks_except_for_people() -> None:
    upgraded = upgrade_records(
        [
            line("user", "hi"),
            line("assistant", "hello"),
            line("toolResult", "out", toolCallId="a", toolName="exec"),
            {"type": "message", "message": {"role": "user", "content": "when?"}},
            {"type": "message", "message": "no message"},
            {"type": "custom", "customType": "x", "message": {"role": "user"}, "timestamp": 5},
        ]
    )
    assert upgraded[0]["message"]["content"] == "hi"
    messages = [one.message for one in decoded(upgraded[:3]) if isinstance(one, MessageRecord)]
    assert [message.content for message in messages] == ["hi", (TextBlock("hello"),), (TextBlock("out"),)]
    # Without any time to go by there is an empty one, not a crash.
    assert (upgraded[3]["timestamp"], upgraded[3]["message"]["timestamp"]) == ("", 0)
    assert upgraded[4]["message"] == "no message"
    assert upgraded[5]["message"] == {"role": "user"}
    dated = upgrade_records([HEADER, {"type": "message", "message": {"role": "user", "content": "x"}}])
    assert (dated[1]["timestamp"], dated[1]["message"]["timestamp"]) == (AT, AT_MS)


@pytest.mark.spec("TRX-3")
def test_the_input_is_not_changed() -> None:
    before = copy.deepcopy(VERSION_1)
    upgrade_records(VERSION_1)
    assert before == VERSION_1


@pytest.mark.spec("TRX-3", "TRX-13")
@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.none()
        | st.text(max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "id", "parentId", "timestamp", "message", "version", "firstKeptEntryIndex"]
            ),
            st.sampled_from(["session", "message", "compaction", "a", "b", 1, None, [], {"role": "user"}]),
            max_size=6,
        ),
        max_size=8,
    )
)
def test_any_lines_can_be_upgraded(lines: list[Any]) -> None:
    upgraded = upgrade_records(lines)
    assert len(upgraded) == sum(isinstance(one, dict) for one in lines)
    for one in upgraded:
        if one.get("type") != "session":
            assert isinstance(one["id"], str)
            assert one["parentId"] is None or isinstance(one["parentId"], str)
        if one.get("type") == "compaction":
            assert "firstKeptEntryId" in one
    assert upgrade_records(upgraded) == upgraded
