"""A bare aiohttp server that echoes: what a frame there and back costs at least.

python -m benchmarks.echo PORT
"""

from __future__ import annotations

import sys

import uvloop
from aiohttp import WSMsgType, web


async def _echo(request: web.Request) -> web.StreamResponse:
    if request.headers.get("Upgrade", "").lower() != "websocket":
        return web.Response()
    socket = web.WebSocketResponse(compress=False)
    await socket.prepare(request)
    async for message in socket:
        if message.type is WSMsgType.TEXT:
            await socket.send_str(message.data)
    return socket


def main() -> None:
    app = web.Application()
    app.router.add_get("/{path:.*}", _echo)
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None, loop=uvloop.new_event_loop())


if __name__ == "__main__":
    main()
