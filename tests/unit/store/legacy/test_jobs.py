"""Scheduled jobs of the founding layout: every shape they were written in, and what is left out (DB-3)."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.jobs import AgentTurn, AtTime, CronLine, EventNote, Interval, Job, JobDelivery
from openclaw.errors import StoreCorrupt
from openclaw.store.legacy.jobs import LegacyJobs, read_jobs

NOW = 1_750_000_000_000
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def entry(**changes: Any) -> dict[str, Any]:
    known = {
        "id": "j1", "agentId": "Bob", "name": "brief me", "enabled": True, "createdAtMs": 5, "updatedAtMs": 9,
        "schedule": {"kind": "cron", "expr": "0 7 * * *", "tz": "Europe/Madrid", "staggerMs": 3},
        "sessionTarget": "isolated", "wakeMode": "next-heartbeat",
        "payload": {"kind": "agentTurn", "message": "Brief me", "thinking": "low", "timeoutSeconds": 60.0},
        "delivery": {"mode": "announce", "channel": "telegram", "to": 42, "bestEffort": True},
        "state": {"nextRunAtMs": 77, "lastStatus": "ok"},
    }  # fmt: skip
    return known | changes


def read(*entries: Any) -> LegacyJobs:
    return read_jobs(json.dumps({"version": 1, "jobs": entries}).encode(), default_agent="main", now_ms=NOW)


def one(**changes: Any) -> Job:
    found = read(entry(**changes))
    assert found.problems == ()
    return found.jobs[0]


@pytest.mark.spec("DB-3")
class TestReading:
    def test_a_job_is_taken_over(self) -> None:
        assert one() == Job(
            id="j1",
            name="brief me",
            agent_id="bob",
            schedule=CronLine(expr="0 7 * * *", tz="Europe/Madrid"),
            session_target="isolated",
            payload=AgentTurn(message="Brief me", thinking="low", timeout_seconds=60),
            created_at_ms=5,
            updated_at_ms=9,
            wake_mode="next-heartbeat",
            delivery=JobDelivery(mode="announce", channel="telegram", to="42"),
        )

    def test_what_is_absent_has_a_default(self) -> None:
        bare = {
            "id": "j2",
            "schedule": {"kind": "every", "everyMs": 60_000},
            "payload": {"kind": "agentTurn", "message": "x"},
        }
        (job,) = read(bare).jobs
        assert (job.name, job.agent_id, job.session_target, job.enabled) == ("j2", "main", "isolated", True)
        assert (job.created_at_ms, job.updated_at_ms, job.wake_mode) == (NOW, NOW, "now")
        assert job.delivery == JobDelivery(mode="announce") and not job.delete_after_run

    @pytest.mark.parametrize(
        ("written", "meant"),
        [
            ({"kind": "at", "at": "2030-01-01T00:00:00Z"}, AtTime(at="2030-01-01T00:00:00Z")),
            ({"kind": "at", "atMs": 9_000}, AtTime(at=9_000)),
            ({"kind": "at", "atMs": "9000"}, AtTime(at=9_000)),
            ({"kind": "every", "everyMs": 1000, "anchorMs": 4}, Interval(every_ms=1000, anchor_ms=4)),
        ],
    )
    def test_schedules(self, written: Any, meant: Any) -> None:
        assert one(schedule=written).schedule == meant

    def test_the_main_session_is_told(self) -> None:
        job = one(sessionTarget="main", payload={"kind": "systemEvent", "text": "tea"}, delivery=None)
        assert job.payload == EventNote(text="tea") and job.delivery == JobDelivery()

    def test_the_session_that_was_meant_by_current(self) -> None:
        assert one(sessionTarget="current", sessionKey="agent:bob:x").current_key == "agent:bob:x"
        assert one(sessionTarget="session:daily", sessionKey="agent:bob:x").current_key is None

    @pytest.mark.parametrize(
        ("delivery", "payload", "meant"),
        [
            ({"mode": "none"}, {}, JobDelivery()),
            ({"mode": "deliver", "channel": "last"}, {}, JobDelivery(mode="announce")),
            ({"mode": "webhook", "to": "https://a.b"}, {}, JobDelivery(mode="webhook", to="https://a.b")),
            (None, {"deliver": False, "to": "7"}, JobDelivery()),
            (None, {"deliver": True, "channel": "last"}, JobDelivery(mode="announce")),
            (None, {"channel": "irc", "to": "7"}, JobDelivery(mode="announce", channel="irc", to="7")),
            (None, {"provider": "irc", "to": "7"}, JobDelivery(mode="announce", channel="irc", to="7")),
        ],
        ids=range(7),
    )  # fmt: skip
    def test_where_results_go(self, delivery: Any, payload: Any, meant: JobDelivery) -> None:
        job = one(delivery=delivery, payload={"kind": "agentTurn", "message": "x"} | payload)
        assert job.delivery == meant

    def test_a_bare_list_and_the_first_of_two_with_one_id(self) -> None:
        data = json.dumps([entry(name="first"), entry(name="second")]).encode()
        (job,) = read_jobs(data, default_agent="main", now_ms=NOW).jobs
        assert job.name == "first"

    @pytest.mark.parametrize(
        ("changes", "told"),
        [
            ({"id": ""}, "job 1: "),
            ({"id": "x" * 129}, "job 1: "),
            ({"schedule": {"kind": "sometimes"}}, "job 1 (brief me): "),
            ({"schedule": {"kind": "at", "atMs": []}}, "job 1 (brief me): "),
            ({"schedule": {"kind": "every", "everyMs": 5}}, "everyMs must be at least 1000"),
            ({"payload": {"kind": "agentTurn", "message": "  "}}, "payload must not be empty"),
            ({"payload": {"kind": "systemEvent", "text": "x"}}, 'goes with sessionTarget "main"'),
            ({"sessionTarget": "moon"}, "sessionTarget must be"),
            ({"delivery": {"mode": "announce", "to": "7"}}, "delivery.channel is missing"),
            ({"delivery": {"mode": "shout"}}, "job 1 (brief me): "),
            ({"enabled": "yes"}, "job 1: "),
        ],
        ids=range(11),
    )
    def test_what_cannot_be_used_says_why_and_does_not_stop_the_others(self, changes: Any, told: str) -> None:
        found = read(entry(**changes), entry(id="j9"))
        assert [job.id for job in found.jobs] == ["j9"]
        (problem,) = found.problems
        assert told in problem and problem.startswith("job 1")

    @pytest.mark.parametrize(
        "data", [b"", b"{}", b'{"jobs": {}}', b"[[", b"7", b"\xff", b"[" * 500 + b"]" * 500]
    )
    def test_what_is_no_such_file_is_refused(self, data: bytes) -> None:
        with pytest.raises(StoreCorrupt, match="not a list of scheduled jobs"):
            read_jobs(data, default_agent="main", now_ms=NOW)

    @given(st.binary(max_size=60) | ANY_JSON.map(lambda value: json.dumps({"jobs": [value]}).encode()))
    @settings(max_examples=200, deadline=None)
    def test_no_file_breaks_it(self, data: bytes) -> None:
        with contextlib.suppress(StoreCorrupt):
            read_jobs(data, default_agent="main", now_ms=NOW)

    @given(st.sampled_from(sorted(entry())), ANY_JSON)
    @settings(max_examples=200, deadline=None)
    def test_no_field_breaks_it(self, name: str, value: Any) -> None:
        found = read(entry(**{name: value}))
        assert len(found.jobs) + len(found.problems) == 1
