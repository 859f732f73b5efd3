"""sessions_yield: end this turn on purpose; what is awaited comes as the next message (SPEC §16.3)."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from openclaw.engine.ports import ToolContext, ToolOutcome, ToolSpec
from openclaw.engine.tools.sessions.parameters import Parameters, answer, read_parameters, schema_of
from openclaw.store import spawns
from openclaw.store.database import Transaction


class YieldParams(Parameters, frozen=True, kw_only=True):
    message: Annotated[
        Annotated[str, Meta(max_length=2000)] | None, Meta(description="a short note about what you wait for")
    ] = None


class SessionsYieldTool:
    @property
    def spec(self) -> ToolSpec:
        return _SPEC

    async def call(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutcome:
        asked = read_parameters(arguments, YieldParams)

        def effect(tx: Transaction) -> ToolOutcome:
            pending = spawns.wait_for_children(tx, context.session_key, context.now_ms)
            told = {"status": "yielded", "message": asked.message or "Turn yielded.", "pending": pending}
            return answer(told)

        return ToolOutcome(effect=effect, ends_turn=True)


_SPEC = ToolSpec(
    "sessions_yield",
    "End your turn now and wait. Use it after sessions_spawn: each helper's result comes as a new message "
    "and wakes you. Do not poll.",
    schema_of(YieldParams),
    parallel=False,
    repeatable=True,
)
