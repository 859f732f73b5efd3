"""Freshness: when a session that is met again has expired, and what the person is told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import get_args
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.lifecycle import (
    Expired,
    Fresh,
    NextExpiry,
    ResetMode,
    ResetPolicy,
    TurnSource,
    counts_as_interaction,
    daily_boundary_ms,
    judge_freshness,
    next_expiry,
    reset_notice,
    reset_notice_is_due,
)

BERLIN = ZoneInfo("Europe/Berlin")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MINUTE = 60_000


def at(text: str) -> int:
    return (datetime.fromisoformat(text).replace(tzinfo=BERLIN) - EPOCH) // timedelta(milliseconds=1)


def policy(mode: ResetMode = "daily", *, at_hour: int = 4, idle: int | None = None) -> ResetPolicy:
    return ResetPolicy(mode=mode, at_hour=at_hour, idle_minutes=idle, origin="reset")


def judge(
    rule: ResetPolicy,
    last: int | None,
    now: int,
    *,
    run_active: bool = False,
    inputs_waiting: bool = False,
    source: TurnSource = "channel",
) -> Fresh | Expired:
    return judge_freshness(
        rule,
        last_interaction_ms=last,
        now_ms=now,
        zone=BERLIN,
        run_active=run_active,
        inputs_waiting=inputs_waiting,
        source=source,
    )


@pytest.mark.spec("LIFE-1", "LIFE-2", "LIFE-11")
def test_daily_expiry_around_the_boundary() -> None:
    four = at("2026-01-10 04:00")
    for now in (four, at("2026-01-10 12:00"), at("2026-02-01 00:00")):
        assert judge(policy(), four - 1, now) == Expired(reason="daily", since_ms=four)
    assert judge(policy(), four - 1, four - 1) == Fresh()
    assert judge(policy(), at("2026-01-09 04:00"), four - 1) == Fresh()
    # An interaction exactly at the boundary belongs to the new day.
    assert judge(policy(), four, at("2026-01-11 03:59")) == Fresh()
    assert judge(policy(), four, at("2026-01-11 04:00")) != Fresh()
    assert judge(policy(at_hour=5), four - 1, four) == Fresh()


@pytest.mark.spec("LIFE-3")
def test_idle_expiry_is_strictly_later_than_the_window() -> None:
    last, rule = at("2026-01-10 12:00"), policy("idle", idle=30)
    assert judge(rule, last, last + 30 * MINUTE) == Fresh()
    end = last + 30 * MINUTE + 1
    assert judge(rule, last, end) == Expired(reason="idle", since_ms=end)
    assert judge(rule, last, last) == Fresh()


@pytest.mark.spec("LIFE-6", "LIFE-9")
def test_idle_mode_knows_no_daily_boundary() -> None:
    last = at("2026-01-10 03:59")
    assert judge(policy("idle", idle=600), last, at("2026-01-10 04:01")) == Fresh()
    assert judge(policy("daily", idle=600), last, at("2026-01-10 04:01")) != Fresh()
    assert judge(policy("idle"), 0, at("2026-01-10 04:01")) == Fresh()


@pytest.mark.spec("LIFE-4")
def test_whichever_rule_ends_first_is_the_reason() -> None:
    four = at("2026-01-10 04:00")
    now = at("2026-01-10 09:00")
    early, late = four - 60 * MINUTE, four - MINUTE
    assert judge(policy(idle=30), early, now) == Expired("idle", early + 30 * MINUTE + 1)
    assert judge(policy(idle=30), late, now) == Expired("daily", four)
    assert judge(policy(idle=30), late, four + 10 * MINUTE) == Expired("daily", four)
    assert judge(policy(idle=30), now - 31 * MINUTE, now) == Expired("idle", now - MINUTE + 1)
    # Both in the same millisecond: the boundary is named.
    assert judge(policy(idle=30), four - 30 * MINUTE - 1, now) == Expired("daily", four)
    assert judge(policy(idle=30), four - 30 * MINUTE - 2, now) == Expired("idle", four - 1)


@pytest.mark.spec("LIFE-11")
def test_unusable_timestamps_are_as_good_as_none() -> None:
    now = at("2026-01-10 12:00")
    rule = policy(idle=1)
    for last in (None, -1, -(10**15), now + 1, now + 10**12):
        assert judge(rule, last, now) == Fresh()
        assert next_expiry(rule, last_interaction_ms=last, now_ms=now, zone=BERLIN) is None
    assert judge(rule, 0, now) == Expired("idle", MINUTE + 1)
    assert judge(rule, now, now) == Fresh()


@pytest.mark.spec("LIFE-12")
def test_a_busy_session_is_never_rotated() -> None:
    last, now = at("2026-01-08 12:00"), at("2026-01-10 12:00")
    assert isinstance(judge(policy(), last, now), Expired)
    assert judge(policy(), last, now, run_active=True) == Fresh()
    assert judge(policy(), last, now, inputs_waiting=True) == Fresh()
    assert judge(policy(), last, now, run_active=True, inputs_waiting=True) == Fresh()


@pytest.mark.spec("LIFE-12")
def test_only_interactive_turns_find_a_session_expired() -> None:
    last, now = at("2026-01-08 12:00"), at("2026-01-10 12:00")
    for source in get_args(TurnSource):
        expired = isinstance(judge(policy(), last, now, source=source), Expired)
        assert expired == counts_as_interaction(source)
    assert judge(policy(), last, now, source="heartbeat") == Fresh()


@pytest.mark.spec("LIFE-3", "LIFE-4")
def test_the_coming_expiry_can_be_told() -> None:
    last, four = at("2026-01-10 12:00"), at("2026-01-11 04:00")

    def coming(rule: ResetPolicy) -> NextExpiry | None:
        return next_expiry(rule, last_interaction_ms=last, now_ms=last + 1, zone=BERLIN)

    assert coming(policy()) == NextExpiry(at_ms=four, reason="daily")
    assert coming(policy(idle=30)) == NextExpiry(at_ms=last + 30 * MINUTE + 1, reason="idle")
    assert coming(policy(idle=100_000)) == NextExpiry(at_ms=four, reason="daily")
    assert coming(policy("idle", idle=100_000)) == NextExpiry(last + 100_000 * MINUTE + 1, "idle")
    assert coming(policy("idle")) is None
    at_once = next_expiry(policy(), last_interaction_ms=last, now_ms=last, zone=BERLIN)
    assert at_once == NextExpiry(at_ms=four, reason="daily")


moments = st.integers(0, 2_500_000_000_000)
policies = st.builds(
    ResetPolicy,
    mode=st.sampled_from(["daily", "idle"]),
    at_hour=st.integers(0, 23),
    idle_minutes=st.one_of(st.none(), st.integers(1, 5000)),
    origin=st.just("reset"),
)
zones = st.sampled_from(["Europe/Berlin", "America/Sao_Paulo", "America/St_Johns", "Pacific/Apia"])


@pytest.mark.spec("LIFE-2", "LIFE-3", "LIFE-4")
@settings(max_examples=300, deadline=None)
@given(rule=policies, last=moments, later=st.integers(0, 300 * 3_600_000), zone_name=zones)
def test_expiry_agrees_with_both_rules_taken_alone(
    rule: ResetPolicy, last: int, later: int, zone_name: str
) -> None:
    zone, now = ZoneInfo(zone_name), last + later
    by_day = rule.mode == "daily" and last < daily_boundary_ms(now, rule.at_hour, zone)
    by_idle = rule.idle_minutes is not None and now > last + rule.idle_minutes * MINUTE
    verdict = judge_freshness(
        rule,
        last_interaction_ms=last,
        now_ms=now,
        zone=zone,
        run_active=False,
        inputs_waiting=False,
        source="webchat",
    )
    assert isinstance(verdict, Expired) == (by_day or by_idle)
    if isinstance(verdict, Expired):
        assert {"daily": by_day, "idle": by_idle}[verdict.reason]
        assert last < verdict.since_ms <= now


@pytest.mark.spec("LIFE-2", "LIFE-3")
def test_the_notice_is_one_line_that_offers_the_way_back() -> None:
    daily = reset_notice("daily", policy(at_hour=4, idle=30))
    assert daily == (
        "New session: the daily reset at 04:00 has passed. Send /undo reset to go back to the previous one."
    )
    idle = reset_notice("idle", policy("idle", idle=90))
    assert idle == (
        "New session: nothing was said for more than 90 minutes. "
        "Send /undo reset to go back to the previous one."
    )
    assert "more than 1 minute. " in reset_notice("idle", policy("idle", idle=1))
    assert "at 15:00 " in reset_notice("daily", policy(at_hour=15))


def test_the_notice_goes_only_where_a_person_reads() -> None:
    person: tuple[TurnSource, ...] = ("channel", "webchat", "cli")
    for source in get_args(TurnSource):
        due = reset_notice_is_due(source=source, key_text="agent:main:main")
        assert due == (source in person)
    for rest in ("cron:j", "cron:j:run:1", "hook:u", "node-n", "node:n", "subagent:u"):
        assert not reset_notice_is_due(source="channel", key_text=f"agent:main:{rest}")
        assert not reset_notice_is_due(source="webchat", key_text=f"Agent:Main:{rest.upper()}")
    for rest in ("telegram:dm:1", "slack:channel:cron", "nodes", "hooks:x"):
        assert reset_notice_is_due(source="channel", key_text=f"agent:main:{rest}")
