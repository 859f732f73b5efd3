"""Inputs that the gateway itself makes for a session: a memory flush, an announce turn, a completion.

Queued like everybody else's, so that they are durable, run once and in order.
"""

from __future__ import annotations

from openclaw.store import inbox, sessions
from openclaw.store.database import Database, Transaction
from openclaw.store.inbox import NewInput


class Errands:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def queue(self, new: NewInput, *, now_ms: int) -> bool:
        """Queue an input for a session that exists, once per run id; False when the session is gone."""

        def unit(tx: Transaction) -> bool:
            if sessions.find(tx, new.seed.session_key) is None:
                return False
            inbox.enqueue(tx, new, now_ms)
            return True

        return await self._database.write(unit)
