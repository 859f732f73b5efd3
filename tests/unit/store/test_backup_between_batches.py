"""Work on the writing connection itself: after those who wait, outside a transaction, and never half."""

from __future__ import annotations

import asyncio

import apsw
import pytest

from openclaw.errors import StoreClosed, StoreError
from openclaw.store.sqlite import SqliteDatabase
from tests.unit.store.driving import hand_over, held, outcomes, words, written


async def test_people_who_wait_go_first_and_no_transaction_is_open(database: SqliteDatabase) -> None:
    def look(connection: apsw.Connection) -> tuple[bool, int]:
        (count,) = connection.execute("SELECT count(*) FROM meta").fetchall()[0]
        return connection.in_transaction, int(str(count))

    async with held(database):
        looking = asyncio.create_task(database.between_batches(look))
        await asyncio.sleep(0)
        tasks = await hand_over(database, words("a", "b"))
    assert await outcomes(tasks) == ["a", "b"]
    assert await looking == (False, 2)


async def test_a_failure_is_told_and_leaves_nothing_open(database: SqliteDatabase) -> None:
    def fail(connection: apsw.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE").fetchall()
        connection.execute("INSERT INTO meta VALUES ('half', 'done')").fetchall()
        connection.execute("SELECT * FROM nowhere").fetchall()

    with pytest.raises(StoreError, match="nowhere"):
        await database.between_batches(fail)
    assert await outcomes(await hand_over(database, words("whole"))) == ["whole"]
    assert await written(database) == ["whole"]


async def test_a_closed_store_takes_no_work(database: SqliteDatabase) -> None:
    await database.close()
    with pytest.raises(StoreClosed):
        await database.between_batches(lambda connection: None)
