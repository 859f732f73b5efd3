"""The registry of helpers on every database: begun once, counted where they are made, settled once."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial

import msgspec
import pytest

from openclaw.domain.entry import DeliveryContext, SessionEntry
from openclaw.errors import StoreError
from openclaw.store import inbox, spawns
from openclaw.store.database import Database, Transaction
from openclaw.store.inbox import NewInput
from openclaw.store.records import EntryDraft, SessionSeed, UserInput
from openclaw.store.runs import RunLost
from openclaw.store.spawns import NewChild, NotBegun, SpawnBody, SpawnRow, Spawns, TooMany
from openclaw.store.store import Store
from tests.conformance.making import (
    DONE,
    MAIN,
    NOON,
    PLAN,
    begin,
    create,
    draft_inputs,
    note,
    present,
    seed,
    select,
    texts,
)

PARENT = MAIN.session_key
CALLERS = 8


def child(
    number: int, *, parent: str = PARENT, most: int = 5, run_id: str = "run-1", **fields: object
) -> NewChild:
    """The helper of one tool call: the same number is the same call."""
    made = SessionSeed(f"agent:main:subagent:{run_id}-{number}", "main", spawned_by=parent)
    first = NewInput(
        f"{run_id}-child-{number}", made, "inter_session", f"session:{parent}",
        UserInput(f"[Subagent Task]\n\ntask {number}", NOON),
    )  # fmt: skip
    entry = SessionEntry(
        session_id="", updated_at=NOON, spawned_by=parent, spawn_depth=1, subagent_role="leaf",
        display_name=f"label {number}", thinking_level="high", model_override="one", provider_override="fake",
    )  # fmt: skip
    body = SpawnBody(f"task {number}", label=f"label {number}", route=DeliveryContext("telegram", "42"))
    new = NewChild(
        made, f"{run_id}-window-{number}", entry, first, parent, run_id, f"call-{number}", body, most
    )
    return msgspec.structs.replace(new, **fields)


async def spawn(database: Database, new: NewChild, at: int = NOON) -> SpawnRow | TooMany | NotBegun:
    return await database.write(lambda tx: spawns.begin(tx, new, at))


async def spawned(database: Database, *numbers: int) -> list[SpawnRow]:
    found = []
    for number in numbers:
        row = await spawn(database, child(number, most=200), NOON + number)
        assert isinstance(row, SpawnRow)
        found.append(row)
    return found


def completion(row: SpawnRow, to: SessionSeed = MAIN) -> NewInput:
    body = UserInput("[Sub-agent finished]", NOON, purpose="completion")
    return NewInput(f"{row.child_run_id}:completion", to, "announce", "system", body)


async def settle(database: Database, row: SpawnRow, *, told: bool = True, at: int = NOON + 500) -> bool:
    body = msgspec.structs.replace(row.body, status="success")
    new = completion(row) if told else None
    return await database.write(lambda tx: spawns.settle(tx, row.child_key, body, new, at))


@pytest.mark.spec("SPAWN-4", "SPAWN-5", "SPAWN-13", "VIS-5")
async def test_a_child_is_a_session_an_input_and_a_row_in_one_commit(
    store: Store, database: Database
) -> None:
    await create(store, MAIN)
    row = await spawn(database, child(1))
    assert isinstance(row, SpawnRow)
    assert row == await Spawns(database).of_child("agent:main:subagent:run-1-1")
    assert (row.state, row.created_at, row.settled_at, row.parent_key) == ("active", NOON, None, PARENT)
    assert row.body.route == DeliveryContext("telegram", "42")
    session = await present(store, row.child_key)
    entry = session.entry
    assert (entry.spawned_by, entry.spawn_depth, entry.subagent_role) == (PARENT, 1, "leaf")
    assert (entry.provider_override, entry.model_override, entry.thinking_level) == ("fake", "one", "high")
    assert entry.display_name == "label 1"
    assert entry.session_id == "run-1-window-1"
    (waiting,) = await store.queued(row.child_key)
    assert (waiting.run_id, waiting.principal, waiting.human) == ("run-1-child-1", f"session:{PARENT}", False)
    assert waiting.body.content == "[Subagent Task]\n\ntask 1"
    assert row.child_key in (await store.unfinished()).waiting


@pytest.mark.spec("REST-4")
async def test_the_same_call_again_finds_its_child(store: Store, database: Database) -> None:
    await create(store, MAIN)
    first = await spawn(database, child(1))
    again = await spawn(database, child(1, body=SpawnBody("another task"), most=1), NOON + 9)
    assert first == again
    (row,) = await select(database, "SELECT count(*) FROM spawns")
    assert row == (1,)
    assert len(await store.queued(child(1).seed.session_key)) == 1
    other_run = await spawn(database, child(1, run_id="run-2"))
    assert isinstance(other_run, SpawnRow) and other_run.child_key != child(1).seed.session_key


async def test_eight_callers_at_once_make_one_child_of_one_call(store: Store, database: Database) -> None:
    await create(store, MAIN)
    rows = await asyncio.gather(*(spawn(database, child(1)) for _ in range(CALLERS)))
    assert len({row.child_run_id for row in rows if isinstance(row, SpawnRow)}) == 1
    assert not [row for row in rows if isinstance(row, TooMany)]
    assert await select(database, "SELECT count(*) FROM spawns") == [(1,)]
    assert await select(database, "SELECT count(*) FROM inbox") == [(1,)]


@pytest.mark.spec("SPAWN-12")
@pytest.mark.parametrize("most", [1, 5, 11])
async def test_the_cap_holds_under_eight_callers(store: Store, database: Database, most: int) -> None:
    await create(store, MAIN)
    await create(store, seed("other"))

    async def storm(caller: int) -> list[SpawnRow | TooMany | NotBegun]:
        mine = (child(n, most=most, run_id=f"run-{caller}") for n in range(4))
        return [await spawn(database, new) for new in mine]

    told = [row for rows in await asyncio.gather(*map(storm, range(CALLERS))) for row in rows]
    begun = [row for row in told if isinstance(row, SpawnRow)]
    refused = [row for row in told if isinstance(row, TooMany)]
    assert (len(begun), len(refused)) == (most, CALLERS * 4 - most)
    assert {(row.active, row.most) for row in refused} == {(most, most)}
    assert await Spawns(database).count_active(PARENT) == most
    assert await select(database, "SELECT count(*) FROM inbox") == [(most,)]
    # A refused child leaves nothing behind, and another session's children do not count.
    assert await select(database, "SELECT count(*) FROM sessions WHERE spawned_by IS NOT NULL") == [(most,)]
    other = await spawn(database, child(0, parent=seed("other").session_key, most=1, run_id="other"))
    assert isinstance(other, SpawnRow)
    assert await settle(database, begun[0])
    assert isinstance(await spawn(database, child(9, most=most, run_id="later")), SpawnRow)
    assert isinstance(await spawn(database, child(10, most=most, run_id="later")), TooMany)


@pytest.mark.spec("SPAWN-16", "SPAWN-12")
async def test_a_child_is_begun_with_the_step_that_tells_of_it_or_not_at_all(
    store: Store, database: Database
) -> None:
    claimed = await begin(store, "run-1")

    def effects(tx: Transaction) -> list[EntryDraft]:
        spawns.begin(tx, child(1), NOON)
        raise StoreError("the disk is full")

    with pytest.raises(StoreError, match="disk is full"):
        await store.step(claimed.run, (), (), now_ms=NOON, effects=effects)
    stale = msgspec.structs.replace(claimed.run, fence=claimed.run.fence + 1)
    with pytest.raises(RunLost):
        await store.step(stale, (), (), now_ms=NOON, effects=lambda tx: _begun(tx, 2))
    assert await select(database, "SELECT count(*) FROM spawns") == [(0,)]
    assert await store.session(child(1).seed.session_key) is None
    kept = await store.step(claimed.run, (), (), now_ms=NOON, effects=lambda tx: _begun(tx, 3))
    assert texts(kept) == ["begun"]
    assert await Spawns(database).count_active(PARENT) == 1


def _begun(tx: Transaction, number: int) -> list[EntryDraft]:
    spawns.begin(tx, child(number), NOON)
    return [note("begun", "toolResult", "run-1")]


@pytest.mark.spec("ANN-8", "REST-4")
async def test_settling_closes_the_child_and_tells_the_requester_in_one_commit(
    store: Store, database: Database
) -> None:
    await create(store, MAIN)
    (row,) = await spawned(database, 1)
    assert await settle(database, row)
    (told,) = await store.queued(PARENT)
    assert (told.run_id, told.body.purpose) == (f"{row.child_run_id}:completion", "completion")
    closed = await Spawns(database).of_child(row.child_key)
    assert closed is not None
    assert (closed.state, closed.settled_at, closed.body.status) == ("settled", NOON + 500, "success")
    assert not await settle(database, row, at=NOON + 900)
    assert await Spawns(database).of_child(row.child_key) == closed
    assert len(await store.queued(PARENT)) == 1


@pytest.mark.spec("ANN-8")
async def test_eight_who_settle_at_once_tell_it_once(store: Store, database: Database) -> None:
    await create(store, MAIN)
    rows = await spawned(database, *range(6))
    jobs = [(number, row) for row in rows for number in range(CALLERS)]
    settled = await asyncio.gather(*(settle(database, row, at=NOON + 100 + n) for n, row in jobs))
    assert sum(settled) == len(rows)
    told = Counter(item.run_id for item in await store.queued(PARENT))
    assert told == {f"{row.child_run_id}:completion": 1 for row in rows}
    assert await Spawns(database).count_active(PARENT) == 0


@pytest.mark.spec("ANN-8")
async def test_a_completion_is_not_queued_again_after_it_was_read(store: Store, database: Database) -> None:
    claimed = await begin(store, "run-1")
    (row,) = await spawned(database, 1)
    assert await settle(database, row)
    (told,) = await store.queued(PARENT)
    await store.absorb(claimed.run, (told.admission,), lambda _s, _i: [note("block")], now_ms=NOON)
    assert await store.queued(PARENT) == ()
    await database.write(lambda tx: inbox.enqueue(tx, completion(row), NOON))
    assert not await settle(database, row)
    assert await store.queued(PARENT) == ()


@pytest.mark.spec("ANN-8")
async def test_a_commit_that_fails_leaves_the_child_unsettled(store: Store, database: Database) -> None:
    await create(store, MAIN)
    (row,) = await spawned(database, 1)

    def unit(tx: Transaction) -> None:
        assert spawns.settle(tx, row.child_key, row.body, completion(row), NOON)
        raise StoreError("pulled the plug")

    with pytest.raises(StoreError, match="plug"):
        await database.write(unit)
    assert await store.queued(PARENT) == ()
    assert await Spawns(database).of_child(row.child_key) == row
    assert await settle(database, row)


@pytest.mark.spec("ANN-8")
async def test_settling_without_words_or_without_a_reader_queues_nothing(
    store: Store, database: Database
) -> None:
    await create(store, MAIN)
    quiet, gone = await spawned(database, 1, 2)
    assert await settle(database, quiet, told=False)
    assert await store.queued(PARENT) == ()
    await store.delete_session(PARENT, now_ms=NOON)
    assert await settle(database, gone)
    assert await store.session(PARENT) is None
    assert await select(database, "SELECT count(*) FROM inbox WHERE source = 'announce'") == [(0,)]
    assert not await database.write(lambda tx: spawns.settle(tx, "agent:main:nobody", gone.body, None, NOON))


@pytest.mark.spec("YIELD-2", "ANN-8")
async def test_a_yielded_session_waits_for_the_children_it_has(store: Store, database: Database) -> None:
    await create(store, MAIN)
    assert await database.write(lambda tx: spawns.wait_for_children(tx, PARENT, NOON)) == 0
    done, one, two = await spawned(database, 1, 2, 3)
    assert await settle(database, done, at=NOON + 9_000)  # settled in the future of a clock that went back
    for _ in range(2):  # a unit may be run again
        assert await database.write(lambda tx: spawns.wait_for_children(tx, PARENT, NOON)) == 2
    assert [await _waits(database, row) for row in (done, one, two)] == [False, True, True]
    assert await settle(database, one)
    assert [await _waits(database, row) for row in (done, one, two)] == [False, False, True]
    assert await select(database, "SELECT session_key, target FROM waits") == [(PARENT, two.child_run_id)]


async def _waits(database: Database, row: SpawnRow) -> bool:
    return await database.read(lambda tx: spawns.waits_for(tx, PARENT, row.child_run_id))


@pytest.mark.spec("SUB-1", "REST-4")
async def test_children_are_listed_newest_first_and_the_unfinished_oldest_first(
    store: Store, database: Database
) -> None:
    await create(store, MAIN)
    rows = await spawned(database, 1, 2, 3, 4)
    registry = Spawns(database)
    keys = [row.child_key for row in rows]
    assert await registry.unfinished() == tuple(keys)
    assert await registry.unfinished(limit=2) == tuple(keys[:2])
    assert await settle(database, rows[1], at=NOON + 100)
    assert await registry.unfinished() == (keys[0], keys[2], keys[3])
    at_border = await registry.of_parent(PARENT, settled_since=NOON + 100)
    assert [row.child_key for row in at_border] == [keys[3], keys[2], keys[1], keys[0]]
    later = await registry.of_parent(PARENT, settled_since=NOON + 101)
    assert [row.child_key for row in later] == [keys[3], keys[2], keys[0]]
    assert await registry.of_parent("agent:main:other", settled_since=0) == ()
    await store.delete_session(keys[3], now_ms=NOON)
    with_rows = await registry.children_with_rows(PARENT, settled_since=NOON + 101)
    assert [(spawn.child_key, row is not None) for spawn, row in with_rows] == [
        (keys[3], False), (keys[2], True), (keys[0], True),
    ]  # fmt: skip
    limited = await database.read(lambda tx: spawns.of_parent(tx, PARENT, NOON, limit=1))
    assert [row.child_key for row in limited] == [keys[3]]


@pytest.mark.spec("ANN-11", "REST-5")
async def test_what_is_due_for_the_archive_comes_from_the_rows(store: Store, database: Database) -> None:
    await create(store, MAIN)
    rows = await spawned(database, 1, 2, 3)
    registry = Spawns(database)
    assert await registry.to_archive("main", NOON + 10_000) == ()
    for number, row in enumerate(rows):
        assert await settle(database, row, at=NOON + 300 - number)
    assert await registry.to_archive("main", NOON + 297) == ()
    assert await registry.to_archive("main", NOON + 298) == (rows[2].child_key,)
    assert await registry.to_archive("main", NOON + 300) == tuple(row.child_key for row in reversed(rows))
    assert await registry.to_archive("main", NOON + 300, limit=1) == (rows[2].child_key,)
    await registry.write(lambda tx: tx.run(spawns.SQL["archived"], (rows[2].child_key,)))
    assert await registry.to_archive("main", NOON + 300) == (rows[1].child_key, rows[0].child_key)
    assert not await settle(database, rows[2])


@pytest.mark.spec("ANN-11")
async def test_children_that_are_never_archived_stand_before_nobody(store: Store, database: Database) -> None:
    await create(store, MAIN)
    registry = Spawns(database)
    others = [child(n, most=200, run_id="other", seed=seed(f"subagent:{n}", "ma")) for n in range(3)]
    for at, new in enumerate((*others, child(9, most=200))):
        row = await spawn(database, new)
        assert isinstance(row, SpawnRow)
        assert await settle(database, row, told=False, at=NOON + at)
    assert await registry.to_archive("main", NOON + 3, limit=2) == (child(9).seed.session_key,)
    assert await registry.to_archive("ma", NOON + 3) == tuple(new.seed.session_key for new in others)
    assert await registry.to_archive("m", NOON + 3) == ()


@pytest.mark.spec("ANN-4", "ANN-8")
async def test_what_is_known_of_a_child_is_kept_until_it_is_settled(store: Store, database: Database) -> None:
    await create(store, MAIN)
    (row,) = await spawned(database, 1)
    said = msgspec.structs.replace(row.body, status="success", result="42")
    await database.write(lambda tx: spawns.note(tx, row.child_key, said))
    noted = await Spawns(database).of_child(row.child_key)
    assert noted is not None and (noted.body, noted.state) == (said, "active")
    assert await settle(database, noted)
    await database.write(partial(spawns.note, child_key=row.child_key, body=row.body))
    settled = await Spawns(database).of_child(row.child_key)
    assert settled is not None and settled.body.result == "42"


@pytest.mark.spec("ANN-8")
async def test_a_child_that_ran_is_a_turn_like_any_other(store: Store, database: Database) -> None:
    await create(store, MAIN)
    (row,) = await spawned(database, 1)
    (waiting,) = await store.queued(row.child_key)
    claimed = await store.claim(row.child_key, (waiting.admission,), PLAN, draft_inputs, now_ms=NOON)
    assert claimed is not None
    await store.finish(
        claimed.run, (note("42", "assistant"),), DONE, now_ms=NOON,
        also=lambda tx: assert_settled(tx, row),
    )  # fmt: skip
    assert [item.run_id for item in await store.queued(PARENT)] == [f"{row.child_run_id}:completion"]
    with pytest.raises(RunLost):
        await store.finish(claimed.run, (), DONE, now_ms=NOON, also=lambda tx: assert_settled(tx, row))
    assert len(await store.queued(PARENT)) == 1


def assert_settled(tx: Transaction, row: SpawnRow) -> None:
    assert spawns.settle(tx, row.child_key, row.body, completion(row), NOON)
