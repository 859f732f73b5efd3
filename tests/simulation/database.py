"""A database driver for the simulation: the real schema on one connection in memory, all in virtual time.

It behaves as the SQLite driver does: units are written in the order in which they came, several in one
commit, answered together and only after it; a caller that goes away leaves its unit behind; reads see what
is committed at their moment. How long each part takes, and which unit fails, is drawn from the seed.
The connection outlives a crashed process, as a disk does.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any

import apsw
from msgspec import Struct

from openclaw.errors import StoreBusy, StoreError, StoreFull
from openclaw.store.database import Priority, Result, Unit
from openclaw.store.sqlite_calls import SqliteTransaction
from openclaw.store.sqlite_file import ensure_schema, translate

NAME = "simulated"
_DELAYS_MS = (0, 0, 0, 1, 1, 2, 5)
Rows = list[tuple[Any, ...]]


class Faults(Struct):
    """How often what goes wrong; changed by the actors."""

    failing: float = 0.0
    reading: float = 0.0
    again: float = 0.0
    broken: bool = False  # the disk is full: every write fails


class Image:
    """The committed state: what a crash leaves behind."""

    def __init__(self) -> None:
        self.connection = apsw.Connection(":memory:")
        self.connection.execute("PRAGMA foreign_keys = ON").fetchall()
        ensure_schema(self.connection, NAME)
        self._cursor = self.connection.cursor()

    def peek(self, sql: str, *params: Any) -> Rows:
        """Look at the rows from outside: no time passes and nobody notices."""
        return self._cursor.execute(sql, params).fetchall()

    def one(self, sql: str, *params: Any) -> Any:
        found = self.peek(sql, *params)
        return found[0][0] if found else None

    def close(self) -> None:
        self.connection.close()


class _Call:
    def __init__(self, unit: Callable[[Any], Any], future: asyncio.Future[Any]) -> None:
        self.unit = unit
        self.future = future
        self.result: Any = None
        self.error: BaseException | None = None


class SimulatedDatabase:
    """The `Database` port of one process. `dead`: the process crashed, nothing is written any more."""

    def __init__(self, image: Image, rng: Random, faults: Faults, on_fault: Callable[[str], None]) -> None:
        self._image = image
        self._rng = rng
        self._faults = faults
        self._on_fault = on_fault
        self._transaction = SqliteTransaction(image.connection)
        self._waiting: deque[_Call] = deque()
        self._pumping = False
        self.dead = False
        self.commits = 0

    async def write(self, unit: Unit[Result], priority: Priority = Priority.USER) -> Result:
        loop = asyncio.get_running_loop()
        call = _Call(unit, loop.create_future())
        self._waiting.append(call)
        if not self._pumping:
            self._pumping = True
            loop.call_later(self._delay_s(), self._pump)
        result: Result = await call.future
        return result

    async def read(self, query: Unit[Result]) -> Result:
        loop = asyncio.get_running_loop()
        call = _Call(query, loop.create_future())
        loop.call_later(self._delay_s(), self._look, call)
        result: Result = await call.future
        return result

    async def close(self) -> None:
        """The image stays."""

    def _delay_s(self) -> float:
        return self._rng.choice(_DELAYS_MS) / 1000

    # -- the writer ----------------------------------------------------------------------------

    def _pump(self) -> None:
        """Commit some of what waits, and answer them together a little later."""
        self._pumping = False
        if self.dead:
            return
        loop = asyncio.get_running_loop()
        batch = [
            self._waiting.popleft() for _ in range(min(len(self._waiting), self._rng.choice((1, 1, 2, 8))))
        ]
        for call in batch:
            self._commit(call)
        loop.call_later(self._delay_s(), self._answer, batch)
        if self._waiting:
            self._pumping = True
            loop.call_later(self._delay_s(), self._pump)

    def _commit(self, call: _Call) -> None:
        transaction = self._transaction
        failure = self._failure()
        try:
            if self._rng.random() < self._faults.again:
                # A lost transaction: the unit runs for nothing and once more.
                transaction.run("BEGIN IMMEDIATE")
                call.unit(transaction)
                transaction.run("ROLLBACK")
            transaction.run("BEGIN IMMEDIATE")
            call.result = call.unit(transaction)
            if failure is not None:
                self._on_fault("store failure")
                raise failure
            transaction.run("COMMIT")
            self.commits += 1
        except Exception as error:
            call.error = translate(error, NAME) if isinstance(error, apsw.Error) else error
            if self._image.connection.in_transaction:
                transaction.run("ROLLBACK")

    def _failure(self) -> StoreError | None:
        if self._faults.broken:
            return StoreFull()
        if self._rng.random() < self._faults.failing:
            return self._rng.choice((StoreFull(), StoreBusy(), StoreError("disk I/O error")))
        return None

    # -- the readers ---------------------------------------------------------------------------

    def _look(self, call: _Call) -> None:
        if self.dead:
            return
        transaction = self._transaction
        transaction.run("BEGIN")
        try:
            if self._rng.random() < self._faults.reading:
                self._on_fault("read failure")
                raise StoreError("disk I/O error while reading")
            call.result = call.unit(transaction)
        except Exception as error:
            call.error = translate(error, NAME) if isinstance(error, apsw.Error) else error
        transaction.run("ROLLBACK")
        asyncio.get_running_loop().call_later(self._delay_s(), self._answer, [call])

    def _answer(self, calls: list[_Call]) -> None:
        for call in calls:
            if call.future.done() or self.dead:
                continue  # the caller went away
            if call.error is None:
                call.future.set_result(call.result)
            else:
                call.future.set_exception(call.error)
