"""The audit rows of maintenance: what was archived, deleted or purged, why, and taking a deletion back.

Units of work only. Who is due is judged in `retention`; the transcripts themselves
are emptied in `purging`.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from openclaw.errors import InvalidRequest
from openclaw.store import sessions
from openclaw.store.database import Transaction
from openclaw.store.records import SessionRow, session_from_columns, session_to_columns
from openclaw.store.retention import SQL, Examined


class RemovalRow(Struct, frozen=True):
    """The audit row of one removal."""

    removal_no: int
    session_key: str
    session_id: str
    agent_id: str
    kind: str
    state: str
    reason: str
    at: int
    undo_until: int | None


def of_session(tx: Transaction, session_key: str) -> tuple[RemovalRow, ...]:
    return tuple(RemovalRow(*row) for row in tx.rows(SQL["removals_of"], (session_key,)))


def archive(tx: Transaction, seen: Examined, now_ms: int) -> None:
    """Take a person's conversation out of the lists. Every word stays, and it is not activity."""
    tx.run(SQL["archive"], (now_ms, seen.session_no, seen.version))
    _record(tx, _who(seen), "archived", str(seen.reason), now_ms)


def delete(tx: Transaction, seen: Examined, now_ms: int, undo_until: int) -> None:
    """Delete a session softly: its row is saved, so that it can be taken back until `undo_until`."""
    columns = tx.row(sessions.SQL["get_by_key"], (seen.session_key,))
    assert columns is not None
    sessions.delete(tx, session_from_columns(columns), now_ms)
    saved = msgspec.msgpack.encode(columns)
    _record(tx, _who(seen), "deleted", str(seen.reason), now_ms, undo_until, saved)


def delete_on_request(tx: Transaction, row: SessionRow, now_ms: int, undo_until: int) -> None:
    """Delete a session because somebody asked; it can be taken back until its windows are purged."""
    columns = tx.row(sessions.SQL["get_by_key"], (row.session_key,))
    assert columns is not None
    sessions.delete(tx, row, now_ms)
    who = (row.session_key, row.entry.session_id, row.agent_id, row.kind)
    _record(tx, who, "deleted", "deleted", now_ms, undo_until, msgspec.msgpack.encode(columns))


def note_purge(tx: Transaction, session_key: str, session_id: str, now_ms: int) -> None:
    """A window goes for good that a person had deleted."""
    _record(tx, (session_key, session_id, "", ""), "purged", "deleted", now_ms)


def settle_purged(tx: Transaction, removal_no: int) -> None:
    """A deletion can no longer be taken back."""
    tx.run(SQL["settle"], ("purged", removal_no))


def restore(tx: Transaction, session_key: str, now_ms: int) -> SessionRow:
    """Take a deletion back, transcript and all. Raises InvalidRequest with the reason."""
    removed = tx.row(SQL["undoable"], (session_key,))
    if removed is None:
        raise InvalidRequest(f"no removal of {session_key} can be taken back")
    if sessions.find(tx, session_key) is not None:
        raise InvalidRequest(
            f"{session_key} exists again; rename or delete it before taking the old one back"
        )
    removal_no, deleted_at, saved = removed
    row = session_from_columns(tuple(msgspec.msgpack.decode(saved)))
    entry = replace(row.entry, updated_at=now_ms)
    if entry.label is not None and sessions.find_by_label(tx, entry.label, row.agent_id) is not None:
        entry = replace(entry, label=None)  # somebody else has the name now
    row = replace(row, version=row.version + 1, entry=entry)
    inserted = tx.row(sessions.SQL["insert_session"], (None, *session_to_columns(row)))
    assert inserted is not None
    tx.run(sessions.SQL["count"], (row.agent_id, row.kind, int(entry.archived_at is not None)))
    tx.run(SQL["remember_windows"], (session_key, deleted_at))
    tx.run(sessions.SQL["reopen_window"], (row.window_no,))
    tx.run(SQL["settle"], ("restored", removal_no))
    return replace(row, session_no=inserted[0])


def _who(seen: Examined) -> tuple[str, str, str, str]:
    return seen.session_key, seen.session_id, seen.agent_id, seen.kind


def _record(
    tx: Transaction,
    who: tuple[str, str, str, str],
    state: str,
    reason: str,
    now_ms: int,
    undo_until: int | None = None,
    saved: bytes | None = None,
) -> None:
    tx.run(SQL["record"], (*who, state, reason, now_ms, undo_until, saved))
