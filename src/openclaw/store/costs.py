"""What model calls used and cost, day by day, from the usage rows: they outlive their sessions.

Reads only. Rows are numbered in the order in which calls began, so the beginning of a
span is found by halving instead of by reading everything before it.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from msgspec import Struct
from msgspec.structs import replace

from openclaw.store.database import Database, Transaction
from openclaw.store.statements import load_statements

SQL = load_statements("costs.sql")
SLICE_MS = 900_000
# A row gets its time when the call has ended; its number is from before.
LONGEST_CALL_MS = 24 * 3600 * 1000


class DayCost(Struct, frozen=True):
    """One local day. `unpriced` calls are those whose price is not known; they add tokens and no cost."""

    date: str
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    calls: int = 0


class Costs:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def daily(self, first: date, last: date, zone: ZoneInfo) -> tuple[DayCost, ...]:
        """Every day from the first to the last, also those without a call."""
        since_ms, until_ms = _midnight(first, zone), _midnight(last + timedelta(days=1), zone)
        found = await self._database.read(lambda tx: _slices(tx, since_ms, until_ms))
        days = {
            str(first + timedelta(days=offset)): DayCost(str(first + timedelta(days=offset)))
            for offset in range((last - first).days + 1)
        }
        for number, amounts in found:
            day = str(datetime.fromtimestamp(number * SLICE_MS / 1000, zone).date())
            if day in days:
                days[day] = _plus(days[day], amounts)
        return tuple(days.values())


def total_of(days: tuple[DayCost, ...]) -> DayCost:
    """All days together, under the date of the last."""
    total = DayCost(days[-1].date)
    for day in days:
        total = _plus(
            total,
            (day.input, day.output, day.cache_read, day.cache_write, day.cost_usd, day.unpriced, day.calls),
        )
    return total


def _plus(day: DayCost, amounts: tuple[float, ...]) -> DayCost:
    tokens_in, tokens_out, cache_read, cache_write, cost_usd, unpriced, calls = amounts
    return replace(
        day,
        input=day.input + int(tokens_in),
        output=day.output + int(tokens_out),
        cache_read=day.cache_read + int(cache_read),
        cache_write=day.cache_write + int(cache_write),
        cost_usd=day.cost_usd + float(cost_usd),
        unpriced=day.unpriced + int(unpriced),
        calls=day.calls + int(calls),
    )


def _midnight(day: date, zone: ZoneInfo) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=zone).timestamp() * 1000)


def _slices(tx: Transaction, since_ms: int, until_ms: int) -> list[tuple[int, tuple[float, ...]]]:
    bounds = tx.row(SQL["bounds"])
    if bounds is None or bounds[0] is None:
        return []
    first = _first_since(tx, since_ms - LONGEST_CALL_MS, int(bounds[0]), int(bounds[1]))
    rows = tx.rows(SQL["slices"], (first, since_ms, until_ms))
    return [(int(row[0]), tuple(row[1:])) for row in rows]


def _first_since(tx: Transaction, since_ms: int, low: int, high: int) -> int:
    """The number from which on rows are not older than this."""
    while low < high:
        middle = (low + high) // 2
        found = tx.row(SQL["at_or_after"], (middle,))
        if found is not None and int(found[0]) < since_ms:
            low = middle + 1
        else:
            high = middle
    return low
