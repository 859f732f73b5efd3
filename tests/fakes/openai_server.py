"""A real loopback HTTP server that speaks the OpenAI chat-completions wire by script.

Each request takes the next `FakeReply`. Requests and disconnects are recorded.
It serves any client: an adapter in this process or a gateway in another one.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from types import TracebackType
from typing import Any, Self

from aiohttp import web
from msgspec import Struct, field


class FakeCall(Struct, frozen=True):
    """A tool call. `pieces` are the argument text as it is streamed; valid JSON or not."""

    name: str
    pieces: tuple[str, ...] = ("{}",)
    call_id: str = "call_1"


class FakeReply(Struct, frozen=True, kw_only=True):
    """What the server does with one request.

    Plain use: `texts`, `thinking`, `calls`, `usage`. `raw` replaces the stream by
    these exact bytes. `status` >= 300 sends `body` instead. `cut` breaks the
    connection after the chunks; `hang_after` holds after that many chunks until
    `release` is called (0: after the headers, -1: before them); `delay_s` drips.
    """

    texts: tuple[str, ...] = ()
    thinking: tuple[str, ...] = ()
    calls: tuple[FakeCall, ...] = ()
    usage: dict[str, Any] | None = None
    finish_reason: str | None = None
    raw: tuple[bytes, ...] | None = None
    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False
    hang_after: int | None = None
    delay_s: float = 0.0
    # False: ignore `stream` and answer with one JSON object.
    stream: bool = True


class FakeRequest(Struct, frozen=True):
    """One request as it arrived. `connection` is the same for requests that shared a connection."""

    path: str
    headers: Mapping[str, str]
    raw: bytes
    connection: int

    @property
    def body(self) -> dict[str, Any]:
        decoded: dict[str, Any] = json.loads(self.raw)
        return decoded


def event(payload: Any) -> bytes:
    """One server-sent event with a JSON payload."""
    return b"data: " + json.dumps(payload).encode() + b"\n\n"


def delta(fields: dict[str, Any], finish_reason: str | None = None) -> bytes:
    """One streamed chunk."""
    choice = {"index": 0, "delta": fields, "finish_reason": finish_reason}
    return event({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice]})


DONE = b"data: [DONE]\n\n"
DEADLINE_S = 60.0  # a busy machine may stand still for half a minute


class FakeOpenAIServer:
    """Use as an async context manager; `base_url` is what a provider's configuration holds."""

    path = "/v1/chat/completions"

    def __init__(self, *replies: FakeReply, then: FakeReply | None = None) -> None:
        self._replies: deque[FakeReply] = deque(replies)
        self._then = then
        self._release = asyncio.Event()
        self._changed = asyncio.Condition()
        self._connections: dict[object, int] = {}
        self._runner: web.AppRunner | None = None
        self.requests: list[FakeRequest] = []
        # Requests whose client went away before the answer was complete.
        self.disconnects = 0
        # What `GET /v1/models` answers.
        self.models: Any = {"object": "list", "data": []}
        self.base_url = ""
        # Looks at a request's body first; None leaves it to the script.
        self.decide: Callable[[dict[str, Any]], FakeReply | None] | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post(self.path, self._handle)
        app.router.add_get("/v1/models", self._list_models)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        self.base_url = f"http://127.0.0.1:{port}/v1"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
        assert self._runner is not None
        await self._runner.cleanup()

    def script(self, *replies: FakeReply) -> None:
        """Append replies for the next requests."""
        self._replies.extend(replies)

    def release(self) -> None:
        """Let every hanging reply go on, now and later."""
        self._release.set()

    async def wait_for_requests(self, count: int, timeout_s: float = DEADLINE_S) -> None:
        await self._wait(lambda: len(self.requests) >= count, timeout_s)

    async def wait_for_disconnects(self, count: int, timeout_s: float = DEADLINE_S) -> None:
        await self._wait(lambda: self.disconnects >= count, timeout_s)

    async def _wait(self, reached: Any, timeout_s: float) -> None:
        async with asyncio.timeout(timeout_s), self._changed:
            await self._changed.wait_for(reached)

    async def _note(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _list_models(self, _request: web.Request) -> web.Response:
        return web.json_response(self.models)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        try:
            raw = await request.read()
            connection = self._connections.setdefault(request.protocol, len(self._connections))
            self.requests.append(FakeRequest(request.path, dict(request.headers), raw, connection))
            await self._note()
            return await self._answer(request, self._next_reply(raw))
        except (asyncio.CancelledError, ConnectionResetError):
            self.disconnects += 1
            await self._note()
            raise

    def _next_reply(self, raw: bytes) -> FakeReply:
        if self.decide is not None and (decided := self.decide(json.loads(raw))) is not None:
            return decided
        if self._replies:
            return self._replies.popleft()
        if self._then is not None:
            return self._then
        return FakeReply(status=500, body={"error": {"message": "the script has no reply left"}})

    async def _answer(self, request: web.Request, reply: FakeReply) -> web.StreamResponse:
        if reply.hang_after == -1:
            await self._release.wait()
        if reply.status >= 300 or not reply.stream:
            body = reply.body if reply.status >= 300 else whole_answer(reply)
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            return web.Response(
                status=reply.status,
                body=data,
                headers={"Content-Type": "application/json", **reply.headers},
            )
        headers = {"Content-Type": "text/event-stream", **reply.headers}
        response = web.StreamResponse(status=reply.status, headers=headers)
        await response.prepare(request)
        async for chunk in self._paced(reply):
            await response.write(chunk)
        if reply.cut:
            assert request.transport is not None
            request.transport.close()
            return response
        await response.write_eof()
        return response

    async def _paced(self, reply: FakeReply) -> AsyncIterator[bytes]:
        chunks = reply.raw if reply.raw is not None else streamed_answer(reply)
        for position, chunk in enumerate(chunks):
            if reply.hang_after == position:
                await self._release.wait()
            if reply.delay_s:
                await asyncio.sleep(reply.delay_s)
            yield chunk
        if reply.hang_after is not None and reply.hang_after >= len(chunks):
            await self._release.wait()


def streamed_answer(reply: FakeReply) -> tuple[bytes, ...]:
    """The events of a well-formed stream; without its end when the reply is to be cut."""
    chunks = [delta({"role": "assistant", "content": ""})]
    chunks += [delta({"reasoning_content": text}) for text in reply.thinking]
    chunks += [delta({"content": text}) for text in reply.texts]
    for index, call in enumerate(reply.calls):
        head = {"index": index, "id": call.call_id, "type": "function"}
        first = {**head, "function": {"name": call.name, "arguments": ""}}
        chunks.append(delta({"tool_calls": [first]}))
        for piece in call.pieces:
            chunks.append(delta({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}))
    if reply.cut:
        return tuple(chunks)
    chunks.append(delta({}, _finish_reason(reply)))
    if reply.usage is not None:
        chunks.append(event({"id": "chatcmpl-1", "choices": [], "usage": reply.usage}))
    return (*chunks, DONE)


def whole_answer(reply: FakeReply) -> dict[str, Any]:
    """The same answer as one JSON object."""
    calls = [
        {
            "id": call.call_id,
            "type": "function",
            "function": {"name": call.name, "arguments": "".join(call.pieces)},
        }
        for call in reply.calls
    ]
    message: dict[str, Any] = {"role": "assistant", "content": "".join(reply.texts) or None}
    if reply.thinking:
        message["reasoning_content"] = "".join(reply.thinking)
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "finish_reason": _finish_reason(reply)}
    return {"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice], "usage": reply.usage}


def _finish_reason(reply: FakeReply) -> str:
    return reply.finish_reason or ("tool_calls" if reply.calls else "stop")
