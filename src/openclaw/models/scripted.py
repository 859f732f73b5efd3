"""A model that replays a script and records what it was asked. In-process, for tests and rehearsals.

Steps are values; a step may wait at a gate, so that a test can hold a run at an
exact point. It imitates no provider: the wire is rehearsed with a real server.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from typing import Any

from msgspec import Struct, structs

from openclaw.domain.transcript import (
    AssistantBlock,
    AssistantMessage,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    Usage,
)
from openclaw.engine.ports import ModelDone, ModelEvent, ModelFailure, ModelRequest, TextDelta, ThinkingDelta

API = "scripted"


class ScriptedStep(Struct, frozen=True, kw_only=True):
    """One answer: thinking, then texts (a delta each), then tool calls; or a failure after the deltas.

    With a `gate` the stream waits for it after `gate_after` deltas. A tool call
    with an empty id gets one that is unique within the model.
    """

    texts: tuple[str, ...] = ()
    thinking: tuple[str, ...] = ()
    tool_calls: tuple[ToolCallBlock, ...] = ()
    usage: Usage | None = None
    stop_reason: StopReason | None = None
    failure: ModelFailure | None = None
    gate: asyncio.Event | None = None
    gate_after: int = 0


# A step that depends on the request is a function of it.
Script = ScriptedStep | Callable[[ModelRequest], ScriptedStep]


def say(*texts: str, usage: Usage | None = None) -> ScriptedStep:
    """A plain reply, one delta per text."""
    return ScriptedStep(texts=texts, usage=usage)


def call_tool(name: str, arguments: dict[str, Any] | None = None, *, call_id: str = "") -> ScriptedStep:
    """A reply that asks for one tool call."""
    return ScriptedStep(tool_calls=(ToolCallBlock(call_id, name, arguments or {}),))


def fail(kind: str, message: str = "scripted failure", *, retryable: bool = False) -> ScriptedStep:
    """A reply that fails as a provider would."""
    return ScriptedStep(failure=ModelFailure(kind, message, retryable))


class ScriptedModel:
    """Plays one step per call, in order; then `then` for ever, or a failure when there is none."""

    def __init__(self, *steps: Script, then: Script | None = None) -> None:
        self._steps: deque[Script] = deque(steps)
        self._then = then
        self._arrivals = asyncio.Condition()
        # Everything that was asked, in order.
        self.requests: list[ModelRequest] = []
        # Calls that were cancelled or closed before their end.
        self.interrupted = 0

    def add(self, *steps: Script) -> None:
        """Append to the script."""
        self._steps.extend(steps)

    async def wait_for_requests(self, count: int) -> None:
        """Return when at least `count` calls have begun. Put a timeout around it."""
        async with self._arrivals:
            await self._arrivals.wait_for(lambda: len(self.requests) >= count)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Stream the next step; see `engine.ports.Model`."""
        number = len(self.requests) + 1
        step = self._next_step(request, number)
        self.requests.append(request)
        finished = False
        try:
            async with self._arrivals:
                self._arrivals.notify_all()
            deltas: list[ModelEvent] = [ThinkingDelta(text) for text in step.thinking]
            deltas += [TextDelta(text) for text in step.texts]
            for position, delta in enumerate(deltas):
                if step.gate is not None and position == step.gate_after:
                    await step.gate.wait()
                yield delta
            if step.gate is not None and step.gate_after >= len(deltas):
                await step.gate.wait()
            finished = True
            yield ModelDone(_message_of(step, request, number), step.failure)
        finally:
            if not finished:
                self.interrupted += 1

    def _next_step(self, request: ModelRequest, number: int) -> ScriptedStep:
        script = self._steps.popleft() if self._steps else self._then
        if script is None:
            return fail("protocol", f"the script has no step for call {number}")
        return script if isinstance(script, ScriptedStep) else script(request)


def _message_of(step: ScriptedStep, request: ModelRequest, number: int) -> AssistantMessage:
    content: list[AssistantBlock] = []
    if step.thinking:
        content.append(ThinkingBlock("".join(step.thinking)))
    if step.texts:
        content.append(TextBlock("".join(step.texts)))
    stop_reason: StopReason = "toolUse" if step.tool_calls else "stop"
    if step.failure is not None:
        stop_reason = "error"
    else:
        for position, call in enumerate(step.tool_calls):
            content.append(call if call.id else structs.replace(call, id=f"call_{number}_{position}"))
    return AssistantMessage(
        content=tuple(content),
        timestamp=request.now_ms,
        api=request.target.api,
        provider=request.target.provider,
        model=request.target.model,
        usage=step.usage,
        stop_reason=step.stop_reason or stop_reason,
        error_message=step.failure.message if step.failure else None,
    )
