"""New windows: when one is minted, what it carries over, what is announced."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from openclaw.domain import resets
from openclaw.domain.entry import DeliveryContext, Origin, PendingDelivery, SessionEntry
from openclaw.domain.lifecycle import Expired, Fresh
from openclaw.domain.modelhint import ModelHint
from openclaw.domain.resets import (
    Fork,
    KeepWindow,
    MintWindow,
    SessionEnd,
    SessionStart,
    StartEmpty,
    WindowReason,
    carry_over,
    carry_over_cron_run,
    choose_model,
    decide_thread_fork,
    decide_window,
    rotation_events,
)

NOW = 1_800_000_000_000
ALL_FIELDS = {field.name for field in msgspec.structs.fields(SessionEntry)}

FULL: dict[str, Any] = {
    "session_id": "old",
    "updated_at": 5,
    "created_at": 1,
    "session_started_at": 2,
    "last_interaction_at": 3,
    "usage_family_key": "agent:main:main",
    "usage_family_session_ids": ("older", "old"),
    "started_at": 4,
    "ended_at": 5,
    "runtime_ms": 6,
    "status": "done",
    "last_run_id": "run",
    "archived_at": 7,
    "pinned_at": 8,
    "system_sent": True,
    "aborted_last_run": True,
    "spawned_by": "agent:main:main",
    "parent_session_key": "agent:main:main",
    "forked_from_parent": True,
    "spawn_root": "agent:main:main",
    "spawn_depth": 1,
    "subagent_role": "leaf",
    "subagent_control_scope": "none",
    "spawned_workspace_dir": "/w",
    "thinking_level": "high",
    "verbose_level": "full",
    "fast_mode": True,
    "trace_level": "on",
    "reasoning_level": "stream",
    "elevated_level": "ask",
    "response_usage": "tokens",
    "exec_host": "node",
    "exec_security": "full",
    "exec_ask": "always",
    "exec_node": "n1",
    "group_activation": "always",
    "group_activation_needs_system_intro": True,
    "tts_auto": "on",
    "send_policy": "deny",
    "provider_override": "anthropic",
    "model_override": "claude-opus-4",
    "model_override_source": "user",
    "auth_profile_override": "work",
    "model_provider": "anthropic",
    "model": "claude-opus-4",
    "live_model_switch_pending": True,
    "queue_mode": "collect",
    "queue_debounce_ms": 100,
    "queue_cap": 9,
    "queue_drop": "old",
    "input_tokens": 10,
    "output_tokens": 11,
    "total_tokens": 12,
    "total_tokens_fresh": False,
    "context_tokens": 13,
    "cache_read": 14,
    "cache_write": 15,
    "estimated_cost_usd": 1.5,
    "compaction_count": 2,
    "memory_flush_at": 16,
    "memory_flush_compaction_count": 2,
    "label": "Project",
    "display_name": "telegram:g-x",
    "chat_type": "group",
    "channel": "telegram",
    "group_id": "-100",
    "group_channel": "#dev",
    "subject": "Dev",
    "space": "Team",
    "origin": Origin(label="Dev"),
    "delivery_context": DeliveryContext(channel="telegram", to="-100"),
    "abort_cutoff_message_sid": "m1",
    "abort_cutoff_timestamp": 17,
    "pending_final_delivery": PendingDelivery("late", DeliveryContext(channel="telegram")),
    "skills_snapshot": {"a": 1},
    "system_prompt_report": {"b": 2},
    "last_heartbeat_text": "ok",
    "last_heartbeat_sent_at": 18,
}
ENTRY = SessionEntry(**FULL)


def names(text: str) -> set[str]:
    return set(text.split())


# LIFE-21 and AUTO-3, written out once more and independently of the code.
ALWAYS = names(
    "created_at archived_at pinned_at usage_family_key label display_name chat_type channel "
    "spawned_by parent_session_key forked_from_parent spawn_depth spawn_root subagent_role "
    "subagent_control_scope "
    "spawned_workspace_dir"
)
EXPIRY = ALWAYS | names(
    "group_id group_channel subject space group_activation group_activation_needs_system_intro origin "
    "delivery_context pending_final_delivery last_heartbeat_text last_heartbeat_sent_at send_policy"
)
CHOICE = names("provider_override model_override model_override_source auth_profile_override")
RESET = (EXPIRY | CHOICE) | names(
    "thinking_level verbose_level fast_mode trace_level reasoning_level elevated_level response_usage "
    "tts_auto exec_host exec_security exec_ask exec_node queue_mode queue_debounce_ms queue_cap queue_drop"
)
CRON = ALWAYS | CHOICE | {"thinking_level", "fast_mode", "verbose_level"}
COUNTERS = {
    "input_tokens": 0,
    "output_tokens": 0,
    "total_tokens": 0,
    "total_tokens_fresh": True,
    "cache_read": 0,
    "cache_write": 0,
    "estimated_cost_usd": 0.0,
}


def kept_fields(renewed: SessionEntry) -> set[str]:
    return {name for name, value in FULL.items() if getattr(renewed, name) == value}


@pytest.mark.spec("LIFE-21")
def test_every_field_of_an_entry_is_classified_exactly_once() -> None:
    lists = (resets.KEPT_ON_RESET, resets.MODEL_CHOICE_FIELDS, resets.MINTED_FIELDS, resets.CLEARED_FIELDS)
    named = [name for names in lists for name in names]
    assert sorted(named) == sorted(ALL_FIELDS), "a new field of SessionEntry needs a place in resets.py"
    assert set(resets.KEPT_ON_EXPIRY) | set(resets.KEPT_ON_CRON_RUN) <= set(resets.KEPT_ON_RESET)
    defaults = SessionEntry(session_id="x", updated_at=0)
    untold = {name for name in ALL_FIELDS if FULL[name] == getattr(defaults, name)}
    assert set(FULL) == ALL_FIELDS and not untold, "the example must set every field"


@pytest.mark.spec("LIFE-21")
def test_an_explicit_reset_keeps_what_people_set() -> None:
    renewed = carry_over(ENTRY, session_id="new", now_ms=NOW, explicit=True)
    assert kept_fields(renewed) == RESET
    check_renewal(renewed)


@pytest.mark.spec("LIFE-21", "SEND-4")
def test_an_expiry_keeps_identity_and_route_but_no_toggles() -> None:
    renewed = carry_over(ENTRY, session_id="new", now_ms=NOW, explicit=False)
    assert kept_fields(renewed) == EXPIRY
    assert renewed.send_policy == "deny"
    check_renewal(renewed)


@pytest.mark.spec("AUTO-3")
def test_a_fresh_cron_run_keeps_little() -> None:
    renewed = carry_over_cron_run(ENTRY, session_id="new", now_ms=NOW)
    assert kept_fields(renewed) == CRON
    for dropped in ("origin", "delivery_context", "send_policy", "queue_mode", "elevated_level"):
        assert getattr(renewed, dropped) is None
    check_renewal(renewed)


def check_renewal(renewed: SessionEntry) -> None:
    assert (renewed.session_id, renewed.updated_at, renewed.session_started_at) == ("new", NOW, NOW)
    assert renewed.usage_family_session_ids == ("older", "old", "new")
    defaults = SessionEntry(session_id="new", updated_at=NOW)
    for name in ALL_FIELDS - kept_fields(renewed) - set(resets.MINTED_FIELDS):
        assert getattr(renewed, name) == getattr(defaults, name), name
    assert {name: getattr(renewed, name) for name in COUNTERS} == COUNTERS
    assert renewed.compaction_count == 0 and renewed.last_interaction_at is None
    assert (renewed.system_sent, renewed.aborted_last_run, renewed.skills_snapshot) == (False, False, None)


@pytest.mark.spec("LIFE-21", "LOOP-7")
@pytest.mark.parametrize(("source", "kept"), [("user", True), (None, True), ("auto", False)])
def test_a_fallback_model_does_not_survive(source: Any, kept: bool) -> None:
    entry = msgspec.structs.replace(ENTRY, model_override_source=source)
    for renewed in (
        carry_over(entry, session_id="new", now_ms=NOW, explicit=True),
        carry_over_cron_run(entry, session_id="new", now_ms=NOW),
    ):
        assert (renewed.model_override == "claude-opus-4") is kept
        assert (renewed.provider_override == "anthropic") is kept
        assert (renewed.auth_profile_override == "work") is kept
        assert renewed.model_override_source == (source if kept else None)


def test_the_family_of_ids_stays_bounded_and_free_of_repeats() -> None:
    entry = SessionEntry(session_id="id0", updated_at=0)
    for turn in range(1, 100):
        entry = carry_over(entry, session_id=f"id{turn}", now_ms=turn, explicit=turn % 2 == 0)
    assert entry.usage_family_session_ids == tuple(f"id{turn}" for turn in range(36, 100))


@pytest.mark.spec("LIFE-16")
def test_a_named_model_becomes_the_persons_choice() -> None:
    bare = SessionEntry(session_id="s", updated_at=1, provider_override="openai", auth_profile_override="a")
    chosen = choose_model(bare, ModelHint("openai", "gpt-5", "hi"))
    assert (chosen.provider_override, chosen.model_override) == ("openai", "gpt-5")
    assert (chosen.model_override_source, chosen.auth_profile_override) == ("user", "a")
    other = choose_model(chosen, ModelHint("anthropic", "claude-opus-4", ""))
    assert (other.provider_override, other.auth_profile_override) == ("anthropic", None)
    assert (other.session_id, other.updated_at) == ("s", 1)


EXPIRED = Expired(reason="idle", since_ms=1)


@pytest.mark.spec("LIFE-1", "LIFE-13", "LIFE-19", "LIFE-20")
def test_when_a_window_is_minted() -> None:
    assert decide_window(has_entry=True, freshness=Fresh()) == KeepWindow()
    assert decide_window(has_entry=True, freshness=EXPIRED) == MintWindow("idle")
    assert decide_window(has_entry=True, freshness=Expired("daily", 1)) == MintWindow("daily")
    assert decide_window(has_entry=False, freshness=Fresh()) == MintWindow("first")
    assert decide_window(has_entry=False, freshness=EXPIRED, requested="new") == MintWindow("first")
    assert decide_window(has_entry=True, freshness=Fresh(), requested="new") == MintWindow("new")
    assert decide_window(has_entry=True, freshness=EXPIRED, requested="reset") == MintWindow("reset")
    # Isolated cron runs never reuse an id, however fresh it is.
    for has_entry in (True, False):
        minted = decide_window(has_entry=has_entry, freshness=Fresh(), isolated_cron=True)
        assert minted == MintWindow("cron")


@pytest.mark.spec("LIFE-22")
@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("new", "new"),
        ("reset", "reset"),
        ("daily", "daily"),
        ("idle", "idle"),
        ("cron", "new"),
        ("first", "new"),
    ],
)
def test_a_rotation_is_announced_end_first(reason: WindowReason, told: str) -> None:
    events = rotation_events("agent:main:main", previous_id="old", session_id="new", reason=reason)
    assert [msgspec.to_builtins(event) for event in events] == [
        {
            "type": "session_end",
            "sessionKey": "agent:main:main",
            "sessionId": "old",
            "reason": told,
            "nextSessionId": "new",
        },
        {
            "type": "session_start",
            "sessionKey": "agent:main:main",
            "sessionId": "new",
            "resumedFrom": "old",
        },
    ]


@pytest.mark.spec("LIFE-22")
def test_a_first_window_and_a_deletion_have_one_event() -> None:
    first = rotation_events("k", previous_id=None, session_id="new", reason="first")
    assert first == (SessionStart("k", "new"),)
    deleted = SessionEnd("k", "old", "deleted")
    assert msgspec.to_builtins(deleted) == {
        "type": "session_end",
        "sessionKey": "k",
        "sessionId": "old",
        "reason": "deleted",
    }


@pytest.mark.spec("LIFE-23")
def test_a_thread_branches_off_its_parent_once() -> None:
    def decide(
        parent: str | None = "agent:main:slack:channel:c",
        *,
        known: bool = True,
        forked: bool = False,
        tokens: int = 100_000,
    ) -> Fork | StartEmpty:
        return decide_thread_fork(
            parent_key=parent, parent_has_entry=known, already_forked=forked, parent_tokens=tokens
        )

    assert decide() == Fork("agent:main:slack:channel:c")
    assert decide(tokens=0) == Fork("agent:main:slack:channel:c")
    assert decide(tokens=100_001) == StartEmpty("parent_too_large")
    assert decide(None) == decide("") == StartEmpty("no_parent")
    assert decide(known=False) == StartEmpty("parent_unknown")
    assert decide(forked=True, tokens=100_001) == StartEmpty("already_forked")
