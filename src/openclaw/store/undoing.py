"""Taking a reset back: the key points at its previous window again, and the session is as it was.

What ended with the window comes back with it: previews, counters, toggles, the model.
What a person or a platform told about the session since then stays: its name, its
place, its route. The window that is left keeps its transcript and can be read by id.
Nothing here looks into a transcript, but to count one that has nothing saved.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from openclaw.domain.entry import SessionEntry
from openclaw.domain.resets import KEPT_ON_EXPIRY
from openclaw.errors import InvalidRequest
from openclaw.store import failpoints, runs, sessions
from openclaw.store.database import Transaction
from openclaw.store.records import SessionRow, Window, saved_session
from openclaw.store.transcript import entry_range

# What belongs to the session and not to a window; the list of windows is never shortened.
LASTING_FIELDS = (*KEPT_ON_EXPIRY, "usage_family_session_ids")


def restore_previous(tx: Transaction, row: SessionRow, now_ms: int) -> SessionRow:
    """Point the key back at the window before the current one: the undo of a reset.

    A lasting field that was changed since the reset keeps its newer value. The session counts as
    used just now, so that the rule that ended the window does not end it again at once.
    """
    current = sessions.window_by_no(tx, row.window_no)
    if current.previous_no is None:
        raise InvalidRequest(f"session {row.session_key} has no earlier window to go back to")
    earlier = sessions.window_by_no(tx, current.previous_no)
    before = _before(tx, row, current, earlier)
    tx.run(sessions.SQL["end_window"], (now_ms, "undone", current.window_no))
    tx.run(sessions.SQL["reopen_window"], (earlier.window_no,))
    failpoints.reach("restore.window_reopened")
    entry = _settled(tx, replace(before.entry, last_interaction_at=now_ms), earlier.window_no)
    return sessions.change(
        tx, row, entry, now_ms=now_ms, window_no=earlier.window_no, id_salt=earlier.id_salt,
        last_seq=before.last_seq, message_count=before.message_count, read_seq=before.read_seq,
        first_text=before.first_text, last_text=before.last_text,
    )  # fmt: skip


def _before(tx: Transaction, row: SessionRow, current: Window, earlier: Window) -> SessionRow:
    """The session as its earlier window left it, with the lasting fields of today."""
    found = tx.row(sessions.SQL["saved_in_window"], (earlier.window_no,))
    if found is None or found[0] is None:
        return _counted(tx, row, earlier)
    before = saved_session(row, found[0])
    given = sessions.renewed(before.entry, current.session_id, current.reason, current.started_at)
    changed: dict[str, Any] = {
        name: value
        for name in LASTING_FIELDS
        if (value := getattr(row.entry, name)) != getattr(given, name) or name not in KEPT_ON_EXPIRY
    }
    return replace(before, entry=replace(before.entry, **changed))


def _counted(tx: Transaction, row: SessionRow, earlier: Window) -> SessionRow:
    """A window without a saved session, such as an imported one: what its rows tell."""
    counted = tx.row(sessions.SQL["window_totals"], entry_range(earlier.window_no))
    assert counted is not None
    last_seq = max(counted[0], earlier.base_seq)
    entry = replace(row.entry, session_id=earlier.session_id, session_started_at=earlier.started_at)
    return replace(
        row, entry=entry, last_seq=last_seq, message_count=counted[1], read_seq=last_seq, first_text=None,
        last_text=None,
    )  # fmt: skip


def _settled(tx: Transaction, entry: SessionEntry, window_no: int) -> SessionEntry:
    """A session was running when its window ended: what became of that run.

    A run that still goes on in this window goes on in the session; of another window it is not told.
    """
    if entry.status != "running":
        return entry
    run = runs.get(tx, entry.last_run_id) if entry.last_run_id else None
    if run is not None and run.window_no == window_no and run.state == "active":
        return entry
    if run is None or run.window_no != window_no or run.outcome is None or run.ended_at is None:
        return replace(entry, status=None)
    return replace(
        entry, status=runs.STATUS[run.outcome], ended_at=run.ended_at, system_sent=True,
        runtime_ms=run.ended_at - run.started_at, aborted_last_run=run.outcome == "aborted",
    )  # fmt: skip
