"""Removing for good: only after the undo window, completely, in slices, and going on after a stop."""

from __future__ import annotations

import time
from functools import partial

import pytest

from openclaw.domain.searchtext import query_terms
from openclaw.domain.transcript import AssistantMessage, TextBlock, ToolResultMessage, UserMessage
from openclaw.engine.drafts import draft_message
from openclaw.errors import InvalidRequest
from openclaw.store import purging, sessions
from openclaw.store.database import Database, Row, Transaction
from openclaw.store.maintenance import Maintenance
from openclaw.store.purging import Pace, words_of
from openclaw.store.retention import sqlite_used_bytes
from openclaw.store.search import fold
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance.making import (
    DAY,
    MAIN,
    NOON,
    begin,
    create,
    execute,
    note,
    present,
    seed,
    select,
    turn,
    unique_name,
)
from tests.conformance.test_maintenance import OLD, QUICK, check_counters, keeper, limits

HOOK = seed("hook:1", kind="hook")
LARGE = "large " * 20_000


async def found(store: Store, words: str) -> int:
    return len(await store.search(query_terms(words)))


async def count(database: Database, table: str) -> int:
    return int((await select(database, f"SELECT count(*) FROM {table}"))[0][0])


async def check_index(database: Database) -> None:
    """The search index agrees with itself, where it is one that can tell."""
    if isinstance(database, SqliteDatabase):
        await execute(database, "INSERT INTO search (search) VALUES ('integrity-check')")


@pytest.mark.spec("MAINT-1", "SRCH-3")
async def test_a_deleted_session_can_be_taken_back_and_then_goes_completely(
    store: Store, database: SqliteDatabase
) -> None:
    await turn(store, "run-1", f"zebra {LARGE}", to=HOOK, at=OLD)
    await turn(store, "run-2", f"giraffe {LARGE}", to=MAIN, at=NOON)
    await database.write(fold)
    maintenance = keeper(database, prune_after_ms=30 * DAY)
    await maintenance.run(now_ms=NOON)
    assert await found(store, "zebra") == 0, "a deleted session is not found"
    row = await maintenance.restore(HOOK.session_key, now_ms=NOON + DAY - 1)
    assert row.entry.updated_at == NOON + DAY - 1 and row.last_seq == 2
    assert await present(store, HOOK.session_key) == row
    assert await found(store, "zebra") == 2
    await turn(store, "run-3", "again", to=HOOK, at=NOON + DAY)
    await check_counters(database)
    with pytest.raises(InvalidRequest, match="no removal of"):
        await maintenance.restore(HOOK.session_key, now_ms=NOON + DAY)
    later = NOON + 40 * DAY
    await maintenance.run(now_ms=later)
    kept = await maintenance.run(now_ms=later + DAY - 1)
    assert kept.purged.windows == 0 and await count(database, "entries") == 6
    report = await maintenance.run(now_ms=later + DAY)
    purged = report.purged
    assert (purged.windows, purged.entries, purged.indexed, purged.blobs) == (2, 4, 4, 2), "one per day"
    assert (purged.inputs, purged.runs) == (2, 2)
    assert [item.state for item in await maintenance.removals_of(HOOK.session_key)] == ["restored", "purged"]
    with pytest.raises(InvalidRequest):
        await maintenance.restore(HOOK.session_key, now_ms=later + DAY)
    assert await found(store, "giraffe") == 2 and await found(store, "zebra") == 0
    assert [await count(database, table) for table in ("entries", "blobs", "inbox", "runs")] == [2, 2, 1, 1]
    await check_index(database)


@pytest.mark.spec("MAINT-1")
async def test_a_body_that_others_hold_stays(store: Store, database: SqliteDatabase) -> None:
    body = note(LARGE)
    for made in (HOOK, seed("keeps")):
        await create(store, made, at=NOON)
        await store.append(made.session_key, (body, body), now_ms=NOON)
    await store.delete_session(HOOK.session_key, now_ms=NOON)
    report = await keeper(database, reset_archive_ms=DAY).run(now_ms=NOON + DAY)
    assert (report.purged.entries, report.purged.blobs) == (2, 0)
    assert await select(database, "SELECT refs FROM blobs") == [(2,)]
    history = await store.history("agent:main:keeps", 5)
    assert history is not None and history.entries[0].body == body.body


