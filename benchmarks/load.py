"""A light client for load: one socket, many turns at once, nothing kept of what has been seen.

It speaks the real wire. What a measuring client must not do is grow or search: an
event is looked at once, and only the end of a turn that somebody waits for counts.
"""

from __future__ import annotations

import asyncio
import itertools
from types import TracebackType
from typing import Any, Self

import aiohttp
import msgspec

Json = dict[str, Any]
WITHIN_S = 300.0  # a busy machine may stand still for half a minute
TERMINAL = frozenset({"final", "error", "aborted"})
_SCOPES = ["operator.admin", "operator.read", "operator.write"]
_decode = msgspec.json.Decoder(Json).decode
_encode = msgspec.json.Encoder().encode


class RefusedError(Exception):
    """The gateway answered a request with an error."""


class LoadClient:
    """`async with LoadClient(port, token) as client:` does the handshake."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._token = token
        self._numbers = itertools.count(1)
        self._answers: dict[str, asyncio.Future[Json]] = {}
        self._ends: dict[str, asyncio.Future[Json]] = {}
        self._challenged = asyncio.Event()
        self.events = 0

    async def __aenter__(self) -> Self:
        self._http = aiohttp.ClientSession()
        try:
            self._socket = await self._http.ws_connect(f"ws://127.0.0.1:{self._port}/", max_msg_size=1 << 26)
        except BaseException:
            await self._http.close()
            raise
        self._reader = asyncio.create_task(self._read())
        async with asyncio.timeout(WITHIN_S):
            await self._challenged.wait()
        params = {
            "minProtocol": 4,
            "maxProtocol": 4,
            "client": {"id": "cli", "mode": "cli", "version": "1", "platform": "bench"},
            "role": "operator",
            "scopes": _SCOPES,
            "auth": {"token": self._token},
        }
        try:
            await self.call("connect", params)
        except BaseException:
            await self.hang_up()
            raise
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self._socket.close()
        await self.hang_up()

    async def hang_up(self) -> None:
        """End without a word, as a client does whose cable was pulled."""
        self._reader.cancel()
        await asyncio.wait((self._reader,))
        self._socket._response.close()
        await self._http.close()

    async def _read(self) -> None:
        try:
            async for message in self._socket:
                if message.type is aiohttp.WSMsgType.TEXT:
                    self._take(_decode(message.data))
        finally:
            for future in (*self._answers.values(), *self._ends.values()):
                if not future.done():
                    future.set_exception(ConnectionError("the connection closed"))

    def _take(self, frame: Json) -> None:
        if frame["type"] == "res":
            waiting = self._answers.pop(frame["id"], None)
            if waiting is not None and not waiting.done():
                waiting.set_result(frame)
            return
        self.events += 1
        payload = frame["payload"]
        if frame["event"] == "connect.challenge":
            self._challenged.set()
        elif frame["event"] == "chat" and payload["state"] in TERMINAL:
            ended = self._ends.pop(payload["runId"], None)
            if ended is not None and not ended.done():
                ended.set_result(payload)

    async def call(self, method: str, params: Json) -> Json:
        """One request; its payload. Raises `RefusedError` for an error."""
        request_id = f"r{next(self._numbers)}"
        answer = self._answers[request_id] = asyncio.get_running_loop().create_future()
        frame = {"type": "req", "id": request_id, "method": method, "params": params}
        await self._socket.send_frame(_encode(frame), aiohttp.WSMsgType.TEXT)
        async with asyncio.timeout(WITHIN_S):
            found = await answer
        if not found["ok"]:
            raise RefusedError(f"{method}: {found['error'].get('code')}: {found['error'].get('message')}")
        payload: Json = found["payload"]
        return payload

    async def begin(self, key: str, text: str, run_id: str) -> asyncio.Future[Json]:
        """Send a message; the future is the terminal event of its run."""
        ended = self._ends[run_id] = asyncio.get_running_loop().create_future()
        try:
            await self.call("chat.send", {"sessionKey": key, "message": text, "idempotencyKey": run_id})
        except BaseException:
            self._ends.pop(run_id, None)
            raise
        return ended

    async def turn(self, key: str, text: str, run_id: str) -> Json:
        """A whole turn; the payload of its terminal event."""
        ended = await self.begin(key, text, run_id)
        async with asyncio.timeout(WITHIN_S):
            return await ended
