"""Runs: claimed once, held by a fence, steered and stepped in whole commits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from openclaw.domain.entry import DeliveryContext
from openclaw.errors import VersionConflict
from openclaw.store.database import ConstraintViolated
from openclaw.store.inbox import Known
from openclaw.store.records import DeliveryDraft, EntryDraft, QueuedInput, RunRow, SessionRow, UsageRow
from openclaw.store.runs import Claimed, RunLost, RunPlan
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Accepted, Store
from tests.conformance.making import (
    DONE,
    MAIN,
    NOON,
    PLAN,
    RESETS,
    begin,
    draft_inputs,
    execute,
    note,
    present,
    queue,
    say,
    seed,
    select,
    texts,
    turn,
)

KEY = MAIN.session_key
OTHER = seed("other")


async def claim(store: Store, *admissions: int, key: str = KEY, at: int = NOON) -> Claimed | None:
    return await store.claim(key, admissions, PLAN, draft_inputs, now_ms=at)


async def waiting(store: Store, key: str = KEY) -> list[str]:
    return [item.run_id for item in await store.queued(key)]


# -- claim -----------------------------------------------------------------------------------------


@pytest.mark.spec("DB-15", "QUE-1")
async def test_a_claim_writes_run_entries_and_consumption_together(store: Store) -> None:
    admissions = [(await queue(store, f"run-{n}", f"words {n}")).admission.admission for n in range(3)]
    before = await present(store)
    plan = RunPlan("turn", "main", "owner-1", deadline=NOON + 60_000)
    claimed = await store.claim(KEY, tuple(admissions), plan, draft_inputs, now_ms=NOON + 5)
    assert claimed is not None
    assert claimed.run == RunRow(
        "run-0", KEY, "main", before.window_no, "turn", "main", "active", None, None, None, "owner-1", 1, 0,
        NOON + 5, NOON + 5, NOON + 60_000, None, None,
    )  # fmt: skip
    assert await store.run("run-0") == claimed.run
    assert [item.run_id for item in claimed.inputs] == ["run-0", "run-1", "run-2"]
    assert texts(claimed.entries) == ["words 0", "words 1", "words 2"]
    assert [(entry.seq, entry.parent_seq) for entry in claimed.entries] == [(1, None), (2, 1), (3, 2)]
    for n in range(3):
        assert await store.input_state(f"run-{n}") == Known(f"run-{n}", KEY, "consumed", "run-0")
    row = await present(store)
    assert row == claimed.session
    assert row.version > before.version
    entry = row.entry
    assert (entry.status, entry.started_at, entry.ended_at) == ("running", NOON + 5, None)
    assert (entry.last_run_id, entry.last_interaction_at) == ("run-0", NOON + 5)


async def test_a_claim_that_fails_half_way_leaves_nothing(store: Store, database: SqliteDatabase) -> None:
    first = await queue(store, "run-1")
    second = await queue(store, "run-2", "unreadable")

    def draft(session: SessionRow | None, inputs: tuple[QueuedInput, ...]) -> list[EntryDraft]:
        if "run-2" in [item.run_id for item in inputs]:
            raise ValueError("cannot be drafted")
        return draft_inputs(session, inputs)

    admissions = (first.admission.admission, second.admission.admission)
    with pytest.raises(ValueError, match="cannot be drafted"):
        await store.claim(KEY, admissions, PLAN, draft, now_ms=NOON)
    assert await waiting(store) == ["run-1", "run-2"]
    assert await store.run("run-1") is None
    assert await select(database, "SELECT count(*) FROM entries") == [(0,)]
    assert (await present(store)).entry.status is None


@pytest.mark.spec("QUE-1")
async def test_nothing_is_claimed_while_a_run_is_active(store: Store) -> None:
    active = await begin(store, "run-1")
    second = await queue(store, "run-2")
    assert await claim(store, second.admission.admission) is None
    assert await waiting(store) == ["run-2"]
    await store.finish(active.run, (), DONE, now_ms=NOON)
    claimed = await claim(store, second.admission.admission)
    assert claimed is not None
    assert claimed.run.run_id == "run-2"


async def test_cancelled_or_consumed_inputs_start_nothing(store: Store) -> None:
    first = await queue(store, "run-1")
    await store.cancel(KEY, "run-1")
    assert await claim(store, first.admission.admission) is None
    assert await claim(store) is None
    assert await claim(store, 999) is None
    assert await store.run("run-1") is None
    done = await turn(store, "run-2")
    assert await claim(store, done.run.started_at) is None
    assert (await store.unfinished()).runs == ()


@pytest.mark.spec("QUE-6")
async def test_the_first_input_that_still_waits_names_the_run(store: Store) -> None:
    admissions = [(await queue(store, f"run-{n}")).admission.admission for n in range(3)]
    await store.cancel(KEY, "run-0")
    claimed = await claim(store, *admissions)
    assert claimed is not None
    assert claimed.run.run_id == "run-1"
    assert [item.run_id for item in claimed.inputs] == ["run-1", "run-2"]
    assert await store.input_state("run-0") == Known("run-0", KEY, "cancelled", None)
    assert await store.input_state("run-2") == Known("run-2", KEY, "consumed", "run-1")


async def test_a_session_claims_its_own_inputs_only(store: Store) -> None:
    await queue(store, "run-1")
    foreign = await queue(store, "run-2", to=OTHER)
    assert await claim(store, foreign.admission.admission) is None
    assert await store.run("run-2") is None
    assert await waiting(store, OTHER.session_key) == ["run-2"]
    mixed = await store.queued(KEY)
    claimed = await claim(store, foreign.admission.admission, mixed[0].admission)
    assert claimed is not None
    assert claimed.run.run_id == "run-1"
    assert [item.run_id for item in claimed.inputs] == ["run-1"]
    assert await waiting(store, OTHER.session_key) == ["run-2"]


@pytest.mark.spec("LIFE-12")
@pytest.mark.parametrize(("source", "expected"), [("cli", NOON + 9), ("heartbeat", NOON)])
async def test_only_people_refresh_the_session_when_a_run_begins(
    store: Store, source: str, expected: int
) -> None:
    await turn(store, "run-1")
    new = msgspec.structs.replace(say("run-2"), source=source)
    taken = await store.accept(new, RESETS, session_id="x", now_ms=NOON)
    assert isinstance(taken, Accepted)
    claimed = await claim(store, taken.admission.admission, at=NOON + 9)
    assert claimed is not None
    assert claimed.session.entry.last_interaction_at == expected
    assert claimed.session.entry.updated_at == NOON + 9


@pytest.mark.spec("QUE-1")
async def test_many_claimers_get_one_run(store: Store, database: SqliteDatabase) -> None:
    admission = (await queue(store, "run-1")).admission.admission
    outcomes = await asyncio.gather(*(claim(store, admission) for _ in range(20)))
    assert sum(outcome is not None for outcome in outcomes) == 1
    assert await select(database, "SELECT count(*) FROM runs") == [(1,)]
    assert await select(database, "SELECT count(*) FROM entries") == [(1,)]


_INSERT_RUN = """
INSERT INTO runs (run_id, session_key, agent_id, window_no, kind, lane, state, outcome, owner, fence, resumes,
  started_at, last_progress)
