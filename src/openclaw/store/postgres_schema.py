"""Reaching a PostgreSQL database: with which settings, whose it is, what it holds, and what its errors mean.

Everything that can be wrong with the ground is found here, before the first unit
runs, and told in one sentence with the way out. A database that is not understood
is never written to, and no message shows a password.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg import conninfo
from psycopg.abc import Buffer
from psycopg.adapt import Dumper
from psycopg.pq import Format

from openclaw.errors import (
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreReadOnly,
    StoreTooNew,
)
from openclaw.store.database import ConstraintViolated
from openclaw.store.statements import load_statements, read_sql

SQL = load_statements("postgres.sql")
SCHEMA_VERSION = 1
OLDEST_SERVER = 140000
_OWNER, _WORKER = "owner", "worker"
LOCK_PATIENCE_S = 2.0  # a server needs a moment to notice that a killed gateway is gone

Connection = psycopg.Connection[tuple[Any, ...]]

_KEEP_ALIVE: dict[str, Any] = {
    "connect_timeout": "10", "keepalives_idle": "10", "keepalives_interval": "5", "keepalives_count": "3",
}  # fmt: skip
_CONSTRAINTS = {"23505": "UNIQUE", "23503": "FOREIGN KEY", "23502": "NOT NULL", "23514": "CHECK"}
_KEY = re.compile(r"\(([\w, ]+)\)=\(")  # of the detail `Key (a, b)=(1, 2) already exists.`
_BUSY = {
    "57014": "a statement took too long and was rolled back",
    "55P03": "another transaction held a lock for too long",
    "25P03": "the server ended a transaction that stood still",
    "25P04": "the server ended a transaction that took too long",
    "40001": "other writes changed the same rows again and again",
    "40P01": "other writes locked the same rows again and again",
    "53200": "the server is out of memory",
    "53300": "the server has no connection left",
}


# -- parameters ------------------------------------------------------------------------------------
# Every parameter is sent without a type: the statement decides, as it does in SQLite, and there is one
# prepared plan for each statement, whichever parameters are absent.


class _Number(Dumper):
    def dump(self, obj: Any) -> Buffer | None:
        return b"%d" % obj


class _Decimal(Dumper):
    def dump(self, obj: Any) -> Buffer | None:
        return repr(float(obj)).encode("ascii")


class _Text(Dumper):
    def dump(self, obj: Any) -> Buffer | None:
        # PostgreSQL has no NUL in text. Bodies are bytes and keep it.
        return str(obj).replace("\0", "\ufffd").encode("utf-8")


class _Bytes(Dumper):
    format = Format.BINARY

    def dump(self, obj: Any) -> Buffer | None:
        return bytes(obj)


_DUMPERS: tuple[tuple[type, type[Dumper]], ...] = (
    (int, _Number), (bool, _Number), (float, _Decimal), (str, _Text), (bytes, _Bytes),
)  # fmt: skip


# -- connecting ------------------------------------------------------------------------------------


def name_of(url: str) -> str:
    """What people may see of a connection string: where, and which database."""
    try:
        parts = conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        raise StoreError(
            "store.url is not a PostgreSQL address; use postgresql://user@host/database"
        ) from None
    return f"postgresql://{parts.get('host') or 'localhost'}/{parts.get('dbname') or ''}"


def connect(url: str, *, budget_s: float, lock_patience_s: float) -> Connection:
    """A connection in autocommit: transactions are begun and ended by the driver's own statements."""
    given = conninfo.conninfo_to_dict(url)
    with translated(name_of(url)):
        connection = psycopg.connect(
            url,
            autocommit=True,
            prepare_threshold=1,
            **{name: value for name, value in _KEEP_ALIVE.items() if name not in given},
        )
        connection.prepared_max = 400
        connection.cursor_factory = psycopg.RawCursor
        for python_type, dumper in _DUMPERS:
            connection.adapters.register_dumper(python_type, dumper)
        limits = (f"{int(budget_s * 1000)}ms", f"{int(lock_patience_s * 1000)}ms")
        try:
            connection.execute(SQL["set_up"].encode(), limits)
        except BaseException:
            connection.close()
            raise
    return connection


def ask(connection: Connection, name: str, *params: Any) -> list[tuple[Any, ...]]:
    """Run a statement of the driver's own."""
    cursor = connection.execute(SQL[name].encode(), params)
    return cursor.fetchall() if cursor.description is not None else []


# -- one gateway per database ----------------------------------------------------------------------


