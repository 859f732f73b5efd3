"""Hooks that a person installed: told what happened, beside the work and never in its way (AUTO-10).

They run on a thread of their own, with a loop of its own, so that one that blocks stops nobody else.
What one session does is told in order; a call has a limit of time, and so has the line of those
that wait. A hook gets values and gives nothing back: whatever it does, turns go on.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from openclaw.domain.hookevents import HOOK_NAMES, HookEvent, HookName
from openclaw.domain.lifecycle import INTERACTIVE_SOURCES
from openclaw.domain.resets import SessionEnd
from openclaw.engine import events
from openclaw.engine.events import EngineEvent, RunScope
from openclaw.store.records import SessionRow, UserInput

log = logging.getLogger("openclaw.hooks")
LIMIT_S = 5.0
MOST_WAITING = 1000
STOP_WITHIN_S = 5.0
LAST_WORD_S = 2.0

Handle = Callable[[HookEvent], Awaitable[None] | None]
Job = tuple[HookEvent, tuple["Hook", ...]]


class Hook(Struct, frozen=True):
    """One hook by its name in the configuration, and the events that it wants to hear of."""

    name: str
    handle: Handle
    events: frozenset[str] = HOOK_NAMES


class Hooks:
    """All hooks of one gateway. `observe` is part of the event sink and costs nothing while there are none.

    `stays_here` says of a run that is ending whether its reply goes to no platform.
    """

    def __init__(
        self, now_ms: Callable[[], int], stays_here: Callable[[RunScope], bool], *, limit_s: float = LIMIT_S
    ) -> None:
        self._now_ms = now_ms
        self._stays_here = stays_here
        self._limit_s = limit_s
        self._hooks: tuple[Hook, ...] = ()
        self._wanted: frozenset[str] = frozenset()
        self._line: _Line | None = None
        self._untold = 0
        self._is_up = False

    def use(self, hooks: Sequence[Hook]) -> None:
        """From now on these, in this order, and no others."""
        self._hooks = tuple(hooks)
        self._wanted = frozenset().union(*(hook.events for hook in hooks))
        if self._wanted and self._line is None:
            self._line = _Line(self._limit_s)

    def observe(self, event: EngineEvent) -> None:
        """Part of the event sink. A failure here never reaches the run that told it."""
        if not self._wanted:
            return
        try:
            for told in hook_events(event, self._now_ms(), self._stays_here):
                self.tell(told)
        except Exception:
            log.exception("an event of kind %s could not be told to hooks", type(event).__name__)

    def note_sent(self, session_key: str, run_id: str | None, channel: str, to: str, text: str) -> None:
        """A platform has taken a message."""
        if "message:sent" not in self._wanted:
            return
        parts = session_key.split(":", 2)
        agent_id = parts[1] if parts[0] == "agent" and len(parts) > 1 else None
        self.tell(
            HookEvent(
                name="message:sent", at_ms=self._now_ms(), session_key=session_key, agent_id=agent_id,
                run_id=run_id, channel=channel, to=to, text=text,
            )
        )  # fmt: skip

    def tell_startup(self) -> None:
        """The gateway is up; from now on its end is told as well."""
        self._is_up = True
        self.tell(HookEvent(name="gateway:startup", at_ms=self._now_ms()))

    def tell(self, event: HookEvent) -> None:
        """Put an event in line for the hooks that want it; one that finds the line full is not told."""
        if event.name not in self._wanted or self._line is None:
            return
        takers = tuple(hook for hook in self._hooks if event.name in hook.events)
        if not self._line.put((event, takers)):
            self._untold += 1
            if self._untold == 1:
                log.error("hooks are too slow: %d events wait, and newer ones are not told", MOST_WAITING)
        elif self._untold:
            log.error("%d events were not told to hooks", self._untold)
            self._untold = 0

    async def stop(self) -> None:
        """Tell what is in line and that the gateway stops, then end; all of it within a few seconds."""
        line, self._line = self._line, None
        if line is None:
            return
        takers = tuple(hook for hook in self._hooks if "gateway:shutdown" in hook.events)
        await asyncio.to_thread(line.settle, STOP_WITHIN_S)
        if takers and self._is_up:
            line.put((HookEvent(name="gateway:shutdown", at_ms=self._now_ms()), takers))
            await asyncio.to_thread(line.settle, LAST_WORD_S)
        await asyncio.to_thread(line.end)


class _Line:
    """The thread of the hooks. `put` is for the gateway's thread; the rest happens on its own."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._changed = threading.Condition()
        self._waiting = 0
        self._by_session: dict[str, deque[Job]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        # A hook that never returns must not keep the process: nothing of ours lives on this thread.
        self._thread = threading.Thread(target=self._serve, name="openclaw-hooks", daemon=True)
        self._thread.start()

    def put(self, job: Job) -> bool:
        """Whether there was room for it."""
        with self._changed:
            if self._waiting >= MOST_WAITING:
                return False
            self._waiting += 1
        self._loop.call_soon_threadsafe(self._take, job)
        return True

    def settle(self, within_s: float) -> None:
        """Wait until nothing is in line or the time is up."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting == 0, within_s)

    def end(self) -> None:
        """Stop the thread; one that is stuck in a hook is left behind."""
        self._loop.call_soon_threadsafe(self._cancel)
        self._thread.join(1.0)
        if self._thread.is_alive():
            log.error("a hook does not return; the gateway stops without it")

    def _serve(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    def _cancel(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            self._loop.call_soon(self._cancel)
        else:
            self._loop.stop()

    def _take(self, job: Job) -> None:
        key = job[0].session_key or ""
        line = self._by_session.get(key)
        if line is not None:
            line.append(job)
            return
        self._by_session[key] = deque([job])
        task = self._loop.create_task(self._drain(key))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _drain(self, key: str) -> None:
        line = self._by_session[key]
        while line:
            event, hooks = line.popleft()
            for hook in hooks:
                await self._call(hook, event)
            with self._changed:
                self._waiting -= 1
                self._changed.notify_all()
        del self._by_session[key]

    async def _call(self, hook: Hook, event: HookEvent) -> None:
        began = time.monotonic()
        try:
            async with asyncio.timeout(self._limit_s):
                answer = hook.handle(event)
                if inspect.isawaitable(answer):
                    await answer
        except TimeoutError:
            log.error("hook %s: %s took longer than %g s", hook.name, event.name, self._limit_s)
            return
        except Exception:
            log.exception("hook %s failed on %s", hook.name, event.name)
        if time.monotonic() - began > self._limit_s:
            log.error("hook %s: %s took longer than %g s", hook.name, event.name, self._limit_s)


# -- what is told of what happens ------------------------------------------------------------------


def hook_events(
    event: EngineEvent, now_ms: int, stays_here: Callable[[RunScope], bool]
) -> Iterator[HookEvent]:
    """What hooks hear of an event, in order; the gateway's own turns are nobody's business."""
    match event:
        case events.WindowsChanged():
            yield from _windows(event, now_ms)
        case events.InputTaken():
            rotation = event.rotation
            if rotation is not None and rotation.reason in ("new", "reset"):
                yield _reset(event.session, rotation.reason, rotation.previous_session_id, now_ms)
            if event.body is not None and event.source in INTERACTIVE_SOURCES:
                yield _received(event, event.body, now_ms)
        case events.SessionChanged(reason="new" | "reset"):
            yield _reset(event.session, event.reason, event.extra.get("previousSessionId"), now_ms)
        case events.SessionChanged() if event.reason == "patch" or "fields" in event.extra:
            fields = tuple(event.extra.get("fields", ()))
            yield _about(event.session, "session:patch", now_ms, fields=fields)
        case events.CommandAnswered() if "stop" in event.names and not event.interrupted:
            yield _about(event.session, "command:stop", now_ms, run_id=event.scope.run_id, text=event.text)
        case events.CompactionTold():
            yield _about(
                event.session, "session:compact:after" if event.done else "session:compact:before", now_ms,
                run_id=event.run_id, reason=event.trigger, compacted=event.compacted if event.done else None,
            )  # fmt: skip
        case events.RunEnded() if event.text and not event.scope.hidden and stays_here(event.scope):
            yield _about(
                event.session, "message:sent", now_ms,
                run_id=event.scope.run_id, channel=event.session.entry.channel, text=event.text,
            )  # fmt: skip


def _about(session: SessionRow, name: HookName, now_ms: int, **facts: Any) -> HookEvent:
    return HookEvent(
        name=name, at_ms=now_ms, session_key=session.session_key, agent_id=session.agent_id,
        session_id=session.entry.session_id, **facts,
    )  # fmt: skip


def _reset(session: SessionRow, reason: str, previous_id: str | None, now_ms: int) -> HookEvent:
    name: HookName = "command:new" if reason == "new" else "command:reset"
    return _about(session, name, now_ms, previous_session_id=previous_id)


def _received(event: events.InputTaken, body: UserInput, now_ms: int) -> HookEvent:
    route, content = body.route, body.content
    words = content if isinstance(content, str) else "\n".join(getattr(one, "text", "") for one in content)
    return _about(
        event.session, "message:received", now_ms,
        run_id=event.scope.run_id, source=event.source, text=words.strip(),
        channel=route.channel if route else event.session.entry.channel, to=route.to if route else None,
    )  # fmt: skip


def _windows(event: events.WindowsChanged, now_ms: int) -> Iterator[HookEvent]:
    session = event.session
    for notice in event.notices:
        if isinstance(notice, SessionEnd):
            yield HookEvent(
                name="session_end", at_ms=now_ms, session_key=notice.session_key, agent_id=session.agent_id,
                session_id=notice.session_id, reason=notice.reason, next_session_id=notice.next_session_id,
            )  # fmt: skip
        else:
            yield HookEvent(
                name="session_start", at_ms=now_ms, session_key=notice.session_key, agent_id=session.agent_id,
                session_id=notice.session_id, previous_session_id=notice.resumed_from,
            )  # fmt: skip
