"""When a job is due next: intervals, single times, lines of cron, and a year with its changes of clocks."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.jobs import AtTime, CronLine, Interval, Schedule
from openclaw.engine.schedule import check_schedule, missed_between, next_due, time_of
from openclaw.errors import InvalidRequest

MADRID, NEW_YORK, TOKYO = ZoneInfo("Europe/Madrid"), ZoneInfo("America/New_York"), ZoneInfo("Asia/Tokyo")
HOUR_MS = 3_600_000


def ms(*when: int, zone: ZoneInfo = MADRID) -> int:
    return int(datetime(*when, tzinfo=zone).timestamp() * 1000)  # type: ignore[arg-type, misc]


def due_times(schedule: Schedule, start_ms: int, end_ms: int, zone: ZoneInfo = MADRID) -> list[datetime]:
    found: list[datetime] = []
    at = start_ms
    while True:
        following = next_due(schedule, after_ms=at, made_ms=start_ms, zone=zone)
        if following is None or following >= end_ms:
            return found
        assert following > at, "time only goes forward"
        found.append(datetime.fromtimestamp(following / 1000, zone))
        at = following


@pytest.mark.spec("AUTO-2")
@pytest.mark.parametrize("zone", [MADRID, NEW_YORK, TOKYO])
@pytest.mark.parametrize("expr", ["30 2 * * *", "0 7 * * *", "30 1 * * *"])
def test_a_daily_job_is_due_once_on_each_day_of_a_year(zone: ZoneInfo, expr: str) -> None:
    start, end = ms(2026, 1, 1, zone=zone), ms(2027, 1, 1, zone=zone)
    found = due_times(CronLine(expr=expr), start, end, zone)
    days = [moment.date() for moment in found]
    assert len(days) == 365 and len(set(days)) == 365, expr


@pytest.mark.spec("AUTO-2")
def test_what_the_change_of_clocks_skips_and_repeats() -> None:
    spring = due_times(CronLine(expr="30 2 * * *"), ms(2026, 3, 28, 12), ms(2026, 3, 30, 12))
    assert [moment.strftime("%d %H:%M") for moment in spring] == ["29 03:00", "30 02:30"]
    autumn = due_times(CronLine(expr="30 2 * * *"), ms(2026, 10, 24, 12), ms(2026, 10, 26, 12))
    assert [moment.strftime("%d %H:%M") for moment in autumn] == ["25 02:30", "26 02:30"]
    hourly = due_times(CronLine(expr="0 * * * *"), ms(2026, 1, 1) - 1, ms(2027, 1, 1))
    assert len(hourly) == 365 * 24
    stamps = [int(moment.timestamp()) for moment in hourly]
    assert all(later - earlier == 3600 for earlier, later in pairwise(stamps))


@pytest.mark.spec("AUTO-2")
def test_a_zone_of_its_own_beats_the_gateways() -> None:
    in_tokyo = next_due(
        CronLine(expr="0 9 * * *", tz="Asia/Tokyo"), after_ms=ms(2026, 5, 1), made_ms=0, zone=MADRID
    )
    assert in_tokyo == ms(2026, 5, 1, 9, zone=TOKYO)


@pytest.mark.spec("AUTO-2")
def test_a_single_time_is_due_once() -> None:
    at = AtTime(at="2026-12-24T18:00")
    assert next_due(at, after_ms=ms(2026, 1, 1), made_ms=0, zone=MADRID) == ms(2026, 12, 24, 18)
    assert next_due(at, after_ms=ms(2026, 12, 24, 18), made_ms=0, zone=MADRID) is None
    assert time_of("2026-12-24T18:00+00:00", MADRID) == int(
        datetime(2026, 12, 24, 18, tzinfo=UTC).timestamp() * 1000
    )
    assert time_of(1234, MADRID) == 1234


@settings(max_examples=200, deadline=None)
@given(st.integers(1000, 10**9), st.integers(0, 10**12), st.integers(0, 10**12))
def test_an_interval_keeps_its_beat(every_ms: int, anchor_ms: int, after_ms: int) -> None:
    schedule = Interval(every_ms=every_ms, anchor_ms=anchor_ms)
    due = next_due(schedule, after_ms=after_ms, made_ms=5, zone=MADRID)
    assert (due is not None and due > after_ms) or due == anchor_ms
    assert (
        due is not None and (due - anchor_ms) % every_ms == 0 and due - every_ms <= max(after_ms, anchor_ms)
    )


@pytest.mark.spec("AUTO-2")
def test_how_many_times_were_missed() -> None:
    made = ms(2026, 1, 1)
    hourly = Interval(every_ms=HOUR_MS)
    due = made + HOUR_MS
    count: dict[str, Any] = {"schedule": hourly, "made_ms": made, "zone": MADRID}
    assert missed_between(due_ms=due, now_ms=due, **count) == 0
    assert missed_between(due_ms=due, now_ms=due + HOUR_MS - 1, **count) == 0
    assert missed_between(due_ms=due, now_ms=due + 3 * HOUR_MS, **count) == 3
    assert missed_between(due_ms=due, now_ms=due + 10**7 * HOUR_MS, most=50, **count) == 50
    once = AtTime(at=due)
    assert missed_between(once, due_ms=due, now_ms=due + 10**9, made_ms=made, zone=MADRID) == 0


@pytest.mark.spec("AUTO-2")
@pytest.mark.parametrize(
    ("schedule", "says"),
    [
        (CronLine(expr="* * * *"), "five fields"),
        (CronLine(expr="99 * * * *"), "not a line of cron"),
        (CronLine(expr="0 7 * * *", tz="../etc/passwd"), "no time zone"),
        (AtTime(at="soon"), "not a time"),
    ],
)
def test_what_cannot_be_read_says_how_to_write_it(schedule: Schedule, says: str) -> None:
    with pytest.raises(InvalidRequest, match=says):
        check_schedule(schedule, MADRID)


def test_a_good_schedule_is_silent() -> None:
    check_schedule(CronLine(expr="*/5 * * * *"), MADRID)
    check_schedule(Interval(every_ms=1000), MADRID)
    check_schedule(AtTime(at=datetime(2026, 1, 1, tzinfo=UTC).isoformat()), MADRID)
