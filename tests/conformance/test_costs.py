"""Costs by day: every row in the day it belongs to, in any time zone, found without reading all."""

from __future__ import annotations

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from openclaw.store.budgets import Budgets, Payer
from openclaw.store.costs import Costs, total_of
from openclaw.store.database import Database
from openclaw.store.records import UsageRow

PAYER = Payer("agent:main:main", "main", "run-1")
UTC_ZONE = ZoneInfo("UTC")


def at(year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0) -> int:
    return int(datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp() * 1000)


async def used(database: Database, call_id: str, now_ms: int, cost_usd: float | None = 0.25) -> None:
    row = UsageRow(call_id, "p", "m", 10, 5, 2, 1, cost_usd)
    await Budgets(database).record(PAYER, (row,), now_ms=now_ms)


async def test_an_empty_store_has_empty_days(database: Database) -> None:
    days = await Costs(database).daily(date(2026, 3, 1), date(2026, 3, 3), UTC_ZONE)
    assert [day.date for day in days] == ["2026-03-01", "2026-03-02", "2026-03-03"]
    assert total_of(days).calls == 0 and total_of(days).cost_usd == 0


async def test_rows_fall_into_their_local_day(database: Database) -> None:
    await used(database, "a", at(2026, 3, 1, 18, 29, 59))
    await used(database, "b", at(2026, 3, 1, 18, 30))
    await used(database, "c", at(2026, 3, 1, 23, 59), None)
    await used(database, "d", at(2026, 3, 2))
    first, last = date(2026, 3, 1), date(2026, 3, 2)
    utc = await Costs(database).daily(first, last, UTC_ZONE)
    assert [day.calls for day in utc] == [3, 1]
    assert [day.unpriced for day in utc] == [1, 0]
    assert [day.cost_usd for day in utc] == [0.5, 0.25]
    india = await Costs(database).daily(first, last, ZoneInfo("Asia/Kolkata"))  # five and a half hours ahead
    assert [day.calls for day in india] == [1, 3]
    total = total_of(utc)
    assert (total.input, total.output, total.cache_read, total.cache_write) == (40, 20, 8, 4)
    assert (total.date, total.calls, total.unpriced) == ("2026-03-02", 4, 1)


@pytest.mark.parametrize("since_day", [1, 5, 10])
async def test_the_beginning_of_a_span_is_found_among_many_rows(database: Database, since_day: int) -> None:
    for day in range(1, 11):
        for number in range(4):
            await used(database, f"{day}-{number}", at(2026, 3, day, 6 * number))
    days = await Costs(database).daily(date(2026, 3, since_day), date(2026, 3, 12), UTC_ZONE)
    assert [day.calls for day in days] == [4] * (11 - since_day) + [0, 0]


async def test_a_day_with_a_clock_change_is_one_day(database: Database) -> None:
    zone = ZoneInfo("Europe/Berlin")
    await used(database, "a", at(2026, 3, 28, 22, 59))
    await used(database, "b", at(2026, 3, 28, 23))  # midnight in Berlin, winter time
    await used(database, "c", at(2026, 3, 29, 21, 59))
    await used(database, "d", at(2026, 3, 29, 22))  # midnight, summer time
    days = await Costs(database).daily(date(2026, 3, 28), date(2026, 3, 30), zone)
    assert [day.calls for day in days] == [1, 2, 1]
