"""A client of the gateway for tests: the real wire over a real socket, events kept in order."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

Json = dict[str, Any]
ALL_SCOPES = ("operator.admin", "operator.read", "operator.write")
DEADLINE_S = 60.0  # a busy machine may stand still for half a minute


class RefusedError(Exception):
    """The gateway answered with an error."""

    def __init__(self, error: Json) -> None:
        super().__init__(f"{error.get('code')}: {error.get('message')}")
        self.error = error


class WireClient:
    """`async with WireClient(url, token) as client:` does the handshake."""

    def __init__(
        self,
        url: str,
        token: str | None,
        *,
        scopes: tuple[str, ...] = ALL_SCOPES,
        client_id: str = "cli",
        mode: str = "cli",
        caps: tuple[str, ...] = (),
    ) -> None:
        self.url = url
        self.token = token
        self.scopes = scopes
        self.client = {"id": client_id, "mode": mode, "version": "1", "platform": "test"}
        self.caps = caps
        self.events: list[Json] = []
        self.frames: list[Json] = []
        self.hello: Json = {}
        self._numbers = itertools.count(1)
        self._answers: dict[str, asyncio.Queue[Json]] = {}
        self._news = asyncio.Event()
        self._socket: ClientConnection
        self._reader: asyncio.Task[None]

    async def __aenter__(self) -> Self:
        self._socket = await connect(self.url, max_size=1 << 26, compression=None)
        self._reader = asyncio.create_task(self._read())
        await self.wait_for(lambda event: event["event"] == "connect.challenge")
        params: Json = {
            "minProtocol": 4,
            "maxProtocol": 4,
            "client": self.client,
            "role": "operator",
            "scopes": list(self.scopes),
            "caps": list(self.caps),
        }
        if self.token is not None:
            params["auth"] = {"token": self.token}
        try:
            self.hello = await self.call("connect", params)
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self._socket.close()
        await self._reader

    async def _read(self) -> None:
        try:
            async for text in self._socket:
                frame = json.loads(text)
                self.frames.append(frame)
                if frame["type"] == "res":
                    self._answers.setdefault(frame["id"], asyncio.Queue()).put_nowait(frame)
                else:
                    self.events.append(frame)
                self._news.set()
        except ConnectionClosed:
            pass
        finally:
            for queue in self._answers.values():
                queue.put_nowait({"ok": False, "error": {"code": "CLOSED", "message": "connection closed"}})
            self._news.set()

    async def post(self, method: str, params: Json | None = None) -> str:
        """Send a request; returns its id."""
        request_id = f"r{next(self._numbers)}"
        self._answers.setdefault(request_id, asyncio.Queue())
        frame = {"type": "req", "id": request_id, "method": method, "params": params or {}}
        await self._socket.send(json.dumps(frame))
        return request_id

    async def answer(self, request_id: str, within_s: float = DEADLINE_S) -> Json:
        """The next answer to a request."""
        async with asyncio.timeout(within_s):
            frame = await self._answers[request_id].get()
        if not frame["ok"]:
            raise RefusedError(frame["error"])
        payload: Json = frame["payload"]
        return payload

    async def call(self, method: str, params: Json | None = None, within_s: float = DEADLINE_S) -> Json:
        return await self.answer(await self.post(method, params), within_s)

    async def wait_for(self, wanted: Callable[[Json], bool], within_s: float = DEADLINE_S) -> Json:
        """The first event, past or to come, for which `wanted` is true."""
        seen = 0
        async with asyncio.timeout(within_s):
            while True:
                for event in self.events[seen:]:
                    if wanted(event):
                        return event
                seen = len(self.events)
                if self._reader.done():
                    raise ConnectionError("the connection closed before the event came")
                self._news.clear()
                await self._news.wait()

    async def say(self, key: str, text: str, run_id: str, **extra: Any) -> Json:
        """chat.send, then the terminal chat event of the run."""
        await self.call("chat.send", {"sessionKey": key, "message": text, "idempotencyKey": run_id, **extra})
        return await self.ended(run_id)

    async def ended(self, run_id: str) -> Json:
        event = await self.wait_for(
            lambda event: (
                event["event"] == "chat"
                and event["payload"]["runId"] == run_id
                and event["payload"]["state"] in ("final", "error", "aborted")
            )
        )
        payload: Json = event["payload"]
        return payload

    def of_run(self, run_id: str) -> list[Json]:
        return [event for event in self.events if event["payload"].get("runId") == run_id]

    @property
    def close_code(self) -> int | None:
        return self._socket.close_code

    @property
    def close_reason(self) -> str | None:
        return self._socket.close_reason