VALUES (?, ?, 'main', 1, 'turn', 'main', ?, ?, 'x', 1, 0, 0, 0)"""


@pytest.mark.spec("QUE-1")
async def test_the_database_allows_one_active_run_per_session(store: Store, database: SqliteDatabase) -> None:
    await begin(store, "run-1")
    with pytest.raises(ConstraintViolated, match=r"runs\.session_key"):
        await execute(database, _INSERT_RUN, "run-2", KEY, "active", None)
    await execute(database, _INSERT_RUN, "run-3", KEY, "ended", "ok")
    await execute(database, _INSERT_RUN, "run-4", OTHER.session_key, "active", None)
    with pytest.raises(ConstraintViolated):
        await execute(database, "UPDATE runs SET state = 'active', outcome = NULL WHERE run_id = 'run-3'")
    assert [run.run_id for run in (await store.unfinished()).runs] == ["run-4", "run-1"]


# -- a run in progress -----------------------------------------------------------------------------


@pytest.mark.spec("QUE-2", "QUE-5", "DB-15")
async def test_steered_inputs_join_the_running_turn(store: Store) -> None:
    active = await begin(store, "run-1", "go")
    admissions = [(await queue(store, f"run-{n}", f"also {n}")).admission.admission for n in (2, 3, 4)]
    await store.cancel(KEY, "run-3")
    entries = await store.absorb(active.run, tuple(admissions), draft_inputs, now_ms=NOON + 7)
    assert texts(entries) == ["also 2", "also 4"]
    assert [entry.run_id for entry in entries] == ["run-2", "run-4"]
    assert [(entry.seq, entry.parent_seq) for entry in entries] == [(2, 1), (3, 2)]
    assert await store.input_state("run-4") == Known("run-4", KEY, "consumed", "run-1")
    assert await waiting(store) == []
    run = await store.run("run-1")
    assert run == msgspec.structs.replace(active.run, last_progress=NOON + 7)
    assert await store.absorb(active.run, tuple(admissions), draft_inputs, now_ms=NOON + 8) == ()
    assert (await present(store)).last_seq == 3


async def test_steering_nothing_in_is_no_progress(store: Store) -> None:
    """A run that is taken over again and again must not look alive because it asks for inputs."""
    await begin(store, "run-1", "go")
    late = await queue(store, "run-2", "late")
    await store.cancel(KEY, "run-2")
    taken = await store.take_over("run-1", "owner-2", now_ms=NOON + 5)
    assert taken is not None and taken.resumes == 1
    before = await present(store)
    assert await store.absorb(taken, (late.admission.admission,), draft_inputs, now_ms=NOON + 9) == ()
    assert await store.absorb(taken, (), draft_inputs, now_ms=NOON + 9) == ()
    assert await store.run("run-1") == taken
    assert await present(store) == before
    with pytest.raises(RunLost):
        await store.absorb(msgspec.structs.replace(taken, fence=1), (), draft_inputs, now_ms=NOON + 9)
    more = await queue(store, "run-3", "more")
    entries = await store.absorb(taken, (more.admission.admission,), draft_inputs, now_ms=NOON + 10)
    assert texts(entries) == ["more"]
    going = await store.run("run-1")
    assert going is not None
    assert (going.resumes, going.last_progress) == (0, NOON + 10)
    await store.finish(taken, (), DONE, now_ms=NOON + 11)
    with pytest.raises(RunLost):
        await store.absorb(taken, (), draft_inputs, now_ms=NOON + 12)


async def test_inputs_of_another_session_are_not_steered_in(store: Store) -> None:
    active = await begin(store, "run-1")
    foreign = await queue(store, "run-2", to=OTHER)
    assert await store.absorb(active.run, (foreign.admission.admission,), draft_inputs, now_ms=NOON) == ()
    assert await waiting(store, OTHER.session_key) == ["run-2"]


async def test_a_step_keeps_messages_and_usage_together(store: Store, database: SqliteDatabase) -> None:
    active = await begin(store, "run-1", "go")
    used = UsageRow("call-1", "openai", "gpt-x", 100, 20, 5, 3, 0.25)
    drafts = (note("calling", "assistant", "run-1"), note("result", "toolResult", "run-1"))
    entries = await store.step(active.run, drafts, (used,), now_ms=NOON + 3)
    assert [(entry.seq, entry.role) for entry in entries] == [(2, "assistant"), (3, "toolResult")]
    run = await store.run("run-1")
    assert run is not None
    assert (run.state, run.last_progress, run.fence) == ("active", NOON + 3, 1)
    assert await select(database, "SELECT * FROM usage") == [
        (1, "call-1", "settled", KEY, "main", "run-1", None, "openai", "gpt-x", NOON + 3, 100, 20, 5, 3, 0.25)
    ]
    assert (await present(store)).entry.status == "running"


async def test_a_run_that_was_reset_cannot_write_into_the_new_window(
    store: Store, database: SqliteDatabase
) -> None:
    active = await begin(store, "run-1", "before")
    await store.reset_session(KEY, "reset", session_id="fresh", now_ms=NOON + 1)
    later = await queue(store, "run-2", "after", at=NOON + 2)
    used = UsageRow("call-1", "openai", "gpt-x", 1)
    with pytest.raises(VersionConflict, match="was reset in the meantime"):
        await store.step(active.run, (note("late", "assistant"),), (used,), now_ms=NOON + 3)
    with pytest.raises(VersionConflict, match="was reset in the meantime"):
        await store.absorb(active.run, (later.admission.admission,), draft_inputs, now_ms=NOON + 3)
    assert await waiting(store) == ["run-2"]
    assert await select(database, "SELECT count(*) FROM usage") == [(0,)]
    page = await store.history(KEY, 10)
    assert page is not None
    assert page.entries == ()
    assert page.active_run is not None
    assert page.active_run.last_progress == NOON


# -- the fence -------------------------------------------------------------------------------------

Write = Callable[[Store, RunRow, int], Awaitable[object]]
DELIVERY = DeliveryDraft("reply-1", DeliveryContext(channel="telegram", to="42"), b"{}", NOON + 900_000)
USED = UsageRow("call-9", "openai", "gpt-x", 1, 1)
WRITES: dict[str, Write] = {
    "absorb": lambda store, run, admission: store.absorb(run, (admission,), draft_inputs, now_ms=NOON + 50),
    "step": lambda store, run, _: store.step(run, (note("x"),), (USED,), now_ms=NOON + 50),
    "finish": lambda store, run, _: store.finish(
        run, (note("x", "assistant"),), DONE, (USED,), (DELIVERY,), now_ms=NOON + 50
    ),
}


@pytest.mark.spec("REST-2")
@pytest.mark.parametrize("how", ["taken over", "ended", "fence below", "fence above", "unknown"])
@pytest.mark.parametrize("write", WRITES)
async def test_a_lost_run_writes_nothing(
    store: Store, database: SqliteDatabase, write: str, how: str
) -> None:
    active = (await begin(store, "run-1")).run
    waits = await queue(store, "run-2")
    lost = active
    if how == "taken over":
        await store.take_over("run-1", "owner-2", now_ms=NOON + 1)
    elif how == "ended":
        await store.finish(active, (), DONE, now_ms=NOON + 1)
    elif how == "unknown":
        lost = msgspec.structs.replace(active, run_id="run-0")
    else:
        lost = msgspec.structs.replace(active, fence=active.fence + (1 if how == "fence above" else -1))
    run, row = await store.run("run-1"), await present(store)
    with pytest.raises(RunLost) as caught:
        await WRITES[write](store, lost, waits.admission.admission)
    assert caught.value.code == "RUN_LOST"
    assert "nothing was written" in caught.value.message
    assert await store.run("run-1") == run
    assert await present(store) == row
    assert await waiting(store) == ["run-2"]
    for table in ("usage", "outbox"):
        assert await select(database, f"SELECT count(*) FROM {table}") == [(0,)]


@pytest.mark.spec("REST-2", "REST-3")
async def test_taking_over_raises_the_fence_and_progress_clears_the_count(store: Store) -> None:
    first = (await begin(store, "run-1")).run
    second = await store.take_over("run-1", "owner-2", now_ms=NOON + 10)
    assert second == msgspec.structs.replace(
        first, owner="owner-2", fence=2, resumes=1, last_progress=NOON + 10
    )
    third = await store.take_over("run-1", "owner-3", now_ms=NOON + 20)
    assert third is not None
    assert (third.owner, third.fence, third.resumes) == ("owner-3", 3, 2)
    with pytest.raises(RunLost):
        assert second is not None
        await store.step(second, (note("stale"),), (), now_ms=NOON + 30)
    await store.step(third, (note("alive", "assistant"),), (), now_ms=NOON + 30)
    run = await store.run("run-1")
    assert run == msgspec.structs.replace(third, resumes=0, last_progress=NOON + 30)
    fourth = await store.take_over("run-1", "owner-4", now_ms=NOON + 40)
    assert fourth is not None
    assert (fourth.fence, fourth.resumes) == (4, 1)


async def test_only_an_active_run_can_be_taken_over(store: Store) -> None:
    done = await turn(store, "run-1")
    assert await store.take_over("run-1", "owner-2", now_ms=NOON + 1) is None
    assert await store.take_over("run-0", "owner-2", now_ms=NOON + 1) is None
    assert await store.run("run-1") == done.run


@pytest.mark.spec("REST-1", "REST-2", "QUE-8")
async def test_the_rows_say_what_is_unfinished(store: Store) -> None:
    names = ("c", "a", "b", "d")
    await begin(store, "run-c", to=seed("c"), at=NOON + 2)
    await begin(store, "run-a", to=seed("a"), at=NOON + 1)
    done = await begin(store, "run-d", to=seed("d"), at=NOON)
    await store.finish(done.run, (), DONE, now_ms=NOON + 3)
    for name in names:
        await queue(store, f"wait-{name}", to=seed(name), at=NOON + 4)
    await queue(store, "wait-c-again", to=seed("c"), at=NOON + 5)
    await store.cancel("agent:main:b")
    unfinished = await store.unfinished()
    assert [run.run_id for run in unfinished.runs] == ["run-a", "run-c"]
    assert unfinished.waiting == ("agent:main:c", "agent:main:a", "agent:main:d")
    assert await store.active_run("agent:main:a") == unfinished.runs[0]
    assert await store.active_run("agent:main:d") is None