@pytest.mark.spec("MAINT-1", "DB-17")
async def test_what_a_person_deleted_stays_readable_by_id_until_its_time(
    store: Store, database: SqliteDatabase
) -> None:
    await turn(store, "run-1", "first words", at=OLD)
    await store.reset_session(MAIN.session_key, "new", session_id="second", now_ms=OLD)
    await turn(store, "run-2", "second words", at=OLD)
    await store.delete_session(MAIN.session_key, now_ms=NOON)
    await turn(store, "run-3", "third words", at=NOON)
    kept = await keeper(database).run(now_ms=NOON + 999 * DAY)
    assert kept.purged.windows == 0, "no time is set: kept for ever"
    maintenance = keeper(database, reset_archive_ms=30 * DAY)
    assert (await maintenance.run(now_ms=NOON + 30 * DAY - 1)).purged.windows == 0
    assert (await maintenance.plan(now_ms=NOON + 30 * DAY)).purge == 2
    report = await maintenance.run(now_ms=NOON + 30 * DAY)
    assert (report.purged.windows, report.purged.entries, report.purged.indexed) == (2, 4, 4)
    removals = await maintenance.removals_of(MAIN.session_key)
    assert [(item.state, item.reason) for item in removals] == [("purged", "deleted")] * 2
    assert await found(store, "words") == 2 and await found(store, "third") == 2
    assert (await present(store)).last_seq == 2


async def test_a_window_that_a_fork_is_based_on_stays(store: Store, database: SqliteDatabase) -> None:
    await turn(store, "run-1", to=HOOK, at=OLD)
    await turn(store, "run-2", to=seed("fork"), at=NOON)
    await execute(
        database,
        "UPDATE windows SET base_no = (SELECT w.window_no FROM windows w WHERE w.session_key = $1) "
        "WHERE session_key = $2",
        HOOK.session_key,
        "agent:main:fork",
    )
    await store.delete_session(HOOK.session_key, now_ms=OLD)
    maintenance = keeper(database, reset_archive_ms=DAY)
    assert (await maintenance.run(now_ms=NOON)).purged.windows == 0
    await store.delete_session("agent:main:fork", now_ms=OLD + 1)
    assert (await maintenance.run(now_ms=NOON)).purged.windows == 2


async def test_a_key_that_came_back_is_not_overwritten(store: Store, database: SqliteDatabase) -> None:
    labelled = await create(store, HOOK, at=OLD, label="mine")
    maintenance = keeper(database, prune_after_ms=DAY)
    await maintenance.run(now_ms=NOON)
    await create(store, seed("other"), at=NOON, label="mine")
    await turn(store, "run-2", to=HOOK, at=NOON)
    with pytest.raises(InvalidRequest, match="exists again"):
        await maintenance.restore(HOOK.session_key, now_ms=NOON)
    await store.delete_session(HOOK.session_key, now_ms=NOON + 1)
    row = await maintenance.restore(HOOK.session_key, now_ms=NOON + 2)
    assert (row.entry.session_id, row.entry.label) == (labelled.entry.session_id, None)
    await check_counters(database)


async def test_a_purge_that_was_stopped_goes_on(store: Store, database: SqliteDatabase) -> None:
    claimed = await begin(store, "run-1", "zebra", to=HOOK, at=OLD)
    words = tuple(note(f"zebra number {number}", run_id="run-1") for number in range(500))
    await store.step(claimed.run, words, (), now_ms=OLD)
    await store.delete_session(HOOK.session_key, now_ms=OLD)
    maintenance = Maintenance(database, limits(reset_archive_ms=DAY), pace=Pace(0.0, 0.0))
    marked = await select(database, "SELECT window_no FROM windows")
    for (window_no,) in marked:
        await database.write(partial(purging.mark, window_no=window_no, now_ms=NOON))
    await database.write(purging.forget_pending)
    for _ in range(5):
        some = await database.read(partial(purging.indexed_between, after=0, last=200))
        await database.write(partial(purging.unindex, found=some, ending=0.0))
    part = await database.write(lambda tx: purging.empty_some(tx, NOON, time.perf_counter() + 60))
    assert part is not None and part.entries == 200 and part.windows == 0
    purged = await maintenance.purge(now_ms=NOON)
    assert (purged.windows, purged.entries) == (1, 301)
    assert await count(database, "entries") == await count(database, "search_rows") == 0
    assert await maintenance.purge(now_ms=NOON) == purging.Purged()


