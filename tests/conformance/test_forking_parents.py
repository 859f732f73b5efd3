"""What happens to the session that a fork goes on from: resets, deletions, erases, and ids of an import."""

from __future__ import annotations

import pytest

from openclaw.store import transcript
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance.forks import KEY, THREAD, context, fork, is_one_line, talk
from tests.conformance.making import MAIN, NOON, create, execute, present, select, texts, turn


async def test_a_reset_or_a_deletion_of_the_parent_changes_nothing(
    store: Store, database: SqliteDatabase
) -> None:
    await turn(store, "run-1", "before")
    await fork(store, database, KEY, THREAD)
    await turn(store, "run-2", "own", to=THREAD)
    seen = await context(store, THREAD.session_key)
    await store.reset_session(KEY, "reset", session_id="second", now_ms=NOON + 1)
    assert await context(store, THREAD.session_key) == seen
    await store.delete_session(KEY, now_ms=NOON + 2)
    assert await context(store, THREAD.session_key) == seen
    await store.reset_session(THREAD.session_key, "new", session_id="third", now_ms=NOON + 3)
    assert await context(store, THREAD.session_key) == ()
    back = await store.undo_reset(THREAD.session_key, now_ms=NOON + 4)
    assert (back.last_seq, back.message_count) == (4, 2)
    assert await context(store, THREAD.session_key) == seen
    await store.reset_session(THREAD.session_key, "new", session_id="fourth", now_ms=NOON + 5)
    await execute(database, "UPDATE windows SET saved = NULL")
    assert (await store.undo_reset(THREAD.session_key, now_ms=NOON + 6)).last_seq == 4


async def test_an_empty_fork_comes_back_where_it_began(store: Store, database: SqliteDatabase) -> None:
    await turn(store, "run-1", "before")
    await fork(store, database, KEY, THREAD)
    await store.reset_session(THREAD.session_key, "new", session_id="w", now_ms=NOON + 1)
    await execute(database, "UPDATE windows SET saved = NULL")
    assert (await store.undo_reset(THREAD.session_key, now_ms=NOON + 2)).last_seq == 2
    await talk(store, THREAD.session_key, "own")
    assert is_one_line(await context(store, THREAD.session_key))


@pytest.mark.parametrize("detached", [False, True])
async def test_what_an_erase_took_from_the_base_says_nothing(
    store: Store, database: SqliteDatabase, detached: bool
) -> None:
    await create(store, MAIN)
    await talk(store, KEY, "secret 1", "secret 2", "secret 3")
    made = await fork(store, database, KEY, THREAD)
    if detached:
        await execute(database, "UPDATE windows SET base_no = NULL, base_seq = 0 WHERE base_no IS NOT NULL")
    await execute(database, "DELETE FROM entries")
    await talk(store, THREAD.session_key, "own 1", "own 2")
    seen = await context(store, THREAD.session_key)
    assert is_one_line(seen)
    assert [(entry.type, entry.audience, entry.role) for entry in seen] == (
        [("custom", "internal", None)] * 3 + [("message", "people", "user")] * 2
    )
    assert all(entry.body == b'{"customType":"erased"}' for entry in seen[:3])
    assert texts(seen[3:]) == ["own 1", "own 2"]
    assert texts(await store.context(made.session.window_no, after_seq=3)) == ["own 1", "own 2"]
    part = await database.read(lambda tx: transcript.span(tx, made.session.window_no, 2, 4))
    assert [entry.seq for entry in part] == [2, 3, 4]
    assert b"secret" not in b"".join(entry.body for entry in seen)


async def test_ids_that_an_import_has_taken_do_not_come_again(store: Store, database: SqliteDatabase) -> None:
    await create(store, MAIN)
    await talk(store, KEY, "one", "two")
    row = await present(store)
    salt = transcript.FOREIGN_IDS + 7
    # As an import leaves it: an entry has the id that number 4 would get, so number 4 gets another one.
    await execute(database, "UPDATE sessions SET id_salt = ?", salt)
    await execute(database, "UPDATE windows SET id_salt = ?", salt)
    taken = transcript.entry_id_of(salt, 4)
    await execute(database, "UPDATE entries SET entry_id = ? WHERE seq = 1", taken)
    await execute(database, "INSERT INTO id_changes VALUES (?, 4, 'ffffffff')", row.window_no)
    await execute(database, "INSERT INTO id_changes VALUES (?, 2, 'eeeeeeee')", row.window_no)
    await fork(store, database, KEY, THREAD)
    await talk(store, THREAD.session_key, "three", "four", "five")
    seen = await context(store, THREAD.session_key)
    assert (seen[0].entry_id, seen[3].entry_id) == (taken, "ffffffff")
    assert is_one_line(seen)
    assert await select(database, "SELECT count(*) FROM id_changes WHERE seq = 2") == [(1,)]
