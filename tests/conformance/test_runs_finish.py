"""The end of a run: one commit for its last words, what it used, what is delivered and what is counted."""

from __future__ import annotations

import msgspec
import pytest

from openclaw.domain.entry import DeliveryContext
from openclaw.store import runs
from openclaw.store.database import ConstraintViolated
from openclaw.store.records import DeliveryDraft, RunOutcome, SessionRow, UsageRow
from openclaw.store.runs import RunEnd, RunLost
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance.making import (
    DONE,
    MAIN,
    NOON,
    begin,
    create,
    note,
    present,
    queue,
    seed,
    select,
    texts,
    turn,
)

KEY = MAIN.session_key
ROUTE = DeliveryContext(channel="telegram", to="42", account_id="bot", thread_id="7")
USED = RunEnd(
    "ok",
    "stop",
    input_tokens=100,
    output_tokens=30,
    cache_read=20,
    cache_write=5,
    context_tokens=200_000,
    provider="openai",
    model="gpt-x",
)


def counters(row: SessionRow) -> tuple[object, ...]:
    entry = row.entry
    return (
        entry.input_tokens, entry.output_tokens, entry.total_tokens, entry.total_tokens_fresh,
        entry.context_tokens, entry.cache_read, entry.cache_write, entry.model_provider, entry.model,
    )  # fmt: skip


def call(call_id: str, cost_usd: float | None, tokens: int = 10) -> UsageRow:
    return UsageRow(call_id, "openai", "gpt-x", tokens, 1, 0, 0, cost_usd)


@pytest.mark.spec("LOOP-6", "OWN-3")
async def test_a_finished_run_is_one_commit(store: Store, database: SqliteDatabase) -> None:
    active = await begin(store, "run-1", "question")
    delivery = DeliveryDraft("run-1:reply", ROUTE, b'{"text":"answer"}', NOON + 900_000)
    finished = await store.finish(
        active.run,
        (note("answer", "assistant", "run-1"),),
        USED,
        (call("call-1", 0.5),),
        (delivery,),
        now_ms=NOON + 1234,
    )
    assert finished.run == msgspec.structs.replace(
        active.run,
        state="ended",
        outcome="ok",
        stop_reason="stop",
        last_progress=NOON + 1234,
        ended_at=NOON + 1234,
        reply_seq=2,
    )
    assert await store.run("run-1") == finished.run
    assert texts(finished.entries) == ["answer"]
    assert not finished.more_waiting
    assert finished.session == await present(store)
    entry = finished.session.entry
    assert (entry.status, entry.started_at, entry.ended_at) == ("done", NOON, NOON + 1234)
    assert (entry.runtime_ms, entry.system_sent, entry.aborted_last_run) == (1234, True, False)
    # What counts as context in use is the prompt of the last call: input and both sides of the cache.
    assert counters(finished.session) == (100, 30, 125, True, 200_000, 20, 5, "openai", "gpt-x")
    assert entry.estimated_cost_usd == 0.5
    (sent,) = await store.deliveries_due("telegram", now_ms=NOON)
    assert (sent.idempotency_key, sent.session_key, sent.run_id) == ("run-1:reply", KEY, "run-1")
    assert (sent.target, sent.account_id, sent.thread_id, sent.body) == (
        "42",
        "bot",
        "7",
        b'{"text":"answer"}',
    )
    assert (await store.unfinished()).runs == ()
    assert await select(database, "SELECT call_id, run_id FROM usage") == [("call-1", "run-1")]


@pytest.mark.parametrize(
    ("outcome", "status", "aborted"),
    [
        ("ok", "done", False),
        ("error", "failed", False),
        ("aborted", "killed", True),
        ("timeout", "timeout", False),
        ("interrupted", "failed", False),
    ],
)
@pytest.mark.spec("LOOP-4", "REST-2")
async def test_the_outcome_becomes_the_status(
    store: Store, outcome: RunOutcome, status: str, aborted: bool
) -> None:
    active = await begin(store, "run-1")
    end = RunEnd(outcome, "some-reason", "some error")
    finished = await store.finish(active.run, (), end, now_ms=NOON + 1)
    assert (finished.run.outcome, finished.run.stop_reason, finished.run.error) == (
        outcome,
        "some-reason",
        "some error",
    )
    assert finished.run.reply_seq is None
    assert finished.session.entry.status == status
    assert finished.session.entry.aborted_last_run is aborted
    again = await turn(store, "run-2", at=NOON + 2)
    assert not again.session.entry.aborted_last_run


@pytest.mark.spec("LOOP-6")
@pytest.mark.parametrize("outcome", ["error", "aborted", "timeout", "interrupted"])
async def test_a_failed_run_keeps_the_previous_counters(store: Store, outcome: RunOutcome) -> None:
    first = await begin(store, "run-1")
    good = await store.finish(first.run, (), USED, now_ms=NOON + 1)
    second = await begin(store, "run-2", at=NOON + 2)
    end = RunEnd(outcome, "error", "no", 7, 7, 7, 7, 7, "other", "other-model")
    bad = await store.finish(second.run, (), end, now_ms=NOON + 3)
    assert counters(bad.session) == counters(good.session)
    assert counters(bad.session) == (100, 30, 125, True, 200_000, 20, 5, "openai", "gpt-x")
    assert bad.session.entry.runtime_ms == 1


