"""Spending limits on every database: reserved before the call, settled once, never past the limit."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from openclaw.domain.budget import Affordable, BudgetLimits, Spent, TooExpensive
from openclaw.store.budgets import Budgets, Payer, SpendRequest
from openclaw.store.database import Database
from openclaw.store.records import UsageRow
from openclaw.store.store import Store
from tests.conformance.making import DAY, DONE, MAIN, NOON, begin, create, present, seed, select

PARENT, HELPER = MAIN.session_key, seed("subagent:1").session_key
MIDNIGHT = NOON - DAY // 2
CALLERS = 8
NO_LIMITS = BudgetLimits()


def asked(call_id: str, cost_usd: float | None = 0.25, key: str = PARENT, **fields: object) -> SpendRequest:
    payer = Payer(key, "main", "run-1")
    made = SpendRequest(call_id, payer, PARENT, "fake", "one", cost_usd, MIDNIGHT, MIDNIGHT)
    return msgspec.structs.replace(made, **fields)


def used(call_id: str, cost_usd: float | None = 0.125, tree_key: str | None = PARENT) -> UsageRow:
    return UsageRow(call_id, "fake", "one", 100, 10, 5, 2, cost_usd, tree_key)


async def states(database: Database) -> dict[str, tuple[str, float | None]]:
    rows = await select(database, "SELECT call_id, state, cost_usd FROM usage ORDER BY call_id")
    return {call_id: (state, cost) for call_id, state, cost in rows}


async def test_a_reservation_counts_as_spent_by_all_three_measures(store: Store, database: Database) -> None:
    budgets = Budgets(database)
    assert await budgets.spent(asked("any")) == Spent(0.0, 0.0, 0.0)
    assert await budgets.reserve(asked("call-1"), NO_LIMITS, now_ms=NOON) == Affordable()
    assert await states(database) == {"call-1": ("reserved", 0.25)}
    assert await budgets.spent(asked("any")) == Spent(0.25, 0.25, 0.25)
    assert await budgets.reserve(asked("call-2", 0.5, HELPER), NO_LIMITS, now_ms=NOON) == Affordable()
    assert await budgets.spent(asked("any")) == Spent(0.25, 0.75, 0.75)
    assert await budgets.spent(asked("any", key=HELPER)) == Spent(0.5, 0.75, 0.75)
    elsewhere = asked("any", key=seed("x", "bob").session_key, tree_key="agent:bob:x")
    elsewhere = msgspec.structs.replace(elsewhere, payer=Payer("agent:bob:x", "bob", "run-9"))
    assert await budgets.spent(elsewhere) == Spent(0.0, 0.0, 0.0)


async def test_yesterday_and_an_earlier_window_do_not_count_but_the_tree_remembers(
    database: Database,
) -> None:
    budgets = Budgets(database)
    for number, at in enumerate((MIDNIGHT - 1, MIDNIGHT, MIDNIGHT + 1)):
        await budgets.reserve(asked(f"call-{number}"), NO_LIMITS, now_ms=at)
    assert await budgets.spent(asked("any")) == Spent(0.5, 0.5, 0.75)
    assert await budgets.spent(asked("any", session_since=MIDNIGHT + 1)) == Spent(0.25, 0.5, 0.75)
    assert await budgets.spent(asked("any", day_start=MIDNIGHT + 2)) == Spent(0.5, 0.0, 0.75)


@pytest.mark.parametrize("limit", ["per_session_usd", "per_day_usd", "per_tree_usd"])
async def test_a_limit_holds_to_the_cent_and_a_refusal_leaves_no_row(database: Database, limit: str) -> None:
    budgets, limits = Budgets(database), BudgetLimits(**{limit: 0.5})
    assert await budgets.reserve(asked("call-1"), limits, now_ms=NOON) == Affordable()
    assert await budgets.reserve(asked("call-2"), limits, now_ms=NOON) == Affordable()
    refused = await budgets.reserve(asked("call-3", 0.001), limits, now_ms=NOON)
    assert isinstance(refused, TooExpensive)
    assert "fake/one" in refused.message and "$0.5000 of $0.5000" in refused.message
    assert sorted(await states(database)) == ["call-1", "call-2"]
    assert await budgets.reserve(asked("call-4", 0.0), limits, now_ms=NOON) == Affordable()
    unpriced = await budgets.reserve(asked("call-5", None), limits, now_ms=NOON)
    assert isinstance(unpriced, TooExpensive) and "no price" in unpriced.message


@pytest.mark.parametrize("limit", ["per_session_usd", "per_day_usd", "per_tree_usd"])
async def test_eight_callers_at_once_do_not_get_past_a_limit(database: Database, limit: str) -> None:
    budgets, limits = Budgets(database), BudgetLimits(**{limit: 1.25})

    async def spend(caller: int) -> list[Affordable | TooExpensive]:
        calls = [asked(f"call-{caller}-{n}") for n in range(4)]
        return [await budgets.reserve(call, limits, now_ms=NOON) for call in calls]

    told = [one for many in await asyncio.gather(*map(spend, range(CALLERS))) for one in many]
    assert sum(isinstance(one, Affordable) for one in told) == 5
    assert len(await states(database)) == 5
    assert (await budgets.spent(asked("any"))).session_usd == 1.25


async def test_reserving_again_sets_nothing_aside_twice(database: Database) -> None:
    budgets = Budgets(database)
    for cost in (0.25, 0.25, 0.75):
        assert await budgets.reserve(asked("call-1", cost), NO_LIMITS, now_ms=NOON) == Affordable()
    assert await states(database) == {"call-1": ("reserved", 0.25)}


async def test_the_real_cost_replaces_the_reservation_once(store: Store, database: Database) -> None:
    await create(store, MAIN)
    budgets, payer = Budgets(database), asked("any").payer
    await budgets.reserve(asked("call-1"), NO_LIMITS, now_ms=NOON)
    await budgets.record(payer, (), now_ms=NOON)
    for _ in range(2):
        await budgets.record(payer, (used("call-1"),), now_ms=NOON + 7)
    assert await states(database) == {"call-1": ("settled", 0.125)}
    assert await budgets.spent(asked("any")) == Spent(0.125, 0.125, 0.125)
    assert (await present(store)).entry.estimated_cost_usd == 0.125
    (row,) = await select(
        database, "SELECT input, output, cache_read, cache_write, at, run_id, tree_key FROM usage"
    )
    assert row == (100, 10, 5, 2, NOON + 7, "run-1", PARENT)
    await budgets.release("call-1")
    assert await states(database) == {"call-1": ("settled", 0.125)}, "what was paid for is not given back"


async def test_calls_without_a_reservation_and_without_a_price_are_kept_too(
    store: Store, database: Database
) -> None:
    await create(store, MAIN)
    budgets, payer = Budgets(database), asked("any").payer
    await budgets.record(payer, (used("a", None), used("b", 0.5), used("c", 0.25)), now_ms=NOON)
    assert await states(database) == {"a": ("settled", None), "b": ("settled", 0.5), "c": ("settled", 0.25)}
    assert (await present(store)).entry.estimated_cost_usd == 0.75
    await budgets.record(payer, (used("d", None),), now_ms=NOON)
    assert (await present(store)).entry.estimated_cost_usd == 0.75


async def test_a_refused_call_is_given_back(database: Database) -> None:
    budgets, limits = Budgets(database), BudgetLimits(per_day_usd=0.25)
    await budgets.reserve(asked("call-1"), limits, now_ms=NOON)
    assert isinstance(await budgets.reserve(asked("call-2"), limits, now_ms=NOON), TooExpensive)
    await budgets.release("call-1")
    await budgets.release("nobody")
    assert await states(database) == {}
    assert await budgets.reserve(asked("call-2"), limits, now_ms=NOON) == Affordable()


async def test_what_nobody_saw_the_end_of_counts_with_its_estimate(store: Store, database: Database) -> None:
    budgets = Budgets(database)
    other = asked("call-2", payer=Payer(PARENT, "main", "run-2"))
    await budgets.reserve(asked("call-1"), NO_LIMITS, now_ms=NOON)
    await budgets.reserve(other, NO_LIMITS, now_ms=NOON)
    await budgets.settle_run("run-1")
    assert await states(database) == {"call-1": ("settled", 0.25), "call-2": ("reserved", 0.25)}
    await budgets.record(asked("any").payer, (used("call-1", 0.01),), now_ms=NOON)
    assert (await states(database))["call-1"] == ("settled", 0.25), "an estimate that was settled stays"
    assert await budgets.spent(asked("any")) == Spent(0.5, 0.5, 0.5)


async def test_orphans_are_settled_and_runs_that_go_on_keep_theirs(store: Store, database: Database) -> None:
    claimed = await begin(store, "run-1")
    budgets = Budgets(database)
    await budgets.reserve(asked("goes-on"), NO_LIMITS, now_ms=NOON)
    await budgets.reserve(asked("gone", payer=Payer(PARENT, "main", "run-0")), NO_LIMITS, now_ms=NOON)
    await budgets.settle_orphans()
    assert await states(database) == {"goes-on": ("reserved", 0.25), "gone": ("settled", 0.25)}
    await store.finish(claimed.run, (), DONE, (used("goes-on", 0.0625),), now_ms=NOON)
    await budgets.settle_orphans()
    assert await states(database) == {"goes-on": ("settled", 0.0625), "gone": ("settled", 0.25)}
    unsettled = asked("left", payer=Payer(PARENT, "main", "run-1"))
    await budgets.reserve(unsettled, NO_LIMITS, now_ms=NOON)
    await budgets.settle_orphans()
    assert (await states(database))["left"] == ("settled", 0.25)
    assert (await budgets.spent(asked("any"))).session_usd == 0.5625


async def test_usage_outlives_the_session(store: Store, database: Database) -> None:
    await create(store, MAIN)
    budgets = Budgets(database)
    await budgets.record(asked("any").payer, (used("call-1", 0.5),), now_ms=NOON)
    await store.delete_session(PARENT, now_ms=NOON)
    assert (await budgets.spent(asked("any"))).day_usd == 0.5
    refused = await budgets.reserve(asked("call-2"), BudgetLimits(per_day_usd=0.6), now_ms=NOON)
    assert isinstance(refused, TooExpensive)


async def test_settling_and_orphan_care_race_without_losing_a_cent(store: Store, database: Database) -> None:
    await create(store, MAIN)
    budgets, payer = Budgets(database), asked("any").payer
    calls = [f"call-{n}" for n in range(24)]
    for call_id in calls:
        await budgets.reserve(asked(call_id), NO_LIMITS, now_ms=NOON)
    work = [budgets.record(payer, (used(call_id),), now_ms=NOON) for call_id in calls]
    await asyncio.gather(*work, *(budgets.settle_orphans() for _ in range(CALLERS)))
    found = await states(database)
    assert {state for state, _ in found.values()} == {"settled"}
    charged = (await present(store)).entry.estimated_cost_usd or 0.0
    assert charged == 0.125 * sum(cost == 0.125 for _, cost in found.values())
    assert sorted(found) == sorted(calls)
