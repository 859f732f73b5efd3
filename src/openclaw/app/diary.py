"""Writes the gateway's own life into its store. Never a reason to fail: what cannot be noted is logged."""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable

from openclaw import __version__
from openclaw.engine.ports import Clock
from openclaw.errors import OpenClawError
from openclaw.store.database import Database
from openclaw.store.diagnostics import Diagnostics, Kind

log = logging.getLogger("openclaw")


class Diary:
    def __init__(self, database: Database, clock: Clock) -> None:
        self.rows = Diagnostics(database)
        self._clock = clock
        self._is_open = False

    async def begin(self, resumed: int, woken: int) -> None:
        """The gateway is up. What it found of the one before is noted with it."""
        now_ms = self._clock.now_ms()
        self._is_open = True
        try:
            about = f"openclaw {__version__}, process {os.getpid()}"
            crashed = await self.rows.note_start(about, now_ms=now_ms)
            if crashed is not None:
                log.warning("the gateway before this one did not stop in order; see openclaw logs --events")
            if resumed or woken:
                detail = f"{resumed} runs resumed, {woken} sessions woken"
                await self.rows.note("recovery", detail, now_ms=now_ms)
        except OpenClawError as error:
            log.error("the start could not be noted: %s", error)

    async def end(self, detail: str) -> None:
        """The gateway stops in order; only after it began."""
        if self._is_open:
            self._is_open = False
            await self.note("stop", detail)

    async def note_watchdog(self, detail: str) -> None:
        await self.note("watchdog", detail)

    async def note(self, kind: Kind, detail: str) -> None:
        await _quietly(self.rows.note(kind, detail, now_ms=self._clock.now_ms()))


async def _quietly(writing: Awaitable[None]) -> None:
    try:
        await writing
    except OpenClawError as error:
        log.error("an event of the gateway could not be noted: %s", error)
