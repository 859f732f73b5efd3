"""Serves the Control UI of the npm package from a folder, and passes its socket on to the gateway.

The page connects to where it came from; this stands for the reverse proxy that a person would use.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp
from aiohttp import WSMsgType, web

PASSED_ON = ("control-ui-config.json", "healthz", "readyz")


class ControlUiHost:
    """Use with `tests.fakes.in_thread.served`; `base_url` is where the page is."""

    def __init__(self, folder: Path, gateway_url: str) -> None:
        self._folder = folder
        self._socket_url = gateway_url
        self._http_url = gateway_url.replace("ws://", "http://")
        self._runner: web.AppRunner | None = None
        self._session: aiohttp.ClientSession
        self.base_url = ""

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession()
        app = web.Application()
        app.router.add_get("/{path:.*}", self._get)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.base_url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._runner is not None
        await self._runner.cleanup()
        await self._session.close()

    async def _get(self, request: web.Request) -> web.StreamResponse:
        path = request.match_info["path"]
        if request.headers.get("Upgrade", "").lower() == "websocket":
            return await self._pass_on(request)
        if path in PASSED_ON:
            headers = {"Authorization": request.headers.get("Authorization", "")}
            async with self._session.get(f"{self._http_url}/{path}", headers=headers) as answer:
                return web.Response(
                    body=await answer.read(), status=answer.status, content_type="application/json"
                )
        file = (self._folder / path).resolve()
        if path and file.is_file() and file.is_relative_to(self._folder.resolve()):
            return web.FileResponse(file)
        if "." in path.rpartition("/")[2] or path.startswith(("api/", "__openclaw__/")):
            return web.Response(status=404)
        # The page names its files relative to where it is; below /chat/ they would not be found.
        index = (self._folder / "index.html").read_text(encoding="utf-8")
        return web.Response(
            text=index.replace("<head>", '<head><base href="/">', 1), content_type="text/html"
        )

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        here = web.WebSocketResponse(max_msg_size=0)
        await here.prepare(request)
        origin = request.headers.get("Origin")
        try:
            there = await self._session.ws_connect(self._socket_url, origin=origin, max_msg_size=0)
        except aiohttp.ClientError:
            await here.close(code=1013)
            return here
        async with there:
            pumps = [asyncio.create_task(_pump(here, there)), asyncio.create_task(_pump(there, here))]
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            for pump in pumps:
                pump.cancel()
        await here.close(code=there.close_code or 1000)
        return here


Socket = web.WebSocketResponse | aiohttp.ClientWebSocketResponse


async def _pump(source: Socket, target: Socket) -> None:
    async for message in source:
        if message.type is not WSMsgType.TEXT or target.closed:
            return
        await target.send_str(message.data)
