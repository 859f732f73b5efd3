"""Reads for a person who asks why and whether all is well. Bounded, and never a write."""

from __future__ import annotations

from msgspec import Struct

from openclaw.domain.addressing import Sender
from openclaw.store import inbox, sessions
from openclaw.store.database import Database, Transaction
from openclaw.store.records import SessionRow
from openclaw.store.statements import load_statements

SQL = load_statements("insight.sql")
MOST_SENDERS = 5000


class SessionState(Struct, frozen=True):
    """A session as an arriving message finds it."""

    row: SessionRow
    inputs_waiting: bool


class Insight:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def state_of(self, session_key: str) -> SessionState | None:
        def read(tx: Transaction) -> SessionState | None:
            row = sessions.find(tx, session_key)
            return None if row is None else SessionState(row, inbox.count_queued(tx, session_key) > 0)

        return await self._database.read(read)

    async def shared_sessions(self) -> dict[str, tuple[Sender, ...]]:
        """The sessions in which direct messages from more than one place meet, with their senders."""
        rows = await self._database.read(lambda tx: tx.rows(SQL["shared_sessions"], (MOST_SENDERS,)))
        met: dict[str, list[Sender]] = {}
        for session_key, channel, peer_id in rows:
            met.setdefault(session_key, []).append(Sender(channel, peer_id))
        return {session_key: tuple(senders) for session_key, senders in met.items()}
