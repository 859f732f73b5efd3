"""Scheduled jobs as values: what fits together, and which session they work in (AUTO-2, KEY-14)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from openclaw.domain.jobs import (
    AgentTurn,
    AtTime,
    CronLine,
    EventNote,
    Interval,
    Job,
    JobDelivery,
    check_job,
    job_session_key,
)
from openclaw.domain.keys import KeySettings, format_key
from openclaw.errors import InvalidRequest

KEYS = KeySettings()


def job(**more: Any) -> Job:
    base: dict[str, Any] = {
        "id": "J1",
        "name": "report",
        "agent_id": "main",
        "schedule": Interval(every_ms=1000),
        "session_target": "isolated",
        "payload": AgentTurn(message="go"),
        "created_at_ms": 1,
        "updated_at_ms": 1,
    }
    return Job(**base | more)


@pytest.mark.spec("AUTO-1", "AUTO-2", "KEY-14")
@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({}, "agent:main:cron:j1"),
        ({"session_target": "main", "payload": EventNote(text="x")}, "agent:main:main"),
        ({"session_target": "session:diary"}, "agent:main:diary"),
        ({"session_target": "current", "current_key": "agent:main:talk"}, "agent:main:talk"),
        ({"session_target": "current"}, "agent:main:main"),
        ({"agent_id": "bob"}, "agent:bob:cron:j1"),
    ],
)
def test_the_session_of_a_job(change: dict[str, Any], key: str) -> None:
    made = check_job(job(**change))
    assert format_key(job_session_key(made, KEYS)) == key
    assert made.is_isolated == (made.session_target == "isolated")


@pytest.mark.spec("AUTO-2")
@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"session_target": "session:"}, "session:<name>"),
        ({"session_target": "nowhere"}, "session:<name>"),
        ({"session_target": "main"}, "systemEvent"),
        ({"payload": EventNote(text="x")}, "goes with sessionTarget"),
        ({"schedule": Interval(every_ms=999)}, "at least 1000"),
        ({"delivery": JobDelivery(mode="webhook")}, "http"),
        ({"delivery": JobDelivery(mode="webhook", to="ftp://x")}, "http"),
        ({"delivery": JobDelivery(mode="announce", to="42")}, "channel is missing"),
        ({"name": " \n"}, "name must not be empty"),
        ({"name": "x" * 201}, "longer than 200"),
        ({"payload": AgentTurn(message="")}, "payload must not be empty"),
    ],
)
def test_what_does_not_fit_together(change: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidRequest, match=says):
        check_job(job(**change))


@pytest.mark.parametrize(
    "delivery", [JobDelivery(mode="webhook", to="https://x/y"), JobDelivery(mode="announce")]
)
def test_deliveries_that_are_good(delivery: JobDelivery) -> None:
    assert check_job(job(delivery=delivery)).delivery == delivery


@pytest.mark.spec("AUTO-4")
@pytest.mark.parametrize(
    "schedule",
    [AtTime(at="2026-01-01"), AtTime(at=5), Interval(every_ms=5), CronLine(expr="* * * * *", tz="UTC")],
)
def test_a_job_is_stored_as_it_is_shown(schedule: Any) -> None:
    made = job(schedule=schedule)
    encoded = msgspec.json.encode(made)
    assert msgspec.json.decode(encoded, type=Job) == made
    assert msgspec.json.decode(encoded)["schedule"]["kind"] in ("at", "every", "cron")
