"""Reading `sessions.json`: every old spelling has its place today, and one bad entry costs only itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from openclaw.domain.entry import DeliveryContext
from openclaw.errors import StoreCorrupt
from openclaw.store.legacy.index import LegacyIndex, read_index
from tests.unit.store.legacy.making import write_store

S = "sessionId"


def index_of(folder: Path, content: Any) -> LegacyIndex:
    return read_index(write_store(folder, content, {}))


@pytest.mark.spec("DB-2", "ENT-4")
def test_old_spellings(tmp_path: Path) -> None:
    index = index_of(tmp_path, {
        "main": {
            S: "s1", "updatedAt": 1700000000000.75, "chatType": "dm", "lastChannel": "telegram", "lastTo": 42,
            "lastAccountId": "default", "lastThreadId": 7.0, "room": "#general", "inputTokens": 12.0,
            "status": "running", "sessionFile": "/old/place\\x/s1-topic-7.jsonl", "label": "  mine  ",
            "origin": {"label": "O", "chatType": "room", "threadId": 9}, "skillsSnapshot": {"a": 1},
        },
        "group": {
            S: "s2", "updatedAt": 5, "chatType": "room", "label": " ", "groupChannel": "#kept",
            "room": "#old", "deliveryContext": {"channel": "slack", "to": "C1"}, "lastTo": "ignored",
            "lastChannel": "ignored", "sendPolicy": "maybe", "thinkingLevel": "high",
            "totalTokens": float("inf"), "origin": 5,
        },
    })  # fmt: skip
    first, second = index.entries
    one, two = first.entry, second.entry
    assert index.problems == () and first.file == "s1-topic-7.jsonl" and second.file is None
    assert one.delivery_context == DeliveryContext("telegram", "42", "default", "7")
    assert (one.updated_at, one.chat_type, one.group_channel) == (1700000000000, "direct", "#general")
    assert (one.input_tokens, one.status, one.aborted_last_run, one.label) == (12, None, True, "mine")
    assert one.origin is not None and (one.origin.chat_type, one.origin.thread_id) == ("channel", "9")
    assert one.skills_snapshot == {"a": 1}
    assert two.delivery_context == DeliveryContext("slack", "C1")
    assert (two.chat_type, two.group_channel, two.label, two.send_policy) == ("channel", "#kept", None, None)
    assert (two.thinking_level, two.total_tokens, two.origin) == ("high", None, None)


@pytest.mark.spec("DB-7", "ENT-11")
def test_a_bad_entry_costs_only_itself(tmp_path: Path) -> None:
    deep = "[" * 100 + "]" * 100
    text = (
        '{"a":5,"b":{"updatedAt":1},"c":{"sessionId":""},"d":{"sessionId":"\\ud800ok","updatedAt":"never"},'
        f'"e":{{"sessionId":"e","x":{deep}}},"f":{{"sessionId":"f","label":"a\\u0000b","updatedAt":3}}}}'
    )
    index = index_of(tmp_path, text)
    assert [(one.key, one.entry.session_id) for one in index.entries] == [("d", "\ufffdok"), ("f", "f")]
    assert index.entries[0].entry.updated_at == 0 and index.entries[1].entry.label == "ab"
    assert [problem.reason.split(":")[0] for problem in index.problems] == [
        "entry 'a'", "entry 'b'", "entry 'c'", "entry 'e'",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", " \n", "\0\0\0", "{}"])
def test_an_empty_index_has_no_entries(tmp_path: Path, text: str) -> None:
    assert index_of(tmp_path, text).entries == ()


@pytest.mark.parametrize(
    "text", ['{"a":', "[1]", "nonsense", "[" * 100_000], ids=["cut", "list", "words", "deep"]
)
def test_an_index_that_is_no_map_is_refused_with_the_way_out(tmp_path: Path, text: str) -> None:
    with pytest.raises(StoreCorrupt, match=r"was not changed. Repair it; or move it away"):
        index_of(tmp_path, text)
    assert (tmp_path / "sessions.json").read_text() == text
