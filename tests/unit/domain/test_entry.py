"""The session entry: its fields, its wire form, and reading what was stored (ENT-1..6, ENT-10, ENT-11)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.entry import (
    ChatType,
    DeliveryContext,
    Origin,
    PendingDelivery,
    SessionEntry,
    entry_from_stored,
    entry_to_wire,
    literal_values,
)


def names(text: str) -> list[str]:
    return text.split()


SEED_FIELDS = names(
    """
    sessionId updatedAt model inputTokens outputTokens totalTokens contextTokens thinkingLevel
    verboseLevel systemSent abortedLastRun sendPolicy deliveryContext label displayName channel
    subject space origin
    """
)
FURTHER_FIELDS = names(
    """
    sessionStartedAt lastInteractionAt usageFamilyKey usageFamilySessionIds startedAt endedAt
    runtimeMs status spawnedBy parentSessionKey forkedFromParent spawnDepth subagentRole
    subagentControlScope spawnedWorkspaceDir fastMode traceLevel reasoningLevel elevatedLevel
    responseUsage execHost execSecurity execAsk execNode groupActivation
    groupActivationNeedsSystemIntro ttsAuto providerOverride modelOverride modelOverrideSource
    authProfileOverride modelProvider liveModelSwitchPending queueMode queueDebounceMs queueCap
    queueDrop totalTokensFresh cacheRead cacheWrite estimatedCostUsd compactionCount memoryFlushAt
    memoryFlushCompactionCount chatType groupId groupChannel abortCutoffMessageSid
    abortCutoffTimestamp pendingFinalDelivery skillsSnapshot systemPromptReport lastHeartbeatText
    lastHeartbeatSentAt
    """
)

STORED_FULL: dict[str, Any] = {
    "sessionId": "s1",
    "updatedAt": 5,
    "model": "gpt-5",
    "inputTokens": 1,
    "outputTokens": 2,
    "totalTokens": 3,
    "contextTokens": 4,
    "thinkingLevel": "high",
    "verboseLevel": "on",
    "systemSent": True,
    "abortedLastRun": True,
    "sendPolicy": "deny",
    "deliveryContext": {"channel": "telegram", "to": "42", "accountId": "acc", "threadId": "7"},
    "label": "L",
    "displayName": "telegram:#room",
    "channel": "telegram",
    "subject": "S",
    "groupChannel": "#room",
    "space": "sp",
    "origin": {
        "label": "O",
        "provider": "telegram",
        "from": "me",
        "to": "you",
        "accountId": "a",
        "threadId": "t",
    },
}


@pytest.mark.spec("ENT-1")
def test_the_smallest_entry() -> None:
    entry = entry_from_stored({"sessionId": "s1", "updatedAt": 5})
    assert entry == SessionEntry(session_id="s1", updated_at=5)
    assert msgspec.to_builtins(entry) == {"sessionId": "s1", "updatedAt": 5}
    for half in ({"sessionId": "s1"}, {"updatedAt": 5}):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(half, SessionEntry)


@pytest.mark.spec("ENT-4", "ENT-5")
def test_every_field_has_its_place() -> None:
    names = {field.encode_name for field in msgspec.structs.fields(SessionEntry)}
    assert names >= set(SEED_FIELDS)
    assert names >= set(FURTHER_FIELDS)


@pytest.mark.spec("ENT-2", "ENT-3", "ENT-4", "ORG-1", "ORG-7")
def test_seed_fields_are_stored_and_returned() -> None:
    wire = entry_to_wire(entry_from_stored(STORED_FULL))
    assert {name: wire[name] for name in STORED_FULL} == STORED_FULL
    assert wire["room"] == "#room"
    assert wire["lastChannel"] == "telegram"
    assert wire["lastTo"] == "42"
    assert wire["lastAccountId"] == "acc"
    assert wire["lastThreadId"] == "7"
    assert set(wire) - set(STORED_FULL) == {"room", "lastChannel", "lastTo", "lastAccountId", "lastThreadId"}


@pytest.mark.spec("ENT-4")
def test_flags_are_always_on_the_wire_and_unset_fields_never() -> None:
    wire = entry_to_wire(SessionEntry(session_id="s1", updated_at=5))
    assert wire == {"sessionId": "s1", "updatedAt": 5, "systemSent": False, "abortedLastRun": False}


@pytest.mark.spec("ORG-10")
def test_last_route_is_a_projection_of_the_delivery_context() -> None:
    partly = SessionEntry(session_id="s", updated_at=1, delivery_context=DeliveryContext(channel="signal"))
    wire = entry_to_wire(partly)
    assert wire["lastChannel"] == "signal"
    assert not {"lastTo", "lastAccountId", "lastThreadId"} & set(wire)
    # What somebody stored beside the route is not read back.
    stored = entry_from_stored({"sessionId": "s", "updatedAt": 1, "lastChannel": "telegram", "lastTo": "9"})
    assert stored.delivery_context is None
    assert "lastChannel" not in entry_to_wire(stored)


@pytest.mark.spec("ENT-6")
def test_an_entry_holds_no_transcript_location() -> None:
    stored = {"sessionId": "s", "updatedAt": 1, "sessionFile": "/x.jsonl", "transcriptPath": "/x.jsonl"}
    wire = entry_to_wire(entry_from_stored(stored))
    assert not {"sessionFile", "transcriptPath"} & set(wire)
    assert not any(name.endswith(("_file", "_path")) for name in SessionEntry.__struct_fields__)


@pytest.mark.spec("ENT-10")
def test_stale_totals_stay_marked_as_stale() -> None:
    stale = entry_from_stored({"sessionId": "s", "updatedAt": 1, "totalTokens": 9, "totalTokensFresh": False})
    assert entry_to_wire(stale)["totalTokensFresh"] is False
    assert "totalTokensFresh" not in entry_to_wire(SessionEntry(session_id="s", updated_at=1))


ENUM_FIELDS = names(
    """
    status subagentRole subagentControlScope reasoningLevel elevatedLevel responseUsage
    groupActivation sendPolicy modelOverrideSource queueMode queueDrop chatType
    """
)


@pytest.mark.spec("ENT-11")
@pytest.mark.parametrize("name", ENUM_FIELDS)
@pytest.mark.parametrize("value", ["weird", "", 5, [], None])
def test_an_unknown_stored_word_is_unset(name: str, value: object) -> None:
    stored = {"sessionId": "s1", "updatedAt": 5, "label": "kept", name: value}
    assert entry_from_stored(stored) == SessionEntry(session_id="s1", updated_at=5, label="kept")


@pytest.mark.spec("ENT-11")
def test_known_words_are_read() -> None:
    assert literal_values(ChatType) == ("direct", "group", "channel")
    known = {
        "status": "timeout",
        "subagentRole": "leaf",
        "reasoningLevel": "stream",
        "queueMode": "steer-backlog",
    }
    entry = entry_from_stored({"sessionId": "s", "updatedAt": 1, **known, "chatType": "weird"})
    assert (entry.status, entry.subagent_role, entry.reasoning_level, entry.queue_mode, entry.chat_type) == (
        "timeout",
        "leaf",
        "stream",
        "steer-backlog",
        None,
    )


@pytest.mark.spec("ENT-11")
def test_wrong_types_lose_only_themselves() -> None:
    entry = entry_from_stored(
        {
            "sessionId": 7,
            "updatedAt": "late",
            "label": "kept",
            "inputTokens": "many",
            "neverHeardOf": {"a": 1},
        }
    )
    assert entry == SessionEntry(session_id="", updated_at=0, label="kept")
    assert entry_from_stored({}) == SessionEntry(session_id="", updated_at=0)


@pytest.mark.spec("REST-7", "ENT-5")
def test_a_pending_delivery_keeps_its_route() -> None:
    pending = PendingDelivery("reply", DeliveryContext(channel="signal", to="+1"), attempt_count=2)
    entry = SessionEntry(session_id="s", updated_at=1, pending_final_delivery=pending)
    wire = entry_to_wire(entry)
    assert wire["pendingFinalDelivery"] == {
        "text": "reply",
        "context": {"channel": "signal", "to": "+1"},
        "attemptCount": 2,
    }
    assert entry_from_stored(wire) == entry


VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(allow_nan=False)
    | st.text(max_size=4)
    | st.sampled_from(["on", "off", "deny", "leaf", "steer", "direct"])
    | st.lists(st.text(max_size=2), max_size=2)
    | st.dictionaries(st.sampled_from(["channel", "from", "text"]), st.text(max_size=3), max_size=2)
)


@pytest.mark.spec("ENT-11")
@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from([*SEED_FIELDS, *FURTHER_FIELDS, "other"]), VALUES, max_size=12))
def test_anything_stored_can_be_read_and_read_again(stored: dict[str, Any]) -> None:
    entry = entry_from_stored(stored)
    assert entry_from_stored(entry_to_wire(entry)) == entry
    for field in msgspec.structs.fields(SessionEntry):
        value = getattr(entry, field.name)
        assert msgspec.convert(msgspec.to_builtins(value), field.type) == value


@pytest.mark.spec("ORG-1")
def test_origin_uses_the_word_from_on_the_wire() -> None:
    origin = msgspec.convert({"from": "me", "nativeChannelId": "C1"}, Origin)
    assert (origin.from_, origin.native_channel_id) == ("me", "C1")
    assert msgspec.to_builtins(origin) == {"from": "me", "nativeChannelId": "C1"}


@pytest.mark.spec("ENT-11", "ORG-7")
def test_a_bad_field_inside_an_object_costs_only_itself() -> None:
    entry = entry_from_stored(
        {
            "sessionId": "a",
            "updatedAt": 5.0,
            "origin": {"label": "Alice", "chatType": "séance", "from": "telegram:1"},
            "deliveryContext": {"channel": "telegram", "to": "1", "threadId": 7},
            "estimatedCostUsd": 2.0,
            "inputTokens": 1.5,
            "status": "done",
        }
    )
    assert entry.updated_at == 5
    assert isinstance(entry.updated_at, int)
    assert entry.origin == Origin(label="Alice", from_="telegram:1")
    assert entry.delivery_context == DeliveryContext("telegram", "1")
    assert (entry.estimated_cost_usd, entry.input_tokens, entry.status) == (2.0, None, "done")


@pytest.mark.spec("ENT-11", "REST-7")
def test_an_object_without_its_needed_fields_is_unset() -> None:
    broken = {"text": 3, "context": {"channel": "x"}}
    entry = entry_from_stored({"sessionId": "a", "updatedAt": 1, "pendingFinalDelivery": broken})
    assert entry.pending_final_delivery is None
    whole = {"text": "hi", "context": {"channel": 3, "to": "1"}, "attemptCount": 2.0}
    again = entry_from_stored({"sessionId": "a", "updatedAt": 1, "pendingFinalDelivery": whole})
    assert again.pending_final_delivery is not None
    assert again.pending_final_delivery.context == DeliveryContext(to="1")
    assert again.pending_final_delivery.attempt_count == 2
