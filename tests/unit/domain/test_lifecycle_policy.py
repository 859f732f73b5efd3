"""Reset policy: which rule holds for a session, and with which numbers."""

from __future__ import annotations

import math
from typing import get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.lifecycle import (
    INTERACTIVE_SOURCES,
    ResetMode,
    ResetPolicy,
    ResetRule,
    ResetRules,
    SessionType,
    TurnSource,
    clamp_hour,
    clamp_idle_minutes,
    counts_as_interaction,
    floor_number,
    resolve_reset,
    session_type,
)

TYPES: tuple[SessionType, ...] = ("direct", "group", "thread")


def resolved(
    rules: ResetRules, session_type: SessionType = "direct", channel: str | None = None
) -> tuple[str, int, int | None]:
    policy = resolve_reset(rules, session_type=session_type, channel=channel)
    return policy.mode, policy.at_hour, policy.idle_minutes


@pytest.mark.spec("LIFE-2", "LIFE-5")
def test_nothing_configured_is_daily_at_four() -> None:
    policy = resolve_reset(ResetRules(), session_type="direct", channel="telegram")
    assert policy == ResetPolicy(mode="daily", at_hour=4, idle_minutes=None, origin="default")
    for kind in TYPES:
        assert resolved(ResetRules(reset=ResetRule()), kind) == ("daily", 4, None)


@pytest.mark.spec("LIFE-5")
def test_idle_minutes_beside_reset_keep_the_daily_rule() -> None:
    assert resolved(ResetRules(reset=ResetRule(idle_minutes=120))) == ("daily", 4, 120)
    assert resolved(ResetRules(reset=ResetRule(mode="daily", at_hour=6, idle_minutes=1))) == ("daily", 6, 1)


@pytest.mark.spec("LIFE-6", "CFG-11")
def test_legacy_minutes_alone_mean_idle_only() -> None:
    policy = resolve_reset(ResetRules(idle_minutes=30), session_type="group", channel=None)
    assert policy == ResetPolicy(mode="idle", at_hour=4, idle_minutes=30, origin="legacy")
    # A rule for another channel does not end the legacy mode of this one.
    elsewhere = ResetRules(idle_minutes=30, by_channel={"discord": ResetRule(mode="daily")})
    assert resolved(elsewhere, channel="telegram") == ("idle", 4, 30)


@pytest.mark.spec("LIFE-6", "LIFE-9")
def test_legacy_minutes_beside_reset_or_a_type_are_only_a_fallback() -> None:
    assert resolved(ResetRules(reset=ResetRule(), idle_minutes=30)) == ("daily", 4, 30)
    assert resolved(ResetRules(reset=ResetRule(idle_minutes=90), idle_minutes=30)) == ("daily", 4, 90)
    by_type = ResetRules(by_type={"group": ResetRule(at_hour=2)}, idle_minutes=30)
    assert resolved(by_type, "group") == ("daily", 2, 30)
    # Any type rule at all makes the configuration explicit, also for types that it does not name.
    assert resolved(by_type, "direct") == ("daily", 4, 30)


@pytest.mark.spec("LIFE-7", "LIFE-9")
def test_each_field_comes_from_the_type_then_from_reset() -> None:
    rules = ResetRules(
        reset=ResetRule(mode="idle", at_hour=7, idle_minutes=45),
        by_type={"thread": ResetRule(mode="daily"), "group": ResetRule(idle_minutes=10)},
    )
    assert resolved(rules, "thread") == ("daily", 7, 45)
    assert resolved(rules, "group") == ("idle", 7, 10)
    assert resolved(rules, "direct") == ("idle", 7, 45)
    origins = {kind: resolve_reset(rules, session_type=kind, channel=None).origin for kind in TYPES}
    assert origins == {"thread": "type", "group": "type", "direct": "reset"}
    hours = ResetRules(reset=ResetRule(at_hour=7), by_type={"group": ResetRule(at_hour=0)})
    assert resolved(hours, "group") == ("daily", 0, None)