@pytest.mark.spec("LOOP-6", "ENT-10")
async def test_a_run_that_reports_no_tokens_keeps_the_known_ones(store: Store) -> None:
    first = await begin(store, "run-1")
    end = msgspec.structs.replace(USED, cache_read=None, cache_write=None)
    good = await store.finish(first.run, (), end, now_ms=NOON + 1)
    assert counters(good.session) == (100, 30, 100, True, 200_000, None, None, "openai", "gpt-x")
    second = await begin(store, "run-2", at=NOON + 2)
    silent = RunEnd("ok", "stop", output_tokens=9, cache_read=9, provider="local", model="small")
    after = await store.finish(second.run, (), silent, now_ms=NOON + 3)
    assert counters(after.session) == (100, 30, 100, True, 200_000, None, None, "local", "small")
    third = await begin(store, "run-3", at=NOON + 4)
    nothing = await store.finish(third.run, (), RunEnd("ok", input_tokens=0), now_ms=NOON + 5)
    assert nothing.session.entry.input_tokens == 0
    assert nothing.session.entry.total_tokens == 0
    assert nothing.session.entry.output_tokens == 30


@pytest.mark.spec("LOOP-6", "ENT-10")
@pytest.mark.parametrize("outcome", ["ok", "error"])
async def test_what_was_never_counted_stays_unknown(
    store: Store, database: SqliteDatabase, outcome: RunOutcome
) -> None:
    first = await begin(store, "run-1")
    finished = await store.finish(first.run, (), RunEnd(outcome, output_tokens=3), now_ms=NOON)
    assert counters(finished.session) == (None,) * 9
    second = await begin(store, "run-2")
    await store.finish(second.run, (), USED, now_ms=NOON)
    assert await select(database, "SELECT total_tokens_fresh, system_sent FROM sessions") == [(1, 1)]


async def test_the_last_thing_the_assistant_said_is_the_reply(store: Store) -> None:
    active = await begin(store, "run-1")
    drafts = (note("one", "assistant"), note("two", "assistant"), note("result", "toolResult"))
    finished = await store.finish(active.run, drafts, DONE, now_ms=NOON)
    assert finished.run.reply_seq == 3
    assert [entry.seq for entry in finished.entries] == [2, 3, 4]


async def test_a_finish_says_whether_more_waits(store: Store) -> None:
    active = await begin(store, "run-1")
    await queue(store, "run-2")
    assert (await store.finish(active.run, (), DONE, now_ms=NOON)).more_waiting
    assert [item.run_id for item in await store.queued(KEY)] == ["run-2"]


# -- money -----------------------------------------------------------------------------------------


async def test_the_cost_of_a_run_is_the_cost_of_all_its_calls(store: Store, database: SqliteDatabase) -> None:
    active = await begin(store, "run-1")
    await store.step(active.run, (note("calls a tool", "assistant"),), (call("a", 0.25),), now_ms=NOON)
    await store.step(active.run, (note("another", "assistant"),), (call("b", None),), now_ms=NOON)
    # The last call is handed in twice: a call is counted once, whoever reports it.
    await store.step(active.run, (), (call("c", 0.5), call("c", 0.5)), now_ms=NOON)
    last = (call("c", 0.5), call("d", 1.0))
    finished = await store.finish(active.run, (), USED, last, now_ms=NOON)
    assert finished.session.entry.estimated_cost_usd == 1.75
    assert await database.read(lambda tx: tx.row(runs.SQL["usage_totals"], (KEY,))) == (4, 40, 4, 1.75)
    second = await begin(store, "run-2")
    again = await store.finish(second.run, (), DONE, (call("e", 2.0),), now_ms=NOON)
    assert again.session.entry.estimated_cost_usd == 3.75


async def test_an_unknown_price_is_not_zero(store: Store, database: SqliteDatabase) -> None:
    active = await begin(store, "run-1")
    await store.step(active.run, (), (call("a", None),), now_ms=NOON)
    finished = await store.finish(active.run, (), DONE, (call("b", None),), now_ms=NOON)
    assert finished.session.entry.estimated_cost_usd is None
    assert await database.read(lambda tx: tx.row(runs.SQL["usage_totals"], (KEY,))) == (2, 20, 2, None)
    assert await database.read(lambda tx: tx.row(runs.SQL["usage_totals"], ("none",))) == (0, 0, 0, None)
    free = await begin(store, "run-2")
    priced = await store.finish(free.run, (), DONE, (call("c", 0.0),), now_ms=NOON)
    assert priced.session.entry.estimated_cost_usd == 0.0


