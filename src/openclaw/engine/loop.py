"""The agent loop: ask the model, run the tools it called, go on until it has nothing more to call.

Pure of storage and of the wire: every power arrives as an argument. Failure is
data: a message with a stop reason. What is committed, and when, is decided by
the powers (`engine.runs`); this file only knows the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec
from msgspec import Struct

from openclaw.domain.transcript import AssistantMessage, ToolCallBlock, tool_calls_of
from openclaw.engine.ports import ModelDone, ModelFailure

MAX_STEPS = 200  # a run that calls tools forever ends with a message that says so


class LoopPowers(Protocol):
    """What the loop may do to the world. The context of a call is what was kept so far."""

    async def ask(self, step: int) -> ModelDone:
        """One answer of a model, streamed; never raises for a provider's failure."""
        ...

    async def keep_calls(self, message: AssistantMessage) -> None:
        """Commit a message that calls tools, before any of them runs."""
        ...

    async def run_tools(self, calls: Sequence[ToolCallBlock]) -> bool:
        """Run tools and commit one result per call, in their order; whether one of them ends the turn."""
        ...

    async def take_steering(self) -> bool:
        """Commit inputs that arrived for this run since the last boundary (QUE-5); whether there were any."""
        ...


class LoopEnd(Struct, frozen=True):
    """How the loop ended. `message` is not committed yet: the end of the run commits it.

    No message: a tool ended the turn on purpose, and there is nothing to say (YIELD-1).
    """

    message: AssistantMessage | None
    failure: ModelFailure | None
    steps: int


async def run_loop(powers: LoopPowers) -> LoopEnd:
    """Run one turn. Cancellation passes through at every await."""
    for step in range(1, MAX_STEPS + 1):
        done = await powers.ask(step)
        calls = tool_calls_of(done.message)
        if done.failure is not None or not calls:
            return LoopEnd(done.message, done.failure, step)
        await powers.keep_calls(done.message)
        if await powers.run_tools(calls):
            return LoopEnd(None, None, step)
        await powers.take_steering()
    failure = ModelFailure("too_many_steps", f"stopped after {MAX_STEPS} model calls in one turn", False)
    # The last message stands in the transcript already; the end of the run gets one of its own.
    ending = msgspec.structs.replace(
        done.message, content=(), usage=None, stop_reason="error", error_message=failure.message
    )
    return LoopEnd(ending, failure, MAX_STEPS)
