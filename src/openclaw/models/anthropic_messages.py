"""Anthropic messages over HTTP: `anthropic_request` makes the body, `anthropic_reply` reads the answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial

import aiohttp

from openclaw.engine.ports import ModelEvent, ModelRequest, ModelTarget
from openclaw.models.anthropic_reply import MessagesReply
from openclaw.models.anthropic_request import encode_request, entry_position, request_url
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

API = "anthropic-messages"
_API_VERSION = "2023-06-01"
# Tokens that a person's own login gives, unlike keys, travel as a bearer and need this word with them.
_LOGIN_TOKEN_PREFIX = "sk-ant-oat"
_LOGIN_FEATURE = "oauth-2025-04-20"


class AnthropicModel:
    """Any server that speaks the messages wire. One instance serves all providers and calls.

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
        reply = MessagesReply(request)
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
    headers = base_headers() | {"anthropic-version": _API_VERSION}
    key = target.api_key.strip()
    if key.startswith(_LOGIN_TOKEN_PREFIX):
        headers["Authorization"] = f"Bearer {key}"
        headers["anthropic-beta"] = _LOGIN_FEATURE
    elif key:
        headers["x-api-key"] = key
    return headers
