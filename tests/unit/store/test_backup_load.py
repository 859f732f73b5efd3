"""A backup while eight writers append: whatever was acknowledged before its stated time is in it."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import apsw
import pytest

from openclaw.domain.keys import DEFAULT_KEY_SETTINGS
from openclaw.store.archiving import ArchivePlace
from openclaw.store.backup import DATABASE_NAME, create_backup, restore_backup, verify_backup
from openclaw.store.manifest import Manifest, Progress
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from openclaw.store.upkeep import Ground, Upkeep
from tests.conformance.making import NOON, create, note, seed
from tests.conformance.test_maintenance import OFF

WRITERS = 8


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Writers:
    """Appends without end from eight tasks; remembers when each append was acknowledged."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._going = True
        self._news = asyncio.Event()
        self.acknowledged: list[tuple[int, str]] = []

    async def run(self, number: int) -> None:
        written = 0
        while self._going:
            text = f"writer {number} entry {written}"
            await self._store.append(f"agent:main:w{number}", (note(text),), now_ms=NOON)
            self.acknowledged.append((now_ms(), text))
            written += 1
            self._news.set()

    async def reach(self, count: int) -> None:
        """Wait until so many appends were acknowledged."""
        async with asyncio.timeout(60):
            while len(self.acknowledged) < count:
                self._news.clear()
                await self._news.wait()

    def stop(self) -> None:
        self._going = False


def texts_in(copy: Path) -> set[str]:
    connection = apsw.Connection(str(copy), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        rows = connection.execute(
            "SELECT json_extract(CAST(body AS TEXT), '$.content') FROM entries"
        ).fetchall()
        seqs = connection.execute("SELECT count(*), max(seq) FROM entries GROUP BY window_no").fetchall()
    finally:
        connection.close()
    assert all(number == last for number, last in seqs), "each transcript is a whole beginning"
    return {str(text) for (text,) in rows}


def upkeep_of(database: SqliteDatabase, folder: Path) -> Upkeep:
    async def copy(target: Path, at_ms: int, progress: Progress) -> Manifest:
        return await create_backup(database, target, now_ms=at_ms, progress=progress)

    ground = Ground(
        retention=lambda: OFF,
        archive_place=lambda _key: ArchivePlace(folder, "/w"),
        workspace=lambda _agent: "/w",
        secrets=frozenset,
        keys=lambda: DEFAULT_KEY_SETTINGS,
        default_agent=lambda: "main",
        shown_store="here",
        copy=copy,
    )
    return Upkeep(database, ground)


@pytest.mark.spec("DB-20", "DB-15")
async def test_every_append_acknowledged_before_the_stated_time_is_in_the_backup(tmp_path: Path) -> None:
    database = await SqliteDatabase.open(tmp_path / "state" / "openclaw.sqlite")
    store, upkeep = Store(database), upkeep_of(database, tmp_path)
    for number in range(WRITERS):
        await create(store, seed(f"w{number}"))
    # A body that makes the copy take several steps.
    await store.append("agent:main:w0", tuple(note(f"{n} " + "y" * 60_000) for n in range(40)), now_ms=NOON)
    writers = Writers(store)
    async with asyncio.TaskGroup() as group:
        for number in range(WRITERS):
            group.create_task(writers.run(number))
        await writers.reach(5 * WRITERS)
        steps: list[int] = []
        manifests = [
            await upkeep.back_up(tmp_path / f"b{n}", lambda done, _all: steps.append(done), now_ms=now_ms())
            for n in range(3)
        ]
        await writers.reach(len(writers.acknowledged) + WRITERS)
        writers.stop()
    assert len(steps) > 3
    for n, manifest in enumerate(manifests):
        assert await asyncio.to_thread(verify_backup, tmp_path / f"b{n}") == manifest
        held = await asyncio.to_thread(texts_in, tmp_path / f"b{n}" / DATABASE_NAME)
        promised = {text for at, text in writers.acknowledged if at < manifest.created_at}
        assert len(promised) >= 4 * WRITERS and promised <= held, sorted(promised - held)[:5]
        assert manifest.rows["entries"] == len(held)
    assert [m.created_at for m in manifests] == sorted(m.created_at for m in manifests)
    await database.close()
    restored = await asyncio.to_thread(
        restore_backup, tmp_path / "b2", tmp_path / "again" / "openclaw.sqlite", now_ms=NOON
    )
    assert restored.manifest == manifests[2]


def wait_for_one(folder: Path) -> None:
    """Until a folder holds a single thing."""
    deadline = time.monotonic() + 60
    while len(list(folder.iterdir())) > 1:
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.spec("DB-20")
async def test_two_backups_into_one_folder_take_turns_and_one_is_refused(tmp_path: Path) -> None:
    database = await SqliteDatabase.open(tmp_path / "state" / "openclaw.sqlite")
    await create(Store(database), seed("w0"))
    upkeep = upkeep_of(database, tmp_path)
    outcomes = await asyncio.gather(
        *(upkeep.back_up(tmp_path / "same", lambda _d, _a: None, now_ms=NOON) for _ in range(2)),
        return_exceptions=True,
    )
    assert [type(outcome).__name__ for outcome in outcomes] == ["Manifest", "InvalidRequest"]
    assert await asyncio.to_thread(verify_backup, tmp_path / "same") == outcomes[0]
    await database.close()


async def test_a_backup_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    database = await SqliteDatabase.open(tmp_path / "state" / "openclaw.sqlite")
    store = Store(database)
    await create(store, seed("w0"))
    await store.append("agent:main:w0", tuple(note(f"{n} " + "y" * 60_000) for n in range(60)), now_ms=NOON)
    loop, copying, seen = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def progress(_done: int, _all: int) -> None:
        loop.call_soon_threadsafe(copying.set)
        assert seen.wait(60)

    task = asyncio.create_task(upkeep_of(database, tmp_path).back_up(tmp_path / "b", progress, now_ms=NOON))
    await copying.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    seen.set()
    await asyncio.to_thread(wait_for_one, tmp_path)
    assert (
        await upkeep_of(database, tmp_path).back_up(tmp_path / "b", lambda _d, _a: None, now_ms=NOON)
    ).rows["sessions"] == 1
    await database.close()
