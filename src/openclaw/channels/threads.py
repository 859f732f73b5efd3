"""Opens a chat thread for a helper, by the connector that carries the place's account (BIND-1)."""

from __future__ import annotations

import asyncio
import logging

from openclaw.channels.base import OpensThreads
from openclaw.channels.postman import Postman
from openclaw.domain.entry import DeliveryContext
from openclaw.errors import OpenClawError, Unavailable

log = logging.getLogger("openclaw.channels")
OPEN_WITHIN_S = 30.0


class ThreadDesk:
    """The engine's `ThreadOpener`."""

    def __init__(self, postman: Postman) -> None:
        self._postman = postman

    def can_open(self, route: DeliveryContext) -> bool:
        return self._connector(route) is not None

    async def open(self, route: DeliveryContext, title: str) -> str:
        connector = self._connector(route)
        if connector is None or route.to is None:
            raise Unavailable(f"{route.channel} opens no threads")
        try:
            async with asyncio.timeout(OPEN_WITHIN_S):
                return await connector.open_thread(route.to, title)
        except TimeoutError:
            raise Unavailable(f"{route.channel} did not answer within {OPEN_WITHIN_S:.0f} s")
        except OpenClawError:
            raise
        except Exception as error:
            log.exception("a thread on %s", route.channel)
            raise Unavailable(f"{route.channel}: {type(error).__name__}")

    def _connector(self, route: DeliveryContext) -> OpensThreads | None:
        if not route.channel:
            return None
        found = self._postman.connector(route.channel, route.account_id)
        if found is None or not found.abilities.binds_threads or not isinstance(found, OpensThreads):
            return None
        return found
