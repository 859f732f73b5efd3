"""Reporting an event to a session, and waking the session for it, each as one commit (CLI-7).

The turn that an event asks for is an ordinary input: it survives a crash and runs once.
Several events that ask for one while another turn runs get a single turn.
"""

from __future__ import annotations

from msgspec import Struct

from openclaw.domain.systemevents import SystemEvent
from openclaw.store import inbox, systemevents
from openclaw.store.database import Database, Transaction
from openclaw.store.inbox import Admission, NewInput, ResetRulesAt
from openclaw.store.systemevents import Added


class Woken(Struct, frozen=True):
    """An event that asked for a turn. `admission` is None when one that will tell it waits already."""

    added: Added
    admission: Admission | None


class SystemEvents:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, session_key: str, text: str, *, now_ms: int) -> Added:
        """Keep an event for the next turn of a session, whoever asks for that turn."""
        return await self._database.write(lambda tx: systemevents.add(tx, session_key, text, now_ms))

    async def wake(
        self, new: NewInput, text: str, resets: ResetRulesAt, *, session_id: str, now_ms: int
    ) -> Woken:
        """Keep an event and queue a turn for it. A refused turn keeps nothing of the event."""

        def unit(tx: Transaction) -> Woken:
            key = new.seed.session_key
            added = systemevents.add(tx, key, text, now_ms)
            if systemevents.is_waking(tx, key):
                return Woken(added, None)
            taken = inbox.accept(tx, new, resets, session_id, now_ms)
            return Woken(added, taken if isinstance(taken, Admission) else None)

        return await self._database.write(unit)

    async def waiting(self, session_key: str) -> tuple[SystemEvent, ...]:
        return await self._database.read(lambda tx: systemevents.waiting(tx, session_key))


def count_waiting(tx: Transaction) -> int:
    """How many inputs of all sessions wait for a turn."""
    counted = tx.row(systemevents.SQL["inputs_waiting"])
    assert counted is not None
    return int(counted[0])