async def test_a_failed_run_has_cost_as_well_and_usage_outlives_the_session(
    store: Store, database: SqliteDatabase
) -> None:
    active = await begin(store, "run-1")
    failed = await store.finish(active.run, (), RunEnd("error"), (call("a", 0.5),), now_ms=NOON)
    assert failed.session.entry.estimated_cost_usd == 0.5
    assert await store.delete_session(KEY, now_ms=NOON)
    assert await select(database, "SELECT call_id, session_key, cost_usd FROM usage") == [("a", KEY, 0.5)]


# -- what goes wrong -------------------------------------------------------------------------------


async def test_a_finish_that_cannot_be_written_leaves_the_run_as_it_was(
    store: Store, database: SqliteDatabase
) -> None:
    active = await begin(store, "run-1")
    row = await present(store)
    nowhere = DeliveryDraft("reply", DeliveryContext(channel="telegram"), b"{}", NOON)
    with pytest.raises(ConstraintViolated, match=r"outbox\.target"):
        await store.finish(
            active.run, (note("lost", "assistant"),), USED, (call("a", 1.0),), (nowhere,), now_ms=NOON + 1
        )
    assert await store.run("run-1") == active.run
    assert await present(store) == row
    assert await select(database, "SELECT count(*) FROM usage") == [(0,)]
    finished = await store.finish(active.run, (note("kept", "assistant"),), USED, now_ms=NOON + 1)
    assert texts(finished.entries) == ["kept"]


@pytest.mark.spec("LIFE-21", "LIFE-22")
async def test_a_run_that_ends_after_a_reset_leaves_the_new_window_clean(
    store: Store, database: SqliteDatabase
) -> None:
    first = await begin(store, "run-0")
    await store.finish(first.run, (), USED, now_ms=NOON)
    active = await begin(store, "run-1", "old words", at=NOON + 1)
    fresh, _ = await store.reset_session(KEY, "reset", session_id="fresh", now_ms=NOON + 2)
    delivery = DeliveryDraft("run-1:reply", ROUTE, b"{}", NOON + 900_000)
    end = msgspec.structs.replace(USED, outcome="aborted")
    finished = await store.finish(
        active.run, (note("late words", "assistant"),), end, (call("a", 1.0),), (delivery,), now_ms=NOON + 3
    )
    assert (finished.run.state, finished.run.outcome) == ("ended", "aborted")
    assert (finished.entries, finished.run.reply_seq) == ((), None)
    row = await present(store)
    assert finished.session == row
    assert row.entry == fresh.entry
    assert (row.entry.system_sent, row.entry.aborted_last_run, row.entry.total_tokens) == (False, False, 0)
    assert (row.last_seq, row.message_count, row.last_text) == (0, 0, None)
    # What was used and what is to be delivered does not depend on the window.
    assert await select(database, "SELECT call_id FROM usage") == [("a",)]
    assert len(await store.deliveries_due("telegram", now_ms=NOON)) == 1
    later = await begin(store, "run-2", "new words", at=NOON + 4)
    assert texts(later.entries) == ["new words"]
    assert later.entries[0].seq == 1


@pytest.mark.spec("LIFE-19", "LIFE-24")
async def test_deleting_a_session_ends_its_run(store: Store) -> None:
    earlier = await turn(store, "run-0")
    active = await begin(store, "run-1")
    bystander = await begin(store, "run-2", to=seed("bystander"))
    assert await store.delete_session(KEY, now_ms=NOON + 5)
    run = await store.run("run-1")
    assert run == msgspec.structs.replace(
        active.run,
        state="ended",
        outcome="aborted",
        stop_reason="deleted",
        last_progress=NOON + 5,
        ended_at=NOON + 5,
    )
    assert await store.run("run-0") == earlier.run
    for write in (
        store.finish(active.run, (note("late", "assistant"),), USED, now_ms=NOON + 6),
        store.step(active.run, (note("late", "assistant"),), (), now_ms=NOON + 6),
    ):
        with pytest.raises(RunLost):
            await write
    assert [left.run_id for left in (await store.unfinished()).runs] == ["run-2"]
    # The next message recreates the session, and its run can begin.
    again = await begin(store, "run-3", "hello again", at=NOON + 7)
    assert again.run.run_id == "run-3"
    with pytest.raises(RunLost):
        await store.finish(active.run, (note("later still", "assistant"),), USED, now_ms=NOON + 8)
    page = await store.history(KEY, 10)
    assert page is not None
    assert texts(page.entries) == ["hello again"]
    done = await store.finish(bystander.run, (), DONE, now_ms=NOON + 9)
    assert done.session.entry.status == "done"


async def test_a_session_that_is_created_by_hand_runs_like_any_other(store: Store) -> None:
    await create(store, MAIN, thinking_level="low")
    finished = await turn(store, "run-1")
    assert finished.session.entry.thinking_level == "low"
    assert finished.session.entry.session_id == f"{KEY}-window"
