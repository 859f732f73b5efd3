"""Looking after children that are done or lost: out of the lists in time, never owed for ever.

Times come from rows, so that a restart changes nothing (REST-5). A child that nobody
can see through any more is settled with what is known, and its requester is told
(REST-4).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

import msgspec

from openclaw.domain.announce import OutcomeWord
from openclaw.engine import subagents
from openclaw.engine.handedfiles import HandedFiles
from openclaw.engine.ports import Clock
from openclaw.engine.settings import EngineSettings
from openclaw.store import inbox, runs, sessions, spawns
from openclaw.store.database import Transaction
from openclaw.store.spawns import Spawns

log = logging.getLogger("openclaw.subagents")
_GRACE_MS = 60_000  # a child that was begun just now may not have been woken yet


class Children:
    def __init__(
        self,
        rows: Spawns,
        settings: Callable[[], EngineSettings],
        clock: Clock,
        wake: Callable[[str], None],
        files: HandedFiles | None = None,
    ) -> None:
        self._rows = rows
        self._settings = settings
        self._clock = clock
        self._wake = wake
        self._files = files

    async def sweep(self) -> tuple[int, int]:
        """Archive what is due and settle what is lost; how many of each."""
        swept = await self._archive(), await self._settle_lost()
        if self._files is not None:
            await self._files.tidy()
        return swept

    async def _archive(self) -> int:
        settings, now_ms = self._settings(), self._clock.now_ms()
        archived = 0
        for name, agent in settings.agents.items():
            minutes = agent.spawning.archive_after_minutes
            due = await self._rows.to_archive(name, now_ms - minutes * 60_000) if minutes > 0 else ()
            for child_key in due:
                await self._rows.write(partial(_archive_one, child_key=child_key, now_ms=now_ms))
            archived += len(due)
        return archived

    async def _settle_lost(self) -> int:
        now_ms, settled = self._clock.now_ms(), 0
        for child_key in await self._rows.unfinished():
            woken: list[str] = []

            def unit(tx: Transaction, child_key: str = child_key, woken: list[str] = woken) -> None:
                woken.clear()
                _settle_if_lost(tx, child_key, now_ms, woken)

            await self._rows.write(unit)
            for session_key in woken:
                log.warning("helper %s was lost; %s is told", child_key, session_key)
                self._wake(session_key)
            settled += bool(woken)
        return settled


def _archive_one(tx: Transaction, *, child_key: str, now_ms: int) -> None:
    subagents.archive(tx, child_key, now_ms)


def _settle_if_lost(tx: Transaction, child_key: str, now_ms: int, woken: list[str]) -> None:
    spawn = spawns.by_child(tx, child_key)
    if spawn is None or spawn.state != "active" or now_ms - spawn.created_at < _GRACE_MS:
        return
    if sessions.find(tx, child_key) is not None and (
        runs.active_of(tx, child_key) is not None
        or inbox.count_queued(tx, child_key)
        or spawns.count_active(tx, child_key)
    ):
        return
    lost: OutcomeWord = "unknown"
    body = msgspec.structs.replace(spawn.body, status=spawn.body.status or lost)
    subagents.settle(tx, msgspec.structs.replace(spawn, body=body), "", now_ms, woken)
