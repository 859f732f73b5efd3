"""A model behind HTTP with server-sent events: what all wires have in common.

A wire says how a request is written and how a reply is read; making the call, its
patience and its end are the same for all of them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from functools import partial

import aiohttp
from msgspec import Struct

from openclaw.engine.ports import ModelEvent, ModelRequest, ModelTarget
from openclaw.models.reply import Reply
from openclaw.models.transport import (
    CONNECT_TIMEOUT_S,
    IDLE_TIMEOUT_S,
    PROGRESS_TIMEOUT_S,
    Call,
    Patience,
    stream_call,
    unusable,
)


class Wire(Struct, frozen=True):
    """One dialect of HTTP: the reader of a reply, and what a request becomes. `locate` as in `Call`."""

    read: Callable[[ModelRequest], Reply]
    url: Callable[[ModelTarget], str]
    headers: Callable[[ModelTarget], Mapping[str, str]]
    encode: Callable[[ModelRequest], bytes]
    locate: Callable[[ModelRequest, int], int | None]

    def call(self, request: ModelRequest) -> Call:
        target = request.target
        return Call(
            target,
            self.url(target),
            self.headers(target),
            partial(self.encode, request),
            partial(self.locate, request),
        )


class StreamedModel:
    """Any server that speaks the wire. One instance serves all providers and calls.

    `idle_timeout_s` bounds the silence before the first byte and between chunks,
    `progress_timeout_s` the time in which only keep-alives come.
    """

    wire: Wire

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
        reply = self.wire.read(request)
        failure = unusable(request.target)
        if failure is not None:
            yield reply.done(failure)
            return
        call = self.wire.call(request)
        async with aclosing(stream_call(self._session, call, reply, self._patience)) as events:
            async for event in events:
                yield event
