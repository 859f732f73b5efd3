"""Ending a conversation on request and taking that back: reset, delete, restore; each one commit.

Whoever asks has stopped the session's run before. A run that could not be stopped is
ended here with the same commit, so that nothing of the old window goes on in the new
one. Transcripts stay: a reset starts a window, a deletion hides the key (TRX-1).
Nothing here talks to anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct

from openclaw.errors import InvalidRequest, SessionNotFound, VersionConflict
from openclaw.store import archiving, inbox, removals, runs, sessions, spawns, undoing
from openclaw.store.archiving import ArchiveFile
from openclaw.store.database import Database, Transaction
from openclaw.store.records import SessionRow, SessionSeed, Window
from openclaw.store.sessions import Rotation
from openclaw.store.statements import load_statements

SQL = load_statements("endings.sql")
FOREVER = (1 << 53) - 1  # undo without an end
MOST_WINDOWS = 100

ResetReason = Literal["new", "reset"]


class ResetDone(Struct, frozen=True):
    """The session in its new window. `cancelled` waited in the old one; no rotation: it was new anyway."""

    session: SessionRow
    rotation: Rotation | None
    cancelled: tuple[str, ...] = ()


class DeleteDone(Struct, frozen=True):
    """The session as it was. `cancelled` waited in it."""

    session: SessionRow
    cancelled: tuple[str, ...]


class RestoreDone(Struct, frozen=True):
    """The session as it is again, and which ending was taken back. `stale` are archives of the deletion."""

    session: SessionRow
    undone: Literal["reset", "delete"]
    cancelled: tuple[str, ...] = ()
    left_session_id: str | None = None
    stale: tuple[ArchiveFile, ...] = ()


class Guard(Struct, frozen=True):
    """What must still hold for an ending to go ahead."""

    expected_session_id: str | None = None
    archived_only: bool = False

    def check(self, row: SessionRow, before: str) -> None:
        """Raises VersionConflict when the session is not what the caller saw."""
        other_id = self.expected_session_id not in (None, row.entry.session_id)
        if other_id or (self.archived_only and row.entry.archived_at is None):
            raise VersionConflict(f"Session {row.session_key} changed before {before}. Retry.")


def reset(
    tx: Transaction, seed: SessionSeed, reason: ResetReason, session_id: str, guard: Guard, now_ms: int
) -> ResetDone:
    """Start a new window behind the key; a session that does not exist yet is created (LIFE-21)."""
    row = sessions.find(tx, seed.session_key)
    if row is None:
        if guard.expected_session_id is not None:
            raise VersionConflict(f"Session {seed.session_key} changed before reset. Retry.")
        return ResetDone(sessions.create(tx, seed, session_id, now_ms), None)
    guard.check(row, "reset")
    cancelled = inbox.cancel(tx, row.session_key)
    runs.abandon(tx, row.session_key, now_ms)
    fresh, rotation = sessions.rotate(tx, row, session_id, reason, now_ms)
    return ResetDone(fresh, rotation, cancelled)


def delete(
    tx: Transaction,
    session_key: str,
    guard: Guard,
    files: Sequence[ArchiveFile],
    now_ms: int,
    undo_until: int,
) -> DeleteDone | None:
    """Remove one key and nothing else (LIFE-24). None when it was not there."""
    row = sessions.find(tx, session_key)
    if row is None:
        return None
    guard.check(row, "delete")
    cancelled = inbox.discard(tx, session_key)
    runs.abandon(tx, session_key, now_ms)
    tx.run(spawns.SQL["end_waits"], (session_key,))
    removals.delete_on_request(tx, row, now_ms, undo_until)
    for file in files:
        archiving.note(tx, file)
    return DeleteDone(row, cancelled)


def restore(tx: Transaction, session_key: str, guard: Guard, now_ms: int) -> RestoreDone:
    """Take the last ending of a session back: its deletion if it is gone, else its last reset."""
    row = sessions.find(tx, session_key)
    if row is None:
        deleted_at = max(
            (one.at for one in removals.of_session(tx, session_key) if one.state == "deleted"), default=None
        )
        if deleted_at is None:
            raise SessionNotFound(f"session not found: {session_key}")
        back = removals.restore(tx, session_key, now_ms)
        stale = tuple(file for file in archiving.of_session(tx, session_key) if file.written_at == deleted_at)
        return RestoreDone(back, "delete", stale=stale)
    guard.check(row, "restore")
    if sessions.window_by_no(tx, row.window_no).previous_no is None:
        raise InvalidRequest(f"session {session_key} was not reset; there is nothing to take back")
    cancelled = inbox.cancel(tx, session_key)
    runs.abandon(tx, session_key, now_ms)
    left = row.entry.session_id
    return RestoreDone(undoing.restore_previous(tx, row, now_ms), "reset", cancelled, left)


def windows_with_words(tx: Transaction, session_key: str) -> tuple[Window, ...]:
    """The newest windows of a session that hold anything, newest first."""
    return tuple(Window(*row) for row in tx.rows(SQL["windows_with_words"], (session_key, MOST_WINDOWS)))


class Endings:
    """The verbs above over a database."""

    def __init__(self, database: Database, undo_ms: Callable[[], int | None]) -> None:
        self._database = database
        self._undo_ms = undo_ms

    async def reset(
        self, seed: SessionSeed, reason: ResetReason, guard: Guard, *, session_id: str, now_ms: int
    ) -> ResetDone:
        return await self._database.write(lambda tx: reset(tx, seed, reason, session_id, guard, now_ms))

    async def delete(
        self, session_key: str, guard: Guard, files: Sequence[ArchiveFile] = (), *, now_ms: int
    ) -> DeleteDone | None:
        keep_ms = self._undo_ms()
        undo_until = FOREVER if keep_ms is None else now_ms + keep_ms
        return await self._database.write(
            lambda tx: delete(tx, session_key, guard, files, now_ms, undo_until)
        )

    async def restore(self, session_key: str, guard: Guard, *, now_ms: int) -> RestoreDone:
        return await self._database.write(lambda tx: restore(tx, session_key, guard, now_ms))

    async def windows_with_words(self, session_key: str) -> tuple[Window, ...]:
        return await self._database.read(lambda tx: windows_with_words(tx, session_key))

    async def forget_files(self, files: Sequence[ArchiveFile]) -> None:
        """Remove archive files whose transcripts live on, and what the store knows of them."""
        await archiving.remove(self._database, files)

    async def note_file(self, file: ArchiveFile) -> None:
        await self._database.write(lambda tx: archiving.note(tx, file))
