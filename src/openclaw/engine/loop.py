"""The agent loop: ask the model, run the tools it called, go on until it has nothing more to call.

Pure of storage and of the wire: every power arrives as an argument. Failure is
data: a message with a stop reason. What is committed, and when, is decided by
the powers (`engine.runs`); this file only knows the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from openclaw.domain.transcript import (
    AssistantMessage,
    Message,
    ToolCallBlock,
    ToolResultMessage,
    tool_calls_of,
)
from openclaw.engine.ports import ModelDone, ModelFailure

MAX_STEPS = 200  # a run that calls tools forever ends with a message that says so


class LoopPowers(Protocol):
    """What the loop may do to the world."""

    async def ask(self, messages: Sequence[Message], step: int) -> ModelDone:
        """One model call, streamed; never raises for a provider's failure."""
        ...

    async def keep_calls(self, message: AssistantMessage, step: int) -> None:
        """Commit a message that calls tools, before any of them runs."""
        ...

    async def run_tools(self, calls: Sequence[ToolCallBlock]) -> Sequence[ToolResultMessage]:
        """Run tools; one result per call, in the order of the calls."""
        ...

    async def keep_results(self, results: Sequence[ToolResultMessage]) -> None: ...

    async def take_steering(self) -> Sequence[Message]:
        """Inputs that arrived for this run since the last boundary, committed (QUE-5)."""
        ...


class LoopEnd(Struct, frozen=True):
    """How the loop ended. `message` is not committed yet: the end of the run commits it."""

    message: AssistantMessage
    failure: ModelFailure | None
    steps: int


async def run_loop(messages: Sequence[Message], powers: LoopPowers) -> LoopEnd:
    """Run one turn over a valid message list. Cancellation passes through at every await."""
    context = list(messages)
    for step in range(1, MAX_STEPS + 1):
        done = await powers.ask(context, step)
        calls = tool_calls_of(done.message)
        if done.failure is not None or not calls:
            return LoopEnd(done.message, done.failure, step)
        await powers.keep_calls(done.message, step)
        results = await powers.run_tools(calls)
        await powers.keep_results(results)
        context += [done.message, *results, *await powers.take_steering()]
    failure = ModelFailure("too_many_steps", f"stopped after {MAX_STEPS} model calls in one turn", False)
    return LoopEnd(done.message, failure, MAX_STEPS)
