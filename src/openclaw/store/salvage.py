"""Two repairs of a SQLite file that nobody uses: save what can be read of a damaged one, and give space back.

Both hold the owner lock for as long as they work. A damaged file is never written
to: what can be read of it goes into a new file, which then takes its place, and the
old one stays beside it under another name. Nothing here runs in a gateway.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import apsw
import msgspec
from msgspec import Struct

from openclaw.domain.searchtext import index_text, searchable_text
from openclaw.errors import InvalidRequest, StoreFull
from openclaw.store import search
from openclaw.store.database import Row
from openclaw.store.lockfile import OwnerLock
from openclaw.store.sqlite_calls import SqliteTransaction
from openclaw.store.sqlite_file import connect_writer, ensure_schema, prepare_directory, recognise, translated

SIDE_FILES = ("-wal", "-shm")
MOST_PROBLEMS = 20
# So many times a table is asked for what stands behind a damaged page.
MOST_TRIES = 4000
SHORT_SPAN = 256
PAGE = 1000
_LAST_ROWID = 2**62
Keep = Callable[[Row], None]
_UNREADABLE = (apsw.CorruptError, apsw.NotADBError, apsw.IOError)


class Recovered(Struct, frozen=True, rename="camel"):
    """What became of a file. Without damage nothing was done; `kept_as` is where the damaged file is now."""

    ok: bool
    damaged: bool
    problems: tuple[str, ...]
    rows: dict[str, int]
    dropped: int
    kept_as: str | None = None


class Compacted(Struct, frozen=True, rename="camel"):
    before_bytes: int
    after_bytes: int


# -- compact ---------------------------------------------------------------------------------------


def compact(path: Path) -> Compacted:
    """Rewrite the file without free pages, and empty its log. Needs as much space again meanwhile."""
    with _owned(path):
        before = _size(path)
        free = shutil.disk_usage(path.parent).free
        if free < before:
            raise StoreFull(
                f"compacting needs {before} free bytes beside {path}, there are {free}; free some space"
            )
        with closing(connect_writer(str(path))) as connection, translated(str(path)):
            connection.execute("INSERT INTO search (search) VALUES ('optimize')").fetchall()
            connection.execute("VACUUM").fetchall()
            connection.execute("PRAGMA optimize").fetchall()
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        return Compacted(before, _size(path))


def _size(path: Path) -> int:
    files = (path, *(path.with_name(path.name + end) for end in SIDE_FILES))
    return sum(file.stat().st_size for file in files if file.exists())


@contextmanager
def _owned(path: Path) -> Iterator[None]:
    """Hold the lock. Raises StoreLocked when a gateway runs, InvalidRequest when there is no file."""
    if not path.exists():
        raise InvalidRequest(f"there is no database {path}")
    lock = OwnerLock(path)
    lock.take()
    try:
        yield
    finally:
        lock.release()


# -- recover ---------------------------------------------------------------------------------------


def recover(path: Path, stamp: str) -> Recovered:
    """Put a readable file in the place of a damaged one, which becomes `<name>.damaged-<stamp>`.

    A file that is whole is left alone. Raises StoreCorrupt where nothing of it can be understood.
    """
    with _owned(path):
        problems = find_damage(path)
        if not problems:
            return Recovered(ok=True, damaged=False, problems=(), rows={}, dropped=0)
        fresh = path.with_name(f"{path.name}.recovering")
        _remove(fresh)
        with translated(str(fresh)):
            rows, dropped = _copy(path, fresh)
        left = find_damage(fresh)
        if left:
            return Recovered(ok=False, damaged=True, problems=left, rows=rows, dropped=dropped)
        kept = _free_name(path.with_name(f"{path.name}.damaged-{stamp}"))
        _swap(path, fresh, kept)
        return Recovered(
            ok=True, damaged=True, problems=problems, rows=rows, dropped=dropped, kept_as=str(kept)
        )


def find_damage(path: Path) -> tuple[str, ...]:
    """What SQLite says about every page of a file; empty when it is whole. Raises StoreCorrupt."""
    with closing(_reader(path)) as connection:
        with translated(str(path)):
            recognise(connection, str(path))
        try:
            found = connection.execute(f"PRAGMA integrity_check({MOST_PROBLEMS})").fetchall()
        except _UNREADABLE as error:
            return (str(error),)
    told = tuple(line for (text,) in found for line in str(text).splitlines())
    return () if told == ("ok",) else told[:MOST_PROBLEMS]


def _reader(path: Path) -> apsw.Connection:
    with translated(str(path)):
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        connection.execute("PRAGMA query_only = ON").fetchall()
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        return connection


def _copy(old: Path, fresh: Path) -> tuple[dict[str, int], int]:
    """Everything that can be read of `old`, in a new file: rows per table, and how many fell away."""
    prepare_directory(fresh)
    with closing(_reader(old)) as source, closing(connect_writer(str(fresh))) as target:
        ensure_schema(target, str(fresh))
        target.execute("PRAGMA foreign_keys = OFF").fetchall()
        target.execute("BEGIN IMMEDIATE").fetchall()
        rows = {}
        for table in _tables(target):
            rows[table] = _copy_table(source, target, table)
        dropped = _drop_orphans(target)
        _make_again(target)
        target.execute("COMMIT").fetchall()
        target.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    return {table: count for table, count in rows.items() if count}, dropped


def _tables(target: apsw.Connection) -> list[str]:
    """The tables that hold rows of their own; the search index and the counters are made again from them."""
    found = target.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
    ).fetchall()
    names = (str(name) for (name,) in found)
    return [name for name in names if not name.startswith("search") and name != "counters"]


def _columns(connection: apsw.Connection, table: str) -> list[str]:
    rows = connection.execute("SELECT name FROM pragma_table_info(?) ORDER BY cid", (table,)).fetchall()
    return [str(name) for (name,) in rows]


def _copy_table(source: apsw.Connection, target: apsw.Connection, table: str) -> int:
    try:
        known = set(_columns(source, table))
    except _UNREADABLE:
        return 0
    names = [name for name in _columns(target, table) if name in known]
    if not names:
        return 0
    columns = ", ".join(f'"{name}"' for name in names)
    marks = ", ".join("?" for _ in names)
    insert = f'INSERT OR IGNORE INTO "{table}" ({columns}) VALUES ({marks})'

    def keep(row: Row) -> None:
        target.execute(insert, row).fetchall()

    if _has_rowid(target, table):
        _read_by_number(source, table, columns, keep)
    else:
        _read_both_ways(source, target, table, columns, keep)
    return int(str(target.execute(f'SELECT count(*) FROM "{table}"').fetchall()[0][0]))


def _has_rowid(target: apsw.Connection, table: str) -> bool:
    try:
        target.execute(f'SELECT rowid FROM "{table}" LIMIT 1').fetchall()
    except apsw.SQLError:
        return False
    return True


def _read_by_number(source: apsw.Connection, table: str, columns: str, keep: Keep) -> None:
    """Read from both ends up to the damage, then step over it, further each time; not for ever."""
    spans = [(-_LAST_ROWID, _LAST_ROWID)]
    tries = 0
    while spans and tries < MOST_TRIES:
        low, high = spans.pop()
        first = _read_span(source, table, columns, (low, high, "ASC"), keep)
        if first is None:
            continue
        last = _read_span(source, table, columns, (first, high, "DESC"), keep)
        if last is None:
            continue
        for probe in _probes(first, last):
            tries += 1
            reached = _read_span(source, table, columns, (probe, last, "ASC"), keep)
            if reached == probe:
                continue  # still inside the damage
            spans.append((first, probe - 1))
            if reached is not None:
                spans.append((reached, last))
            break


def _probes(first: int, last: int) -> Iterator[int]:
    """Where to go on behind damage: each step twice as far, and every number of a short span."""
    if last - first <= SHORT_SPAN:
        yield from range(first + 1, last + 1)
        return
    step = 1
    while first + step <= last:
        yield first + step
        step *= 2


def _read_span(
    source: apsw.Connection, table: str, columns: str, span: tuple[int, int, str], keep: Keep
) -> int | None:
    """Keep the rows of a span in one direction. None when all were read, else the number to go on from."""
    low, high, order = span
    sql = f'SELECT rowid, {columns} FROM "{table}" WHERE rowid BETWEEN ? AND ? ORDER BY rowid {order}'
    reached = low if order == "ASC" else high
    try:
        for number, *row in source.execute(sql, (low, high)):
            keep(tuple(row))
            reached = int(str(number)) + (1 if order == "ASC" else -1)
    except _UNREADABLE:
        return reached
    return None


def _read_both_ways(
    source: apsw.Connection, target: apsw.Connection, table: str, columns: str, keep: Keep
) -> None:
    """A table without numbers: from the front up to the damage, and from the back up to it."""
    keys = target.execute(
        "SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk", (table,)
    ).fetchall()
    for order in ("ASC", "DESC"):
        by = ", ".join(f'"{name}" {order}' for (name,) in keys)
        try:
            for row in source.execute(f'SELECT {columns} FROM "{table}" ORDER BY {by}'):
                keep(tuple(row))
        except _UNREADABLE:
            continue
        return


def _drop_orphans(target: apsw.Connection) -> int:
    """Remove rows that refer to rows which were lost, until none is left; how many."""
    dropped, again = 0, True
    while again:
        again = False
        for table in _tables(target):
            keys = target.execute(
                'SELECT "from", "table", "to" FROM pragma_foreign_key_list(?)', (table,)
            ).fetchall()
            for column, parent, key in keys:
                target.execute(
                    f'DELETE FROM "{table}" WHERE "{column}" IS NOT NULL '
                    f'AND "{column}" NOT IN (SELECT "{key}" FROM "{parent}")'
                ).fetchall()
                gone = target.changes()
                dropped, again = dropped + gone, again or gone > 0
    return dropped


def _make_again(target: apsw.Connection) -> None:
    """What other rows imply: the counters, how often a large body is used, and the search index."""
    target.execute(
        "INSERT INTO counters (agent_id, kind, archived, sessions) "
        "SELECT agent_id, kind, archived_at IS NOT NULL, count(*) FROM sessions GROUP BY 1, 2, 3"
    ).fetchall()
    target.execute(
        "UPDATE blobs SET refs = (SELECT count(*) FROM entries WHERE blob_hash = blobs.hash)"
    ).fetchall()
    # A transcript that was lost may still lie in the file that it was imported from.
    target.execute(
        "DELETE FROM imports WHERE window_no IS NOT NULL AND window_no NOT IN (SELECT window_no FROM windows)"
    ).fetchall()
    tx = SqliteTransaction(target)
    after = -1
    while True:
        page = tx.rows(
            "SELECT entry_no, window_no, seq, "
            "coalesce(body, (SELECT b.body FROM blobs b WHERE b.hash = blob_hash)) "
            "FROM entries WHERE entry_no > ? AND type = 'message' AND audience = 'people' "
            "ORDER BY entry_no LIMIT ?",
            (after, PAGE),
        )
        for entry_no, window_no, seq, body in page:
            after = entry_no
            words = _words_of(body)
            if words:
                search.add(tx, window_no, seq, words)
        if len(page) < PAGE:
            break
    search.fold(tx)


def _words_of(body: bytes) -> str:
    try:
        message = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
    return index_text(searchable_text(message)) if isinstance(message, dict) else ""


def _swap(path: Path, fresh: Path, kept: Path) -> None:
    """The new file in the place of the old one. A cut in between leaves one of the two under its name."""
    for end in SIDE_FILES:
        with suppress(FileNotFoundError):
            path.with_name(path.name + end).replace(kept.with_name(kept.name + end))
    try:
        os.link(path, kept)
    except OSError:  # a file system without links
        path.replace(kept)
    fresh.replace(path)
    for end in SIDE_FILES:
        with suppress(FileNotFoundError):
            fresh.with_name(fresh.name + end).unlink()
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _free_name(path: Path) -> Path:
    """This name, or the next one that nothing has: an earlier damaged file is never overwritten."""
    names = (path, *(path.with_name(f"{path.name}-{number}") for number in range(2, 1000)))
    return next(name for name in names if not name.exists())


def _remove(path: Path) -> None:
    for end in ("", *SIDE_FILES):
        with suppress(FileNotFoundError):
            path.with_name(path.name + end).unlink()
