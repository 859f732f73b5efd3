"""Session verbs as units of work: find, create, change, rotate, delete, list.

Every change of a row is compare-and-set on its integer version, never on a time
(PITFALLS B6). Read-modify-write happens inside one unit, so concurrent patches
never lose a field (DB-14).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import islice
from typing import Any, Literal

import msgspec
from msgspec import Struct

from openclaw.domain.entry import SessionEntry
from openclaw.domain.resets import carry_over, carry_over_cron_run
from openclaw.errors import InvalidRequest, LabelInUse, SessionNotFound, VersionConflict
from openclaw.store import failpoints, systemevents
from openclaw.store.database import Row, Transaction
from openclaw.store.records import (
    SESSION_COLUMNS,
    SessionRow,
    SessionSeed,
    Window,
    fold_name,
    save_session,
    session_from_columns,
    session_to_columns,
)
from openclaw.store.statements import load_statements
from openclaw.store.transcript import salt_of

SQL = load_statements("sessions.sql")
_UPDATED_AT = SESSION_COLUMNS.index("updated_at")
RotationReason = Literal["new", "reset", "daily", "idle", "cron"]


class Rotation(Struct, frozen=True):
    """One window ended and the next began (LIFE-22)."""

    reason: RotationReason
    previous_session_id: str
    session_id: str


class ListQuery(Struct, frozen=True):
    """Filters of a session list. `archived` None means both."""

    agent_id: str | None = None
    archived: bool | None = False
    active_since_ms: int | None = None
    label: str | None = None
    spawned_by: str | None = None
    search: str | None = None
    include_global: bool = False
    include_unknown: bool = False
    limit: int = 100
    offset: int = 0
    # Sessions of these agents only.
    agent_ids: tuple[str, ...] | None = None
    hide_subagents: bool = False
    hide_cron: bool = False
    hide_system: bool = False


class SessionPage(Struct, frozen=True):
    rows: tuple[SessionRow, ...]
    total: int


# -- find ------------------------------------------------------------------------------------------


def find(tx: Transaction, session_key: str) -> SessionRow | None:
    return _one(tx.row(SQL["get_by_key"], (session_key,)))


def get(tx: Transaction, session_key: str) -> SessionRow:
    row = find(tx, session_key)
    if row is None:
        raise SessionNotFound(f"session not found: {session_key}")
    return row


def find_by_session_id(tx: Transaction, session_id: str) -> SessionRow | None:
    """The session whose current or earlier window has this id."""
    return _one(tx.row(SQL["get_by_session_id"], (session_id,)))


def find_by_label(tx: Transaction, label: str, agent_id: str | None = None) -> SessionRow | None:
    """The session with this label; several agents using the same label is an error that says so."""
    found = tx.rows(SQL["get_by_label"], (label, agent_id))
    if len(found) > 1:
        raise InvalidRequest(f"several agents have a session labelled {label!r}; name the agentId")
    return session_from_columns(found[0]) if found else None


def _one(row: Row | None) -> SessionRow | None:
    return None if row is None else session_from_columns(row)


# -- create and change -----------------------------------------------------------------------------


def create(tx: Transaction, seed: SessionSeed, session_id: str, now_ms: int) -> SessionRow:
    """A new session with its first window. The key must not exist."""
    window_no = _open_window(tx, seed.session_key, session_id, None, "created", now_ms)
    failpoints.reach("session.window_opened")
    entry = SessionEntry(
        session_id=session_id,
        updated_at=now_ms,
        created_at=now_ms,
        session_started_at=now_ms,
        chat_type=_chat_type(seed.chat_type),
        channel=seed.channel,
        parent_session_key=seed.parent_session_key,
        spawned_by=seed.spawned_by,
    )
    row = SessionRow(
        0, seed.session_key, seed.agent_id, seed.kind, seed.session_type, window_no, salt_of(session_id),
        1, 0, 0, 0, None, None, entry,
    )  # fmt: skip
    inserted = tx.row(SQL["insert_session"], (None, *session_to_columns(row)))
    assert inserted is not None
    failpoints.reach("session.created")
    tx.run(SQL["count"], (seed.agent_id, seed.kind, 0))
    return msgspec.structs.replace(row, session_no=inserted[0])


def _chat_type(word: str | None) -> Any:
    return word if word in ("direct", "group", "channel") else None


def find_or_create(
    tx: Transaction, seed: SessionSeed, session_id: str, now_ms: int
) -> tuple[SessionRow, bool]:
    row = find(tx, seed.session_key)
    if row is not None:
        return row, False
    return create(tx, seed, session_id, now_ms), True


def change(
    tx: Transaction,
    row: SessionRow,
    entry: SessionEntry,
    *,
    now_ms: int,
    **columns: Any,
) -> SessionRow:
    """Write a changed entry over the row that it was made from. The version must still be the same."""
    if entry.label is not None and entry.label != row.entry.label:
        other = find_by_label(tx, entry.label, row.agent_id)
        if other is not None:
            raise LabelInUse(f"label already in use: {entry.label}")
    entry = msgspec.structs.replace(entry, updated_at=max(row.entry.updated_at, now_ms))
    changed = msgspec.structs.replace(row, version=row.version + 1, entry=entry, **columns)
    written = tx.row(SQL["replace_session"], (*session_to_columns(changed), row.session_no, row.version))
    if written is None:
        raise VersionConflict(f"session {row.session_key} changed in the meantime")
    failpoints.reach("session.changed")
    was, now = row.entry.archived_at is not None, entry.archived_at is not None
    if was != now:
        tx.run(SQL["uncount"], (row.agent_id, row.kind, int(was)))
        tx.run(SQL["count"], (row.agent_id, row.kind, int(now)))
    return changed


def modify(
    tx: Transaction, row: SessionRow, edit: Callable[[SessionEntry], SessionEntry], now_ms: int
) -> SessionRow:
    """Apply a pure edit to the entry; an edit that changes nothing writes nothing."""
    entry = edit(row.entry)
    if entry == row.entry:
        return row
    return change(tx, row, entry, now_ms=now_ms)


def delete(tx: Transaction, row: SessionRow, now_ms: int) -> None:
    """Remove the row. Its windows and transcript stay readable by session id until they are purged.

    Search does not find them any more, also not when the key comes back (SRCH-3).
    """
    tx.run(SQL["end_window"], (now_ms, "deleted", row.window_no))
    tx.run(SQL["forget_windows"], (now_ms, row.session_key))
    systemevents.clear(tx, row.session_key)
    failpoints.reach("delete.windows_forgotten")
    if tx.row(SQL["delete_session"], (row.session_no, row.version)) is None:
        raise VersionConflict(f"session {row.session_key} changed in the meantime")
    failpoints.reach("delete.row_gone")
    tx.run(SQL["uncount"], (row.agent_id, row.kind, int(row.entry.archived_at is not None)))


# -- windows ---------------------------------------------------------------------------------------


def _open_window(
    tx: Transaction, session_key: str, session_id: str, previous_no: int | None, reason: str, now_ms: int
) -> int:
    opened = tx.row(
        SQL["insert_window"],
        (session_id, session_key, previous_no, None, 0, salt_of(session_id), reason, now_ms),
    )
    assert opened is not None
    return int(opened[0])


def rotate(
    tx: Transaction, row: SessionRow, session_id: str, reason: RotationReason, now_ms: int
) -> tuple[SessionRow, Rotation]:
    """End the current window and start the next one behind the same key; nothing is erased (LIFE-21).

    The window that ends keeps the session as it is now, so that `undoing` can give it back.
    """
    tx.run(SQL["leave_window"], (now_ms, reason, save_session(row), row.window_no))
    if reason in ("new", "reset"):
        # Events for a conversation that somebody left go with it; a rollover must lose nothing (LIFE-22).
        systemevents.clear(tx, row.session_key)
    failpoints.reach("rotate.window_ended")
    window_no = _open_window(tx, row.session_key, session_id, row.window_no, reason, now_ms)
    fresh = change(
        tx, row, renewed(row.entry, session_id, reason, now_ms), now_ms=now_ms, window_no=window_no,
        id_salt=salt_of(session_id), last_seq=0, message_count=0, read_seq=0, first_text=None, last_text=None,
    )  # fmt: skip
    failpoints.reach("rotate.done")
    return fresh, Rotation(reason, row.entry.session_id, session_id)


def renewed(entry: SessionEntry, session_id: str, reason: str, now_ms: int) -> SessionEntry:
    """The entry that a window starts with when it follows another one for this reason."""
    if reason == "cron":
        return carry_over_cron_run(entry, session_id=session_id, now_ms=now_ms)
    return carry_over(entry, session_id=session_id, now_ms=now_ms, explicit=reason in ("new", "reset"))


def forget_saved(tx: Transaction, session_key: str) -> None:
    """Drop what earlier windows keep of the session, for an erase: an undo then counts what is left."""
    tx.run(SQL["forget_saved"], (session_key,))


def window(tx: Transaction, session_id: str) -> Window | None:
    found = tx.row(SQL["get_window"], (session_id,))
    return None if found is None else Window(*found)


def window_by_no(tx: Transaction, window_no: int) -> Window:
    found = tx.row(SQL["get_window_by_no"], (window_no,))
    assert found is not None, "a window row is never removed while something points at it"
    return Window(*found)


def windows_of(tx: Transaction, session_key: str, limit: int = 100) -> tuple[Window, ...]:
    """All windows of a key, newest first: the trail of resets."""
    return tuple(Window(*found) for found in tx.rows(SQL["windows_of_key"], (session_key, limit)))


# -- list ------------------------------------------------------------------------------------------


def list_page(tx: Transaction, query: ListQuery) -> SessionPage:
    """A page of sessions, newest first. Reads columns only; never opens a transcript (PITFALLS H1)."""
    filters = (
        None if query.archived is None else int(query.archived),
        query.active_since_ms,
        query.label,
        query.spawned_by,
        None if query.search is None else _like(query.search),
        "" if query.include_global else "global",
        "" if query.include_unknown else "unknown",
        "subagent" if query.hide_subagents else "",
        "cron" if query.hide_cron else "",
        *(("hook", "node") if query.hide_system else ("", "")),
    )
    if query.agent_ids is not None and query.agent_id not in (None, *query.agent_ids):
        return SessionPage((), 0)
    if query.agent_id is not None:
        found = tx.rows(SQL["list_agent"], (query.agent_id, *filters, query.limit, query.offset))
    else:
        found = _merge_agents(tx, filters, query)
    rows = tuple(session_from_columns(row) for row in found)
    return SessionPage(rows, _total(tx, query, filters))


def _merge_agents(tx: Transaction, filters: tuple[Any, ...], query: ListQuery) -> list[Row]:
    """One newest-first range per agent, merged: agents are few, sessions are many."""
    limit, offset = query.limit, query.offset
    ranges = [
        tx.rows(SQL["list_agent"], (agent_id, *filters, limit + offset, 0))
        for (agent_id,) in tx.rows(SQL["agents"])
        if query.agent_ids is None or agent_id in query.agent_ids
    ]
    merged = heapq.merge(*ranges, key=lambda row: (row[_UPDATED_AT], row[0]), reverse=True)
    return list(islice(merged, offset, offset + limit))


def _total(tx: Transaction, query: ListQuery, filters: tuple[Any, ...]) -> int:
    if query.agent_id is None and query.agent_ids is not None:
        return sum(_total_of(tx, query, agent_id, filters) for agent_id in query.agent_ids)
    return _total_of(tx, query, query.agent_id, filters)


def _total_of(tx: Transaction, query: ListQuery, agent_id: str | None, filters: tuple[Any, ...]) -> int:
    narrowed = (query.active_since_ms, query.label, query.spawned_by, query.search)
    if all(value is None for value in narrowed):
        archived, _, _, _, _, *hidden = filters
        counted = tx.row(SQL["total"], (agent_id, archived, *hidden))
    else:
        counted = tx.row(SQL["count_matching"], (agent_id, *filters))
    assert counted is not None
    return int(counted[0])


def _like(text: str) -> str:
    """A LIKE pattern that takes the text literally, whatever the case of its letters (SRCH-1)."""
    escaped = fold_name(text).replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def children_of(tx: Transaction, session_key: str, limit: int = 200) -> tuple[str, ...]:
    return tuple(row[0] for row in tx.rows(SQL["children"], (session_key, limit)))
