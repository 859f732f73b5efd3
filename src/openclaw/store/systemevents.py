"""System events that wait for the next turn of a session: bounded, in order, on disk (CLI-7, LIFE-22).

An event leaves in the commit that claims the turn it stands in front of, or with the
window that it was meant for. This room keeps and hands over; the words of the note
are `domain.systemevents`'s, and who may report an event is decided at the gateway.
"""

from __future__ import annotations

from msgspec import Struct

from openclaw.domain.systemevents import MAX_WAITING, SystemEvent, render_events
from openclaw.domain.transcript import encode
from openclaw.store.database import Transaction
from openclaw.store.records import EntryDraft
from openclaw.store.statements import load_statements

SQL = load_statements("systemevents.sql")
WAKE_PREFIX = "wake:"  # begins the run id of every turn that an event asked for


class Added(Struct, frozen=True):
    """What became of an event: kept, or the same as the one before it, which then stands for both."""

    repeated: bool = False
    dropped: int = 0


def add(tx: Transaction, session_key: str, text: str, now_ms: int) -> Added:
    """Keep an event for the next turn of a session, which need not exist yet.

    The same text twice in a row is one event. Past the limit the oldest makes room, and the next
    oldest remembers how many were lost.
    """
    newest = tx.row(SQL["newest"], (session_key,))
    if newest is not None and newest[1] == text:
        return Added(repeated=True)
    tx.run(SQL["insert"], (session_key, text, now_ms))
    counted = tx.row(SQL["count"], (session_key,))
    assert counted is not None
    over = max(0, int(counted[0]) - MAX_WAITING)
    for _ in range(over):
        (event_no, missed), (next_no, _) = tx.rows(SQL["oldest"], (session_key,))
        tx.run(SQL["remove"], (event_no,))
        tx.run(SQL["add_missed"], (int(missed) + 1, next_no))
    return Added(dropped=over)


def waiting(tx: Transaction, session_key: str) -> tuple[SystemEvent, ...]:
    """What waits for the next turn, oldest first."""
    return tuple(SystemEvent(*row) for row in tx.rows(SQL["waiting"], (session_key,)))


def take(tx: Transaction, session_key: str, run_id: str) -> tuple[EntryDraft, ...]:
    """Hand the waiting events to a turn: the note that tells them, hidden from people; they are gone then."""
    found = waiting(tx, session_key)
    if not found:
        return ()
    clear(tx, session_key)
    body = encode({"customType": "system_events", "content": render_events(found), "display": False})
    return (EntryDraft("custom_message", body, None, "internal_system", "model", run_id),)


def clear(tx: Transaction, session_key: str) -> None:
    """Discard what waits: its window was reset, or its session is gone (LIFE-22)."""
    tx.run(SQL["clear"], (session_key,))


def is_waking(tx: Transaction, session_key: str) -> bool:
    """Whether a turn that an event asked for waits already; it tells every event that came meanwhile."""
    return tx.row(SQL["waking"], (session_key,)) is not None
