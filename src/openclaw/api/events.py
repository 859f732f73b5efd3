"""The events of a gateway as an asynchronous iterator.

Following begins when the block is entered, so that nothing is missed between a call and
its first event. A reader that falls far behind is told so; nothing is dropped silently.
"""

from __future__ import annotations

from asyncio import Event as Signal
from collections import deque
from types import TracebackType
from typing import Any

from msgspec import Struct

from openclaw.api.connection import Connection
from openclaw.api.failures import GatewayGone
from openclaw.errors import Overloaded

Json = dict[str, Any]
MAX_WAITING = 10_000
# The gateway tells these only to those who asked for them.
_FOLLOWED = frozenset(("sessions.changed", "session.message"))


class GatewayEvent(Struct, frozen=True):
    """`name` as on the wire, such as "chat"; `payload` as clients get it."""

    name: str
    payload: Json


class Events:
    """`async with gateway.on("chat") as events:` then `async for event in events:`.

    The iteration ends when the block is left; when the gateway goes away it raises GatewayGone.
    """

    def __init__(self, connection: Connection, names: tuple[str, ...]) -> None:
        self._connection = connection
        self._names = frozenset(names)
        self._waiting: deque[GatewayEvent] = deque()
        self._news = Signal()
        self._failure: Exception | None = None
        self._left = False

    async def __aenter__(self) -> Events:
        self._stop = self._connection.listen(self._take, self._end)
        if self._names & _FOLLOWED or not self._names:
            try:
                await self._connection.call("sessions.subscribe")
            except BaseException:
                self._stop()
                raise
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._stop()
        self._left = True
        self._news.set()

    def __aiter__(self) -> Events:
        return self

    async def __anext__(self) -> GatewayEvent:
        while not self._waiting:
            if self._failure is not None:
                raise self._failure
            if self._left:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        return self._waiting.popleft()

    def _take(self, name: str, payload: Json) -> None:
        if self._failure is not None or (self._names and name not in self._names):
            return
        if len(self._waiting) >= MAX_WAITING:
            self._failure = Overloaded(
                f"{MAX_WAITING} events wait to be read; read faster, and read again what was missed"
            )
        else:
            self._waiting.append(GatewayEvent(name, payload))
        self._news.set()

    def _end(self) -> None:
        self._failure = self._failure or GatewayGone()
        self._news.set()
