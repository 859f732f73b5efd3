"""What sessions used: sums per session, per agent, per model and per day, made by the database.

Reads only. Usage rows outlive their sessions, so the sums count what was deleted too.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from openclaw.store.database import Database, Row, Transaction
from openclaw.store.statements import load_statements

SQL = load_statements("sessionusage.sql")
SLICE_MS = 900_000  # a quarter of an hour: every time zone's midnight is at the edge of one


class Amounts(Struct, frozen=True):
    """Tokens and money of some calls. `unpriced` calls have no known price; they add tokens and no cost."""

    calls: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0

    @property
    def total_tokens(self) -> int:
        return self.input + self.output + self.cache_read + self.cache_write


def add(amounts: Iterable[Amounts]) -> Amounts:
    """All of them together."""
    total = Amounts()
    for one in amounts:
        total = Amounts(
            total.calls + one.calls,
            total.input + one.input,
            total.output + one.output,
            total.cache_read + one.cache_read,
            total.cache_write + one.cache_write,
            total.cost_usd + one.cost_usd,
            total.unpriced + one.unpriced,
        )
    return total


class UsageSpan(Struct, frozen=True):
    """Which calls count: those that ended from `since_ms` on and before `until_ms`."""

    since_ms: int
    until_ms: int
    session_key: str | None = None
    agent_id: str | None = None

    def bounds(self) -> tuple[int, int, str | None, str | None]:
        return self.since_ms, self.until_ms, self.session_key, self.agent_id


class SessionUsage(Struct, frozen=True):
    session_key: str
    agent_id: str
    last_at: int
    first_at: int
    amounts: Amounts


class UsageSlice(Struct, frozen=True):
    """The calls of one agent to one model in a quarter of an hour that began at `at_ms`."""

    agent_id: str
    provider: str
    model: str
    at_ms: int
    amounts: Amounts


class UsageReport(Struct, frozen=True):
    """The sessions that were used last, the slices of all, and how many sessions there are in all."""

    sessions: tuple[SessionUsage, ...]
    slices: tuple[UsageSlice, ...]
    session_count: int


class SessionUsages:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def report(self, span: UsageSpan, limit: int) -> UsageReport:
        return await self._database.read(lambda tx: _report(tx, span, limit))


def _report(tx: Transaction, span: UsageSpan, limit: int) -> UsageReport:
    counted = tx.row(SQL["sessions_in_use"], span.bounds())
    return UsageReport(
        tuple(_session(row) for row in tx.rows(SQL["usage_by_session"], (*span.bounds(), limit))),
        tuple(_slice(row) for row in tx.rows(SQL["usage_by_model"], span.bounds())),
        int(counted[0]) if counted else 0,
    )


def _session(row: Row) -> SessionUsage:
    return SessionUsage(row[0], row[1], row[2], row[3], Amounts(*row[4:]))


def _slice(row: Row) -> UsageSlice:
    return UsageSlice(row[0], row[1], row[2], int(row[3]) * SLICE_MS, Amounts(*row[4:]))
