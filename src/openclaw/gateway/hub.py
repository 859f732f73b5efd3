"""Event fan-out: engine events in, numbered frames to every client that may see them.

A payload is built once and only if somebody wants it. The hub holds no truth:
what it tells has been committed, and a client that missed something reads it
again from the store.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Literal

from openclaw.engine import events as engine
from openclaw.engine.ports import Clock
from openclaw.engine.settings import EngineSettings
from openclaw.gateway.client import Client
from openclaw.gateway.runfeed import CHAT_INTERVAL_MS, RunFeed
from openclaw.gateway.sessionview import ancestors_of, message_for_client, row_for_client
from openclaw.protocol import events as wire
from openclaw.protocol.frames import PreparedEvent, StateVersion
from openclaw.store.records import SessionRow

log = logging.getLogger("openclaw.hub")
ChangePhase = Literal["start", "model", "end", "error"]
# Nobody waits for these, and the next one is not far: they leave together, the end of a turn at once.
_PROGRESS = (wire.ChatStatus, wire.ChatDelta, wire.AgentPayload)


class Hub:
    """All open clients of this gateway, and the feeds of the runs that are active."""

    def __init__(self, settings: Callable[[], EngineSettings], clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._clients: set[Client] = set()
        self._feeds: dict[str, RunFeed] = {}
        self._operations: dict[str, str] = {}  # session key -> the id of the work on it
        self._members_changed: Callable[[], None] = lambda: None

    def on_members_changed(self, tell: Callable[[], None]) -> None:
        """Call this whenever a client came or went."""
        self._members_changed = tell

    def add(self, client: Client) -> None:
        self._clients.add(client)
        self._members_changed()

    def remove(self, client: Client) -> None:
        if client in self._clients:
            self._clients.remove(client)
            self._members_changed()

    def clients(self) -> tuple[Client, ...]:
        return tuple(self._clients)

    def streaming_text(self, run_id: str) -> str:
        """What an active run has said so far, for a client that comes in the middle of it."""
        feed = self._feeds.get(run_id)
        return feed.text if feed else ""

    def broadcast(self, event: str, payload: object, versions: StateVersion | None = None) -> None:
        """An event that belongs to no session, such as `tick`."""
        takers = [one for one in self._clients if one.wants(event, None, None)]
        if takers:
            self._deliver(PreparedEvent(event, payload, versions), takers)

    def publish(self, event: engine.EngineEvent) -> None:
        """Part of the event sink. A failure here never reaches the run that told it."""
        try:
            self._publish(event)
        except Exception:
            log.exception("an event of kind %s could not be told", type(event).__name__)

    def _publish(self, event: engine.EngineEvent) -> None:
        now_ms = self._clock.now_ms()
        scope = getattr(event, "scope", None)
        if isinstance(scope, engine.RunScope) and scope.hidden:
            if isinstance(event, engine.RunEnded):  # its turn is nobody's business, its counters are
                self._changed(event.session, now_ms, reason="agent.input.settled")
            return
        match event:
            case engine.InputTaken():
                if event.rotation is not None:
                    self._changed(event.session, now_ms, reason=event.rotation.reason)
                self._changed(event.session, now_ms, reason="create" if event.created else "send")
            case engine.RunPhase():
                self._tell(event.scope, self._feed(event.scope).phase(event, now_ms))
            case engine.RunStarted():
                self._tell(event.scope, self._feed(event.scope).started(event, now_ms))
                self._changed(event.session, now_ms, phase="start", run_id=event.scope.run_id)
            case engine.MessageStored():
                self._message(event, now_ms)
            case engine.ModelCalled():
                self._tell(event.scope, self._feed(event.scope).model(event, now_ms))
            case engine.TextStreamed():
                self._tell(event.scope, self._feed(event.scope).streamed(event, now_ms))
                self._flush_later(self._feed(event.scope))
            case engine.ToolStarted():
                self._tell(event.scope, self._feed(event.scope).tool_started(event, now_ms))
            case engine.ToolFinished():
                self._tell(event.scope, self._feed(event.scope).tool_finished(event, now_ms))
            case engine.RunEnded():
                self._end(event, now_ms)
            case engine.InputCancelled():
                self._cancelled(event)
            case engine.CommandAnswered():
                self._command(event, now_ms)
            case engine.CompactionTold():
                self._compaction(event, now_ms)
            case engine.ThinkingStreamed():
                self._tell(event.scope, self._feed(event.scope).thought(event, now_ms))
                self._flush_later(self._feed(event.scope))
            case engine.SideNotePosted():
                pass  # it is for a channel; clients of the wire see tools and thinking themselves
            case engine.WindowsChanged():
                pass  # windows are told with the session's next change
            case engine.SessionChanged():
                self._changed(event.session, now_ms, reason=event.reason)

    def _feed(self, scope: engine.RunScope) -> RunFeed:
        feed = self._feeds.get(scope.run_id)
        if feed is None:
            feed = self._feeds[scope.run_id] = RunFeed(scope)
        return feed

    def _flush_later(self, feed: RunFeed) -> None:
        """See that words which came close behind others are told, also when the model pauses after them."""
        if feed.holds_back and not feed.flush_is_due:
            feed.flush_is_due = True
            asyncio.get_running_loop().call_later(CHAT_INTERVAL_MS / 1000, self._flush_now, feed)

    def _flush_now(self, feed: RunFeed) -> None:
        if self._feeds.get(feed.scope.run_id) is feed:  # a run that has ended has told everything
            self._tell(feed.scope, feed.flush(self._clock.now_ms()))

    def _end(self, event: engine.RunEnded, now_ms: int) -> None:
        self._tell(event.scope, self._feed(event.scope).ended(event, now_ms))
        del self._feeds[event.scope.run_id]
        for run_id in event.absorbed:
            # A steered input settles with the run that took it (AMB-36): a bare final under its own id.
            scope = event.scope
            final = wire.ChatFinal(
                run_id=run_id, session_key=scope.session_key, agent_id=scope.agent_id, seq=1
            )
            self._send("chat", final, scope.session_key)
        self._changed(event.session, now_ms, reason="agent.input.settled")
        phase: ChangePhase = "error" if event.outcome in ("error", "timeout") else "end"
        self._changed(event.session, now_ms, phase=phase, run_id=event.scope.run_id)

    def _command(self, event: engine.CommandAnswered, now_ms: int) -> None:
        """A command's answer ends like a turn: one final message under the id it was sent with."""
        scope = event.scope
        message = {
            "role": "assistant",
            "content": [{"type": "text", "text": event.text}],
            "timestamp": event.at_ms,
        }
        final = wire.ChatFinal(
            run_id=scope.run_id,
            session_key=scope.session_key,
            agent_id=scope.agent_id,
            seq=1,
            message=message,
            stop_reason="stop",
        )
        self._send("chat", final, scope.session_key)
        self._changed(event.session, now_ms, reason="create" if event.created else "command")

    def _compaction(self, event: engine.CompactionTold, now_ms: int) -> None:
        """Told to those who follow the session, and in the stream of the run that waits for it (LOOP-1)."""
        session = event.session
        key = session.session_key
        if not event.done:
            self._operations[key] = f"compact:{event.run_id or event.trigger}:{now_ms}"
        operation = wire.SessionOperation(
            operation_id=self._operations.get(key, f"compact:{now_ms}"),
            operation="compact",
            phase="end" if event.done else "start",
            session_key=key,
            agent_id=session.agent_id,
            ts=now_ms,
            completed=event.compacted if event.done else None,
            reason=event.message or None,
        )
        self._send("session.operation", operation, key)
        feed = self._feeds.get(event.run_id) if event.run_id else None
        if feed is not None:
            self._tell(feed.scope, feed.compaction(event, now_ms))
        if event.done:
            self._operations.pop(key, None)
            self._changed(session, now_ms, reason="compact")

    def _cancelled(self, event: engine.InputCancelled) -> None:
        payload = wire.ChatAborted(
            run_id=event.run_id,
            session_key=event.session_key,
            agent_id=event.agent_id,
            seq=1,
            stop_reason=event.reason,
        )
        self._send("chat", payload, event.session_key)

    def _message(self, event: engine.MessageStored, now_ms: int) -> None:
        scope, entry = event.scope, event.entry
        takers = [one for one in self._clients if one.wants("session.message", scope.session_key, None)]
        shown = message_for_client(entry) if takers else None
        if shown is None:
            return
        payload = wire.SessionMessage(
            session_key=scope.session_key,
            agent_id=scope.agent_id,
            session_id=scope.session_id,
            message=shown,
            message_id=entry.entry_id,
            message_seq=entry.seq,
            session=self._row(event.session, now_ms),
            ancestor_sessions=ancestors_of(event.session),
        )
        self._deliver(PreparedEvent("session.message", wire.with_flat_row(payload)), takers, linger=True)

    def _changed(
        self,
        session: SessionRow,
        now_ms: int,
        *,
        reason: str | None = None,
        phase: ChangePhase | None = None,
        run_id: str | None = None,
    ) -> None:
        takers = [one for one in self._clients if one.wants("sessions.changed", session.session_key, None)]
        if not takers:
            return
        payload = wire.SessionsChanged(
            session_key=session.session_key,
            agent_id=session.agent_id,
            ts=now_ms,
            session=self._row(session, now_ms),
            reason=reason,
            phase=phase,
            run_id=run_id,
            ancestor_sessions=ancestors_of(session),
        )
        self._deliver(PreparedEvent("sessions.changed", wire.with_flat_row(payload)), takers, linger=True)

    def _row(self, session: SessionRow, now_ms: int) -> wire.Json:
        active = [
            feed.scope.run_id
            for feed in self._feeds.values()
            if feed.scope.session_key == session.session_key
        ]
        return row_for_client(session, self._settings(), now_ms=now_ms, active_run_ids=active)

    def _tell(self, scope: engine.RunScope, payloads: Iterable[tuple[str, object]]) -> None:
        # The generator must run to its end even without listeners: it keeps the run's state.
        for event, payload in payloads:
            self._send(event, payload, scope.session_key)

    def _send(self, event: str, payload: object, session_key: str | None) -> None:
        capability = wire.capability_of(payload)
        takers = [one for one in self._clients if one.wants(event, session_key, capability)]
        if takers:
            self._deliver(PreparedEvent(event, payload), takers, linger=isinstance(payload, _PROGRESS))

    def _deliver(self, prepared: PreparedEvent, takers: Iterable[Client], *, linger: bool = False) -> None:
        for client in takers:
            client.send_event(prepared, linger=linger)
