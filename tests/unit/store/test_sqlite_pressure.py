"""Under pressure: bounded waiting, background work that yields, callers that go away, and closing."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path

import pytest

from openclaw.errors import StoreBusy, StoreClosed
from openclaw.store import sqlite
from openclaw.store.database import Priority, Transaction
from openclaw.store.sqlite import SWITCH_INTERVAL_S, SqliteDatabase
from openclaw.store.store import Store
from tests.unit.store.driving import (
    PATIENCE_S,
    Commits,
    Gate,
    Word,
    hand_over,
    held,
    outcomes,
    words,
    written,
)

# -- bounded slots ---------------------------------------------------------------------------------


@pytest.mark.spec("DB-14")
async def test_past_the_bound_a_caller_is_told_that_the_store_is_busy(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "MAX_WAITING", 3)
    database = await SqliteDatabase.open(path, busy_timeout_s=0.05)
    turned_away = Word("turned away")
    for kept in ("ab", "cd"):  # the second time every place is free again
        async with held(database):
            tasks = await hand_over(database, words(*kept))
            with pytest.raises(StoreBusy) as caught:
                await database.write(turned_away)
            with pytest.raises(StoreBusy):
                await database.read(turned_away)
        assert (caught.value.code, caught.value.retryable) == ("STORE_BUSY", True)
        assert caught.value.message == "session busy: the store did not get to this write in time"
        assert await outcomes(tasks) == list(kept)
    assert turned_away.ran == 0
    await database.close()


async def test_a_caller_past_the_bound_waits_for_a_free_place(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "MAX_WAITING", 2)
    database = await SqliteDatabase.open(path)
    units = words(*(f"w{n:02d}" for n in range(30)))
    async with held(database):
        tasks = await hand_over(database, units)
        assert not any(task.done() for task in tasks)
    assert await outcomes(tasks) == [unit.name for unit in units]
    assert await written(database) == [unit.name for unit in units]
    await database.close()


async def test_who_waits_for_a_place_while_the_store_closes_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "MAX_WAITING", 1)
    database = await SqliteDatabase.open(path)
    async with held(database):
        late = await hand_over(database, words("a", "b", "c", "d", "e"))
        closing = asyncio.create_task(database.close())
        await asyncio.sleep(0)
    # All of them are told at once, not when their patience is over.
    assert [type(result) for result in await outcomes(late)] == [StoreClosed] * 5
    await closing
    again = await SqliteDatabase.open(path)
    assert await written(again) == []
    await again.close()


async def test_who_leaves_the_line_does_not_take_the_place_of_the_next(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "MAX_WAITING", 1)
    database = await SqliteDatabase.open(path)
    gate = Gate()
    (standing,) = await hand_over(database, [gate])
    await asyncio.wait_for(gate.entered.wait(), PATIENCE_S)
    first, second = await hand_over(database, words("first", "second"))
    # The caller of `standing` leaves, its place is taken until it is done; `first` does not wait that long.
    standing.cancel()
    asyncio.get_running_loop().call_soon(first.cancel)
    gate.open()
    assert await outcomes([second]) == ["second"]
    assert [type(result) for result in await outcomes([standing, first])] == [asyncio.CancelledError] * 2
    assert await written(database) == ["second"]
    await database.close()


# -- background ------------------------------------------------------------------------------------


async def test_background_work_waits_for_people(database: SqliteDatabase) -> None:
    order: list[str] = []

    def noting(name: str) -> Word:
        class Noting(Word):
            def __call__(self, tx: Transaction) -> str:
                order.append(self.name)
                return super().__call__(tx)

        return Noting(name)

    commits = Commits(database)
    async with held(database):
        slow = await hand_over(database, [noting("slow-1")], Priority.BACKGROUND)
        quick = await hand_over(database, [noting("quick-1")])
        slow += await hand_over(database, [noting("slow-2"), noting("slow-3")], Priority.BACKGROUND)
        quick += await hand_over(database, [noting("quick-2")])
    await outcomes(quick + slow)
    assert order == ["quick-1", "quick-2", "slow-1", "slow-2", "slow-3"]
    # The two of the people share a commit; each background unit has its own, so that nobody waits for many.
    assert commits.count == 1 + 1 + 3


async def test_people_go_before_the_next_background_unit(database: SqliteDatabase) -> None:
    order: list[str] = []
    gate = Gate()

    def first(tx: Transaction) -> None:
        order.append("slow-1")
        gate(tx)

    slow = await hand_over(database, [first, lambda tx: order.append("slow-2")], Priority.BACKGROUND)
    await asyncio.wait_for(gate.entered.wait(), PATIENCE_S)
    quick = await hand_over(database, [lambda tx: order.append("quick")])
    gate.open()
    await outcomes(slow + quick)
    assert order == ["slow-1", "quick", "slow-2"]


async def test_closing_finishes_what_people_wait_for_and_refuses_the_background(path: Path) -> None:
    database = await SqliteDatabase.open(path)
    background = words("slow-1", "slow-2")
    async with held(database):
        slow = await hand_over(database, background, Priority.BACKGROUND)
        quick = await hand_over(database, words("a", "b"))
        reads = [asyncio.create_task(database.read(lambda tx: tx.row("SELECT 1"))) for _ in range(5)]
        await asyncio.sleep(0)
        closing = asyncio.create_task(database.close())
        await asyncio.sleep(0)
        with pytest.raises(StoreClosed):
            await database.write(Word("late"))
    assert await outcomes(quick) == ["a", "b"]
    assert await outcomes(reads) == [(1,)] * 5
    assert [type(result) for result in await outcomes(slow)] == [StoreClosed, StoreClosed]
    assert [unit.ran for unit in background] == [0, 0]
    await closing
    again = await SqliteDatabase.open(path)
    assert await written(again) == ["a", "b"]
    await again.close()


async def test_a_closed_store_refuses_and_closing_twice_is_harmless(path: Path) -> None:
    database = await SqliteDatabase.open(path)
    await Store(database).close()
    await database.close()
    for call in (database.write(Word("w")), database.read(lambda tx: tx.row("SELECT 1"))):
        with pytest.raises(StoreClosed) as caught:
            await call
        assert (caught.value.code, caught.value.message) == ("STORE_CLOSED", "The store is closed.")
    assert not any(thread.is_alive() for thread in database._threads)


# -- callers that go away --------------------------------------------------------------------------


async def test_a_cancelled_caller_does_not_break_the_writer(database: SqliteDatabase) -> None:
    gone, stays = words("gone", "stays")
    async with held(database):
        tasks = await hand_over(database, [gone, stays])
        tasks[0].cancel()
        await asyncio.sleep(0)
    results = await outcomes(tasks)
    assert isinstance(results[0], asyncio.CancelledError)
    assert results[1] == "stays"
    # What was handed over is done all the same: the caller left, the unit did not.
    assert (gone.ran, stays.ran) == (1, 1)
    assert await written(database) == ["gone", "stays"]
    assert await database.write(Word("more")) == "more"


async def test_cancelled_callers_give_their_places_back(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "MAX_WAITING", 2)
    database = await SqliteDatabase.open(path, busy_timeout_s=PATIENCE_S)
    for _ in range(3):
        async with held(database):
            tasks = await hand_over(database, [lambda tx: None, lambda tx: None])
            for task in tasks:
                task.cancel()
        await outcomes(tasks)
    assert await outcomes(await hand_over(database, words("a", "b", "c"))) == ["a", "b", "c"]
    await database.close()


async def test_a_cancelled_reader_does_not_break_the_readers(database: SqliteDatabase) -> None:
    gates = [Gate(), Gate()]
    reads = [asyncio.create_task(database.read(gate)) for gate in gates]
    for gate in gates:
        await asyncio.wait_for(gate.entered.wait(), PATIENCE_S)
    reads[0].cancel()
    waits = asyncio.create_task(database.read(lambda tx: tx.row("SELECT 7")))
    await asyncio.sleep(0)
    for gate in gates:
        gate.open()
    assert isinstance((await outcomes(reads))[0], asyncio.CancelledError)
    assert await outcomes([waits]) == [(7,)]


def test_a_loop_that_is_gone_loses_nothing_that_was_committed(path: Path) -> None:
    release = threading.Event()

    def slow(tx: Transaction) -> None:
        tx.run("INSERT INTO meta VALUES ('kept', '')")
        assert release.wait(PATIENCE_S)

    async def leave() -> SqliteDatabase:
        database = await SqliteDatabase.open(path)
        await hand_over(database, [slow])
        return database

    database = asyncio.run(leave())
    release.set()
    database._work.put(None)
    for _ in database._readers:
        database._queries.put(None)
    database._join()

    async def look() -> list[str]:
        again = await SqliteDatabase.open(path)
        found = await written(again)
        await again.close()
        return found

    assert asyncio.run(look()) == ["kept"]


async def test_a_busy_loop_does_not_starve_the_writer(database: SqliteDatabase) -> None:
    """The interpreter switches threads so often that the writer gets its turn (docs/topics/design.md)."""
    assert sys.getswitchinterval() == pytest.approx(SWITCH_INTERVAL_S)
    assert SWITCH_INTERVAL_S == 0.0005
