"""Conversations as units of work: where messages come from and replies go to, apart from sessions (DB-9).

A conversation is a place on a platform; a session may have several of them
(`main` usually has), and peers are kept byte-exact. Routing reads these columns
and never takes a key apart to find a peer (PITFALLS G5).
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from openclaw.store.database import Transaction
from openclaw.store.statements import load_statements

SQL = load_statements("sessions.sql")


class ConversationRef(Struct, frozen=True):
    """One place. An absent account or thread is the empty string, so that the tuple is unique."""

    channel: str
    account_id: str
    peer_kind: Literal["direct", "group", "channel"]
    peer_id: str
    thread_id: str = ""
    label: str | None = None
    delivery_to: str | None = None


def link(tx: Transaction, session_key: str, place: ConversationRef, now_ms: int) -> None:
    """Note that a session was reached from this place. What is not given never erases what is known."""
    linked = tx.row(
        SQL["link_conversation"],
        (
            place.channel, place.account_id, place.peer_kind, place.peer_id, place.thread_id, place.label,
            place.delivery_to, now_ms, now_ms,
        ),
    )  # fmt: skip
    assert linked is not None
    tx.run(SQL["link_session"], (session_key, linked[0], now_ms, now_ms))


def of_session(tx: Transaction, session_key: str, limit: int = 100) -> tuple[ConversationRef, ...]:
    """The places of a session, the latest first."""
    return tuple(ConversationRef(*row) for row in tx.rows(SQL["conversations_of"], (session_key, limit)))
