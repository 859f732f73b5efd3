"""Spending limits that hold: what a call may cost is reserved before it is made, in the commit that checks.

A reservation is a usage row. The call's real cost replaces it; one that nobody
settles (a crash, an abort) counts with its estimate for ever, never with zero.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from openclaw.domain.budget import Affordable, BudgetLimits, Spent, TooExpensive, decide_spend
from openclaw.store.database import Database, Transaction
from openclaw.store.records import UsageRow
from openclaw.store.statements import load_statements

SQL = load_statements("budgets.sql")


class Payer(Struct, frozen=True):
    """Which session a call is made for, and the run that makes it."""

    session_key: str
    agent_id: str
    run_id: str


class SpendRequest(Struct, frozen=True):
    """A call that is about to be made. `day_start` is the agent's local midnight."""

    call_id: str
    payer: Payer
    tree_key: str
    provider: str
    model: str
    cost_usd: float | None
    session_since: int
    day_start: int


class Budgets:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def reserve(
        self, asked: SpendRequest, limits: BudgetLimits, *, now_ms: int
    ) -> Affordable | TooExpensive:
        """Set the most that a call can cost aside, or say why it must not be made; one commit."""
        return await self._database.write(lambda tx: _reserve(tx, asked, limits, now_ms))

    async def release(self, call_id: str) -> None:
        """The call was refused before anything was generated: it cost nothing."""
        await self._database.write(lambda tx: tx.run(SQL["release"], (call_id,)))

    async def settle_run(self, run_id: str) -> None:
        """Calls of a run whose end nobody saw count with their estimate."""
        await self._database.write(lambda tx: tx.run(SQL["settle_run"], (run_id,)))

    async def settle_orphans(self) -> None:
        """At start-up: what a crash left reserved, except for runs that go on."""
        await self._database.write(lambda tx: tx.run(SQL["settle_orphans"]))

    async def record(self, payer: Payer, usage: Sequence[UsageRow], *, now_ms: int) -> None:
        """Keep what calls outside a run's own steps used."""

        def unit(tx: Transaction) -> None:
            charge(tx, payer.session_key, record_usage(tx, payer, usage, now_ms))

        if usage:
            await self._database.write(unit)

    async def spent(self, asked: SpendRequest) -> Spent:
        return await self._database.read(lambda tx: _spent(tx, asked))


def _reserve(
    tx: Transaction, asked: SpendRequest, limits: BudgetLimits, now_ms: int
) -> Affordable | TooExpensive:
    decided = decide_spend(limits, _spent(tx, asked), asked.cost_usd, f"{asked.provider}/{asked.model}")
    if isinstance(decided, TooExpensive):
        return decided
    payer = asked.payer
    tx.run(
        SQL["reserve"],
        (
            asked.call_id, payer.session_key, payer.agent_id, payer.run_id, asked.tree_key, asked.provider,
            asked.model, now_ms, asked.cost_usd,
        ),
    )  # fmt: skip
    return decided


def _spent(tx: Transaction, asked: SpendRequest) -> Spent:
    sums = (
        tx.row(SQL["session_spent"], (asked.payer.session_key, asked.session_since)),
        tx.row(SQL["day_spent"], (asked.payer.agent_id, asked.day_start)),
        tx.row(SQL["tree_spent"], (asked.tree_key,)),
    )
    return Spent(*(float(row[0]) if row else 0.0 for row in sums))


def record_usage(tx: Transaction, payer: Payer, usage: Sequence[UsageRow], now_ms: int) -> float | None:
    """Record calls, each once; returns what the new ones cost, None when no price is known."""
    cost_usd = None
    for row in usage:
        recorded = tx.row(
            SQL["record"],
            (
                row.call_id, payer.session_key, payer.agent_id, payer.run_id, row.provider, row.model,
                now_ms, row.input, row.output, row.cache_read, row.cache_write, row.cost_usd, row.tree_key,
            ),
        )  # fmt: skip
        if recorded is not None and row.cost_usd is not None:
            cost_usd = (cost_usd or 0.0) + row.cost_usd
    return cost_usd


def charge(tx: Transaction, session_key: str, cost_usd: float | None) -> None:
    """Add to what the session's calls have cost so far."""
    if cost_usd is not None:
        tx.run(SQL["add_cost"], (cost_usd, session_key))
