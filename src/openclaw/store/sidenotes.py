"""Deliveries that belong to no commit of their own: a note for people beside a run."""

from __future__ import annotations

from openclaw.store import outbox, sessions
from openclaw.store.database import Database, Transaction
from openclaw.store.records import DeliveryDraft


class SideNoteDesk:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def post(self, draft: DeliveryDraft, session_key: str, *, now_ms: int) -> bool:
        """Put a delivery into the outbox, once per key; False when its session is gone."""

        def unit(tx: Transaction) -> bool:
            if sessions.find(tx, session_key) is None:
                return False
            outbox.prepare(tx, draft, session_key, None, now_ms)
            return True

        return await self._database.write(unit)
