"""Erasing while others go on: what comes after the erase began stays, and what ran before it is stopped."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from openclaw.domain.origin import InboundContext
from openclaw.errors import Unavailable
from openclaw.store.archiving import ArchivePlace, Archives
from openclaw.store.conversations import ConversationRef
from openclaw.store.database import Database, Result, Transaction, Unit
from openclaw.store.erasing import Erasing
from openclaw.store.inbox import Inbound
from openclaw.store.maintenance import Maintenance
from openclaw.store.purging import Pace
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from openclaw.store.tombstones import known_as
from tests.conformance.making import DAY, MAIN, NOON, execute, note, present, queue, seed, select, turn
from tests.conformance.test_erasing import GROUP, said_by
from tests.conformance.test_maintenance import OLD, QUICK, limits
from tests.conformance.test_maintenance_purge import count

PRIVATE = seed("telegram:direct:ann-4711")
ANN = known_as("telegram", "ann-4711")


class Interrupted(Exception):
    pass


class Between(Pace, frozen=True):
    """Does something of its own before the first slice after the key was given up."""

    act: Callable[[], Awaitable[object]] | None = None
    done: list[bool] = msgspec.field(default_factory=list)

    async def slice(self, database: Database, unit: Unit[Result]) -> Result:
        if not self.done and self.act is not None:
            self.done.append(True)
            await self.act()
        return await super().slice(database, unit)


def between(act: Callable[[], Awaitable[object]]) -> Between:
    return Between(rest_s=0.0, act=act, done=[])


async def test_what_arrives_while_a_session_is_erased_stays(store: Store, database: Database) -> None:
    await said_by(store, "telegram:ann-4711", "run-1", "walrus", to=PRIVATE, peer="ann-4711")
    await queue(store, "run-2", "waits", to=PRIVATE)

    async def somebody_writes() -> None:
        assert await store.session(PRIVATE.session_key) is None, "nothing finds it any more"
        await turn(store, "run-3", "new words", to=PRIVATE)
        await queue(store, "run-4", "more", to=PRIVATE)
        await execute(database, "INSERT INTO waits VALUES ($1, 'x', 1, NULL)", PRIVATE.session_key)

    receipt = await Erasing(database, pace=between(somebody_writes)).erase_session(
        PRIVATE.session_key, now_ms=NOON
    )
    assert (receipt.sessions, receipt.windows, receipt.entries) == (1, 1, 2)
    assert (receipt.inputs, receipt.runs, receipt.deliveries) == (2, 1, 1)
    assert (await present(store, PRIVATE.session_key)).last_seq == 2
    left = await select(database, "SELECT run_id, state FROM inbox ORDER BY admission")
    assert left == [("run-3", "consumed"), ("run-4", "queued")]
    assert await select(database, "SELECT run_id FROM runs") == [("run-3",)]
    assert await count(database, "waits") == 1
    assert await select(database, "SELECT count(*) FROM windows WHERE session_key = 'erased'") == [(1,)]


async def test_an_erase_that_was_cut_off_leaves_no_place_behind(store: Store, database: Database) -> None:
    await said_by(store, "telegram:ann-4711", "run-1", "walrus", to=PRIVATE, peer="ann-4711")

    async def power_cut() -> None:
        raise Interrupted

    with pytest.raises(Interrupted):
        await Erasing(database, pace=between(power_cut)).erase_session(PRIVATE.session_key, now_ms=NOON)
    assert await count(database, "conversations") == 0
    receipt = await Erasing(database, pace=QUICK).erase_session(PRIVATE.session_key, now_ms=NOON)
    assert receipt.windows == 1
    for table in ("entries", "inbox", "runs", "outbox", "session_conversations", "search_rows"):
        assert await count(database, table) == 0, table


async def test_older_purges_are_not_in_the_receipt(store: Store, database: Database) -> None:
    await turn(store, "run-1", "machine words", to=seed("hook:1", kind="hook"), at=OLD)
    await turn(store, "run-2", "walrus", to=PRIVATE)
    await execute(database, "UPDATE windows SET purging_at = 1, deleted_at = 1 WHERE session_key = $1",
                  "agent:main:hook:1")  # fmt: skip
    receipt = await Erasing(database, pace=QUICK).erase_session(PRIVATE.session_key, now_ms=NOON)
    assert (receipt.windows, receipt.entries, receipt.inputs, receipt.runs) == (1, 2, 1, 1)
    assert await count(database, "entries") == 0


async def test_runs_are_stopped_before_a_session_is_touched(store: Store, database: Database) -> None:
    await said_by(store, "telegram:ann-4711", "run-1", "walrus", to=PRIVATE, peer="ann-4711")
    await said_by(store, "telegram:ann-4711", "run-2", "in public")
    await said_by(store, "telegram:bob", "run-3", "bob too")
    stopped: list[tuple[str, bool, int]] = []

    async def quiesce(session_key: str, whole: bool) -> None:
        row = await present(store, session_key)
        entries = await store.context(row.window_no)
        stopped.append((session_key, whole, sum(b"[erased]" in entry.body for entry in entries)))

    receipt = await Erasing(database, pace=QUICK, quiesce=quiesce).erase_person(ANN, now_ms=NOON)
    assert stopped == [(PRIVATE.session_key, True, 0), (GROUP.session_key, False, 0)]
    assert (receipt.sessions, receipt.shared_sessions, receipt.tombstones) == (1, 1, 1)


async def test_a_window_based_on_an_erased_one_stands_on_its_own(store: Store, database: Database) -> None:
    await turn(store, "run-1", "walrus", to=PRIVATE)
    await turn(store, "run-2", "fork", to=seed("fork"))
    await execute(
        database,
        "UPDATE windows SET base_seq = 2, base_no = "
        "(SELECT w.window_no FROM windows w WHERE w.session_key = $1) WHERE session_key = $2",
        PRIVATE.session_key,
        "agent:main:fork",
    )
    await Erasing(database, pace=QUICK).erase_session(PRIVATE.session_key, now_ms=NOON)
    found = await select(
        database, "SELECT base_no, base_seq FROM windows WHERE session_key = 'agent:main:fork'"
    )
    assert found == [(None, 0)] and (await present(store, "agent:main:fork")).last_seq == 2


@pytest.mark.spec("DB-17")
async def test_archive_files_are_erased_too_also_those_of_a_person(
    store: Store, database: Database, tmp_path: Path
) -> None:
    folder = tmp_path / "archive"
    archives = Archives(database, lambda _key: ArchivePlace(folder, "/work"))
    maintenance = Maintenance(database, limits(reset_archive_ms=DAY), pace=QUICK, archives=archives)
    await said_by(store, "telegram:ann-4711", "run-1", "walrus", to=PRIVATE, peer="ann-4711")
    await turn(store, "run-2", "mine", to=MAIN)
    for key in (PRIVATE.session_key, MAIN.session_key):
        await store.delete_session(key, now_ms=NOON)
    await maintenance.run(now_ms=NOON + DAY)
    assert await count(database, "archives") == 2 and await count(database, "entries") == 0
    assert await count(database, "session_conversations") == 1, "the way from the person to the file"
    receipt = await Erasing(database, pace=QUICK).erase_person(ANN, now_ms=NOON + DAY)
    assert (receipt.sessions, receipt.archives, receipt.conversations) == (1, 1, 1)
    assert await count(database, "conversations") == 0
    left = await asyncio.to_thread(lambda: [path.name for path in folder.iterdir()])
    assert len(left) == 1 and left[0].startswith("run-2-window")
    receipt = await Erasing(database, pace=QUICK).erase_session(MAIN.session_key, now_ms=NOON + DAY)
    assert receipt.archives == 1 and await asyncio.to_thread(lambda: list(folder.iterdir())) == []


async def test_places_are_forgotten_with_the_last_file(
    store: Store, database: Database, tmp_path: Path
) -> None:
    archives = Archives(database, lambda _key: ArchivePlace(tmp_path / "archive", "/work"))
    maintenance = Maintenance(database, limits(reset_archive_ms=DAY), pace=QUICK, archives=archives)
    place = ConversationRef("telegram", "bot", "direct", "ann-4711", "", "Ann", "ann-4711")
    await turn(store, "run-1", "walrus", to=PRIVATE)
    await store.record_inbound(
        PRIVATE, Inbound(InboundContext(provider="telegram"), place), session_id="x", now_ms=NOON
    )
    await store.delete_session(PRIVATE.session_key, now_ms=NOON)
    await maintenance.run(now_ms=NOON + DAY)
    assert await count(database, "session_conversations") == 1
    await maintenance.run(now_ms=NOON + 2 * DAY)
    assert await count(database, "archives") == await count(database, "session_conversations") == 0


async def test_a_file_that_stays_is_said_and_the_erase_can_be_asked_for_again(
    store: Store, database: Database, tmp_path: Path
) -> None:
    folder = tmp_path / "archive"
    archives = Archives(database, lambda _key: ArchivePlace(folder, "/work"))
    await turn(store, "run-1", "walrus", to=PRIVATE)
    await store.delete_session(PRIVATE.session_key, now_ms=NOON)
    await Maintenance(database, limits(reset_archive_ms=DAY), pace=QUICK, archives=archives).run(
        now_ms=NOON + DAY
    )
    path = folder / "run-1-window.jsonl.deleted.2026-11-15T12-00-00.000Z"

    def block() -> None:
        path.unlink()
        path.mkdir()

    await asyncio.to_thread(block)
    with pytest.raises(Unavailable, match=r"cannot be removed.*then erase again"):
        await Erasing(database, pace=QUICK).erase_session(PRIVATE.session_key, now_ms=NOON + DAY)
    await asyncio.to_thread(path.rmdir)
    receipt = await Erasing(database, pace=QUICK).erase_session(PRIVATE.session_key, now_ms=NOON + DAY)
    assert receipt.archives == 1


async def test_a_large_file_is_not_rewritten_while_people_wait(tmp_path: Path) -> None:
    database = await SqliteDatabase.open(tmp_path / "state" / "openclaw.sqlite")
    store = Store(database)
    await turn(store, "run-1", "walrus", to=PRIVATE)
    await store.append(PRIVATE.session_key, (note("words " * 3000),), now_ms=NOON)
    receipt = await Erasing(database, pace=QUICK, rewrite_bytes=4096).erase_session(
        PRIVATE.session_key, now_ms=NOON
    )
    assert (receipt.log_emptied, receipt.file_rewritten) == (True, False)
    assert (await asyncio.to_thread((tmp_path / "state" / "openclaw.sqlite-wal").stat)).st_size == 0
    await database.close()


async def test_the_log_is_emptied_as_soon_as_nobody_reads_an_old_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = await SqliteDatabase.open(tmp_path / "state" / "openclaw.sqlite")
    store = Store(database)
    await turn(store, "run-1", "walrus", to=PRIVATE)
    await turn(store, "run-2", "mine", to=MAIN)
    reading, done, tries = asyncio.Event(), threading.Event(), list[bool]()
    loop = asyncio.get_running_loop()

    def read_slowly(tx: Transaction) -> None:
        tx.rows("SELECT count(*) FROM entries")
        loop.call_soon_threadsafe(reading.set)
        assert done.wait(60)

    slow = asyncio.create_task(database.read(read_slowly))
    await reading.wait()
    await turn(store, "run-3", "more", to=MAIN)
    between_batches = database.between_batches

    async def noting(work: Callable[[Any], Any]) -> Any:
        outcome = await between_batches(work)
        tries.append(outcome if isinstance(outcome, bool) else outcome.log_emptied)
        done.set()
        return outcome

    monkeypatch.setattr(database, "between_batches", noting)
    receipt = await Erasing(database, pace=QUICK).erase_session(PRIVATE.session_key, now_ms=NOON)
    await slow
    assert tries[0] is False and tries[-1] is True and len(tries) >= 2
    assert receipt.log_emptied and (await present(store)).last_seq == 4
    await database.close()
