"""Readers, the log and the settings: consistent snapshots, a bounded log, everything folded at the end."""

from __future__ import annotations

import asyncio
import stat
import threading
from pathlib import Path

import apsw
import pytest

from openclaw.errors import StoreBusy, StoreError, StoreReadOnly
from openclaw.store import sqlite
from openclaw.store.database import Transaction
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.sqlite_file import SAFE_SQLITE
from tests.unit.store.driving import ENDLESS, PATIENCE_S, Gate, Word, outcomes, words, written

COUNT = "SELECT count(*) FROM meta"


def beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


# -- reads -----------------------------------------------------------------------------------------


@pytest.mark.spec("DB-14")
@pytest.mark.parametrize(
    "sql",
    ["INSERT INTO meta VALUES ('x', '')", "DELETE FROM sessions", "CREATE TABLE t (a)", "DROP TABLE meta"],
)
async def test_a_reader_cannot_write(database: SqliteDatabase, sql: str) -> None:
    await database.write(Word("kept"))
    with pytest.raises(StoreReadOnly, match="cannot be written"):
        await database.read(lambda tx: tx.run(sql))
    assert await written(database) == ["kept"]


async def test_a_query_that_fails_leaves_its_reader_usable(database: SqliteDatabase) -> None:
    def fail(tx: Transaction) -> None:
        tx.rows(COUNT)
        raise LookupError("not what was looked for")

    for _ in range(5):
        with pytest.raises(LookupError, match="not what was looked for"):
            await database.read(fail)
        with pytest.raises(StoreError, match="no such table: elsewhere"):
            await database.read(lambda tx: tx.rows("SELECT * FROM elsewhere"))
    await database.write(Word("w"))
    assert await written(database) == ["w"]


async def test_a_query_that_ends_its_own_transaction_is_forgiven(database: SqliteDatabase) -> None:
    for _ in range(4):
        assert await database.read(lambda tx: tx.rows("ROLLBACK")) == []
    assert await written(database) == []


async def test_a_read_over_its_budget_is_stopped(path: Path) -> None:
    database = await SqliteDatabase.open(path, unit_budget_s=0.05)
    results = await outcomes(
        [asyncio.create_task(database.read(lambda tx: tx.row(ENDLESS))) for _ in range(3)]
    )
    assert [type(result) for result in results] == [StoreBusy] * 3
    assert await written(database) == []
    await database.close()


async def test_a_read_sees_one_moment(database: SqliteDatabase) -> None:
    await database.write(Word("before"))
    looked, changed = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def look_twice(tx: Transaction) -> tuple[object, object]:
        first = tx.row(COUNT)
        loop.call_soon_threadsafe(looked.set)
        assert changed.wait(PATIENCE_S)
        return first, tx.row(COUNT)

    reading = asyncio.create_task(database.read(look_twice))
    await asyncio.wait_for(looked.wait(), PATIENCE_S)
    await database.write(Word("meanwhile"))
    assert await database.read(lambda tx: tx.row(COUNT)) == (2,)
    changed.set()
    assert await asyncio.wait_for(reading, PATIENCE_S) == ((1,), (1,))
    assert await database.read(lambda tx: tx.row(COUNT)) == (2,)


async def test_a_reader_that_stands_still_stops_neither_writes_nor_other_reads(
    database: SqliteDatabase,
) -> None:
    gate = Gate()
    reading = asyncio.create_task(database.read(gate))
    await asyncio.wait_for(gate.entered.wait(), PATIENCE_S)
    for unit in words("a", "b", "c"):
        await asyncio.wait_for(database.write(unit), PATIENCE_S)
    assert await asyncio.wait_for(written(database), PATIENCE_S) == ["a", "b", "c"]
    gate.open()
    assert await reading == "passed"


async def test_more_reads_than_readers(database: SqliteDatabase) -> None:
    async def echo(number: int) -> object:
        return await database.read(lambda tx: tx.row("SELECT $1", (number,)))

    assert await asyncio.gather(*map(echo, range(100))) == [(n,) for n in range(100)]


async def test_a_row_that_is_not_there_is_none(database: SqliteDatabase) -> None:
    assert await database.read(lambda tx: tx.row("SELECT value FROM meta")) is None
    await database.write(Word("w"))
    assert await database.read(lambda tx: tx.row("SELECT value FROM meta")) == ("written",)


