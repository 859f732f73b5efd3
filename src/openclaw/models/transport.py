"""One streamed HTTP call to a provider: post, read, time out, hang up.

Knows no wire: what to send comes as a `Call`, what comes back is read by a
`Reply`. It never raises for a provider's failure (`engine.ports.Model`) and keeps
no state between calls but the connections of the session it was given.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncGenerator, Callable, Mapping

import aiohttp
from msgspec import Struct
from msgspec.structs import replace

from openclaw import __version__
from openclaw.engine.ports import ModelEvent, ModelFailure, ModelTarget
from openclaw.models.failures import exception_failure, http_failure, make_failure, setting_hint
from openclaw.models.reply import Reply, ReplyBroken

CONNECT_TIMEOUT_S = 10.0
IDLE_TIMEOUT_S = 120.0
# A provider that only says that it is still there says nothing in the end.
PROGRESS_TIMEOUT_S = 900.0
_REFUSAL_BYTES = 64 * 1024
_REFUSAL_TIMEOUT_S = 10.0
# After the last event the end of the body is due at once; waiting for it keeps the connection usable.
_BODY_END_TIMEOUT_S = 0.25
# aiohttp warns above this for plain bytes, because it would write them in one piece.
_ONE_PIECE_BYTES = 1024 * 1024


class Call(Struct, frozen=True):
    """What to post where. `encode` makes the body, so that its mistakes become failures too.

    `locate` turns the number of a message on the wire into its position in the request.
    """

    target: ModelTarget
    url: str
    headers: Mapping[str, str]
    encode: Callable[[], bytes]
    locate: Callable[[int], int | None]


class Patience(Struct, frozen=True):
    """How long to wait: to connect, for the next byte, and for the next byte that means something.

    There is no limit on the whole call: the run that asked has a deadline.
    """

    connect_s: float = CONNECT_TIMEOUT_S
    idle_s: float = IDLE_TIMEOUT_S
    progress_s: float = PROGRESS_TIMEOUT_S


def base_headers() -> dict[str, str]:
    return {
        "Content-Type": "application/json",
        "Accept": "text/event-stream, application/json",
        # Compression would hold back small events until its window fills.
        "Accept-Encoding": "identity",
        "User-Agent": f"openclaw/{__version__}",
    }


def unusable(target: ModelTarget) -> ModelFailure | None:
    """A target that cannot be called at all, said in words that name the fix."""
    if not target.base_url.strip():
        what = f"no base URL is configured. {setting_hint(target, 'baseUrl')}"
        return make_failure(target, "bad_request", what)
    key = target.api_key.strip()
    if not (key.isascii() and key.isprintable()):
        what = "the API key holds characters that no HTTP header can carry; copy it again."
        return make_failure(target, "auth", what)
    return None


async def stream_call(
    session: aiohttp.ClientSession, call: Call, reply: Reply, patience: Patience
) -> AsyncGenerator[ModelEvent, None]:
    """Stream one answer. Cancelling the consumer, or closing the stream, closes the connection."""
    target = call.target
    answering = False
    failure: ModelFailure | None = None
    timeout = aiohttp.ClientTimeout(
        total=None, connect=patience.connect_s, sock_connect=patience.connect_s, sock_read=patience.idle_s
    )
    try:
        async with session.post(
            call.url,
            data=_sendable(call.encode()),
            headers=call.headers,
            timeout=timeout,
            # A redirect could carry the API key to another host.
            allow_redirects=False,
        ) as response:
            try:
                if response.status >= 300:
                    failure = await _read_refusal(response, target)
                else:
                    answering = True
                    watch = _Watch(reply, patience.progress_s)
                    async for data in response.content.iter_any():
                        reply.feed(data)
                        watch.check()
                        for event in reply.take_events():
                            yield event
                        if reply.ended:
                            break
                    reply.finish()
                    await _reach_body_end(response)
            finally:
                if not response.content.at_eof():
                    response.close()
    except ReplyBroken as broken:
        failure = broken.failure
    except Exception as error:
        # Whatever breaks after the whole answer has come does not take it back.
        if not reply.complete:
            failure = exception_failure(target, error, answering=answering)
    for event in reply.take_events():
        yield event
    yield reply.done(_located(failure, call.locate))


class _Watch:
    """Raises TimeoutError when a chunk comes too long after the last that carried the answer on."""

    def __init__(self, reply: Reply, limit_s: float) -> None:
        self._now = asyncio.get_running_loop().time
        self._reply = reply
        self._limit_s = limit_s
        self._seen = reply.progress
        self._since = self._now()

    def check(self) -> None:
        if self._reply.progress != self._seen:
            self._seen, self._since = self._reply.progress, self._now()
        elif self._now() - self._since > self._limit_s:
            raise TimeoutError


def _located(failure: ModelFailure | None, locate: Callable[[int], int | None]) -> ModelFailure | None:
    if failure is None or failure.entry is None:
        return failure
    return replace(failure, entry=locate(failure.entry))


def _sendable(body: bytes) -> bytes | io.BytesIO:
    return body if len(body) <= _ONE_PIECE_BYTES else io.BytesIO(body)


async def _read_refusal(response: aiohttp.ClientResponse, target: ModelTarget) -> ModelFailure:
    """The failure behind an HTTP error; a slow or endless error page is cut."""
    body = bytearray()
    try:
        async with asyncio.timeout(_REFUSAL_TIMEOUT_S):
            while len(body) < _REFUSAL_BYTES:
                data = await response.content.read(_REFUSAL_BYTES - len(body))
                if not data:
                    break
                body += data
    except (TimeoutError, aiohttp.ClientError, OSError):
        pass
    return http_failure(target, response.status, bytes(body), response.headers)


async def _reach_body_end(response: aiohttp.ClientResponse) -> None:
    if response.content.at_eof():
        return
    try:
        async with asyncio.timeout(_BODY_END_TIMEOUT_S):
            while not response.content.at_eof():
                await response.content.readany()
    except (TimeoutError, aiohttp.ClientError, OSError):
        pass
