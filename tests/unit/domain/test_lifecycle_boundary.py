"""Daily boundaries: wall-clock hours in zones whose clocks jump."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.lifecycle import daily_boundary_ms, next_daily_boundary_ms

HOUR = 3_600_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def at(text: str, zone: str, *, fold: int = 0) -> int:
    """A wall-clock reading in a zone as epoch milliseconds; `fold=1` is its second occurrence."""
    local = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold)
    return (local - EPOCH) // timedelta(milliseconds=1)


def boundary(text: str, hour: int, zone: str, *, fold: int = 0) -> int:
    return daily_boundary_ms(at(text, zone, fold=fold), hour, ZoneInfo(zone))


def utc(text: str) -> int:
    return at(text, "UTC")


@pytest.mark.spec("LIFE-2", "LIFE-11")
def test_an_ordinary_day() -> None:
    assert boundary("2026-01-10 12:00", 4, "Europe/Berlin") == utc("2026-01-10 03:00")
    assert boundary("2026-01-10 03:59:59.999", 4, "Europe/Berlin") == utc("2026-01-09 03:00")
    assert boundary("2026-01-10 04:00", 4, "Europe/Berlin") == utc("2026-01-10 03:00")
    assert boundary("2026-01-10 04:00:00.001", 4, "Europe/Berlin") == utc("2026-01-10 03:00")
    assert boundary("2026-01-10 23:59", 0, "Europe/Berlin") == utc("2026-01-09 23:00")
    assert boundary("2026-01-10 22:59", 23, "Europe/Berlin") == utc("2026-01-09 22:00")
    assert boundary("2026-03-01 01:00", 4, "UTC") == utc("2026-02-28 04:00")


@pytest.mark.spec("LIFE-11")
def test_offsets_that_are_not_whole_hours() -> None:
    assert boundary("2026-05-05 05:00", 4, "Asia/Kathmandu") == utc("2026-05-04 22:15")
    assert boundary("2026-05-05 03:00", 4, "Asia/Kathmandu") == utc("2026-05-03 22:15")


@pytest.mark.spec("LIFE-11")
def test_the_day_before_is_a_calendar_day_not_24_hours() -> None:
    # Berlin, 29 March 2026: 02:00 becomes 03:00, so that day has 23 hours.
    assert boundary("2026-03-30 03:00", 4, "Europe/Berlin") == utc("2026-03-29 02:00")
    assert boundary("2026-03-29 03:30", 4, "Europe/Berlin") == utc("2026-03-28 03:00")
    # 25 October 2026: 03:00 becomes 02:00, so that day has 25 hours.
    assert boundary("2026-10-26 03:00", 4, "Europe/Berlin") == utc("2026-10-25 03:00")
    assert boundary("2026-10-25 03:30", 4, "Europe/Berlin") == utc("2026-10-24 02:00")


@pytest.mark.spec("LIFE-11")
def test_a_skipped_hour_moves_to_the_end_of_the_gap() -> None:
    assert boundary("2026-03-29 12:00", 2, "Europe/Berlin") == utc("2026-03-29 01:00")
    assert boundary("2026-03-29 01:59:59.999", 2, "Europe/Berlin") == utc("2026-03-28 01:00")
    assert boundary("2026-03-08 12:00", 2, "America/New_York") == utc("2026-03-08 07:00")
    # A midnight that does not exist: the day begins at 01:00.
    assert boundary("2018-11-04 12:00", 0, "America/Sao_Paulo") == utc("2018-11-04 03:00")
    assert boundary("2024-04-26 12:00", 0, "Africa/Cairo") == utc("2024-04-25 22:00")
    # A gap of half an hour.
    assert boundary("2026-10-04 12:00", 2, "Australia/Lord_Howe") == utc("2026-10-03 15:30")


@pytest.mark.spec("LIFE-11")
def test_an_hour_inside_a_longer_gap_moves_to_its_end() -> None:
    # Troll jumps from 01:00 to 03:00; both skipped hours end at the same instant.
    for hour in (1, 2, 3):
        assert boundary("2026-03-29 12:00", hour, "Antarctica/Troll") == utc("2026-03-29 01:00")
    # Samoa had no 30 December 2011 at all.
    for hour in range(1, 24):
        assert boundary("2011-12-31 00:30", hour, "Pacific/Apia") == utc("2011-12-30 10:00")
    assert boundary("2011-12-31 04:00", 4, "Pacific/Apia") == utc("2011-12-30 14:00")
    # Goose Bay jumped at one minute past midnight: from 00:01 to 01:01, in 1988 even to 02:01.
    assert boundary("2003-04-06 12:00", 1, "America/Goose_Bay") == utc("2003-04-06 04:01")
    for hour in (1, 2):
        assert boundary("1988-04-03 12:00", hour, "America/Goose_Bay") == utc("1988-04-03 04:01")
    # Liberia moved by 44 min 30 s in the night of 7 January 1972: midnight was skipped.
    assert boundary("1972-01-07 12:00", 0, "Africa/Monrovia") == utc("1972-01-07 00:44:30")


@pytest.mark.spec("LIFE-11")
def test_an_hour_that_occurs_twice_counts_the_first_time() -> None:
    berlin, first = "Europe/Berlin", utc("2026-10-25 00:00")
    assert boundary("2026-10-25 02:00", 2, berlin) == first
    assert boundary("2026-10-25 02:30", 2, berlin, fold=1) == first
    assert boundary("2026-10-25 12:00", 2, berlin) == first
    assert boundary("2026-11-01 12:00", 1, "America/New_York") == utc("2026-11-01 05:00")
    assert boundary("2026-04-05 12:00", 2, "Australia/Lord_Howe") == utc("2026-04-04 15:30")


@pytest.mark.spec("LIFE-2", "LIFE-11")
def test_a_boundary_that_has_struck_is_not_taken_back() -> None:
    # St. John's fell back at 00:01 to 23:01 of the day before: midnight had already struck once.
    zone, struck = "America/St_Johns", at("2010-11-07 00:00", "America/St_Johns")
    assert boundary("2010-11-06 23:30", 0, zone) == at("2010-11-06 00:00", zone)
    assert boundary("2010-11-06 23:30", 0, zone, fold=1) == struck
    assert boundary("2010-11-07 00:00", 0, zone, fold=1) == struck
    following = next_daily_boundary_ms(at("2010-11-06 23:30", zone, fold=1), 0, ZoneInfo(zone))
    assert following == at("2010-11-08 00:00", zone)


@pytest.mark.spec("LIFE-11")
def test_the_next_boundary_is_strictly_later() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    four = utc("2026-01-10 03:00")
    assert next_daily_boundary_ms(four - 1, 4, berlin) == four
    assert next_daily_boundary_ms(four, 4, berlin) == four + 24 * HOUR
    assert next_daily_boundary_ms(utc("2026-03-28 12:00"), 4, berlin) == utc("2026-03-29 02:00")


ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Sao_Paulo",
    "America/St_Johns",
    "America/Havana",
    "America/Goose_Bay",
    "Africa/Cairo",
    "Asia/Kathmandu",
    "Asia/Gaza",
    "Australia/Lord_Howe",
    "Antarctica/Troll",
    "Pacific/Apia",
    "Pacific/Kiritimati",
    "Africa/Casablanca",
]
moments = st.integers(0, 4_000_000_000_000)
hours = st.integers(0, 23)
zones = st.sampled_from(ZONES).map(ZoneInfo)


@pytest.mark.spec("LIFE-11")
@settings(max_examples=300, deadline=None)
@given(now=moments, hour=hours, zone=zones)
def test_now_lies_between_two_neighbouring_boundaries(now: int, hour: int, zone: ZoneInfo) -> None:
    last, following = daily_boundary_ms(now, hour, zone), next_daily_boundary_ms(now, hour, zone)
    assert last <= now < following
    assert next_daily_boundary_ms(last, hour, zone) == following
    assert daily_boundary_ms(last, hour, zone) == last
    assert daily_boundary_ms(following - 1, hour, zone) == last
    assert daily_boundary_ms(following, hour, zone) == following
    assert following - last <= 49 * HOUR


@pytest.mark.spec("LIFE-11")
@settings(max_examples=300, deadline=None)
@given(now=moments, hour=hours, zone=zones)
def test_a_boundary_shows_its_hour_or_ends_a_gap(now: int, hour: int, zone: ZoneInfo) -> None:
    instant = EPOCH + timedelta(milliseconds=daily_boundary_ms(now, hour, zone))
    local, before = instant.astimezone(zone), (instant - timedelta(seconds=1)).astimezone(zone)
    if local.hour == hour and local.minute == 0:
        assert (local.second, local.microsecond, local.fold) == (0, 0, 0)
    else:
        jump = local.replace(tzinfo=None) - before.replace(tzinfo=None)
        assert jump > timedelta(seconds=1)
        skipped = before.replace(tzinfo=None), local.replace(tzinfo=None)
        wanted = local.replace(tzinfo=None, hour=hour, minute=0, second=0, microsecond=0)
        assert any(skipped[0] < wanted - timedelta(days=back) < skipped[1] for back in (0, 1))
