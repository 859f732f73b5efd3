"""The writer: one commit for all that waits, and what happens to the others when one goes wrong."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import apsw
import pytest

from openclaw.errors import StoreBusy, StoreError
from openclaw.store import sqlite
from openclaw.store.database import ConstraintViolated, Transaction, Unit
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance.making import MAIN, create
from tests.unit.store.driving import (
    ENDLESS,
    ENDLESS_INSERT,
    Commits,
    Word,
    batch,
    hand_over,
    held,
    outcomes,
    words,
    written,
)

GATE = 1  # the commit of the unit that held the writer


def refuse(tx: Transaction) -> None:
    tx.run("INSERT INTO meta VALUES ('refused', '')")
    raise ValueError("refused")


def collide(tx: Transaction) -> None:
    tx.run("INSERT INTO meta VALUES ('twice', '')")
    tx.run("INSERT INTO meta VALUES ('twice', '')")


def lose(tx: Transaction) -> None:
    """Take the whole transaction away, savepoints included."""
    tx.run("INSERT INTO meta VALUES ('lost', '')")
    tx.run("ROLLBACK")


# -- one commit ------------------------------------------------------------------------------------


@pytest.mark.spec("DB-14", "DB-15")
async def test_what_waits_together_is_committed_together(database: SqliteDatabase) -> None:
    commits = Commits(database)
    names = [f"w{n:02d}" for n in range(32)]
    units = words(*names)
    assert await batch(database, *units) == names
    assert commits.count - GATE == 1
    assert [unit.ran for unit in units] == [1] * 32
    assert await written(database) == names


async def test_concurrent_writes_need_far_fewer_commits(database: SqliteDatabase) -> None:
    commits = Commits(database)
    await asyncio.gather(*(database.write(unit) for unit in words(*(f"w{n:03d}" for n in range(200)))))
    assert len(await written(database)) == 200
    assert 1 <= commits.count <= 20


async def test_a_batch_is_bounded(database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "MAX_BATCH", 10)
    commits = Commits(database)
    await batch(database, *words(*(f"w{n:02d}" for n in range(25))))
    assert commits.count - GATE == 3
    assert len(await written(database)) == 25


async def test_units_run_in_the_order_of_their_calls(database: SqliteDatabase) -> None:
    order: list[int] = []
    await batch(database, *(lambda tx, n=n: order.append(n) for n in range(50)))
    assert order == list(range(50))


async def test_a_later_unit_sees_what_an_earlier_one_wrote(database: SqliteDatabase) -> None:
    results = await batch(database, Word("first"), lambda tx: tx.rows("SELECT name FROM meta"))
    assert results == ["first", [("first",)]]


@pytest.mark.spec("DB-15", "DB-16")
async def test_nobody_is_answered_before_the_commit(database: SqliteDatabase) -> None:
    async with held(database):
        (task,) = await hand_over(database, words("w"))
        assert not task.done()
        assert await written(database) == []
    assert await outcomes([task]) == ["w"]
    assert await written(database) == ["w"]


# -- one goes wrong --------------------------------------------------------------------------------


@pytest.mark.parametrize("position", [0, 1, 2])
async def test_a_unit_that_fails_hurts_nobody_else(database: SqliteDatabase, position: int) -> None:
    commits = Commits(database)
    for bad, kind, message in ((refuse, ValueError, "refused"), (collide, ConstraintViolated, "UNIQUE")):
        units: list[Word] = words(f"{kind.__name__}-a", f"{kind.__name__}-b")
        mixed: list[Unit[Any]] = [*units]
        mixed.insert(position, bad)
        results = await batch(database, *mixed)
        error = results.pop(position)
        assert isinstance(error, kind)
        assert message in str(error)
        assert results == [unit.name for unit in units]
        assert [unit.ran for unit in units] == [1, 1]
    assert commits.count - 2 * GATE == 2
    assert await written(database) == [
        "ConstraintViolated-a", "ConstraintViolated-b", "ValueError-a", "ValueError-b",
    ]  # fmt: skip


async def test_a_batch_in_which_all_fail_leaves_nothing(database: SqliteDatabase) -> None:
    results = await batch(database, refuse, collide, refuse)
    assert [type(result) for result in results] == [ValueError, ConstraintViolated, ValueError]
    assert await written(database) == []
    assert await database.write(Word("after")) == "after"


async def test_a_unit_that_loses_the_transaction_makes_the_others_run_again(database: SqliteDatabase) -> None:
    commits = Commits(database)
    before, after = words("a", "b"), words("c", "d")
    results = await batch(database, *before, lose, *after)
    assert results[:2] == ["a", "b"]
    assert results[3:] == ["c", "d"]
    assert isinstance(results[2], StoreError)
    # Those before it ran for nothing and run once more; those after it run for the first time.
    assert [unit.ran for unit in before] == [2, 2]
    assert [unit.ran for unit in after] == [1, 1]
    assert await written(database) == ["a", "b", "c", "d"]
    assert commits.count - GATE == 4


async def test_after_a_loss_each_unit_stands_for_itself(database: SqliteDatabase) -> None:
    results = await batch(database, Word("a"), refuse, lose, lose, collide, Word("b"))
    assert [type(result).__name__ for result in results] == [
        "str", "ValueError", "StoreError", "StoreError", "ConstraintViolated", "str",
    ]  # fmt: skip
    assert await written(database) == ["a", "b"]


async def test_a_unit_that_loses_its_savepoint_hurts_nobody_else(database: SqliteDatabase) -> None:
    def drop_savepoint(tx: Transaction) -> None:
        tx.run("INSERT INTO meta VALUES ('stray', '')")
        tx.run("RELEASE unit")
        raise ValueError("no way back")

    results = await batch(database, Word("a"), drop_savepoint, Word("b"))
    assert (results[0], results[2]) == ("a", "b")
    assert isinstance(results[1], ValueError)
    assert await written(database) == ["a", "b"]


@pytest.mark.spec("DB-16")
async def test_a_commit_that_fails_fails_every_caller(database: SqliteDatabase) -> None:
    store = Store(database)
    row = await create(store, MAIN)

    def dangle(tx: Transaction) -> None:
        # Refers to a window that does not exist; the database only looks when it commits.
        tx.run("UPDATE sessions SET window_no = 999")

    results = await batch(database, Word("a"), dangle, Word("b"))
    assert [type(result) for result in results] == [ConstraintViolated] * 3
    assert all("FOREIGN KEY" in str(result) for result in results)
    assert await written(database) == []
    assert await store.session(MAIN.session_key) == row
    with pytest.raises(ConstraintViolated, match="FOREIGN KEY"):
        await database.write(dangle)
    assert await batch(database, Word("a"), Word("b")) == ["a", "b"]


@pytest.mark.parametrize("position", [0, 1])
async def test_an_iterator_that_ran_dry_does_not_leave_callers_waiting(
    database: SqliteDatabase, position: int
) -> None:
    def run_dry(tx: Transaction) -> object:
        return next(iter(()))

    units: list[Unit[Any]] = [Word("a")]
    units.insert(position, run_dry)
    results = await batch(database, *units)
    assert results.pop(1 - position if position == 0 else 0) == "a"
    assert isinstance(results[0], RuntimeError)
    with pytest.raises(RuntimeError, match="StopIteration"):
        await database.read(run_dry)


# -- too slow --------------------------------------------------------------------------------------


async def quick(path: Path) -> SqliteDatabase:
    return await SqliteDatabase.open(path, unit_budget_s=0.05)


async def test_a_write_over_its_budget_takes_the_transaction_and_the_others_run_again(path: Path) -> None:
    database = await quick(path)
    before, after = words("a", "b"), words("c")
    results = await batch(database, *before, lambda tx: tx.run(ENDLESS_INSERT), *after)
    assert (results[:2], results[3:]) == (["a", "b"], ["c"])
    assert isinstance(results[2], StoreBusy)
    assert results[2].message == "a write took longer than 0.05 s and was rolled back"
    assert [unit.ran for unit in (*before, *after)] == [2, 2, 1]
    assert await written(database) == ["a", "b", "c"]
    await database.close()


async def test_a_slow_query_inside_a_write_costs_only_its_own_unit(path: Path) -> None:
    database = await quick(path)
    others = words("a", "b")
    results = await batch(database, others[0], lambda tx: tx.rows(ENDLESS), others[1])
    assert (results[0], results[2]) == ("a", "b")
    assert isinstance(results[1], StoreBusy)
    assert [unit.ran for unit in others] == [1, 1]
    with pytest.raises(StoreBusy):
        await database.write(lambda tx: tx.run(ENDLESS_INSERT))
    assert await written(database) == ["a", "b"]
    assert await database.write(Word("c")) == "c"
    await database.close()


# -- somebody else in the file ---------------------------------------------------------------------


async def test_a_stranger_who_holds_the_file_is_a_busy_store(database: SqliteDatabase) -> None:
    await database.write(lambda tx: tx.run("PRAGMA busy_timeout = 100"))
    stranger = apsw.Connection(database.name)
    stranger.execute("BEGIN IMMEDIATE")
    # The first waits for the file; by the time it gives up, the others wait together.
    results = await outcomes(await hand_over(database, words("a", "b", "c")))
    assert [type(result) for result in results] == [StoreBusy] * 3
    assert results[0].message == (
        f"another program is using {database.name} (database is locked). Close it and try again."
    )
    stranger.execute("ROLLBACK")
    stranger.close()
    assert await batch(database, Word("a"), Word("b")) == ["a", "b"]
    assert await written(database) == ["a", "b"]
