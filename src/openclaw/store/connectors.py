"""What a connector must not forget across a restart, by name: an offset, a sync token (GROW-6)."""

from __future__ import annotations

from openclaw.errors import InvalidRequest
from openclaw.store.database import Database
from openclaw.store.statements import load_statements

SQL = load_statements("connectors.sql")
LARGEST_NOTE = 1 << 20


class ConnectorNotes:
    """The notes of one account on one platform."""

    def __init__(self, database: Database, channel: str, account_id: str) -> None:
        self._database = database
        self._whose = (channel, account_id)

    async def recall(self, name: str) -> bytes | None:
        row = await self._database.read(lambda tx: tx.row(SQL["recall"], (*self._whose, name)))
        return None if row is None else bytes(row[0])

    async def note(self, name: str, value: bytes, *, now_ms: int) -> None:
        if len(value) > LARGEST_NOTE:
            raise InvalidRequest(f"a connector's note holds at most {LARGEST_NOTE} bytes, not {len(value)}")
        await self._database.write(lambda tx: tx.run(SQL["note"], (*self._whose, name, value, now_ms)))