async def test_memory_serves_readers_and_the_writer_together() -> None:
    database = await SqliteDatabase.open_memory("together")
    names = [f"w{n:03d}" for n in range(150)]
    reads = [database.read(lambda tx: tx.row(COUNT)) for _ in range(300)]
    results = await asyncio.gather(*(database.write(unit) for unit in words(*names)), *reads)
    assert results[:150] == names
    assert await written(database) == names
    await database.close()
    again = await SqliteDatabase.open_memory("together")
    assert await written(again) == []
    await again.close()


# -- the log ---------------------------------------------------------------------------------------


def fill(tx: Transaction) -> None:
    tx.run("INSERT OR REPLACE INTO meta VALUES ('filler', hex(randomblob(30000)))")


@pytest.mark.spec("DB-12")
async def test_the_log_is_folded_while_running_and_stays_bounded(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "CHECKPOINT_PAGES", 50)
    database = await SqliteDatabase.open(path)
    sizes = []
    for _ in range(60):
        await database.write(fill)
        sizes.append(beside(path, "-wal").stat().st_size)
    assert 0 < max(sizes) < 1_000_000  # 60 times 60 kB went through it
    assert len(set(sizes[30:])) <= 2
    await database.close()
    assert sqlite.CHECKPOINT_PAGES == 50


async def test_a_pinned_log_grows_but_loses_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "CHECKPOINT_PAGES", 20)
    database = await SqliteDatabase.open(path)
    gate = Gate()

    def pin(tx: Transaction) -> str:
        tx.row(COUNT)
        return gate(tx)

    reading = asyncio.create_task(database.read(pin))
    await asyncio.wait_for(gate.entered.wait(), PATIENCE_S)
    for n in range(30):
        await database.write(fill)
        await database.write(Word(f"w{n:02d}"))
    pinned = beside(path, "-wal").stat().st_size
    gate.open()
    await reading
    for _ in range(3):
        await database.write(fill)
    assert len(await written(database)) == 31
    assert beside(path, "-wal").stat().st_size <= pinned + 200_000
    await database.close()


@pytest.mark.spec("DB-16")
async def test_closing_folds_the_log_into_the_file(path: Path) -> None:
    database = await SqliteDatabase.open(path)
    await asyncio.gather(*(database.write(unit) for unit in words(*(f"w{n:03d}" for n in range(100)))))
    assert beside(path, "-wal").stat().st_size > 0
    await database.close()
    assert {item.name for item in path.parent.iterdir()} == {"openclaw.sqlite", "openclaw.sqlite.lock"}
    copy = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    assert copy.execute(COUNT).fetchall() == [(100,)]
    assert copy.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    copy.close()


async def test_a_log_that_cannot_be_folded_at_the_end_is_kept(path: Path) -> None:
    database = await SqliteDatabase.open(path)
    await database.write(lambda tx: tx.run("PRAGMA busy_timeout = 1"))
    stranger = apsw.Connection(str(path))
    stranger.execute("BEGIN").execute(COUNT).fetchall()
    await database.write(Word("kept"))
    await database.close()
    assert beside(path, "-wal").stat().st_size > 0
    stranger.close()
    again = await SqliteDatabase.open(path)
    assert await written(again) == ["kept"]
    await again.close()


# -- settings --------------------------------------------------------------------------------------


@pytest.mark.spec("DB-12")
async def test_the_settings_of_both_kinds_of_connection(database: SqliteDatabase, path: Path) -> None:
    def pragmas(tx: Transaction) -> dict[str, object]:
        names = ("journal_mode", "synchronous", "foreign_keys", "secure_delete", "busy_timeout", "query_only",
                 "wal_autocheckpoint")  # fmt: skip
        return {name: (tx.row(f"PRAGMA {name}") or (None,))[0] for name in names}

    assert await database.write(pragmas) == {
        "journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "secure_delete": 1,
        "busy_timeout": 5000, "query_only": 0, "wal_autocheckpoint": 0,
    }  # fmt: skip
    reader = await database.read(pragmas)
    assert (reader["query_only"], reader["busy_timeout"], reader["wal_autocheckpoint"]) == (1, 5000, 0)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    for suffix in ("", "-wal", "-shm", ".lock"):
        assert stat.S_IMODE(beside(path, suffix).stat().st_mode) == 0o600


def test_the_linked_sqlite_has_no_reset_bug() -> None:
    assert apsw.SQLITE_VERSION_NUMBER >= SAFE_SQLITE == 3_051_003
