"""The PostgreSQL driver: one writing thread, a few reading threads, each with a connection of its own.

Units are written in the order in which they were handed over. What waits at the
same time shares one SERIALIZABLE transaction with a savepoint each, so that all of
it is flushed to disk together; only then are the callers answered. Three things
can go wrong, and they are handled here and nowhere else:

- a unit fails: its savepoint is rolled back, the others go on;
- the transaction is lost before its end (it met another one, the connection
  broke): the units run again, each in a transaction of its own, at most five times;
- the connection breaks during the commit: nobody knows the outcome, so nobody is
  told that it is safe, and nothing is run twice.

Nothing here runs on the event loop but handing over and resolving futures.
"""

from __future__ import annotations

import asyncio
import random
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any

import psycopg

from openclaw.errors import StoreBusy, StoreError
from openclaw.store.database import Priority, Result, Row, Unit
from openclaw.store.line import Call, Line
from openclaw.store.postgres_calls import Queries, Writes
from openclaw.store.postgres_schema import (
    Connection,
    Ownership,
    connect,
    ensure_schema,
    is_lost,
    may_succeed_again,
    name_of,
    translate,
)
from openclaw.store.statements import load_variants

ATTEMPTS = 5
MAX_BATCH = 48  # a server remembers up to 64 savepoints of a transaction cheaply
MAX_WAITING = 2048
PAUSE_S = 0.01  # before the second attempt; doubled for each further one
SWITCH_INTERVAL_S = 0.0005  # a busy event loop must not starve the threads of the GIL

_BEGIN_WRITE = "BEGIN ISOLATION LEVEL SERIALIZABLE"
_BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_VARIANTS = (
    load_variants("search_sqlite.sql", "search_postgres.sql")
    | load_variants("sessions.sql", "sessions_postgres.sql")
    | load_variants("purging.sql", "purging_postgres.sql")
)


class PostgresTransaction:
    """The Transaction port over one connection, used by one thread."""

    __slots__ = ("_budget_s", "_cursor", "_deadline")

    def __init__(self, connection: Connection, budget_s: float) -> None:
        self._cursor = psycopg.RawCursor(connection)
        self._budget_s = budget_s
        self._deadline = 0.0

    def start_clock(self) -> None:
        """Give the unit that begins now its whole time."""
        self._deadline = time.monotonic() + self._budget_s

    def rows(self, sql: str, params: Row = ()) -> list[Row]:
        if time.monotonic() > self._deadline:
            raise StoreBusy(f"a unit took longer than {self._budget_s:g} s and was rolled back")
        cursor = self._cursor.execute(_VARIANTS.get(sql, sql).encode(), params, binary=True)
        return cursor.fetchall() if cursor.description is not None else []

    def row(self, sql: str, params: Row = ()) -> Row | None:
        found = self.rows(sql, params)
        return found[0] if found else None

    def run(self, sql: str, params: Row = ()) -> None:
        self.rows(sql, params)

    def control(self, sql: str) -> str | None:
        """BEGIN, COMMIT and the like: outside the budget. Returns what the server did."""
        return self._cursor.execute(sql.encode()).statusmessage


class _OutcomeUnknown(Exception):
    """The connection broke during a commit."""


class _Worker:
    """One thread's connection, opened when it is first needed and again when it broke."""

    def __init__(
        self, name: str, open_connection: Callable[[], Connection], begin: str, budget_s: float
    ) -> None:
        self._name = name
        self._open = open_connection
        self._begin = begin
        self._budget_s = budget_s
        self._connection: Connection | None = None
        self._transaction: PostgresTransaction | None = None

    def run(self, batch: list[Call[Any]]) -> None:
        """Run calls and leave in each its result or its error."""
        if len(batch) > 1 and self._run_together(batch):
            return
        for call in batch:
            self._run_alone(call)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = self._transaction = None

    # -- together --------------------------------------------------------------------------------

    def _run_together(self, batch: list[Call[Any]]) -> bool:
        """All units in one commit. False when they must run one by one: then nothing of it happened."""
        try:
            transaction = self._connected()
        except StoreError as error:
            for call in batch:
                call.fail(error)
            return True
        try:
            transaction.control(f"{self._begin}; SAVEPOINT unit")
            for call in batch:
                self._run_in_savepoint(transaction, call)
            self._commit(transaction)
            return True
        except _OutcomeUnknown:
            for call in batch:
                if call.error is None:
                    call.fail(self._unknown())
            return True
        except (psycopg.Error, StoreError):
            self._roll_back()
            return False

    def _run_in_savepoint(self, transaction: PostgresTransaction, call: Call[Any]) -> None:
        """Run one unit after the savepoint that stands, and leave one for the next unit."""
        transaction.start_clock()
        try:
            call.succeed(call.unit(transaction))
        except BaseException as error:
            # Whatever a unit raises is its caller's to hear: it never ends the thread.
            if isinstance(error, psycopg.Error) and may_succeed_again(error):
                raise
            transaction.control("ROLLBACK TO unit")
            call.fail(self._explain(error))
            return
        transaction.control("RELEASE unit; SAVEPOINT unit")

    # -- alone -----------------------------------------------------------------------------------

    def _run_alone(self, call: Call[Any]) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                transaction = self._connected()
                transaction.control(self._begin)
                transaction.start_clock()
                result = call.unit(transaction)
                self._commit(transaction)
                call.succeed(result)
                return
            except _OutcomeUnknown:
                call.fail(self._unknown())
                return
            except BaseException as error:
                self._roll_back()
                call.fail(self._explain(error))
                if not (isinstance(error, psycopg.Error) and may_succeed_again(error)):
                    return
            if attempt < ATTEMPTS:
                # Those who met each other must not meet again at the same moment.
                time.sleep(PAUSE_S * 2**attempt * random.random())

    # -- the connection --------------------------------------------------------------------------

    def _connected(self) -> PostgresTransaction:
        if self._connection is None or self._transaction is None or self._connection.closed:
            self._connection = self._open()
            self._transaction = PostgresTransaction(self._connection, self._budget_s)
        return self._transaction

    def _commit(self, transaction: PostgresTransaction) -> None:
        try:
            done = transaction.control("COMMIT")
        except psycopg.Error as error:
            if is_lost(error):
                self.close()
                raise _OutcomeUnknown from error
            raise
        if done != "COMMIT":
            # The server answers so when a statement failed and the unit went on regardless.
            raise StoreError("a unit of work hid an error; it was rolled back")

    def _roll_back(self) -> None:
        """Ready for the next transaction, on a new connection if this one does not answer."""
        if self._transaction is None:
            return
        try:
            self._transaction.control("ROLLBACK")
        except psycopg.Error:
            with suppress(psycopg.Error):
                self.close()

    def _explain(self, error: BaseException) -> BaseException:
        return translate(error, self._name) if isinstance(error, psycopg.Error) else error

    def _unknown(self) -> StoreError:
        return StoreError(
            f"the connection to {self._name} broke during the commit: "
            "it is not known whether this was stored. Look before trying again."
        )


