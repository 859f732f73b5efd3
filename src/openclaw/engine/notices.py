"""Who wants to know that a session's window began or ended, and waiting for them when the gateway stops.

A subscriber is a coroutine; it runs beside the turn that caused the notice and
never delays or fails it. On a graceful stop the ones under way are awaited (DB-18).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from openclaw.domain.resets import SessionEnd, SessionStart
from openclaw.engine.events import EngineEvent, WindowsChanged

log = logging.getLogger("openclaw.sessions")
Notice = SessionEnd | SessionStart
Subscriber = Callable[[Notice], Awaitable[None]]
MOST_UNDER_WAY = 1000


class Notices:
    def __init__(self, spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]) -> None:
        self._spawn = spawn
        self._subscribers: list[Subscriber] = []
        self._under_way: set[asyncio.Task[None]] = set()

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Hear of every window that begins or ends; the returned function ends it."""
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)

    def observe(self, event: EngineEvent) -> None:
        """Part of the event sink."""
        if not isinstance(event, WindowsChanged) or not self._subscribers:
            return
        if len(self._under_way) >= MOST_UNDER_WAY:
            log.error(
                "notices of %s are not told: %d are under way", event.session.session_key, MOST_UNDER_WAY
            )
            return
        task = self._spawn(self._tell(event.notices))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _tell(self, notices: tuple[Notice, ...]) -> None:
        """Each subscriber hears the end before the beginning."""
        for notice in notices:
            for subscriber in tuple(self._subscribers):
                try:
                    await subscriber(notice)
                except Exception:
                    log.exception("a subscriber failed on %s", type(notice).__name__)

    async def drain(self) -> None:
        """Wait for the notices under way; for a graceful stop."""
        while self._under_way:
            await asyncio.wait(self._under_way)
