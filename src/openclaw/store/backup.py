"""Backup and restore of a SQLite store: a consistent copy made while people write, and proof that it is one.

A backup is a folder with one self-contained database file and a manifest that states
its point in time, its counts and its hash. The copy reads one snapshot in steps
through SQLite itself, so the writer never waits for it (DB-20). A restore replaces
the file in one rename and never throws an old one away.

Files of a database in use are opened by SQLite alone (docs/topics/durability.md).
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import shutil
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import apsw
import msgspec
from msgspec import Struct

from openclaw import __version__
from openclaw.errors import InvalidRequest, StoreCorrupt, StoreTooNew, Unavailable
from openclaw.store.lockfile import OwnerLock
from openclaw.store.manifest import Manifest, Progress
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.sqlite_calls import SqliteTransaction
from openclaw.store.sqlite_file import (
    SCHEMA_VERSION,
    connect_reader,
    connect_writer,
    prepare_directory,
    recognise,
    translated,
)

DATABASE_NAME = "openclaw.sqlite"
MANIFEST_NAME = "manifest.json"
STEP_PAGES = 512  # 1 MB of 2 KB pages
STEP_REST_S = 0.001
_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
_INDEX = ("search", "search_data", "search_idx", "search_config", "search_docsize", "search_content")
_HOLDS_SOMETHING = ("sessions", "windows", "inbox", "usage", "jobs", "devices")


class Restored(Struct, frozen=True, rename="camel"):
    """A restore that was done; `kept` is where the store that was there before is now."""

    manifest: Manifest
    database: str
    kept: str | None


def _ignore(_done: int, _total: int) -> None:
    """For those who do not watch."""


# -- create ----------------------------------------------------------------------------------------


async def create_backup(
    database: SqliteDatabase, folder: Path, *, now_ms: int, progress: Progress = _ignore
) -> Manifest:
    """Copy an open database into a new folder and verify the copy. Callers go on writing meanwhile.

    The folder appears complete or not at all. `progress` is called from a thread with pages done and all.
    Cancelling ends the copy at its next step and leaves nothing.
    """
    given_up = threading.Event()
    try:
        return await asyncio.to_thread(_create, database.name, folder, now_ms, progress, given_up)
    except asyncio.CancelledError:
        given_up.set()
        raise


def _create(
    source: str, folder: Path, now_ms: int, progress: Progress, given_up: threading.Event
) -> Manifest:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidRequest(f"{folder} is not empty; name a folder that does not exist yet")
    partial = folder.with_name(f".{folder.name}.partial-{os.getpid()}")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(mode=0o700, parents=True)
    try:
        copy = partial / DATABASE_NAME
        os.close(os.open(copy, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        _copy(source, copy, progress, given_up)
        manifest = _describe(copy, now_ms)
        _write_synced(partial / MANIFEST_NAME, msgspec.json.format(msgspec.json.encode(manifest), indent=2))
        verify_backup(partial)
        _sync_folder(partial)
        partial.rename(folder)
        _sync_folder(folder.parent)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return manifest


def _copy(source: str, copy: Path, progress: Progress, given_up: threading.Event) -> None:
    with translated(str(copy)), contextlib.ExitStack() as open_ones:
        reader = connect_reader(source)
        open_ones.callback(reader.close)
        target = apsw.Connection(str(copy))
        open_ones.callback(target.close)
        # One snapshot for the whole copy: otherwise every commit of the writer would start it again.
        reader.execute("BEGIN; SELECT count(*) FROM meta").fetchall()
        with target.backup("main", reader, "main") as copying:
            while not copying.done:
                if given_up.is_set():
                    raise Unavailable("the backup was given up; nothing of it is left")
                copying.step(STEP_PAGES)
                progress(copying.page_count - copying.remaining, copying.page_count)
                time.sleep(STEP_REST_S)
        reader.execute("ROLLBACK").fetchall()
        # A file that needs no log beside it can be read where nothing may be written.
        target.execute("PRAGMA journal_mode = DELETE").fetchall()


def _describe(copy: Path, now_ms: int) -> Manifest:
    connection = _open_copy(copy)
    try:
        with translated(str(copy)):
            rows = _count_rows(connection)
            [(admission, entry_no)] = SqliteTransaction(connection).rows(
                "SELECT (SELECT coalesce(max(admission), 0) FROM inbox), "
                "(SELECT coalesce(max(entry_no), 0) FROM entries)"
            )
    finally:
        connection.close()
    size = copy.stat().st_size
    return Manifest(
        1, SCHEMA_VERSION, __version__, now_ms, admission, entry_no, rows, size, _hash(copy)
    )  # fmt: skip


# -- verify ----------------------------------------------------------------------------------------


def verify_backup(folder: Path) -> Manifest:
    """Show that a backup is whole: hash, structure, counts. Changes nothing; raises what is wrong."""
    manifest = read_manifest(folder)
    copy = folder / DATABASE_NAME
    if not copy.is_file():
        raise _damaged(folder, f"{DATABASE_NAME} is missing")
    if copy.stat().st_size != manifest.size:
        raise _damaged(folder, f"{DATABASE_NAME} has {copy.stat().st_size} bytes instead of {manifest.size}")
    if _hash(copy) != manifest.sha256:
        raise _damaged(folder, f"{DATABASE_NAME} is not the file that was written")
    connection = _open_copy(copy)
    try:
        with translated(str(copy)):
            if not recognise(connection, str(copy)):
                raise _damaged(folder, f"{DATABASE_NAME} is empty")
            complaints = connection.execute("PRAGMA integrity_check(3)").fetchall()
            if complaints != [("ok",)]:
                raise _damaged(folder, "; ".join(str(line) for (line,) in complaints))
            if _count_rows(connection) != manifest.rows:
                raise _damaged(folder, "the rows are not as many as the manifest says")
    finally:
        connection.close()
    return manifest


def read_manifest(folder: Path) -> Manifest:
    path = folder / MANIFEST_NAME
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
    except FileNotFoundError:
        raise InvalidRequest(f"{folder} is not a backup: it has no {MANIFEST_NAME}") from None
    except (msgspec.DecodeError, NotADirectoryError) as error:
        raise _damaged(folder, f"{MANIFEST_NAME} cannot be read ({error})") from error
    if manifest.schema_version > SCHEMA_VERSION or manifest.format != 1:
        raise StoreTooNew(
            f"{folder} was made by openclaw {manifest.openclaw[:40]}, which is newer than this one. "
            "Upgrade openclaw; nothing was changed.",
            path=str(folder),
        )
    return manifest


def _damaged(folder: Path, why: str) -> StoreCorrupt:
    return StoreCorrupt(f"the backup in {folder} is damaged: {why}. Use another one.", path=str(folder))


# -- restore ---------------------------------------------------------------------------------------


def restore_backup(folder: Path, database: Path, *, now_ms: int, force: bool = False) -> Restored:
    """Put a backup in the place of a store that nobody uses. Takes the owner lock for the time it needs.

    A store that holds something is only replaced with `force`, and is then kept beside the new one
    (DB-17). A crash at any moment leaves either the old store or the new one.
    """
    manifest = verify_backup(folder)
    if not database.parent.is_dir():
        prepare_directory(database)
    lock = OwnerLock(database)
    lock.take()
    try:
        there = database.exists() and database.stat().st_size > 0
        if there and not force and _holds_something(database):
            raise InvalidRequest(
                f"{database} holds a store already; use --force to replace it (the old one is kept beside it)"
            )
        fresh = database.with_name(database.name + ".restoring")
        _copy_file(folder / DATABASE_NAME, fresh)
        if _hash(fresh) != manifest.sha256:
            fresh.unlink()
            raise _damaged(folder, "it changed while it was read")
        kept = _keep_aside(database, now_ms) if there else None
        fresh.replace(database)
        _sync_folder(database.parent)
    finally:
        lock.release()
    return Restored(manifest, str(database), None if kept is None else str(kept))


def _holds_something(database: Path) -> bool:
    """Whether replacing a file would lose anything. What cannot be read may hold everything."""
    try:
        connection = connect_writer(str(database))
    except Exception:
        return True
    try:
        if not recognise(connection, str(database)):
            return False
        counts = _count_rows(connection)
        return any(counts.get(table) for table in _HOLDS_SOMETHING)
    finally:
        connection.close()


def _keep_aside(database: Path, now_ms: int) -> Path:
    """A second name for the old store, so that there is no moment without one."""
    with contextlib.suppress(Exception):
        connect_writer(str(database)).close()  # folds a log that a crash left into the file
    stamp = datetime.fromtimestamp(now_ms / 1000, UTC).isoformat(timespec="milliseconds")
    stamp = stamp.replace("+00:00", "Z").replace(":", "-")
    kept = database.with_name(f"{database.name}.bak.{stamp}")
    os.link(database, kept)
    log = database.with_name(database.name + "-wal")
    if log.exists():
        log.rename(kept.with_name(kept.name + "-wal"))
    database.with_name(database.name + "-shm").unlink(missing_ok=True)
    return kept


# -- files -----------------------------------------------------------------------------------------


def _open_copy(copy: Path) -> apsw.Connection:
    with translated(str(copy)):
        return apsw.Connection(str(copy), flags=apsw.SQLITE_OPEN_READONLY)


def _count_rows(connection: apsw.Connection) -> dict[str, int]:
    """Rows by table. The tables inside the search index are left to the check of the structure."""
    tx = SqliteTransaction(connection)
    counts = {}
    for (name,) in tx.rows(_TABLES):
        if name not in _INDEX:
            counts[name] = tx.rows("SELECT count(*) FROM " + '"' + name.replace('"', '""') + '"')[0][0]
    return counts


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _copy_file(source: Path, target: Path) -> None:
    with source.open("rb") as reading, _create_private(target) as writing:
        shutil.copyfileobj(reading, writing, 1 << 20)
        writing.flush()
        os.fsync(writing.fileno())


def _write_synced(path: Path, data: bytes) -> None:
    with _create_private(path) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _create_private(path: Path) -> BinaryIO:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    return os.fdopen(descriptor, "wb")


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
