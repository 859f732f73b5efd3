"""While an answer is being written: typing indicators, and a draft that grows where a platform can edit.

Best effort and never the truth: the reply itself comes through the outbox. A session that may
not send shows nothing (SEND-9).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from msgspec import Struct

from openclaw.channels.base import Connector, Outgoing
from openclaw.channels.postman import Spawn
from openclaw.domain.entry import DeliveryContext
from openclaw.domain.media import take_media
from openclaw.domain.showing import thinking_text
from openclaw.domain.silence import visible_so_far
from openclaw.engine.events import (
    EngineEvent,
    RunEnded,
    RunScope,
    RunStarted,
    TextStreamed,
    ThinkingStreamed,
)
from openclaw.engine.ports import Clock

log = logging.getLogger("openclaw.channels")
TYPING_EVERY_S = 4.0
DRAFT_EVERY_S = 1.5
FIRST_DRAFT_CHARS = 24  # shorter beginnings may still turn out to be silence
FINISH_WITHIN_S = 10.0
MAX_KEPT = 1000


class Listening(Struct, frozen=True):
    """Where a run's reply goes, who carries it, and what of it is shown while it grows."""

    route: DeliveryContext
    connector: Connector
    drafts: bool
    # Whether the draft shows what the model thinks until it begins to answer (CMD-10).
    thinking: bool = False


Listener = Callable[[RunScope], Listening | None]


class _Live:
    def __init__(self, listening: Listening) -> None:
        self.listening = listening
        self.text = ""
        self.thoughts: list[str] = []
        self.over = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self.draft_id: str | None = None


class LiveReplies:
    def __init__(self, listener: Listener, clock: Clock, spawn: Spawn) -> None:
        self._listener = listener
        self._clock = clock
        self._spawn = spawn
        self._runs: dict[str, _Live] = {}
        self._ended: dict[str, _Live] = {}

    def observe(self, event: EngineEvent) -> None:
        """Part of the event sink."""
        if isinstance(event, TextStreamed):
            live = self._runs.get(event.scope.run_id)
            if live is not None:
                live.text = event.text
        elif isinstance(event, ThinkingStreamed):
            live = self._runs.get(event.scope.run_id)
            if live is not None and live.listening.thinking:
                live.thoughts.append(event.delta)
        elif isinstance(event, RunStarted) and not event.scope.hidden:
            self._begin(event.scope)
        elif isinstance(event, RunEnded):
            live = self._runs.pop(event.scope.run_id, None)
            if live is not None:
                live.over.set()
                self._ended[event.scope.run_id] = live
                if len(self._ended) > MAX_KEPT:
                    del self._ended[next(iter(self._ended))]

    def _begin(self, scope: RunScope) -> None:
        listening = self._listener(scope)
        if listening is None or scope.run_id in self._runs:
            return
        live = self._runs[scope.run_id] = _Live(listening)
        live.task = self._spawn(self._show(scope.run_id, live))

    async def draft_of(self, run_id: str | None) -> str | None:
        """The message that shows the beginning of this run's reply; waits for one that is being sent."""
        live = self._ended.pop(run_id or "", None)
        if live is None or live.task is None:
            return None
        await asyncio.wait({live.task}, timeout=FINISH_WITHIN_S)
        return live.draft_id

    async def _show(self, run_id: str, live: _Live) -> None:
        connector, route = live.listening.connector, live.listening.route
        typed_s, shown = 0.0, ""
        while not live.over.is_set():
            try:
                now_s = self._clock.monotonic()
                if connector.abilities.typing and (not typed_s or now_s - typed_s >= TYPING_EVERY_S):
                    typed_s = now_s
                    await connector.show_typing(str(route.to), route.thread_id)
                text = _grown(live)
                if live.listening.drafts and len(text) >= FIRST_DRAFT_CHARS and text != shown:
                    shown = text
                    live.draft_id = await connector.draft(self._outgoing(run_id, live, text))
            except Exception as error:
                # A platform that is slow or away must not matter here: the reply comes by another way.
                log.debug("%s: nothing shown while writing: %s", connector.channel, error)
            try:
                async with asyncio.timeout(DRAFT_EVERY_S):
                    await live.over.wait()
            except TimeoutError:
                pass

    def _outgoing(self, run_id: str, live: _Live, text: str) -> Outgoing:
        route = live.listening.route
        longest = live.listening.connector.abilities.longest_text
        return Outgoing(
            key=f"{run_id}:draft",
            to=str(route.to),
            account_id=route.account_id or "default",
            thread_id=route.thread_id,
            text=text[:longest],
            draft_id=live.draft_id,
        )


def _grown(live: _Live) -> str:
    """What a draft shows now: the beginning of the answer, and before there is one, the thinking."""
    text = take_media(visible_so_far(live.text)).text
    if text or not live.thoughts:
        return text
    live.thoughts = ["".join(live.thoughts)]
    return thinking_text(live.thoughts[0])
