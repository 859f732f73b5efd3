"""The next turn of a session, chosen and begun in one commit."""

from __future__ import annotations

import msgspec
import pytest

from openclaw.store.claiming import Chosen, Claims, Later
from openclaw.store.database import Database
from openclaw.store.records import QueuedInput, SessionRow
from openclaw.store.store import Store
from tests.conformance.making import MAIN, NOON, PLAN, RESETS, begin, create, draft_inputs, say

KEY = MAIN.session_key


def take_first(_session: SessionRow, waiting: tuple[QueuedInput, ...]) -> Chosen:
    return Chosen((waiting[0].admission,), PLAN)


def take_all(_session: SessionRow, waiting: tuple[QueuedInput, ...]) -> Chosen:
    return Chosen(tuple(item.admission for item in waiting), PLAN)


async def queue(store: Store, run_id: str, expires_at: int | None = None) -> None:
    new = msgspec.structs.replace(say(run_id, f"words of {run_id}"), expires_at=expires_at)
    await store.accept(new, RESETS, session_id=f"{run_id}-window", now_ms=NOON)


@pytest.mark.spec("QUE-2", "DB-15")
async def test_what_is_chosen_is_begun_and_the_rest_waits(store: Store, database: Database) -> None:
    claims = Claims(database)
    for run_id in ("run-1", "run-2", "run-3"):
        await queue(store, run_id)
    first = await claims.next(KEY, take_first, draft_inputs, now_ms=NOON + 1)
    assert first.claimed is not None
    assert (first.claimed.run.run_id, [item.run_id for item in first.claimed.inputs]) == ("run-1", ["run-1"])
    assert [item.run_id for item in await store.queued(KEY)] == ["run-2", "run-3"]
    busy = await claims.next(KEY, take_all, draft_inputs, now_ms=NOON + 2)
    assert busy.claimed is None
    assert busy.left_over is not None and busy.left_over.run_id == "run-1"


async def test_nothing_waits_where_nothing_came(store: Store, database: Database) -> None:
    claims = Claims(database)
    nothing = await claims.next(KEY, take_all, draft_inputs, now_ms=NOON)
    await create(store, MAIN)
    still = await claims.next(KEY, take_all, draft_inputs, now_ms=NOON)
    for found in (nothing, still):
        assert (found.claimed, found.later_ms, found.left_over, found.expired) == (None, None, None, ())


async def test_whoever_wants_to_wait_is_told_until_when(store: Store, database: Database) -> None:
    await queue(store, "run-1")
    found = await Claims(database).next(KEY, lambda _s, _w: Later(NOON + 500), draft_inputs, now_ms=NOON)
    assert (found.claimed, found.later_ms) == (None, NOON + 500)
    assert [item.run_id for item in await store.queued(KEY)] == ["run-1"]


@pytest.mark.spec("QUE-8")
async def test_what_is_too_old_is_settled_and_never_chosen(store: Store, database: Database) -> None:
    claims = Claims(database)
    await queue(store, "run-1", expires_at=NOON + 10)
    await queue(store, "run-2")
    found = await claims.next(KEY, take_all, draft_inputs, now_ms=NOON + 10)
    assert found.expired == ("run-1",)
    assert found.claimed is not None and [item.run_id for item in found.claimed.inputs] == ["run-2"]
    state = await store.input_state("run-1")
    assert state is not None and state.state == "cancelled"


async def test_old_inputs_alone_leave_nothing(store: Store, database: Database) -> None:
    await queue(store, "run-1", expires_at=NOON + 10)
    found = await Claims(database).next(KEY, take_all, draft_inputs, now_ms=NOON + 11)
    assert (found.claimed, found.expired) == (None, ("run-1",))
    assert await store.queued(KEY) == ()


async def test_a_run_that_nobody_ended_is_found_before_anything_is_chosen(
    store: Store, database: Database
) -> None:
    await begin(store, "run-1")
    await queue(store, "run-2")

    def never(_session: SessionRow, _waiting: tuple[QueuedInput, ...]) -> Chosen:
        raise AssertionError("nothing may be chosen beside an active run")

    found = await Claims(database).next(KEY, never, draft_inputs, now_ms=NOON + 1)
    assert found.left_over is not None and found.left_over.run_id == "run-1"
