"""A bare gateway of the same shape: the least that a durable turn over the wire can cost here.

    python -m benchmarks.spike_gateway --port N --home DIR --token T --llm http://127.0.0.1:18900/v1

Handshake, one commit for input + claim, a streamed model call, one commit for the
answer with its search row, ten events; aiohttp on uvloop, apsw with group commit and
`synchronous=FULL`. No policy, no recovery, no second method. It speaks enough of the
protocol for a load generator, and is what our figures are held against.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import aiohttp
import apsw
import msgspec
import uvloop
from aiohttp import WSMsgType, web

Json = dict[str, Any]
Unit = Callable[[apsw.Cursor], Any]
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
SCHEMA = (
    "CREATE TABLE IF NOT EXISTS sessions (key TEXT PRIMARY KEY, seq INTEGER, updated INTEGER)",
    "CREATE TABLE IF NOT EXISTS inbox (no INTEGER PRIMARY KEY, run TEXT UNIQUE, key TEXT, body BLOB)",
    "CREATE TABLE IF NOT EXISTS runs (run TEXT PRIMARY KEY, key TEXT, state TEXT) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS entries (key TEXT, seq INTEGER, body BLOB, PRIMARY KEY (key, seq)) "
    "WITHOUT ROWID",
    "CREATE VIRTUAL TABLE IF NOT EXISTS search USING fts5 (words, content='')",
)


class Writer:
    """One thread, one connection, all waiting units in one commit."""

    def __init__(self, path: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[tuple[Unit, asyncio.Future[Any]]] = SimpleQueue()
        self._connection = apsw.Connection(path)
        for statement in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", *SCHEMA):
            self._connection.execute(statement).fetchall()
        threading.Thread(target=self._work, daemon=True).start()

    async def write(self, unit: Unit) -> Any:
        future: asyncio.Future[Any] = self._loop.create_future()
        self._queue.put((unit, future))
        return await future

    def _work(self) -> None:
        cursor = self._connection.cursor()
        while True:
            batch = [self._queue.get()]
            try:
                while len(batch) < 256:
                    batch.append(self._queue.get_nowait())
            except Empty:
                pass
            cursor.execute("BEGIN IMMEDIATE").fetchall()
            done = [(future, unit(cursor)) for unit, future in batch]
            cursor.execute("COMMIT").fetchall()
            self._loop.call_soon_threadsafe(_settle, done)


def _settle(done: list[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, result in done:
        if not future.done():
            future.set_result(result)


def append(cursor: apsw.Cursor, key: str, body: bytes, words: str) -> int:
    rows = cursor.execute(
        "INSERT INTO sessions VALUES (?, 1, ?) ON CONFLICT (key) "
        "DO UPDATE SET seq = seq + 1, updated = excluded.updated RETURNING seq",
        (key, time.time_ns() // 1_000_000),
    ).fetchall()
    seq = rows[0][0]
    assert isinstance(seq, int)
    cursor.execute("INSERT INTO entries VALUES (?, ?, ?)", (key, seq, body)).fetchall()
    cursor.execute("INSERT INTO search (words) VALUES (?)", (words,)).fetchall()
    return seq


class Spike:
    def __init__(self, writer: Writer, http: aiohttp.ClientSession, llm: str) -> None:
        self._writer = writer
        self._http = http
        self._llm = llm + "/chat/completions"
        self._contexts: dict[str, list[Json]] = {}

    async def socket(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Upgrade", "").lower() != "websocket":
            return web.json_response({"ok": True})
        socket = web.WebSocketResponse(compress=False, max_msg_size=1 << 25)
        await socket.prepare(request)
        await socket.send_str('{"type":"event","event":"connect.challenge","payload":{"nonce":"n","ts":1}}')
        async with asyncio.TaskGroup() as group:
            numbers = iter(range(1, 1 << 60))
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    group.create_task(self.handle(socket, _decode(message.data), numbers))
        return socket

    async def handle(self, socket: web.WebSocketResponse, frame: Json, numbers: Any) -> None:
        if frame["method"] == "chat.send":
            await self.turn(socket, frame, numbers)
            return
        payload: Json = (
            {"type": "hello-ok"} if frame["method"] == "connect" else {"messages": [], "totalCount": 0}
        )
        await self.send(socket, {"type": "res", "id": frame["id"], "ok": True, "payload": payload})

    async def send(self, socket: web.WebSocketResponse, value: Json) -> None:
        await socket.send_frame(_encode(value), WSMsgType.TEXT)

    async def turn(self, socket: web.WebSocketResponse, frame: Json, numbers: Any) -> None:
        params = frame["params"]
        key, run, text = params["sessionKey"], params["idempotencyKey"], params["message"]
        body = _encode({"role": "user", "content": text})

        def accept(cursor: apsw.Cursor) -> int:
            cursor.execute("INSERT INTO inbox (run, key, body) VALUES (?, ?, ?)", (run, key, body)).fetchall()
            cursor.execute("INSERT INTO runs VALUES (?, ?, 'active')", (run, key)).fetchall()
            return append(cursor, key, body, text)

        await self._writer.write(accept)
        await self.send(
            socket,
            {"type": "res", "id": frame["id"], "ok": True, "payload": {"runId": run, "status": "started"}},
        )
        for state in ("a", "b", "c", "d"):
            await self.event(socket, "agent", {"runId": run, "sessionKey": key, "stream": state}, numbers)
        context = self._contexts.setdefault(key, [])
        context.append({"role": "user", "content": text})
        answer = ""
        request = {"model": "fake-1", "stream": True, "messages": context}
        async with self._http.post(self._llm, data=_encode(request)) as response:
            async for line in response.content:
                if line.startswith(b"data: {"):
                    for choice in _decode(line[6:])["choices"]:
                        answer += choice["delta"].get("content") or ""
        await self.event(socket, "chat", {"runId": run, "state": "delta", "deltaText": answer}, numbers)
        context.append({"role": "assistant", "content": answer})
        final = _encode({"role": "assistant", "content": answer})

        def finish(cursor: apsw.Cursor) -> int:
            cursor.execute("UPDATE runs SET state = 'ended' WHERE run = ?", (run,)).fetchall()
            return append(cursor, key, final, answer)

        await self._writer.write(finish)
        for state in ("e", "f", "g", "h"):
            await self.event(socket, "agent", {"runId": run, "sessionKey": key, "stream": state}, numbers)
        await self.event(
            socket, "chat", {"runId": run, "sessionKey": key, "state": "final", "message": answer}, numbers
        )

    async def event(self, socket: web.WebSocketResponse, name: str, payload: Json, numbers: Any) -> None:
        await self.send(socket, {"type": "event", "event": name, "payload": payload, "seq": next(numbers)})


async def serve(port: int, home: Path, llm: str) -> None:
    writer = Writer(str(home / f"spike-{uuid.uuid4().hex[:6]}.sqlite"))
    async with aiohttp.ClientSession() as http:
        spike = Spike(writer, http, llm)
        app = web.Application()
        app.router.add_get("/", spike.socket)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        print(json.dumps({"port": port, "pid": os.getpid()}), flush=True)
        await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--token", default="")
    parser.add_argument("--llm", default="http://127.0.0.1:18900/v1")
    options = parser.parse_args()
    options.home.mkdir(parents=True, exist_ok=True)
    uvloop.run(serve(options.port, options.home, options.llm))


if __name__ == "__main__":
    main()
