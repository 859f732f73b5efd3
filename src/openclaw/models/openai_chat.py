"""OpenAI chat completions over HTTP: the shell around `openai_request` and `openai_reply`.

It posts, reads, times out and hangs up; the two pure rooms beside it know the
wire. It never raises for a provider's failure (`engine.ports.Model`) and keeps
no state between calls but the connections of the session it was given.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncGenerator

import aiohttp

from openclaw import __version__
from openclaw.engine.ports import ModelEvent, ModelFailure, ModelRequest, ModelTarget
from openclaw.models.failures import exception_failure, http_failure, make_failure, setting_hint
from openclaw.models.openai_reply import ChatReply, ReplyBroken
from openclaw.models.openai_request import encode_request, request_url

API = "openai-completions"
CONNECT_TIMEOUT_S = 10.0
IDLE_TIMEOUT_S = 120.0
_REFUSAL_BYTES = 64 * 1024
_REFUSAL_TIMEOUT_S = 10.0
# After the last event the end of the body is due at once; waiting for it keeps the connection usable.
_BODY_END_TIMEOUT_S = 0.25
# aiohttp warns above this for plain bytes, because it would write them in one piece.
_ONE_PIECE_BYTES = 1024 * 1024


class OpenAIChatModel:
    """Any server that speaks the chat-completions wire. One instance serves all providers and calls.

    `idle_timeout_s` bounds the silence before the first byte and between chunks.
    There is no limit on the whole call: the run that asked has a deadline.
    Cancelling the consumer, or closing the stream, closes the connection.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        *,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        idle_timeout_s: float = IDLE_TIMEOUT_S,
    ) -> None:
        self._session = session
        self._timeout = aiohttp.ClientTimeout(
            total=None, connect=connect_timeout_s, sock_connect=connect_timeout_s, sock_read=idle_timeout_s
        )

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Stream one answer; see `engine.ports.Model`. Close the iterator when you stop early."""
        target = request.target
        reply = ChatReply(request)
        answering = False
        failure = _unusable(target)
        if failure is not None:
            yield reply.done(failure)
            return
        try:
            async with self._session.post(
                request_url(target),
                data=_sendable(encode_request(request)),
                headers=_headers(target),
                timeout=self._timeout,
                # A redirect could carry the API key to another host.
                allow_redirects=False,
            ) as response:
                try:
                    if response.status >= 300:
                        failure = await _read_refusal(response, target)
                    else:
                        answering = True
                        async for data in response.content.iter_any():
                            reply.feed(data)
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
        yield reply.done(failure)


def _unusable(target: ModelTarget) -> ModelFailure | None:
    """A target that cannot be called at all, said in words that name the fix."""
    if not target.base_url.strip():
        what = f"no base URL is configured. {setting_hint(target, 'baseUrl')}"
        return make_failure(target, "bad_request", what)
    key = target.api_key.strip()
    if not (key.isascii() and key.isprintable()):
        what = "the API key holds characters that no HTTP header can carry; copy it again."
        return make_failure(target, "auth", what)
    return None


def _headers(target: ModelTarget) -> dict[str, str]:
    headers = {
        "Content-Type": "application/json",
        "Accept": "text/event-stream, application/json",
        # Compression would hold back small events until its window fills.
        "Accept-Encoding": "identity",
        "User-Agent": f"openclaw/{__version__}",
    }
    key = target.api_key.strip()
    if key:
        headers["Authorization"] = f"Bearer {key}"
    return headers


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
    try:
        async with asyncio.timeout(_BODY_END_TIMEOUT_S):
            while not response.content.at_eof():
                await response.content.readany()
    except (TimeoutError, aiohttp.ClientError, OSError):
        pass