class Ownership:
    """Makes one gateway the owner of a database schema (OWN-6), by two locks that end with their connections.

    The owner's connection holds the first lock. Every connection that works for the owner shares the second
    one, which a new owner must have had for itself: so a gateway that lost its own lock, but not all of its
    connections, cannot write beside its successor.
    """

    def __init__(self, url: str, name: str) -> None:
        self._url = url
        self._name = name
        self._connection: Connection | None = None
        self._mutex = threading.Lock()

    def take(self) -> Connection:
        """Become the owner, or raise StoreLocked. Returns the connection that holds the lock."""
        connection = self._connect()
        try:
            for lock in (_OWNER, _WORKER):
                self._lock(connection, lock)
            with translated(self._name):
                ask(connection, "unlock", _WORKER)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def admit(self, worker: Connection) -> None:
        """Let a new connection work for the owner; StoreLocked when another gateway took the database."""
        with translated(self._name):
            shared = ask(worker, "share", _WORKER)
        if shared != [(True,)]:
            raise self._locked(None)
        with self._mutex:
            self._still_owner()

    def release(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _still_owner(self) -> None:
        """Ask on the owner's own connection. If it broke, the lock is free or another's: take it or fail."""
        assert self._connection is not None
        try:
            ask(self._connection, "alive")
        except psycopg.Error:
            self._connection.close()
            connection = self._connect()
            try:
                self._lock(connection, _OWNER)
            except BaseException:
                connection.close()
                raise
            self._connection = connection

    def _connect(self) -> Connection:
        return connect(self._url, budget_s=60.0, lock_patience_s=LOCK_PATIENCE_S)

    def _lock(self, connection: Connection, lock: str) -> None:
        try:
            ask(connection, "lock", lock)
        except psycopg.errors.LockNotAvailable:
            raise self._locked(connection) from None
        except psycopg.Error as error:
            raise translate(error, self._name) from error

    def _locked(self, connection: Connection | None) -> StoreLocked:
        holders: list[tuple[Any, ...]] = []
        if connection is not None:
            # Who it is, is a courtesy: that the lock is taken stays true without it.
            with suppress(psycopg.Error):
                holders = ask(connection, "holders")
        where = f" (connected from {', '.join(row[0] for row in holders)})" if holders else ""
        return StoreLocked(
            f"another gateway{where} owns {self._name}. Stop it, or use another database in store.url.",
            path=self._name,
        )


# -- what the database holds -----------------------------------------------------------------------


def ensure_schema(connection: Connection, name: str) -> None:
    """Create the baseline in an empty schema; leave our own as it is; refuse everything else untouched."""
    with translated(name):
        _check_server(connection, name)
        if not _recognise(connection, name):
            script = _read_schema().encode()
            with connection.transaction():
                connection.execute(script)
                ask(connection, "stamp", SCHEMA_VERSION)


def _read_schema() -> str:
    try:
        return read_sql("schema_postgres.sql")
    except OSError as error:
        raise StoreBusy(
            f"the schema of openclaw cannot be read ({error.strerror}). "
            "Check how many files are open, and try again."
        ) from error


def _check_server(connection: Connection, name: str) -> None:
    if connection.info.server_version < OLDEST_SERVER:
        raise StoreError(
            f"{name}: PostgreSQL {connection.info.server_version // 10000} is too old; use 14 or newer"
        )
    ((encoding, schema, read_only),) = ask(connection, "server")
    if encoding != "UTF8":
        raise StoreError(f"{name} has the encoding {encoding}. Create the database with ENCODING 'UTF8'.")
    if schema is None:
        raise StoreError(f"{name}: no schema of its search_path exists. Create one, or name it in store.url.")
    if read_only:
        raise StoreReadOnly(
            f"{name} is read-only, such as a standby. Use the primary in store.url.", path=name
        )


def _recognise(connection: Connection, name: str) -> bool:
    """True for a schema of ours, False for an empty one; only reads."""
    tables = ask(connection, "tables")
    if not tables:
        return False
    if ("openclaw_schema",) not in tables:
        raise StoreCorrupt(
            f"{name} holds tables of another program. It was not changed. "
            "Give openclaw a database or a schema of its own in store.url.",
            path=name,
        )
    ((found,),) = ask(connection, "version")
    if found is None or found > SCHEMA_VERSION:
        raise StoreTooNew(
            f"{name} has schema {found}, this openclaw understands {SCHEMA_VERSION}. "
            "Upgrade openclaw; nothing was changed.",
            path=name,
        )
    return True


# -- errors ----------------------------------------------------------------------------------------


@contextmanager
def translated(name: str) -> Iterator[None]:
    """Turn the driver's errors into ours inside the block."""
    try:
        yield
    except psycopg.Error as error:
        raise translate(error, name) from error


def translate(error: psycopg.Error, name: str) -> StoreError:
    """One of our errors, with the way out, for what PostgreSQL said."""
    state = error.sqlstate or ""
    text = error.diag.message_primary or str(error).strip().partition("\n")[0]
    if state.startswith("23"):
        return ConstraintViolated(f"{_CONSTRAINTS.get(state, 'database')} constraint failed: {_where(error)}")
    if state == "53100":
        return StoreFull(f"the disk of {name} is full. Free some space and try again.")
    if state in _BUSY:
        return StoreBusy(f"{name}: {_BUSY[state]}. Try again.")
    if state in ("25006", "42501"):
        return StoreReadOnly(f"{name} cannot be written ({text}). Check the rights of its user.", path=name)
    if state in ("XX001", "XX002"):
        return StoreCorrupt(f"{name} is damaged ({text}). Restore a backup of the database.", path=name)
    if is_lost(error):
        return StoreBusy(
            f"the connection to {name} failed ({text}). Check that the server runs, and try again."
        )
    return StoreError(f"{name}: {text}", path=name)


def _where(error: psycopg.Error) -> str:
    """The columns of the constraint, as SQLite names them, or else its name. Never the values."""
    diag = error.diag
    table = diag.table_name or ""
    key = _KEY.search(diag.message_detail or "")
    columns = key.group(1) if key else diag.column_name
    if columns:
        return ", ".join(f"{table}.{column}" for column in columns.split(", "))
    return (diag.constraint_name or "").removeprefix(f"{table}_")


def is_lost(error: psycopg.Error) -> bool:
    """Whether the connection is gone, and the transaction with it."""
    state = error.sqlstate
    if state is None:
        return isinstance(error, psycopg.OperationalError)
    return state.startswith("08") or state in ("57P01", "57P02", "57P03", "57P05", "25P03", "25P04")


def may_succeed_again(error: psycopg.Error) -> bool:
    """Whether the same unit can succeed when it is run again: it lost against another transaction."""
    return error.sqlstate in ("40001", "40P01") or is_lost(error)