@pytest.mark.spec("MAINT-2")
async def test_past_the_disk_budget_machine_made_sessions_go_first_and_people_stay() -> None:
    database = await SqliteDatabase.open_memory(unique_name())
    store = Store(database)
    for number in range(6):
        made = seed(f"hook:{number}", kind="hook")
        await create(store, made, at=NOON - number * DAY)
        await store.append(made.session_key, (note(f"{number} {LARGE}"),), now_ms=NOON - number * DAY)
    await turn(store, "run-1", LARGE, to=seed("person"), at=OLD)
    full = await database.read(sqlite_used_bytes)
    tight = limits(max_disk_bytes=full - 1, high_water_bytes=full - 3 * len(LARGE))
    maintenance = Maintenance(database, tight, pace=QUICK, used_bytes=sqlite_used_bytes)
    plan = await maintenance.plan(now_ms=NOON)
    assert plan.over_budget and plan.used_bytes == full
    report = await maintenance.run(now_ms=NOON)
    assert report.deleted >= 3 and report.purged.blobs == report.deleted
    assert await database.read(sqlite_used_bytes) <= full - 3 * len(LARGE)
    history = await store.history("agent:main:person", 5)
    assert history is not None and len(history.entries) == 2
    loose = Maintenance(database, limits(max_disk_bytes=full), pace=QUICK, used_bytes=sqlite_used_bytes)
    assert (await loose.run(now_ms=NOON)).deleted == 0
    await database.close()


@pytest.mark.spec("SRCH-3")
@pytest.mark.parametrize(
    "message",
    [
        UserMessage("Grüße, 世界! and 10 € — naïve", 1),
        UserMessage((TextBlock("one"), TextBlock("two\nthree")), 1),
        AssistantMessage((TextBlock("<think>hidden</think>shown"), TextBlock("rest")), 1),
        AssistantMessage((), 1),
        ToolResultMessage("c", "exec", (TextBlock("output"),), 1),
    ],
)
def test_the_words_to_forget_are_the_words_that_were_indexed(
    message: UserMessage | AssistantMessage | ToolResultMessage,
) -> None:
    draft = draft_message(message, "run-1")
    assert words_of(draft.body) == draft.words
    assert words_of(b"[1]") == words_of(b"not json") == ""


async def test_many_deleted_windows_are_given_up_in_slices(database: Database) -> None:
    def fill(tx: Transaction) -> None:
        for number in range(230):
            made = seed(f"hook:{number}", kind="hook")
            row = sessions.create(tx, made, f"window-{number}", OLD)
            if number % 2:
                sessions.delete(tx, row, OLD)
            elif number % 4:
                sessions.delete(tx, row, NOON - 1)

    await database.write(fill)
    maintenance = Maintenance(database, limits(reset_archive_ms=DAY), pace=Pace(0.0, 0.0))
    assert (await maintenance.plan(now_ms=NOON)).purge == 115
    purged = await maintenance.purge(now_ms=NOON)
    assert (purged.windows, purged.entries) == (115, 0)
    assert await count(database, "removals") == 115
    assert (await maintenance.purge(now_ms=NOON)).windows == 0


class Counted:
    """A transaction that notes how many texts were taken out of the index before each of its writes."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self.parts = [0]

    def rows(self, sql: str, params: Row = ()) -> list[Row]:
        return self._tx.rows(sql, params)

    def row(self, sql: str, params: Row = ()) -> Row | None:
        return self._tx.row(sql, params)

    def run(self, sql: str, params: Row = ()) -> None:
        self.parts[-1] += sql == purging.SQL["unindex_words"]
        if sql == purging.SQL["unindex_now"]:
            self.parts.append(0)
        self._tx.run(sql, params)


@pytest.mark.spec("MAINT-2")
async def test_the_index_forgets_a_few_texts_at_a_time_and_looks_at_the_clock_between(
    store: Store, database: Database
) -> None:
    await create(store, HOOK, at=OLD)
    texts = tuple(note(f"zebra number {number}") for number in range(70))
    await store.append(HOOK.session_key, texts, now_ms=OLD)
    await database.write(fold)
    numbers = tuple(number for (number,) in await select(database, "SELECT search_no FROM search_rows"))
    assert len(numbers) == 70

    async def forget(ending: float) -> tuple[int, list[int]]:
        def unit(tx: Transaction) -> tuple[int, list[int]]:
            counted = Counted(tx)
            return purging.unindex(counted, numbers[:10], ending), counted.parts

        return await database.write(unit)

    assert await forget(0.0) == (4, [4, 0]), "at least a few, however late it is"
    assert await forget(time.perf_counter() + 3600) == (10, [0, 4, 2, 0]), "the first four are gone already"
