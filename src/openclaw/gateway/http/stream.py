"""Server-sent events, and knowing that the one who asked has gone."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

import msgspec
from aiohttp import web

KEEP_ALIVE_S: Final = 15.0
# A reader that takes nothing for so long is not there any more.
SLOW_READER_S: Final = 60.0


class ClientGone(Exception):
    """The one who asked has closed the connection."""


def is_gone(request: web.Request) -> bool:
    transport = request.transport
    return transport is None or transport.is_closing()


class EventStream:
    """One answer that goes on. Opened by its first event, so that a refusal before it is a plain answer."""

    def __init__(self, request: web.Request) -> None:
        self._request = request
        self._response: web.StreamResponse | None = None

    async def send(self, data: object, event: str | None = None) -> None:
        """One event. Raises ClientGone."""
        text = data.encode() if isinstance(data, str) else msgspec.json.encode(data)
        head = f"event: {event}\n".encode() if event else b""
        await self._write(head + b"data: " + text + b"\n\n")

    async def keep_alive(self) -> None:
        await self._write(b": still here\n\n")

    async def close(self) -> web.StreamResponse:
        response = await self._opened()
        with suppress(ConnectionError):  # the last bytes may be nobody's any more
            await response.write_eof()
        return response

    @property
    def is_open(self) -> bool:
        return self._response is not None

    async def _opened(self) -> web.StreamResponse:
        if self._response is None:
            response = web.StreamResponse(
                headers={"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-store"}
            )
            await response.prepare(self._request)
            self._response = response
        return self._response

    async def _write(self, data: bytes) -> None:
        if is_gone(self._request):
            raise ClientGone
        try:
            async with asyncio.timeout(SLOW_READER_S):
                response = await self._opened()
                await response.write(data)
        except (ConnectionError, TimeoutError):
            raise ClientGone from None
