"""The gateway's health as clients follow it: a snapshot, its version, and an event when it is due.

Asked for by everybody who connects, so a moment's snapshot is shared. What healthy
means is computed elsewhere and comes in as a function.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from openclaw.engine.ports import Clock
from openclaw.errors import OpenClawError
from openclaw.gateway.hub import Hub
from openclaw.protocol.frames import StateVersion

log = logging.getLogger("openclaw.gateway")
Json = dict[str, Any]
TELL_EVERY_S = 60.0
SHARED_FOR_S = 1.0
# What makes health another one. Counts and ages move with every message and do not.
_ESSENCE = ("ok", "defaultAgentId", "heartbeatSeconds", "channels", "channelOrder")


class HealthWatch:
    """`version` grows with every event; it starts at 1."""

    def __init__(self, compute: Callable[[], Awaitable[Json]], hub: Hub, clock: Clock) -> None:
        self._compute = compute
        self._hub = hub
        self._clock = clock
        self._latest: tuple[float, Json] | None = None
        self._told: Json | None = None
        self._look = asyncio.Event()
        self._computing = asyncio.Lock()
        self.version = 1

    async def snapshot(self) -> Json:
        """Health as it is now, or was a moment ago."""
        async with self._computing:
            if self._latest is None or not 0 <= self._clock.monotonic() - self._latest[0] < SHARED_FOR_S:
                self._latest = (self._clock.monotonic(), await self._compute())
            return self._latest[1]

    def look_again(self) -> None:
        """Something that health tells about may have changed: configuration, channels."""
        self._latest = None
        self._look.set()

    async def tell_forever(self, presence_version: Callable[[], int]) -> None:
        """Send a `health` event every minute, and at once when it has become another one."""
        while True:
            try:
                due = self._told is not None and await self._wait()
                now = await self.snapshot()
            except OpenClawError as error:
                log.error("health cannot be told: %s", error)
                await self._clock.sleep(TELL_EVERY_S)
                continue
            was, self._told = self._told, _essence(now)
            if due or was not in (None, self._told):
                self.version += 1
                versions = StateVersion(presence=presence_version(), health=self.version)
                self._hub.broadcast("health", now, versions)

    async def _wait(self) -> bool:
        """Until the minute is over (True) or somebody says that there may be news."""
        looking = asyncio.ensure_future(self._look.wait())
        sleeping = asyncio.ensure_future(self._clock.sleep(TELL_EVERY_S))
        try:
            await asyncio.wait({looking, sleeping}, return_when=asyncio.FIRST_COMPLETED)
            due = sleeping.done()
        finally:
            looking.cancel()
            sleeping.cancel()
        self._look.clear()
        return due


def _essence(health: Json) -> Json:
    agents = [agent.get("agentId") for agent in health.get("agents", ())]
    return {name: health.get(name) for name in _ESSENCE} | {"agents": agents}
