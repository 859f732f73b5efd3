"""Opening a SQLite database file: who owns it, what it is, and with which settings.

Everything that can be wrong with the file is found here, before the first unit
runs, and told in one sentence with the way out. A file that is not understood is
never written to (PITFALLS A9).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from openclaw.errors import StoreBusy, StoreCorrupt, StoreError, StoreFull, StoreReadOnly, StoreTooNew
from openclaw.store.database import ConstraintViolated
from openclaw.store.lockfile import unusable
from openclaw.store.statements import read_sql

SCHEMA_VERSION = 1
APPLICATION_ID = 0x4F434C57  # "OCLW", so that a foreign database is recognised
PAGE_CACHE_KIB = 16_384  # of each connection; behind it stands the cache of the operating system
SAFE_SQLITE = 3_051_003  # the release that fixed the WAL-reset corruption (PITFALLS A4)


def prepare_directory(database: Path) -> None:
    """Create the state directory (0700) and the empty file (0600) before any connection exists."""
    try:
        if not database.parent.is_dir():
            database.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
        os.close(os.open(database, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise unusable(database.parent, error) from error


def connect_writer(database: str) -> apsw.Connection:
    """The only connection that writes and checkpoints. A file that is not ours is refused untouched."""
    with translated(database):
        connection = apsw.Connection(database, statementcachesize=256)
    try:
        # Neither the first setting nor closing may write to a file that is not understood.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        recognise(connection, database)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        _set_up_writer(connection, database)
    except BaseException:
        connection.close()
        raise
    return connection


def _set_up_writer(connection: apsw.Connection, database: str) -> None:
    with translated(database):
        # Small pages: a commit writes every page it touched, and a message is a few hundred bytes.
        _pragma(connection, "page_size = 1024")
        _pragma(connection, "journal_mode = WAL")
        _plan_once(connection)
        _pragma(connection, "synchronous = FULL")
        _pragma(connection, "foreign_keys = ON")
        _pragma(connection, "secure_delete = ON")
        _pragma(connection, "busy_timeout = 5000")
        _pragma(connection, f"cache_size = -{PAGE_CACHE_KIB}")
        _pragma(connection, "temp_store = MEMORY")
        # Checkpoints run between batches, never inside somebody's commit.
        connection.wal_autocheckpoint(0)
        _pragma(connection, f"journal_size_limit = {16 << 20}")


def connect_reader(database: str) -> apsw.Connection:
    with translated(database):
        connection = apsw.Connection(database, flags=_READER_FLAGS, statementcachesize=256)
        try:
            _pragma(connection, "query_only = ON")
            _plan_once(connection)
            _pragma(connection, "busy_timeout = 5000")
            _pragma(connection, f"cache_size = -{PAGE_CACHE_KIB}")
            connection.wal_autocheckpoint(0)
        except BaseException:
            # Left alone it would be closed at some later moment, and lock out whoever opens the file then.
            connection.close()
            raise
        return connection


def _plan_once(connection: apsw.Connection) -> None:
    """Keep the plan of a statement: else many are planned anew whenever a value is bound (decision 0017)."""
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)


_TABLE = re.compile(r"^CREATE (?:VIRTUAL )?TABLE (\w+)", re.MULTILINE)
_READER_FLAGS = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI


def ensure_schema(connection: apsw.Connection, database: str) -> None:
    """Create the baseline in an empty file; leave our own as it is, unless a table of it is missing."""
    try:
        script = read_sql("schema.sql")
    except OSError as error:
        raise unusable(Path(database).parent, error) from error
    if not recognise(connection, database):
        with translated(database):
            _create(connection, script)
        return
    with translated(database):
        there = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema").fetchall()}
    missing = sorted(set(_TABLE.findall(script)) - there)
    if missing:
        raise StoreCorrupt(
            f"{database} was made by an earlier state of this version and has no table {missing[0]}. It was "
            "not changed. Use it with the openclaw that made it, or move it away to start empty.",
            path=database,
        )


def recognise(connection: apsw.Connection, database: str) -> bool:
    """True for a database of ours, False for an empty file. Everything else is refused; only reads."""
    with translated(database):
        version = _number(connection, "user_version")
        application = _number(connection, "application_id")
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()[0][0]
    if version == 0 and tables == 0:
        return False
    if application != APPLICATION_ID:
        raise StoreCorrupt(
            f"{database} is a SQLite database of another program. It was not changed. "
            "Move it away or set OPENCLAW_STATE_DIR.",
            path=database,
        )
    if version > SCHEMA_VERSION:
        raise StoreTooNew(
            f"{database} has schema {version}, this openclaw understands {SCHEMA_VERSION}. "
            "Upgrade openclaw; nothing was changed.",
            path=database,
        )
    return True


def _create(connection: apsw.Connection, script: str) -> None:
    connection.execute("BEGIN IMMEDIATE").fetchall()
    connection.execute(script).fetchall()
    connection.execute("INSERT INTO search (search, rank) VALUES ('secure-delete', 1)").fetchall()
    _pragma(connection, f"application_id = {APPLICATION_ID}")
    _pragma(connection, f"user_version = {SCHEMA_VERSION}")
    connection.execute("COMMIT").fetchall()


def _pragma(connection: apsw.Connection, text: str) -> None:
    connection.execute("PRAGMA " + text).fetchall()


def _number(connection: apsw.Connection, pragma: str) -> int:
    value = connection.pragma(pragma)
    assert isinstance(value, int)
    return value


@contextmanager
def translated(database: str) -> Iterator[None]:
    """Turn the driver's errors into ours inside the block."""
    try:
        yield
    except apsw.Error as error:
        raise translate(error, database) from error


def translate(error: apsw.Error, database: str) -> StoreError:
    """One of our errors, with the way out, for what SQLite said."""
    text = str(error)
    if isinstance(error, apsw.FullError):
        return StoreFull(f"the disk is full: {database} could not grow. Free some space and try again.")
    if isinstance(error, apsw.CantOpenError):
        return StoreReadOnly(
            f"{database} cannot be opened ({text}). Check its permissions, and how many files are open.",
            path=database,
        )
    if isinstance(error, apsw.ReadOnlyError | apsw.PermissionsError):
        return StoreReadOnly(f"{database} cannot be written ({text}). Check its permissions.", path=database)
    if isinstance(error, apsw.NotADBError | apsw.CorruptError):
        return StoreCorrupt(
            f"{database} is damaged or not a database ({text}). It was not changed. "
            "Restore a backup, or move the file away to start empty.",
            path=database,
        )
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return StoreBusy(f"another program is using {database} ({text}). Close it and try again.")
    if isinstance(error, apsw.ConstraintError):
        return ConstraintViolated(text)
    return StoreError(f"{database}: {text}", path=database)
