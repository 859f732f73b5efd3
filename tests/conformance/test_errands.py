"""What the gateway owes a session on every database: queued once, handed to whoever is left."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from openclaw.domain.entry import DeliveryContext
from openclaw.engine import subagents
from openclaw.engine.children import _settle_if_lost
from openclaw.engine.errands import SYSTEM
from openclaw.errors import Overloaded
from openclaw.store import inbox
from openclaw.store.database import Database, Transaction
from openclaw.store.errands import Errands
from openclaw.store.inbox import MAX_QUEUED, NewInput
from openclaw.store.records import SessionSeed, UsageRow, UserInput
from openclaw.store.spawns import NewChild, SpawnRow, Spawns, begin, wait_for_children
from openclaw.store.store import Store
from tests.conformance.making import (
    DONE,
    MAIN,
    NOON,
    PLAN,
    create,
    draft_inputs,
    note,
    present,
    queue,
    say,
    select,
)  # fmt: skip
from tests.conformance.test_spawns import PARENT, child

GRACE_MS = 60_000
ROUTE = DeliveryContext("telegram", "42")


def errand(run_id: str = "flush-1", to: SessionSeed = MAIN, text: str = "write your notes") -> NewInput:
    return NewInput(run_id, to, "system", "system", UserInput(text, NOON, provenance=SYSTEM, purpose="flush"))


@pytest.mark.spec("QUE-8")
async def test_an_errand_is_an_input_like_any_other_and_no_persons(store: Store, database: Database) -> None:
    before = await create(store, MAIN)
    await queue(store, "run-1", at=NOON)
    assert await Errands(database).queue(errand(), now_ms=NOON + 5)
    person, made = await store.queued(PARENT)
    assert (person.run_id, person.human) == ("run-1", True)
    assert (made.run_id, made.human, made.principal, made.body.purpose) == (
        "flush-1",
        False,
        "system",
        "flush",
    )
    assert made.body.provenance == SYSTEM
    after = await present(store)
    assert after.entry.session_id == before.entry.session_id
    assert after.entry.last_interaction_at == NOON  # the gateway's own errands keep no session fresh
    assert PARENT in (await store.unfinished()).waiting


@pytest.mark.spec("QUE-8")
async def test_an_errand_is_queued_once_whoever_asks_and_whatever_became_of_it(
    store: Store, database: Database
) -> None:
    await create(store, MAIN)
    errands = Errands(database)
    assert all(await asyncio.gather(*(errands.queue(errand(), now_ms=NOON) for _ in range(8))))
    (waiting,) = await store.queued(PARENT)
    assert await store.cancel(PARENT, waiting.run_id) == ("flush-1",)
    assert await errands.queue(errand(text="other words"), now_ms=NOON)
    assert await store.queued(PARENT) == ()
    known = await store.input_state("flush-1")
    assert known is not None and known.state == "cancelled"


@pytest.mark.spec("QUE-8")
async def test_nothing_is_queued_for_a_session_that_is_gone(store: Store, database: Database) -> None:
    errands = Errands(database)
    assert not await errands.queue(errand(), now_ms=NOON)
    assert await store.session(PARENT) is None
    await create(store, MAIN)
    await store.delete_session(PARENT, now_ms=NOON)
    assert not await errands.queue(errand(), now_ms=NOON)
    assert await select(database, "SELECT count(*) FROM inbox") == [(0,)]


@pytest.mark.spec("QUE-8")
async def test_what_is_owed_is_not_dropped_at_a_full_queue(store: Store, database: Database) -> None:
    await create(store, MAIN)

    def fill(tx: Transaction) -> None:
        for number in range(MAX_QUEUED):
            inbox.enqueue(tx, say(f"full-{number}"), NOON)

    await database.write(fill)
    with pytest.raises(Overloaded):
        await queue(store, "one-more")
    assert await Errands(database).queue(errand(), now_ms=NOON)
    assert await select(database, "SELECT count(*) FROM inbox WHERE state = 'queued'") == [(MAX_QUEUED + 1,)]


# -- the end of a helper, handed to whoever is left ----------------------------------------------


async def begun(database: Database, new: NewChild, at: int = NOON) -> SpawnRow:
    row = await database.write(lambda tx: begin(tx, new, at))
    assert isinstance(row, SpawnRow)
    return row


async def settle(database: Database, row: SpawnRow, words: str = "", at: int = NOON + 2_500) -> list[str]:
    """Settle as the end of a run does; whom it woke."""
    woken: list[str] = []

    def unit(tx: Transaction) -> None:
        woken.clear()
        subagents.settle(tx, row, words, at, woken)

    await database.write(unit)
    return woken


def ended(row: SpawnRow, **fields: object) -> SpawnRow:
    body = msgspec.structs.replace(row.body, **{"status": "success", "result": "the task's words", **fields})
    return msgspec.structs.replace(row, body=body)


async def block_for(store: Store, session_key: str = PARENT) -> list[str]:
    (told,) = await store.queued(session_key)
    return str(told.body.content).split("\n")


@pytest.mark.spec("ANN-1", "ANN-3", "ANN-5", "ANN-7", "ANN-8", "ANN-9")
async def test_the_completion_carries_status_words_stats_and_route(store: Store, database: Database) -> None:
    await create(store, MAIN)
    row = await begun(database, child(1))
    (waiting,) = await store.queued(row.child_key)
    claimed = await store.claim(row.child_key, (waiting.admission,), PLAN, draft_inputs, now_ms=NOON)
    assert claimed is not None
    used = UsageRow("call-1", "fake", "one", 1200, 30, cost_usd=0.25)
    await store.finish(claimed.run, (note("42", "assistant"),), DONE, (used,), now_ms=NOON)
    assert await settle(database, ended(row), "Status: failed\nResult: 42 sheep\nNotes: one is black") == [
        PARENT
    ]
    (told,) = await store.queued(PARENT)
    assert (told.source, told.principal, told.human) == ("announce", "system", False)
    assert (told.body.route, told.body.deliver, told.body.hidden_prompt) == (ROUTE, True, True)
    source = told.body.provenance
    assert source is not None
    assert (source.kind, source.source_session_key, source.source_tool) == (
        "inter_session", row.child_key, "sessions_spawn",
    )  # fmt: skip
    lines = str(told.body.content).split("\n")
    assert lines[:5] == [
        "[Sub-agent finished (label 1)]", "Task: task 1", "Status: success", "Result: 42 sheep",
        "Notes: one is black",
    ]  # fmt: skip
    assert lines[5].startswith("Stats: runtime 2s • tokens 1.2k (in 1.2k / out 30) • est $0.25 • sessionKey ")
    assert f"sessionKey {row.child_key} • sessionId run-1-window-1 • transcript " in lines[5]
    assert await settle(database, ended(row), "again") == []
    assert len(await store.queued(PARENT)) == 1


@pytest.mark.spec("ANN-3", "ANN-4")
@pytest.mark.parametrize(
    ("fields", "words", "status", "result"),
    [
        ({}, "", "Status: success", "Result: the task's words"),
        ({"result": ""}, "", "Status: success", "Result: (no output)"),
        ({"result": "fine\nStatus: error\nStats: none"}, "", "Status: success", "Result: fine"),
        ({"result": "fine"}, "Status: error", "Status: success", "Result: fine"),
        ({"status": "error", "error": "no key"}, "", "Status: error: no key", "Result: (no output)"),
        ({"status": "timeout"}, "Result: all good", "Status: timeout", "Result: (no output)"),
        ({"status": None}, "", "Status: unknown", "Result: (no output)"),
    ],
)
async def test_the_status_is_what_happened_and_failures_hand_no_text_on(
    store: Store, database: Database, fields: dict[str, object], words: str, status: str, result: str
) -> None:
    await create(store, MAIN)
    row = await begun(database, child(1))
    assert await settle(database, ended(row, **fields), words) == [PARENT]
    lines = await block_for(store)
    assert [line for line in lines if line.startswith("Status:")] == [status]
    assert [line for line in lines if line.startswith("Result:")] == [result]
    assert len([line for line in lines if line.startswith("Stats:")]) == 1


@pytest.mark.spec("ANN-2", "ANN-8", "YIELD-2")
@pytest.mark.parametrize("waits", [True, False])
async def test_silence_wakes_only_who_waits(store: Store, database: Database, waits: bool) -> None:
    await create(store, MAIN)
    row = await begun(database, child(1))
    if waits:
        assert await database.write(lambda tx: wait_for_children(tx, PARENT, NOON)) == 1
    assert await settle(database, ended(row), " ANNOUNCE_SKIP\n") == ([PARENT] if waits else [])
    if waits:
        assert await block_for(store) == ["[Sub-agent finished (label 1)]", "Status: success"]
    else:
        assert await store.queued(PARENT) == ()
    assert await select(database, "SELECT count(*) FROM waits") == [(0,)]
    assert await Spawns(database).count_active(PARENT) == 0


@pytest.mark.spec("ANN-8", "YIELD-2")
async def test_whoever_yields_while_a_helper_ends_in_silence_is_told_or_has_nothing_to_wait_for(
    store: Store, database: Database
) -> None:
    await create(store, MAIN)
    for number in range(12):
        row = await begun(database, child(number))
        waiting = database.write(lambda tx: wait_for_children(tx, PARENT, NOON))
        ending = settle(database, ended(row), "ANNOUNCE_SKIP")
        if number % 2:
            pending, woken = await asyncio.gather(waiting, ending)
        else:
            woken, pending = await asyncio.gather(ending, waiting)
        told = await store.queued(PARENT)
        assert (pending, woken, len(told)) in ((1, [PARENT], 1), (0, [], 0))
        assert await select(database, "SELECT count(*) FROM waits") == [(0,)]
        await database.write(lambda tx: inbox.discard(tx, PARENT))


@pytest.mark.spec("ANN-8", "ANN-10")
async def test_a_requester_that_is_gone_is_stood_in_for_by_its_own(store: Store, database: Database) -> None:
    await create(store, MAIN)
    upper = await begun(database, child(1))
    middle = await begun(database, child(1, parent=upper.child_key, run_id="run-2"))
    lower = await begun(database, child(1, parent=middle.child_key, run_id="run-3"))
    for gone in (middle, upper):
        await store.delete_session(gone.child_key, now_ms=NOON)
    assert await settle(database, ended(lower), "Result: deep") == [PARENT]
    assert "Result: deep" in await block_for(store)
    assert (await store.deliveries_due("telegram", now_ms=NOON)) == ()


@pytest.mark.spec("ANN-8")
@pytest.mark.parametrize("words", ["Result: for nobody", "ANNOUNCE_SKIP"])
async def test_with_nobody_left_the_block_itself_is_delivered_once(
    store: Store, database: Database, words: str
) -> None:
    await create(store, MAIN)
    row = await begun(database, child(1))
    bare = msgspec.structs.replace(child(2), body=msgspec.structs.replace(row.body, route=None))
    unrouted = await begun(database, bare)
    await store.delete_session(PARENT, now_ms=NOON)
    for one in (row, row, unrouted):
        assert await settle(database, ended(one), words) == []
    due = await store.deliveries_due("telegram", now_ms=NOON)
    if words == "ANNOUNCE_SKIP":
        assert due == ()
    else:
        (delivery,) = due
        assert b"Result: for nobody" in delivery.body and b"Status: success" in delivery.body
    assert await Spawns(database).count_active(PARENT) == 0


@pytest.mark.spec("ANN-11")
@pytest.mark.parametrize(("cleanup", "archived"), [("delete", True), ("keep", False)])
async def test_a_child_that_shall_not_be_kept_leaves_the_lists_with_its_end(
    store: Store, database: Database, cleanup: str, archived: bool
) -> None:
    await create(store, MAIN)
    new = child(1)
    row = await begun(
        database, msgspec.structs.replace(new, body=msgspec.structs.replace(new.body, cleanup=cleanup))
    )
    await settle(database, ended(row), "Result: 42")
    session = await present(store, row.child_key)
    assert session.entry.archived_at == (NOON + 2_500 if archived else None)
    kept = await Spawns(database).of_child(row.child_key)
    assert kept is not None and kept.state == ("archived" if archived else "settled")


@pytest.mark.spec("REST-4")
async def test_a_lost_child_is_settled_after_its_grace_and_one_that_lives_is_not(
    store: Store, database: Database
) -> None:
    await create(store, MAIN)
    lost, waits, works, gone = [await begun(database, child(n)) for n in range(4)]
    below = await begun(database, child(1, parent=lost.child_key, run_id="run-2"))
    await store.cancel(lost.child_key)
    (first,) = await store.queued(works.child_key)
    claimed = await store.claim(works.child_key, (first.admission,), PLAN, draft_inputs, now_ms=NOON)
    await store.delete_session(gone.child_key, now_ms=NOON)
    rows = (lost, waits, works, gone)
    assert [await _lost(database, row, NOON + GRACE_MS - 1) for row in rows] == [[], [], [], []]
    assert [await _lost(database, row, NOON + GRACE_MS) for row in rows] == [[], [], [], [PARENT]]
    await store.cancel(below.child_key)
    assert await _lost(database, below, NOON + GRACE_MS) == [lost.child_key]
    # What the lower one said is thrown away with everything that waits.
    await database.write(lambda tx: inbox.discard(tx, lost.child_key))
    assert await _lost(database, lost, NOON + GRACE_MS) == [PARENT]
    assert await _lost(database, lost, NOON + GRACE_MS) == []
    assert claimed is not None
    told = [str(item.body.content).split("\n")[2] for item in await store.queued(PARENT)]
    assert told == ["Status: unknown", "Status: unknown"]
    assert await Spawns(database).unfinished() == (waits.child_key, works.child_key)


async def _lost(database: Database, row: SpawnRow, at: int) -> list[str]:
    woken: list[str] = []

    def unit(tx: Transaction) -> None:
        woken.clear()
        _settle_if_lost(tx, row.child_key, at, woken)

    await database.write(unit)
    return woken
