"""OpenAI chat completions over HTTP: `openai_request` makes the body, `openai_reply` reads the answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial

import aiohttp

from openclaw.engine.ports import ModelEvent, ModelRequest, ModelTarget
from openclaw.models.openai_reply import ChatReply
from openclaw.models.openai_request import encode_request, entry_position, request_url
from openclaw.models.openai_variants import extra_headers
from openclaw.models.transport import (
    CONNECT_TIMEOUT_S,
    IDLE_TIMEOUT_S,
    PROGRESS_TIMEOUT_S,
    Call,
    Patience,
    base_headers,
    stream_call,
    unusable,
)

API = "openai-completions"


class OpenAIChatModel:
    """Any server that speaks the chat-completions wire. One instance serves all providers and calls.

    `idle_timeout_s` bounds the silence before the first byte and between chunks,
    `progress_timeout_s` the time in which only keep-alives come.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        *,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        idle_timeout_s: float = IDLE_TIMEOUT_S,
        progress_timeout_s: float = PROGRESS_TIMEOUT_S,
    ) -> None:
        self._session = session
        self._patience = Patience(connect_timeout_s, idle_timeout_s, progress_timeout_s)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Stream one answer; see `engine.ports.Model`. Close the iterator when you stop early."""
        target = request.target
        reply = ChatReply(request)
        failure = unusable(target)
        if failure is not None:
            yield reply.done(failure)
            return
        call = Call(
            target,
            request_url(target),
            _headers(target),
            partial(encode_request, request),
            partial(entry_position, request),
        )
        async with aclosing(stream_call(self._session, call, reply, self._patience)) as events:
            async for event in events:
                yield event


def _headers(target: ModelTarget) -> dict[str, str]:
    headers = base_headers() | extra_headers(target)
    key = target.api_key.strip()
    if key:
        headers["Authorization"] = f"Bearer {key}"
    return headers