class PostgresDatabase:
    """Owns one database (or one schema of it) for the life of the process. Create with `open`."""

    def __init__(
        self, url: str, ownership: Ownership, *, readers: int, writers: int, busy_timeout_s: float,
        unit_budget_s: float,
    ) -> None:  # fmt: skip
        self.name = name_of(url)
        self._url = url
        self._ownership = ownership
        self._budget_s = unit_budget_s
        self._loop = asyncio.get_running_loop()
        self._line = Line(MAX_WAITING, busy_timeout_s)
        self._writes = Writes(MAX_BATCH if writers == 1 else 1)
        self._queries = Queries()
        self._readers, self._writers = readers, writers
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        self._threads = [
            threading.Thread(target=self._serve, args=serving, name=f"store-{n}", daemon=True)
            for n, serving in enumerate(
                [(self._writes, _BEGIN_WRITE)] * writers + [(self._queries, _BEGIN_READ)] * readers
            )
        ]
        for thread in self._threads:
            thread.start()

    # -- opening and closing -------------------------------------------------------------------

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        readers: int = 2,
        writers: int = 1,
        busy_timeout_s: float = 60.0,
        unit_budget_s: float = 10.0,
    ) -> PostgresDatabase:
        """Become the owner, check or create the schema, start the threads.

        With several writers units run at once, and their order is no longer the order of the callers.
        """

        def take() -> Ownership:
            ownership = Ownership(url, name_of(url))
            with ExitStack() as undo:
                undo.callback(ownership.release)
                ensure_schema(ownership.take(), name_of(url))
                undo.pop_all()
            return ownership

        ownership = await asyncio.to_thread(take)
        return cls(
            url,
            ownership,
            readers=readers,
            writers=writers,
            busy_timeout_s=busy_timeout_s,
            unit_budget_s=unit_budget_s,
        )

    async def close(self) -> None:
        """Finish what people wait for, close the connections, let the next gateway in."""
        if self._line.closed:
            return
        self._line.close()
        self._writes.end(self._writers)
        self._queries.end(self._readers)
        await asyncio.to_thread(self._join)

    def _join(self) -> None:
        for thread in self._threads:
            thread.join()
        self._line.answer(self._writes.abandon())
        self._ownership.release()

    # -- the port ------------------------------------------------------------------------------

    async def write(self, unit: Unit[Result], priority: Priority = Priority.USER) -> Result:
        await self._line.enter()
        call: Call[Result] = Call(unit, self._loop.create_future(), priority is Priority.BACKGROUND)
        self._writes.put(call)
        return await call.future

    async def read(self, query: Unit[Result]) -> Result:
        await self._line.enter()
        call: Call[Result] = Call(query, self._loop.create_future())
        self._queries.put(call)
        return await call.future

    # -- the threads ---------------------------------------------------------------------------

    def _serve(self, source: Writes | Queries, begin: str) -> None:
        worker = _Worker(self.name, self._open_connection, begin, self._budget_s)
        while batch := source.take():
            worker.run(batch)
            self._line.answer(batch)
        worker.close()

    def _open_connection(self) -> Connection:
        connection = connect(self._url, budget_s=self._budget_s, lock_patience_s=self._budget_s)
        try:
            self._ownership.admit(connection)
        except BaseException:
            connection.close()
            raise
        return connection
