"""The other end of a connection: something on a loopback socket that is, or plays, a gateway."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.server import ServerConnection, serve

from openclaw.api.connection import Address

Json = dict[str, Any]
Peer = Callable[[ServerConnection], Awaitable[None]]
CHALLENGE = json.dumps({"type": "event", "event": "connect.challenge", "payload": {"nonce": "n"}})


@asynccontextmanager
async def peer(behaviour: Peer) -> AsyncIterator[Address]:
    async with serve(behaviour, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        yield Address(f"ws://127.0.0.1:{port}", token="tok")


async def let_in(socket: ServerConnection) -> Json:
    """The handshake of a gateway; returns the introduction."""
    await socket.send(CHALLENGE)
    request: Json = json.loads(await socket.recv())
    assert request["method"] == "connect"
    await answer(socket, request, {"type": "hello-ok"})
    introduction: Json = request["params"]
    return introduction


async def answer(socket: ServerConnection, request: Json, payload: object) -> None:
    frame = {"type": "res", "id": request["id"], "ok": True, "payload": payload}
    await socket.send(json.dumps(frame))


async def refuse(socket: ServerConnection, request: Json, error: object) -> None:
    await socket.send(json.dumps({"type": "res", "id": request["id"], "ok": False, "error": error}))


def answering(count: int, seen: list[object] | None = None, *, silent: str = "") -> Peer:
    """Answers so many requests with their own parameters, then closes; `silent` is not answered at all."""

    async def behaviour(socket: ServerConnection) -> None:
        await let_in(socket)
        for _ in range(count):
            request = json.loads(await socket.recv())
            if seen is not None:
                seen.append(request["params"])
            if request["method"] == silent:
                return
            await answer(socket, request, request["params"])

    return behaviour