@pytest.mark.spec("LIFE-7", "CFG-11")
def test_dm_is_an_alias_of_direct_and_of_nothing_else() -> None:
    rule = ResetRule(mode="idle", idle_minutes=240)
    rules = ResetRules(by_type={"dm": rule})
    assert resolved(rules, "direct") == ("idle", 4, 240)
    assert resolve_reset(rules, session_type="direct", channel=None).origin == "type"
    assert resolved(rules, "group") == ("daily", 4, None)
    assert resolved(rules, "thread") == ("daily", 4, None)
    both = ResetRules(by_type={"dm": rule, "direct": ResetRule(idle_minutes=5)})
    assert resolved(both, "direct") == ("daily", 4, 5)


@pytest.mark.spec("LIFE-8", "LIFE-9")
def test_a_channel_rule_stands_alone_for_every_type() -> None:
    rules = ResetRules(
        reset=ResetRule(mode="idle", at_hour=7, idle_minutes=45),
        by_type={kind: ResetRule(at_hour=9, idle_minutes=9) for kind in TYPES},
        by_channel={"discord": ResetRule(mode="idle", idle_minutes=10080), "slack": ResetRule()},
        idle_minutes=30,
    )
    for kind in TYPES:
        assert resolved(rules, kind, "discord") == ("idle", 4, 10080)
        assert resolved(rules, kind, "slack") == ("daily", 4, None)
        assert resolved(rules, kind, " Discord ") == ("idle", 4, 10080)
        assert resolved(rules, kind, "telegram") == ("idle", 9, 9)
        assert resolved(rules, kind, None) == ("idle", 9, 9)
    assert resolve_reset(rules, session_type="direct", channel="slack").origin == "channel"
    assert resolved(ResetRules(by_channel={"": ResetRule(at_hour=1)}), channel=None) == ("daily", 4, None)
    spelled = ResetRules(by_channel={" MSTeams ": ResetRule(at_hour=1)})
    assert resolved(spelled, channel="msteams") == ("daily", 1, None)


@pytest.mark.spec("LIFE-9")
def test_idle_mode_without_minutes_is_an_hour() -> None:
    assert resolved(ResetRules(reset=ResetRule(mode="idle"))) == ("idle", 4, 60)
    assert resolved(ResetRules(by_channel={"x": ResetRule(mode="idle")}), channel="x") == ("idle", 4, 60)
    assert resolved(ResetRules(reset=ResetRule(mode="idle", idle_minutes=math.nan))) == ("idle", 4, 60)
    assert resolved(ResetRules(reset=ResetRule(mode="idle"), idle_minutes=15)) == ("idle", 4, 15)


@pytest.mark.spec("LIFE-9", "CFG-12")
@pytest.mark.parametrize(
    ("given_hour", "hour"),
    [(0, 0), (23, 23), (24, 23), (-1, 0), (5.9, 5), (22.999, 22), (-0.5, 0), (99, 23)]
    + [(None, 4), ("6", 4), (True, 4), (math.nan, 4), (math.inf, 4), (-math.inf, 4)],
)
def test_the_hour_is_floored_and_clamped(given_hour: object, hour: int) -> None:
    assert clamp_hour(given_hour) == hour


@pytest.mark.spec("LIFE-9")
@pytest.mark.parametrize(
    ("given_minutes", "minutes"),
    [(1, 1), (0, 1), (-5, 1), (0.5, 1), (1.99, 1), (2.0, 2), (59.9, 59), (10080, 10080)]
    + [(None, None), ("5", None), (False, None), (math.nan, None), (math.inf, None)],
)
def test_minutes_are_floored_and_at_least_one(given_minutes: object, minutes: int | None) -> None:
    assert clamp_idle_minutes(given_minutes) == minutes


def test_floor_number_takes_any_size() -> None:
    assert floor_number(10**400) == 10**400
    assert floor_number(-1.5) == -2
    assert floor_number([]) is None


