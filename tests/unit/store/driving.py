"""Ways to put the driver into a known position: hold its writer, count its commits, write one word."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from openclaw.store.database import Priority, Transaction, Unit
from openclaw.store.sqlite import SqliteDatabase

PATIENCE_S = 60
# Never ends by itself; as an INSERT it takes the whole transaction with it when it is interrupted.
_COUNTING = "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c)"
ENDLESS = f"{_COUNTING} SELECT count(*) FROM c"
ENDLESS_INSERT = f"INSERT INTO meta {_COUNTING} SELECT 'n' || n, '' FROM c"


class Gate:
    """A unit that stands still in its thread until it is let go."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._open = threading.Event()

    def __call__(self, tx: Transaction) -> str:
        self._loop.call_soon_threadsafe(self.entered.set)
        assert self._open.wait(PATIENCE_S), "nobody opened the gate"
        return "passed"

    def open(self) -> None:
        self._open.set()


@asynccontextmanager
async def held(database: SqliteDatabase) -> AsyncIterator[Gate]:
    """The writer stands still inside the block: what is written meanwhile becomes one batch."""
    gate = Gate()
    standing = asyncio.create_task(database.write(gate))
    await asyncio.wait_for(gate.entered.wait(), PATIENCE_S)
    try:
        yield gate
    finally:
        gate.open()
    assert await asyncio.wait_for(standing, PATIENCE_S) == "passed"


async def hand_over(
    database: SqliteDatabase, units: Iterable[Unit[Any]], priority: Priority = Priority.USER
) -> list[asyncio.Task[Any]]:
    """Start writes in this order and return when all of them wait for the writer."""
    tasks: list[asyncio.Task[Any]] = [asyncio.create_task(database.write(unit, priority)) for unit in units]
    await asyncio.sleep(0)
    return tasks


async def outcomes(tasks: Iterable[asyncio.Task[Any]]) -> list[Any]:
    """Results and errors, in order."""
    return await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), PATIENCE_S)


async def batch(database: SqliteDatabase, *units: Unit[Any]) -> list[Any]:
    """Run units in one batch of the writer; results and errors, in order."""
    async with held(database):
        tasks = await hand_over(database, units)
    return await outcomes(tasks)


class Word:
    """A unit that writes one row, and how often it ran."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.ran = 0

    def __call__(self, tx: Transaction) -> str:
        self.ran += 1
        tx.run("INSERT INTO meta VALUES ($1, 'written')", (self.name,))
        return self.name


def words(*names: str) -> list[Word]:
    return [Word(name) for name in names]


async def written(database: SqliteDatabase) -> list[str]:
    """The words that are there, in the order of the alphabet."""
    return [row[0] for row in await database.read(lambda tx: tx.rows("SELECT name FROM meta ORDER BY name"))]


class Commits:
    """Counts the commits of the writing connection. A held writer has one of its own, before the batch."""

    def __init__(self, database: SqliteDatabase) -> None:
        self.count = 0
        database._connection.set_commit_hook(self._note)

    def _note(self) -> bool:
        self.count += 1
        return False
