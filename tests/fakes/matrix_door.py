"""A door in front of a real homeserver: it can be shut, it can refuse, it can spoil a credential.

Everything that it lets through is answered by the homeserver itself.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Self

import aiohttp
from aiohttp import web
from yarl import URL

HOP = {"transfer-encoding", "content-encoding", "content-length", "connection", "host"}


class MatrixDoor:
    """`root` is what a gateway is told; it stays the same when the door is shut and opened again."""

    def __init__(self, behind: str) -> None:
        self._behind = behind
        self._http = aiohttp.ClientSession(auto_decompress=True)
        self._runner: web.AppRunner | None = None
        self._port = 0
        self.refusals = 0
        self.lost_answers = 0  # sends that are carried out and whose answer never comes
        self.spoilt = False
        self.hold_answers = False  # sends are carried out, and their answers held back for ever
        self.paths: list[str] = []
        self.sends: list[str] = []  # of messages that were let through

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def open(self) -> None:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("*", "/{path:.*}", self._pass)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = self._port or self._runner.addresses[0][1]

    async def shut(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.shut()
        await self._http.close()

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        path = request.raw_path
        self.paths.append(path)
        is_send = request.method == "PUT" and "/send/" in path
        if is_send and self.refusals:
            self.refusals -= 1
            return _trouble(429, "M_LIMIT_EXCEEDED", retry_after_ms=200)
        if is_send:
            self.sends.append(path)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP}
        if self.spoilt:
            headers["Authorization"] = "Bearer nobody_gave_this"
        body = await request.read()
        address = URL(self._behind + path, encoded=True)
        async with self._http.request(request.method, address, data=body, headers=headers) as answer:
            found = await answer.read()
            if is_send and self.lost_answers:
                self.lost_answers -= 1
                assert request.transport is not None
                request.transport.abort()
            if is_send and self.hold_answers:
                await asyncio.Event().wait()
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in HOP}
            return web.Response(status=answer.status, body=found, headers=kept)


def _trouble(status: int, errcode: str, **more: Any) -> web.Response:
    return web.json_response({"errcode": errcode, "error": "Too Many Requests", **more}, status=status)
