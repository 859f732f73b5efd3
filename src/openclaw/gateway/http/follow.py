"""Following a run, or the messages of a session, for a request that waits for them.

Part of the event sink: it hears what the engine tells and hands it to the requests that asked. What
a slow reader has not taken yet is bounded. It decides nothing about a run.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from msgspec import Struct

from openclaw.domain.transcript import AssistantMessage, Usage, decode_message
from openclaw.engine import events as engine
from openclaw.errors import Overloaded

log = logging.getLogger("openclaw.http")
MOST_FOLLOWERS: Final = 256
MOST_WAITING: Final = 1000
STEP_GAP: Final = "\n\n"


class RunResult(Struct, frozen=True):
    """How a followed run ended. `text` is its reply; `usage` the sum of its model calls, where known."""

    outcome: str
    text: str
    error: str | None
    usage: Usage | None


class RunFollower:
    """The text of one run as it comes, and its end."""

    def __init__(self) -> None:
        self.result: RunResult | None = None
        self._parts: list[str] = []
        self._step: int | None = None
        self._step_text = ""
        self._said = False
        self._usage: Usage | None = None
        self._more = asyncio.Event()

    async def wait(self, timeout_s: float) -> None:
        """Until there is more text or the end; or the time is up."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._more.wait()
        except TimeoutError:
            pass

    def take(self) -> str:
        """The text since the last call."""
        self._more.clear()
        text = "".join(self._parts)
        self._parts.clear()
        return text

    def hear(self, event: engine.EngineEvent) -> None:
        match event:
            case engine.TextStreamed():
                self._stream(event)
            case engine.MessageStored() if event.entry.role == "assistant":
                message = decode_message(event.entry.body)
                if isinstance(message, AssistantMessage) and message.usage is not None:
                    self._usage = _sum(self._usage, message.usage)
            case engine.RunEnded():
                self._finish(event)
            case engine.InputCancelled():
                self._end(RunResult("aborted", "", f"the request was cancelled ({event.reason})", None))

    def stop(self) -> None:
        """The gateway stops; the run goes on at its next start."""
        if self.result is None:
            self._end(RunResult("interrupted", "", "the gateway is stopping; the turn goes on later", None))

    def _stream(self, event: engine.TextStreamed) -> None:
        if event.step != self._step:
            self._step, self._step_text = event.step, ""
            if self._said:
                self._parts.append(STEP_GAP)
        self._say(event.text[len(self._step_text) :])
        self._step_text = event.text

    def _say(self, text: str) -> None:
        if text:
            self._said = True
            self._parts.append(text)
            self._more.set()

    def _finish(self, event: engine.RunEnded) -> None:
        # What was held back while it could still become the silent token comes with the end.
        if event.text.startswith(self._step_text):
            self._say(event.text[len(self._step_text) :])
        self._end(RunResult(event.outcome, event.text, event.error, self._usage))

    def _end(self, result: RunResult) -> None:
        self.result = result
        self._more.set()


class SessionFollower:
    """The messages of one session as they are stored. `lost` when the reader was too slow for them."""

    def __init__(self) -> None:
        self.lost = False
        self.stopped = False
        self._line: deque[engine.MessageStored] = deque()
        self._more = asyncio.Event()

    async def next(self, timeout_s: float) -> engine.MessageStored | None:
        """The next message; None when the time is up or nothing more will come."""
        try:
            async with asyncio.timeout(timeout_s):
                while not self._line and not self.stopped and not self.lost:
                    self._more.clear()
                    await self._more.wait()
        except TimeoutError:
            return None
        return self._line.popleft() if self._line else None

    def hear(self, event: engine.EngineEvent) -> None:
        if isinstance(event, engine.MessageStored) and not event.scope.hidden and not self.lost:
            self.lost = len(self._line) >= MOST_WAITING
            if not self.lost:
                self._line.append(event)
            self._more.set()

    def stop(self) -> None:
        self.stopped = True
        self._more.set()


class Followers:
    """Every request that follows something at the moment."""

    def __init__(self) -> None:
        self._runs: dict[str, RunFollower] = {}
        self._sessions: dict[str, set[SessionFollower]] = {}
        self._count = 0
        self._stopped = False

    @contextmanager
    def run(self, run_id: str) -> Iterator[RunFollower]:
        """Follow a run from before its beginning. Ids are fresh: each has one follower."""
        follower = RunFollower()
        self._enter(follower)
        self._runs[run_id] = follower
        try:
            yield follower
        finally:
            self._count -= 1
            del self._runs[run_id]

    @contextmanager
    def session(self, session_key: str) -> Iterator[SessionFollower]:
        follower = SessionFollower()
        self._enter(follower)
        self._sessions.setdefault(session_key, set()).add(follower)
        try:
            yield follower
        finally:
            self._count -= 1
            self._sessions[session_key].discard(follower)
            if not self._sessions[session_key]:
                del self._sessions[session_key]

    def observe(self, event: engine.EngineEvent) -> None:
        """Part of the event sink. A failure here never reaches the run that told it."""
        if not self._count:
            return
        try:
            self._tell(event)
        except Exception:
            log.exception("an event of kind %s could not be followed", type(event).__name__)

    def _tell(self, event: engine.EngineEvent) -> None:
        if isinstance(event, engine.InputCancelled):
            self._tell_run(event.run_id, event)
            return
        scope = getattr(event, "scope", None)
        if not isinstance(scope, engine.RunScope):
            return
        self._tell_run(scope.run_id, event)
        if isinstance(event, engine.RunEnded):
            for run_id in event.absorbed:
                self._tell_run(run_id, event)
        for follower in self._sessions.get(scope.session_key, ()):
            follower.hear(event)

    def stop(self) -> None:
        """The gateway stops: nobody waits any longer."""
        self._stopped = True
        for run in self._runs.values():
            run.stop()
        for followers in self._sessions.values():
            for follower in followers:
                follower.stop()

    def _enter(self, follower: RunFollower | SessionFollower) -> None:
        if self._count >= MOST_FOLLOWERS:
            raise Overloaded(f"{MOST_FOLLOWERS} requests are waiting for answers; try again")
        self._count += 1
        if self._stopped:
            follower.stop()

    def _tell_run(self, run_id: str, event: engine.EngineEvent) -> None:
        follower = self._runs.get(run_id)
        if follower is not None:
            follower.hear(event)


def _sum(one: Usage | None, other: Usage) -> Usage:
    if one is None:
        return other
    return Usage(
        input=one.input + other.input,
        output=one.output + other.output,
        cache_read=one.cache_read + other.cache_read,
        cache_write=one.cache_write + other.cache_write,
        total_tokens=one.total_tokens + other.total_tokens,
    )
