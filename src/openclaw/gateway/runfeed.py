"""The events of one run as clients know them, in their order.

Turns engine events into wire payloads with the run's own counter. Streamed text
is coalesced: a client is told at most every `CHAT_INTERVAL_MS`, and everything is
flushed before the final event, so that deltas always add up to the final text.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from openclaw.domain.transcript import AssistantMessage
from openclaw.engine import events as engine
from openclaw.protocol import events as wire
from openclaw.protocol.results import TerminalReply

CHAT_INTERVAL_MS = 60
Payload = tuple[str, object]


class RunFeed:
    """Per-run state: the counter, and how much of the text has been told."""

    def __init__(self, scope: engine.RunScope) -> None:
        self.scope = scope
        self.text = ""
        self._seq = 0
        self._told = 0
        self._told_at = 0
        self.flush_is_due = False  # somebody will see to what is held back
        self._item = ""
        self._thinking_step = 0
        self._thoughts: list[str] = []
        self._thoughts_told = 0
        self._thoughts_at = 0

    def phase(self, event: engine.RunPhase, now_ms: int) -> Iterator[Payload]:
        self._seq += 1
        yield "chat", wire.ChatStatus(**self._chat(), phase=event.phase)
        data = wire.RunStatus(phase=event.phase, message=event.detail)
        yield "agent", wire.AgentRunStatus(**self._agent(now_ms), data=data)

    def started(self, event: engine.RunStarted, now_ms: int) -> Iterator[Payload]:
        self._seq += 1
        data = wire.RunStarted(started_at=event.started_at)
        yield "agent", wire.AgentLifecycle(**self._agent(now_ms), data=data)

    def model(self, event: engine.ModelCalled, now_ms: int) -> Iterator[Payload]:
        yield from self._flush(now_ms)
        self._seq += 1
        self.text = ""
        self._told = 0
        data = wire.ModelChosen(provider=event.provider, model=event.model)
        yield "agent", wire.AgentLifecycle(**self._agent(now_ms), data=data)

    def streamed(self, event: engine.TextStreamed, now_ms: int) -> Iterator[Payload]:
        self.text = event.text
        self._item = f"{self.scope.run_id}:{event.step}"
        if now_ms - self._told_at >= CHAT_INTERVAL_MS:
            yield from self._flush(now_ms)

    @property
    def holds_back(self) -> bool:
        """Whether something was said that has not been told: the next words may be long in coming."""
        return len(self.text) > self._told or self._thoughts_told < len(self._thoughts)

    def flush(self, now_ms: int) -> Iterator[Payload]:
        """Tell what is held back."""
        self.flush_is_due = False
        yield from self._flush(now_ms)

    def thought(self, event: engine.ThinkingStreamed, now_ms: int) -> Iterator[Payload]:
        """What the model thinks aloud, coalesced like its text; only clients that ask for it get it."""
        if event.step != self._thinking_step:
            self._thinking_step, self._thoughts, self._thoughts_told = event.step, [], 0
        self._thoughts.append(event.delta)
        if now_ms - self._thoughts_at >= CHAT_INTERVAL_MS:
            yield from self._flush_thoughts(now_ms)

    def _flush_thoughts(self, now_ms: int) -> Iterator[Payload]:
        delta = "".join(self._thoughts[self._thoughts_told :])
        if not delta:
            return
        self._seq += 1
        text = "".join(self._thoughts)
        self._thoughts, self._thoughts_told, self._thoughts_at = [text], 1, now_ms
        data = wire.ThinkingText(text=text, delta=delta)
        yield "agent", wire.AgentThinking(**self._agent(now_ms), data=data)

    def compaction(self, event: engine.CompactionTold, now_ms: int) -> Iterator[Payload]:
        self._seq += 1
        data = wire.CompactionProgress(
            phase="end" if event.done else "start",
            trigger=event.trigger,
            completed=event.compacted if event.done else None,
            message=event.message or None,
        )
        yield "agent", wire.AgentCompaction(**self._agent(now_ms), data=data)

    def _flush(self, now_ms: int) -> Iterator[Payload]:
        yield from self._flush_thoughts(now_ms)
        delta = self.text[self._told :]
        if not delta:
            return
        self._seq += 1
        self._told, self._told_at = len(self.text), now_ms
        data = wire.AssistantText(text=self.text, delta=delta, item_id=self._item)
        yield "agent", wire.AgentAssistant(**self._agent(now_ms), data=data)
        yield "chat", wire.ChatDelta(**self._chat(), delta_text=delta, message=_shown(self.text, now_ms))

    def tool_started(self, event: engine.ToolStarted, now_ms: int) -> Iterator[Payload]:
        call = event.call
        self._seq += 1
        yield "agent", wire.AgentItem(
            **self._agent(now_ms),
            data=wire.ItemProgress(
                item_id=f"tool:{call.id}", phase="start", title=call.name, status="running", kind="tool",
                name=call.name, tool_call_id=call.id, started_at=event.started_at,
            ),
        )  # fmt: skip
        self._seq += 1
        data = wire.ToolStarted(name=call.name, tool_call_id=call.id, args=call.arguments)
        yield "agent", wire.AgentTool(**self._agent(now_ms), data=data)

    def tool_finished(self, event: engine.ToolFinished, now_ms: int) -> Iterator[Payload]:
        call, result = event.call, event.result
        self._seq += 1
        shown = {"content": msgspec.to_builtins(result.content), "details": result.details}
        data = wire.ToolFinished(name=call.name, tool_call_id=call.id, is_error=result.is_error, result=shown)
        yield "agent", wire.AgentTool(**self._agent(now_ms), data=data)
        self._seq += 1
        yield "agent", wire.AgentItem(
            **self._agent(now_ms),
            data=wire.ItemProgress(
                item_id=f"tool:{call.id}", phase="end", title=call.name, kind="tool", name=call.name,
                status="failed" if result.is_error else "completed", tool_call_id=call.id,
                started_at=event.started_at, ended_at=event.ended_at,
            ),
        )  # fmt: skip

    def ended(self, event: engine.RunEnded, now_ms: int) -> Iterator[Payload]:
        if event.text.startswith(self.text):
            self.text = event.text  # what was held back while it could still become the silent token
        yield from self._flush(now_ms)
        self._seq += 1
        if event.outcome == "ok":
            yield "agent", wire.AgentLifecycle(**self._agent(now_ms), data=_end_data(event))
            yield (
                "chat",
                wire.ChatFinal(**self._chat(), message=final_message(event), stop_reason=event.stop_reason),
            )
        elif event.outcome == "aborted":
            yield (
                "chat",
                wire.ChatAborted(
                    **self._chat(),
                    stop_reason=event.stop_reason or "rpc",
                    message=_shown(event.text, now_ms) if event.text else None,
                ),
            )
            yield "agent", wire.AgentLifecycle(**self._agent(now_ms), data=_end_data(event))
        else:
            error = event.error or event.outcome
            data = wire.RunFailed(
                error=error,
                started_at=event.started_at,
                ended_at=event.ended_at,
                stop_reason=event.stop_reason,
            )
            yield "agent", wire.AgentLifecycle(**self._agent(now_ms), data=data)
            yield "chat", wire.ChatFailed(**self._chat(), error_message=error, error_kind=event.outcome)

    def _chat(self) -> wire.Json:
        scope = self.scope
        return {
            "run_id": scope.run_id,
            "session_key": scope.session_key,
            "agent_id": scope.agent_id,
            "seq": self._seq,
        }

    def _agent(self, now_ms: int) -> wire.Json:
        return {
            **self._chat(),
            "session_id": self.scope.session_id,
            "ts": now_ms,
            "is_heartbeat": False,
        }


def final_message(event: engine.RunEnded) -> wire.Json | None:
    message = event.message
    if message is None:
        return None
    shown = _shown(event.text, message.timestamp, message)
    if event.thinking:
        shown["content"].insert(0, {"type": "thinking", "thinking": event.thinking})
    return shown


def _shown(text: str, timestamp: int, message: AssistantMessage | None = None) -> wire.Json:
    shown: wire.Json = {
        "role": "assistant",
        "content": [{"type": "text", "text": text}],
        "timestamp": timestamp,
    }
    if message is not None and message.usage is not None:
        shown["usage"] = msgspec.to_builtins(message.usage)
    return shown


def _end_data(event: engine.RunEnded) -> wire.RunEnded:
    aborted = event.outcome == "aborted"
    return wire.RunEnded(
        started_at=event.started_at,
        ended_at=event.ended_at,
        stop_reason=event.stop_reason or "stop",
        aborted=aborted,
        status="cancelled" if aborted else None,
        terminal_reply=TerminalReply(disposition="visible" if event.text else "silent", text=event.text),
    )
