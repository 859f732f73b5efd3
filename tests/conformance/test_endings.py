"""Reset, delete and restore on request, on every database; and a purge that comes in between."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from openclaw.errors import InvalidRequest, SessionNotFound, VersionConflict
from openclaw.store.archiving import ArchiveFile, ArchivePlace, Archives
from openclaw.store.database import Database
from openclaw.store.endings import FOREVER, Endings, Guard
from openclaw.store.maintenance import Maintenance
from openclaw.store.sessions import ListQuery
from openclaw.store.store import Store
from tests.conformance.making import DAY, NOON, begin, note, queue, seed, select, turn
from tests.conformance.test_maintenance import QUICK, limits

PROJ = seed("proj")
KEY = PROJ.session_key
NO_GUARD = Guard()


def days(number: int | None) -> Callable[[], int | None]:
    return lambda: None if number is None else number * DAY


@pytest.fixture
def endings(database: Database) -> Endings:
    return Endings(database, days(30))


async def texts(store: Store) -> list[str]:
    page = await store.history(KEY, 100)
    assert page is not None
    return [entry.body.decode() for entry in page.entries]


@pytest.mark.spec("RPC-8", "LIFE-21")
async def test_a_reset_rotates_cancels_and_ends_what_could_not_be_stopped(
    store: Store, endings: Endings
) -> None:
    claimed = await begin(store, "run-1", to=PROJ)
    await queue(store, "run-2", to=PROJ)
    old = claimed.session.entry.session_id
    done = await endings.reset(PROJ, "reset", NO_GUARD, session_id="fresh", now_ms=NOON + 1)
    assert (done.session.entry.session_id, done.cancelled) == ("fresh", ("run-2",))
    assert done.rotation is not None and done.rotation.previous_session_id == old
    assert (done.rotation.reason, done.session.last_seq) == ("reset", 0)
    run = await store.run("run-1")
    assert run is not None and (run.state, run.outcome) == ("ended", "aborted")
    assert await store.queued(KEY) == ()


@pytest.mark.spec("RPC-8")
async def test_a_reset_of_nothing_creates_and_a_guard_refuses(store: Store, endings: Endings) -> None:
    with pytest.raises(VersionConflict, match=f"Session {KEY} changed before reset"):
        await endings.reset(PROJ, "new", Guard("seen"), session_id="a", now_ms=NOON)
    assert await store.session(KEY) is None
    made = await endings.reset(PROJ, "new", NO_GUARD, session_id="a", now_ms=NOON)
    assert (made.session.entry.session_id, made.rotation, made.cancelled) == ("a", None, ())
    with pytest.raises(VersionConflict):
        await endings.reset(PROJ, "new", Guard("other"), session_id="b", now_ms=NOON)
    again = await endings.reset(PROJ, "new", Guard("a"), session_id="b", now_ms=NOON)
    assert again.session.entry.session_id == "b"


@pytest.mark.spec("RPC-8", "LIFE-24")
async def test_a_deletion_takes_one_key_and_can_be_taken_back(
    store: Store, database: Database, endings: Endings
) -> None:
    await turn(store, "run-1", "keep me", to=PROJ)
    await turn(store, "other", "stay", to=seed("other"))
    await queue(store, "run-2", to=PROJ)
    assert await endings.delete("agent:main:nobody", NO_GUARD, now_ms=NOON) is None
    for guard in (Guard("other"), Guard(archived_only=True)):
        with pytest.raises(VersionConflict, match=f"Session {KEY} changed before delete"):
            await endings.delete(KEY, guard, now_ms=NOON)
    done = await endings.delete(KEY, NO_GUARD, now_ms=NOON + 5)
    assert done is not None and (done.session.session_key, done.cancelled) == (KEY, ("run-2",))
    assert await store.session(KEY) is None and await store.session("agent:main:other") is not None
    removals = await select(database, "SELECT state, reason, undo_until FROM removals")
    assert removals == [("deleted", "deleted", NOON + 5 + 30 * DAY)]
    back = await endings.restore(KEY, NO_GUARD, now_ms=NOON + 6)
    assert (back.undone, back.session.entry.session_id) == ("delete", done.session.entry.session_id)
    assert len(await texts(store)) == 2
    assert (await store.list_sessions(ListQuery())).total == 2
    with pytest.raises(InvalidRequest, match="nothing to take back"):
        await endings.restore(KEY, NO_GUARD, now_ms=NOON + 7)
    with pytest.raises(SessionNotFound, match="session not found: agent:main:nobody"):
        await endings.restore("agent:main:nobody", NO_GUARD, now_ms=NOON)


@pytest.mark.spec("RPC-8")
async def test_a_deletion_without_an_end_of_its_undo(database: Database, store: Store) -> None:
    await turn(store, "run-1", to=PROJ)
    await Endings(database, days(None)).delete(KEY, NO_GUARD, now_ms=NOON)
    assert await select(database, "SELECT undo_until FROM removals") == [(FOREVER,)]


@pytest.mark.spec("RPC-8")
async def test_a_restore_takes_the_last_reset_back(store: Store, endings: Endings) -> None:
    await turn(store, "run-1", "before", to=PROJ)
    row = await store.session(KEY)
    assert row is not None
    await endings.reset(PROJ, "reset", NO_GUARD, session_id="fresh", now_ms=NOON + 1)
    await begin(store, "run-2", "after", to=PROJ, at=NOON + 2)
    await queue(store, "run-3", to=PROJ, at=NOON + 2)
    with pytest.raises(VersionConflict, match="changed before restore"):
        await endings.restore(KEY, Guard(row.entry.session_id), now_ms=NOON + 3)
    back = await endings.restore(KEY, Guard("fresh"), now_ms=NOON + 3)
    assert (back.undone, back.left_session_id, back.cancelled) == ("reset", "fresh", ("run-3",))
    assert back.session.entry.session_id == row.entry.session_id
    assert any("before" in text for text in await texts(store))
    run = await store.run("run-2")
    assert run is not None and run.state == "ended"


@pytest.mark.spec("DB-17", "RPC-8")
async def test_archives_are_noted_with_the_deletion_and_stale_after_a_restore(
    store: Store, database: Database, endings: Endings
) -> None:
    await turn(store, "run-1", "old words", to=PROJ)
    await endings.reset(PROJ, "reset", NO_GUARD, session_id="fresh", now_ms=NOON + 1)
    assert [one.reason for one in await endings.windows_with_words(KEY)] == ["created"]
    await store.append(KEY, (note("new words"),), now_ms=NOON + 2)
    newest, oldest = await endings.windows_with_words(KEY)
    assert (newest.session_id, oldest.end_reason) == ("fresh", "reset")
    files = [
        ArchiveFile(window.window_no, KEY, f"/nowhere/{window.window_no}", 1, "h", NOON + 3)
        for window in (newest, oldest)
    ]
    await endings.note_file(ArchiveFile(newest.window_no, KEY, "/nowhere/bak", 1, "h", NOON + 2))
    await endings.delete(KEY, NO_GUARD, files, now_ms=NOON + 3)
    assert len(await select(database, "SELECT path FROM archives")) == 3
    assert await endings.windows_with_words(KEY) == ()  # not of the session that has the key next
    back = await endings.restore(KEY, NO_GUARD, now_ms=NOON + 4)
    assert {file.path for file in back.stale} == {file.path for file in files}
    await endings.forget_files(back.stale)
    assert await select(database, "SELECT path FROM archives") == [("/nowhere/bak",)]


@pytest.mark.spec("DB-17")
async def test_a_deletion_is_purged_in_its_time_and_then_for_good(
    store: Store, database: Database, endings: Endings, tmp_path: Path
) -> None:
    archives = Archives(database, lambda _key: ArchivePlace(tmp_path / "archive", "/work"))
    keeper = Maintenance(database, limits(reset_archive_ms=30 * DAY), pace=QUICK, archives=archives)
    await turn(store, "run-1", "secret words", to=PROJ)
    await endings.delete(KEY, NO_GUARD, now_ms=NOON)
    early = await keeper.purge(now_ms=NOON + 29 * DAY)
    assert early.windows == 0
    pressed = await keeper.purge(now_ms=NOON + DAY, undo_ends=True)
    assert pressed.windows == 0  # what a person deleted is not given up for want of space
    late = await keeper.purge(now_ms=NOON + 31 * DAY)
    assert (late.windows, late.archives) == (1, 1)
    assert await select(database, "SELECT state, saved FROM removals") == [("purged", None)]
    with pytest.raises(SessionNotFound):
        await endings.restore(KEY, NO_GUARD, now_ms=NOON + 32 * DAY)
