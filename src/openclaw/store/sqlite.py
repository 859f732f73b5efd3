"""The SQLite driver: one writer thread with group commit, a few reader threads.

The writer takes every unit that waits, runs them in one `BEGIN IMMEDIATE` with a
savepoint each, commits once with `synchronous=FULL`, and only then answers. That
is what makes durability cheap. Two things can go wrong in a batch, and both are
handled here and nowhere else:

- a unit fails: its savepoint is rolled back, the others go on;
- an error takes the whole transaction with it (an interrupt, a full disk, an I/O
  error): the other units run again, each in a transaction of its own.

Nothing here runs on the event loop but handing over and resolving futures.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Literal

import apsw

from openclaw.errors import StoreBusy, StoreClosed
from openclaw.store import failpoints
from openclaw.store.database import Priority, Result, Unit
from openclaw.store.line import Call, Line
from openclaw.store.lockfile import OwnerLock
from openclaw.store.sqlite_calls import SqliteTransaction
from openclaw.store.sqlite_file import (
    connect_reader,
    connect_writer,
    ensure_schema,
    prepare_directory,
    translate,
)

MAX_BATCH = 256
MAX_WAITING = 2048
CHECKPOINT_PAGES = 8000  # 8 MB of log
SWITCH_INTERVAL_S = 0.0005  # a busy event loop must not starve the writer of the GIL


class SqliteDatabase:
    """Owns one database file for the life of the process. Create with `open`."""

    def __init__(
        self,
        name: str,
        lock: OwnerLock | None,
        writer: apsw.Connection,
        readers: list[apsw.Connection],
        *,
        busy_timeout_s: float = 60.0,
        unit_budget_s: float = 10.0,
    ) -> None:
        self.name = name
        self._lock = lock
        self._connection = writer
        self._readers = readers
        self._unit_budget_s = unit_budget_s
        self._loop = asyncio.get_running_loop()
        self._line = Line(MAX_WAITING, busy_timeout_s)
        self._work: SimpleQueue[Call[Any] | None] = SimpleQueue()
        self._queries: SimpleQueue[Call[Any] | None] = SimpleQueue()
        self._wal_pages = 0
        self._deadline = 0.0
        # How often was committed, and how many units that carried: figures for whoever watches.
        self.commits = 0
        self.units = 0
        writer.set_wal_hook(self._note_wal)
        writer.set_progress_handler(self._over_budget, 20_000)
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        self._threads = [threading.Thread(target=self._write_forever, name="store-writer", daemon=True)]
        self._threads += [
            threading.Thread(target=self._read_forever, args=(reader,), name=f"store-reader-{n}", daemon=True)
            for n, reader in enumerate(readers)
        ]
        for thread in self._threads:
            thread.start()

    # -- opening and closing -------------------------------------------------------------------

    @classmethod
    async def open(cls, path: Path, *, readers: int = 2, **options: Any) -> SqliteDatabase:
        """Take the owner lock, check or create the file, start the threads. Constant time (PITFALLS A11)."""

        def connect() -> tuple[OwnerLock, apsw.Connection, list[apsw.Connection]]:
            if not path.parent.is_dir():
                prepare_directory(path)
            lock = OwnerLock(path)
            lock.take()
            with ExitStack() as undo:
                undo.callback(lock.release)
                prepare_directory(path)
                writer = connect_writer(str(path))
                undo.callback(writer.close)
                ensure_schema(writer, str(path))
                connections = []
                for _ in range(readers):
                    connections.append(connect_reader(str(path)))
                    undo.callback(connections[-1].close)
                undo.pop_all()
            return lock, writer, connections

        lock, writer, connections = await asyncio.to_thread(connect)
        return cls(str(path), lock, writer, connections, **options)

    @classmethod
    async def open_memory(cls, name: str, *, readers: int = 2, **options: Any) -> SqliteDatabase:
        """A private database in shared memory: nothing on disk, gone when closed."""
        uri = f"file:/{name}?vfs=memdb"
        writer = apsw.Connection(
            uri, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
        )
        writer.execute("PRAGMA foreign_keys = ON").fetchall()
        # Memory has no log: a commit waits for the readers of the moment.
        writer.execute("PRAGMA busy_timeout = 5000").fetchall()
        ensure_schema(writer, uri)
        return cls(uri, None, writer, [connect_reader(uri) for _ in range(readers)], **options)

    async def close(self) -> None:
        """Finish what waits, fold the log into the file, release the lock."""
        if self._line.closed:
            return
        self._line.close()
        self._work.put(None)
        for _ in self._readers:
            self._queries.put(None)
        await asyncio.to_thread(self._join)

    def _join(self) -> None:
        for thread in self._threads:
            thread.join()
        try:
            for reader in self._readers:
                reader.close()
            self._connection.close()
        finally:
            if self._lock is not None:
                self._lock.release()

    # -- the port ------------------------------------------------------------------------------

    async def write(self, unit: Unit[Result], priority: Priority = Priority.USER) -> Result:
        await self._line.enter()
        call: Call[Result] = Call(unit, self._loop.create_future(), priority is Priority.BACKGROUND)
        self._work.put(call)
        return await call.future

    async def read(self, query: Unit[Result]) -> Result:
        await self._line.enter()
        call: Call[Result] = Call(query, self._loop.create_future())
        self._queries.put(call)
        return await call.future

    async def between_batches(self, work: Callable[[apsw.Connection], Result]) -> Result:
        """Run work on the writing connection when no unit waits, outside any transaction and without a limit.

        For what SQLite does in no transaction: VACUUM, and emptying the log. Everybody waits meanwhile.
        """
        await self._line.enter()
        call: Call[Result] = Call(work, self._loop.create_future(), background=True, bare=True)
        self._work.put(call)
        return await call.future

    # -- the writer thread ---------------------------------------------------------------------

    def _write_forever(self) -> None:
        transaction = SqliteTransaction(self._connection)
        background: deque[Call[Any]] = deque()
        closing = False
        while not closing:
            batch, closing = self._take_batch(wait=not background)
            background.extend(call for call in batch if call.background)
            units = [call for call in batch if not call.background]
            if not units and background:
                units = [background.popleft()]
            self._run_batch(transaction, units)
            self._resolve(units)
            self._checkpoint()
        for call in background:
            call.fail(StoreClosed())
        self._resolve(list(background))
        self._checkpoint(everything=True)

    def _take_batch(self, wait: bool) -> tuple[list[Call[Any]], bool]:
        """What waits now, and whether the end has come."""
        batch: list[Call[Any]] = []
        work = self._work
        while (wait and not batch) or (len(batch) < MAX_BATCH and not work.empty()):
            call = work.get()
            if call is None:
                return batch, True
            batch.append(call)
        return batch, False

    def _run_batch(self, transaction: SqliteTransaction, batch: list[Call[Any]]) -> None:
        """Run all units in one commit; fall back to one by one when the transaction was lost."""
        if len(batch) <= 1:
            for call in batch:
                self._run_alone(transaction, call)
            return
        try:
            transaction.run("BEGIN IMMEDIATE")
        except apsw.Error as error:
            for call in batch:
                call.fail(translate(error, self.name))
            return
        failpoints.reach("batch.begun")
        for position, call in enumerate(batch):
            if not self._run_in_savepoint(transaction, call):
                # The whole transaction is gone, savepoints included: what ran before ran for nothing.
                for other in batch[:position] + batch[position + 1 :]:
                    other.result = other.error = None
                    self._run_alone(transaction, other)
                return
        self._commit(transaction, [call for call in batch if call.error is None])

    def _run_in_savepoint(self, transaction: SqliteTransaction, call: Call[Any]) -> bool:
        """Run one unit of a batch. False when it took the transaction with it."""
        try:
            transaction.run("SAVEPOINT unit")
            self._deadline = time.monotonic() + self._unit_budget_s
            call.succeed(call.unit(transaction))
            self._deadline = 0.0
            transaction.run("RELEASE unit")
            failpoints.reach("batch.unit_kept")
            return True
        except BaseException as error:
            # Whatever a unit raises is its caller's to hear: it never ends the writer.
            self._deadline = 0.0
            call.fail(self._explain(error, "write"))
            if not self._connection.in_transaction:
                return False
            return self._back_to_savepoint(transaction)

    def _back_to_savepoint(self, transaction: SqliteTransaction) -> bool:
        """Undo one unit of a batch. False when that is impossible: then the transaction is given up."""
        try:
            transaction.run("ROLLBACK TO unit")
            transaction.run("RELEASE unit")
            return True
        except apsw.Error:
            self._roll_back()
            return False

    def _run_alone(self, transaction: SqliteTransaction, call: Call[Any]) -> None:
        if call.bare:
            try:
                call.succeed(call.unit(self._connection))
            except BaseException as error:
                call.fail(self._explain(error, "write"))
                self._roll_back()
            return
        try:
            transaction.run("BEGIN IMMEDIATE")
            self._deadline = time.monotonic() + self._unit_budget_s
            call.succeed(call.unit(transaction))
        except BaseException as error:
            call.fail(self._explain(error, "write"))
            self._roll_back()
            return
        finally:
            self._deadline = 0.0
        self._commit(transaction, [call])

    def _commit(self, transaction: SqliteTransaction, batch: list[Call[Any]]) -> None:
        """A failed commit fails every caller of the batch: nobody is told that it is safe."""
        try:
            failpoints.reach("commit.ahead")
            transaction.run("COMMIT")
            failpoints.reach("commit.done")
            self.commits += 1
            self.units += len(batch)
        except apsw.Error as error:
            self._roll_back()
            for call in batch:
                call.fail(translate(error, self.name))

    def _roll_back(self) -> None:
        if not self._connection.in_transaction:
            return
        # A disk that fails here too must not end the writer: the next BEGIN then fails, and says so.
        with suppress(apsw.Error):
            self._connection.execute("ROLLBACK").fetchall()

    def _explain(self, error: BaseException, doing: Literal["write", "read"]) -> BaseException:
        if isinstance(error, apsw.InterruptError):
            undone = " and was rolled back" if doing == "write" else ""
            return StoreBusy(f"a {doing} took longer than {self._unit_budget_s:g} s{undone}")
        return translate(error, self.name) if isinstance(error, apsw.Error) else error

    def _over_budget(self) -> bool:
        return self._deadline != 0.0 and time.monotonic() > self._deadline

    def _note_wal(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self._wal_pages = pages
        return apsw.SQLITE_OK

    def _checkpoint(self, everything: bool = False) -> None:
        if self._wal_pages < CHECKPOINT_PAGES and not everything:
            return
        mode = apsw.SQLITE_CHECKPOINT_TRUNCATE if everything else apsw.SQLITE_CHECKPOINT_PASSIVE
        try:
            failpoints.reach("checkpoint.ahead")
            self._connection.wal_checkpoint(mode=mode)
            failpoints.reach("checkpoint.done")
            self._wal_pages = 0
        except apsw.Error:
            # The log keeps everything; the next batch tries again.
            return

    # -- the reader threads --------------------------------------------------------------------

    def _read_forever(self, connection: apsw.Connection) -> None:
        transaction = SqliteTransaction(connection)
        deadline = 0.0
        connection.set_progress_handler(lambda: deadline != 0.0 and time.monotonic() > deadline, 20_000)
        while (call := self._queries.get()) is not None:
            try:
                deadline = time.monotonic() + self._unit_budget_s
                transaction.run("BEGIN")
                call.succeed(call.unit(transaction))
            except BaseException as error:
                call.fail(self._explain(error, "read"))
            deadline = 0.0
            # A disk that fails here too must not end the reader: the next BEGIN then fails, and says so.
            with suppress(apsw.Error):
                if connection.in_transaction:
                    transaction.run("ROLLBACK")
            self._resolve([call])

    # -- answers -------------------------------------------------------------------------------

    def _resolve(self, calls: list[Call[Any]]) -> None:
        if calls:
            failpoints.reach("answer.ahead")
            self._line.answer(calls)
