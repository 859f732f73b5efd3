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
from openclaw.store.sqlite_file import prepare_directory, translate, translated

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
