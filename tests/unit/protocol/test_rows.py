"""Rows and messages as clients see them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from openclaw.domain.entry import DeliveryContext, PendingDelivery, SessionEntry
from openclaw.protocol.rows import CLEARABLE, client_message, flatten_row, session_row, system_message

BARE = SessionEntry(session_id="s1", updated_at=20)
FULL = SessionEntry(
    session_id="s1",
    updated_at=20,
    created_at=10,
    label="Project One",
    chat_type="direct",
    status="done",
    input_tokens=7103,
    output_tokens=10,
    total_tokens=7103,
    total_tokens_fresh=True,
    context_tokens=1,
    model_provider="old",
    model="old-1",
    archived_at=15,
    pinned_at=16,
    system_sent=True,
    delivery_context=DeliveryContext(channel="telegram", to="+1"),
    parent_session_key="agent:main:main",
    skills_snapshot={"prompt": "long"},
    system_prompt_report={"x": 1},
    pending_final_delivery=PendingDelivery(text="private", context=DeliveryContext()),
    last_heartbeat_text="beat",
)


def row(entry: SessionEntry = BARE, **changes: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "kind": "direct",
        "is_main": False,
        "snapshot_at": 99,
        "model_provider": "fake",
        "model": "fake-1",
        "context_tokens": 64_000,
    }
    return session_row("agent:main:proj1", "main", entry, **(facts | changes))


@pytest.mark.spec("RPC-5")
class TestSessionRow:
    def test_a_bare_session_has_what_every_client_needs(self) -> None:
        assert row() == {
            "key": "agent:main:proj1",
            "kind": "direct",
            "classification": "direct",
            "agentId": "main",
            "sessionId": "s1",
            "updatedAt": 20,
            "lifecycleRevision": "s1",
            "isMain": False,
            "isBackground": False,
            "archived": False,
            "pinned": False,
            "unread": False,
            "systemSent": False,
            "abortedLastRun": False,
            "totalTokensFresh": False,
            "contextTokens": 64_000,
            "modelProvider": "fake",
            "model": "fake-1",
            "thinkingLevels": [{"id": "off", "label": "off"}],
            "thinkingOptions": ["off"],
            "thinkingDefault": "off",
            "hasActiveRun": False,
            "activeRunIds": [],
            "snapshotAt": 99,
            "visibility": "shared",
            "sharingRole": "admin",
        }

    def test_entry_fields_show_through_and_present_facts_win(self) -> None:
        shown = row(FULL)
        assert (shown["label"], shown["displayName"], shown["status"]) == (
            "Project One",
            "Project One",
            "done",
        )
        assert (shown["inputTokens"], shown["totalTokens"], shown["totalTokensFresh"]) == (7103, 7103, True)
        assert (shown["lastChannel"], shown["lastTo"]) == ("telegram", "+1")
        assert (shown["archived"], shown["archivedAt"], shown["pinned"]) == (True, 15, True)
        assert (shown["modelProvider"], shown["model"], shown["contextTokens"]) == ("fake", "fake-1", 64_000)
        assert (shown["parentSessionKey"], shown["createdAt"]) == ("agent:main:main", 10)

    def test_bulk_and_private_parts_stay_inside(self) -> None:
        text = msgspec.json.encode(row(FULL))
        assert not any(word in text for word in (b"long", b"private", b"beat", b"systemPromptReport"))

    def test_what_was_looked_up(self) -> None:
        shown = row(
            msgspec.structs.replace(FULL, display_name="Shown"),
            is_main=True,
            active_run_ids=["r1", "r2"],
            unread=True,
            is_background=True,
            derived_title="Title",
            last_message_preview="hello",
            child_sessions=["agent:main:subagent:x"],
            thinking_levels=[{"id": "off", "label": "off"}, {"id": "high", "label": "High"}],
            thinking_default="high",
            active_leaf_entry_id="e9",
        )
        assert (shown["classification"], shown["isMain"], shown["displayName"]) == ("main", True, "Shown")
        assert (shown["hasActiveRun"], shown["activeRunIds"]) == (True, ["r1", "r2"])
        assert (shown["unread"], shown["isBackground"]) == (True, True)
        assert (shown["derivedTitle"], shown["lastMessagePreview"]) == ("Title", "hello")
        assert shown["childSessions"] == ["agent:main:subagent:x"]
        assert (shown["thinkingOptions"], shown["thinkingDefault"]) == (["off", "high"], "high")
        assert shown["activeLeafEntryId"] == "e9"
        assert row(classification="dashboard", is_main=True)["classification"] == "dashboard"

    def test_flat_rows_null_what_is_cleared(self) -> None:
        bare, full = flatten_row(row()), flatten_row(row(FULL))
        assert "key" not in bare
        assert all(name in bare for name in CLEARABLE)
        assert (bare["label"], full["label"]) == (None, "Project One")
        assert (bare["archivedAt"], full["archivedAt"]) == (None, 15)


@pytest.mark.spec("RPC-11")
class TestClientMessage:
    def test_a_user_message(self) -> None:
        message = {"role": "user", "content": "first message", "timestamp": 5}
        shown = client_message(
            message,
            entry_id="a6c2",
            seq=1,
            idempotency_key="r1:user",
            record_timestamp_ms=6,
            source="src",
            raw_seq=1,
            sender_is_owner=True,
        )
        assert shown == message | {
            "idempotencyKey": "r1:user",
            "__openclaw": {
                "id": "a6c2",
                "seq": 1,
                "idempotencyKey": "r1:user",
                "recordTimestampMs": 6,
                "transcriptPosition": {"source": "src", "rawSeq": 1},
                "senderIsOwner": True,
            },
        }
        assert "__openclaw" not in message

    def test_an_assistant_message_names_its_run(self) -> None:
        shown = client_message({"role": "assistant", "content": []}, entry_id="e", seq=2, run_id="r1")
        assert shown == {
            "role": "assistant",
            "content": [],
            "__openclaw": {"id": "e", "seq": 2, "runId": "r1"},
        }
        half = client_message({"role": "assistant"}, entry_id="e", seq=2, source="src")
        assert "transcriptPosition" not in half["__openclaw"]

    def test_a_reset_mark(self) -> None:
        assert system_message("Reset", kind="reset", entry_id="e", seq=3, record_timestamp_ms=4) == {
            "role": "system",
            "content": [{"type": "text", "text": "Reset"}],
            "__openclaw": {"id": "e", "seq": 3, "kind": "reset", "recordTimestampMs": 4},
        }