numbers = st.one_of(st.none(), st.integers(-50, 5000), st.floats())
rule_values = st.builds(
    ResetRule, mode=st.sampled_from([None, "daily", "idle"]), at_hour=numbers, idle_minutes=numbers
)


@pytest.mark.spec("LIFE-9")
@settings(max_examples=200, deadline=None)
@given(
    rules=st.builds(
        ResetRules,
        reset=st.one_of(st.none(), rule_values),
        by_type=st.dictionaries(st.sampled_from(["direct", "dm", "group", "thread"]), rule_values),
        by_channel=st.dictionaries(st.sampled_from(["telegram", "discord"]), rule_values),
        idle_minutes=numbers,
    ),
    kind=st.sampled_from(TYPES),
    channel=st.sampled_from([None, "telegram", "whatsapp"]),
)
def test_every_policy_can_be_used(rules: ResetRules, kind: SessionType, channel: str | None) -> None:
    policy = resolve_reset(rules, session_type=kind, channel=channel)
    assert policy.mode in get_args(ResetMode)
    assert 0 <= policy.at_hour <= 23 and isinstance(policy.at_hour, int)
    assert policy.idle_minutes is None or policy.idle_minutes >= 1
    assert policy.mode == "daily" or policy.idle_minutes is not None
    if channel in rules.by_channel:
        assert policy == resolve_reset(
            ResetRules(by_channel=rules.by_channel), session_type="thread", channel=channel
        )


@pytest.mark.spec("CFG-10")
def test_rules_are_read_as_the_configuration_writes_them() -> None:
    raw = {"mode": "idle", "atHour": 3, "idleMinutes": 240}
    rule = msgspec.convert(raw, ResetRule)
    assert rule == ResetRule(mode="idle", at_hour=3, idle_minutes=240)
    assert msgspec.to_builtins(rule) == raw
    assert msgspec.to_builtins(ResetRule()) == {}
    for wrong in ({"mode": "weekly"}, {"at_hour": 3}, {"atHour": True}, {"idleMinutes": "60"}):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(wrong, ResetRule)


@pytest.mark.spec("LIFE-7", "LIFE-10")
@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("agent:main:main", "direct"),
        ("agent:main:telegram:dm:1", "direct"),
        ("agent:main:telegram:group:1", "group"),
        ("agent:main:slack:channel:c1", "group"),
        ("Agent:Main:Slack:CHANNEL:c1", "group"),
        ("agent:main:telegram:group:1:topic:9", "thread"),
        ("agent:main:slack:channel:c1:thread:17.2", "thread"),
        ("agent:main:main:thread:17.2", "thread"),
        ("agent:main:groups", "direct"),
    ],
)
def test_the_type_is_read_from_the_key(key: str, kind: str) -> None:
    assert session_type(key_text=key) == kind


@pytest.mark.spec("LIFE-10")
def test_facts_of_the_context_go_before_the_key() -> None:
    group, direct = "agent:main:telegram:group:1", "agent:main:main"
    assert session_type(key_text=direct, is_group=True) == "group"
    assert session_type(key_text=group, thread_id="5") == "thread"
    assert session_type(key_text=direct, thread_label="Bug 7") == "thread"
    assert session_type(key_text=direct, thread_starter="hello") == "thread"
    assert session_type(key_text=direct, is_group=True, parent_key="agent:main:main") == "thread"
    blank = session_type(key_text=direct, thread_id=" ", thread_label="", thread_starter="\n", parent_key="")
    assert blank == "direct"


@pytest.mark.spec("LIFE-12")
def test_only_turns_that_somebody_sent_count_as_interaction() -> None:
    assert {source for source in get_args(TurnSource) if counts_as_interaction(source)} == {
        "channel",
        "webchat",
        "cli",
        "api",
        "hook",
        "node",
    }
    for source in ("heartbeat", "cron", "exec", "system", "announce", "inter_session"):
        assert source in get_args(TurnSource)
        assert source not in INTERACTIVE_SOURCES
