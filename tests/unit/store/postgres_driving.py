"""Ways to put the PostgreSQL driver into a known position."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from openclaw.store.database import Database, Priority, Transaction, Unit
from openclaw.store.postgres import PostgresDatabase
from tests.fakes.postgres_server import shared_server
from tests.unit.store.driving import PATIENCE_S, Gate


@asynccontextmanager
async def opened(url: str, **options: Any) -> AsyncIterator[PostgresDatabase]:
    database = await PostgresDatabase.open(url, **options)
    try:
        yield database
    finally:
        await database.close()


@asynccontextmanager
async def own_database() -> AsyncIterator[str]:
    """The address of a new database that a test may break."""
    server = shared_server()
    url = server.create()
    try:
        yield url
    finally:
        server.drop(url)


@asynccontextmanager
async def held(database: Database) -> AsyncIterator[None]:
    """The writer stands still inside the block: what is written meanwhile becomes one batch."""
    gate = Gate()
    standing = asyncio.create_task(database.write(gate))
    await asyncio.wait_for(gate.entered.wait(), PATIENCE_S)
    try:
        yield
    finally:
        gate.open()
    assert await asyncio.wait_for(standing, PATIENCE_S) == "passed"


async def hand_over(
    database: Database, units: Iterable[Unit[Any]], priority: Priority = Priority.USER
) -> list[asyncio.Task[Any]]:
    """Start writes in this order and return when all of them wait for the writer."""
    tasks: list[asyncio.Task[Any]] = [asyncio.create_task(database.write(unit, priority)) for unit in units]
    await asyncio.sleep(0)
    return tasks


async def batch(database: Database, *units: Unit[Any]) -> list[Any]:
    """Run units in one batch of the writer; results and errors, in order."""
    async with held(database):
        tasks = await hand_over(database, units)
    return await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), PATIENCE_S)


async def written(database: Database) -> list[str]:
    """The words that are there, in the order of the alphabet."""
    return [row[0] for row in await database.read(lambda tx: tx.rows("SELECT name FROM meta ORDER BY name"))]


class Trouble:
    """A unit that meets trouble the first `times` times, and then writes its name."""

    def __init__(self, name: str, trouble: str, times: int = 1) -> None:
        self.name = name
        self.ran = 0
        self._trouble = trouble
        self._times = times

    def __call__(self, tx: Transaction) -> str:
        self.ran += 1
        tx.run("INSERT INTO meta VALUES ($1, 'written')", (self.name,))
        if self.ran <= self._times:
            tx.run(self._trouble)
        return self.name


def raising(code: str) -> str:
    """A statement that fails with this code, as the server would say it."""
    return f"DO $$ BEGIN RAISE EXCEPTION 'planted' USING ERRCODE = '{code}'; END $$"


BREAK = "SELECT pg_terminate_backend(pg_backend_pid())"
