"""Errors of the driver in our words, and the ground that is prepared before the first connection."""

from __future__ import annotations

import stat
from pathlib import Path

import apsw
import pytest

from openclaw.errors import (
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
)
from openclaw.store.database import ConstraintViolated
from openclaw.store.sqlite_file import (
    connect_reader,
    connect_writer,
    ensure_schema,
    prepare_directory,
    translate,
    translated,
)

NAME = "/state/openclaw.sqlite"
FREE_SOME = "Free some space and try again."
RESTORE = "It was not changed. Restore a backup, or move the file away to start empty."


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (
            apsw.FullError,
            StoreFull,
            f"the disk is full: {NAME} could not grow. Free some space and try again.",
        ),
        (apsw.ReadOnlyError, StoreReadOnly, f"{NAME} cannot be written (why). Check its permissions."),
        (apsw.PermissionsError, StoreReadOnly, f"{NAME} cannot be written (why). Check its permissions."),
        (
            apsw.CantOpenError,
            StoreReadOnly,
            f"{NAME} cannot be opened (why). Check its permissions, and how many files are open.",
        ),
        (apsw.NotADBError, StoreCorrupt, f"{NAME} is damaged or not a database (why). {RESTORE}"),
        (apsw.CorruptError, StoreCorrupt, f"{NAME} is damaged or not a database (why). {RESTORE}"),
        (apsw.BusyError, StoreBusy, f"another program is using {NAME} (why). Close it and try again."),
        (apsw.LockedError, StoreBusy, f"another program is using {NAME} (why). Close it and try again."),
        (apsw.ConstraintError, ConstraintViolated, "why"),
        (apsw.IOError, StoreError, f"{NAME}: why"),
    ],
)
def test_every_error_says_what_to_do(error: type[apsw.Error], kind: type[StoreError], message: str) -> None:
    told = translate(error("why"), NAME)
    assert type(told) is kind
    assert told.message == message
    with pytest.raises(kind) as caught, translated(NAME):
        raise error("why")
    assert caught.value.message == message
    assert isinstance(caught.value.__cause__, error)
    with pytest.raises(LookupError), translated(NAME):
        raise LookupError


@pytest.mark.spec("DB-12")
def test_what_is_created_is_private(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "openclaw.sqlite"
    prepare_directory(path)
    assert path.read_bytes() == b""
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    path.write_bytes(b"kept")
    prepare_directory(path)
    assert path.read_bytes() == b"kept"


def test_a_place_that_cannot_be_prepared_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreReadOnly) as caught:
        prepare_directory(tmp_path / "file" / "state" / "openclaw.sqlite")
    assert caught.value.message == (
        f"cannot write to the state directory {tmp_path / 'file' / 'state'}: Not a directory. "
        "Make it writable or set OPENCLAW_STATE_DIR."
    )
    assert caught.value.fields == {"path": str(tmp_path / "file" / "state")}


def test_a_statement_is_planned_once_however_many_values_it_is_given(tmp_path: Path) -> None:
    database = tmp_path / "state" / "openclaw.sqlite"
    prepare_directory(database)
    writer = connect_writer(str(database))
    ensure_schema(writer, str(database))
    plain = apsw.Connection(str(database))
    reader = connect_reader(str(database))
    try:
        planned = {name: _plannings(one) for name, one in (("w", writer), ("r", reader), ("plain", plain))}
    finally:
        for connection in (reader, plain, writer):
            connection.close()
    # The plain connection shows that there is something to prevent.
    assert (planned["w"], planned["r"]) == (0, 0) and planned["plain"] > 0


def _plannings(connection: apsw.Connection) -> int:
    """How often a statement with a choice of plans is planned, as its authorizer sees it."""
    statement = "SELECT text FROM system_events WHERE session_key = ?1 ORDER BY event_no"
    connection.execute(statement, ("first",)).fetchall()
    asked = 0

    def authorize(*_asked: object) -> int:
        nonlocal asked
        asked += 1
        return apsw.SQLITE_OK

    connection.authorizer = authorize
    connection.execute(statement, ("warm",)).fetchall()  # a new authorizer itself makes every plan anew
    asked = 0
    for number in range(20):
        connection.execute(statement, (f"agent:main:{number}",)).fetchall()
    return asked


def test_a_file_that_lacks_a_table_is_refused_untouched(tmp_path: Path) -> None:
    database = tmp_path / "state" / "openclaw.sqlite"
    prepare_directory(database)
    writer = connect_writer(str(database))
    ensure_schema(writer, str(database))
    ensure_schema(writer, str(database))  # our own, whole: nothing to do
    writer.execute("DROP TABLE system_events")
    before = writer.execute("SELECT sql FROM sqlite_schema").fetchall()
    with pytest.raises(StoreCorrupt, match="has no table system_events"):
        ensure_schema(writer, str(database))
    assert writer.execute("SELECT sql FROM sqlite_schema").fetchall() == before
    writer.close()
