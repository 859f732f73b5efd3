"""The tool calls of one run: those that only look run together, those that change things alone and in order.

Each call gets exactly one result, in the order of the calls. Between two groups a
newer message may arrive; calls that have not started then get a result that says
so (QUE-5).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec
from msgspec import Struct

from openclaw.domain.queueing import SKIPPED_TEXT
from openclaw.domain.transcript import TextBlock, ToolCallBlock, ToolResultMessage
from openclaw.engine import events
from openclaw.engine.drafts import draft_message, kept_call
from openclaw.engine.events import EventSink, RunScope
from openclaw.engine.ports import Clock, ToolContext, ToolOutcome
from openclaw.engine.tools.registry import ToolRegistry
from openclaw.store.database import Transaction
from openclaw.store.records import EntryDraft
from openclaw.store.runs import Effects

SKIPPED = ToolOutcome((TextBlock(SKIPPED_TEXT),), is_error=True)
_INTERRUPTED = "interrupted: this tool was stopped while it ran; it may or may not have taken effect"


class Worked(Struct, frozen=True):
    """A call, what came of it, and when it began."""

    call: ToolCallBlock
    outcome: ToolOutcome
    started: int


class ToolWork:
    def __init__(
        self,
        registry: ToolRegistry,
        allowed: Sequence[str],
        context: ToolContext,
        scope: RunScope,
        *,
        clock: Clock,
        emit: EventSink,
        steered: Callable[[], Awaitable[bool]],
    ) -> None:
        self._registry = registry
        self._allowed = allowed
        self._context = context
        self._scope = scope
        self._clock = clock
        self._emit = emit
        self._steered = steered

    async def run(self, calls: Sequence[ToolCallBlock]) -> list[Worked]:
        """One outcome per call, in their order. Cancellation stops whatever runs."""
        worked: list[Worked] = []
        groups = self._groups(calls)
        for number, group in enumerate(groups):
            if number and (worked[-1].outcome.ends_turn or await self._steered()):
                return [
                    *worked,
                    *(
                        Worked(call, SKIPPED, self._clock.now_ms())
                        for later in groups[number:]
                        for call in later
                    ),
                ]
            async with asyncio.TaskGroup() as together:
                tasks = [together.create_task(self._run(call)) for call in group]
            worked += [task.result() for task in tasks]
        return worked

    def _groups(self, calls: Sequence[ToolCallBlock]) -> list[list[ToolCallBlock]]:
        groups: list[list[ToolCallBlock]] = []
        together = False
        for call in calls:
            parallel = self._registry.may_run_beside_others(call.name)
            if not (parallel and together):
                groups.append([])
            groups[-1].append(call)
            together = parallel
        return groups

    async def _run(self, call: ToolCallBlock) -> Worked:
        started = self._clock.now_ms()
        self._emit(events.ToolStarted(self._scope, kept_call(call), started))
        context = msgspec.structs.replace(self._context, tool_call_id=call.id, now_ms=started)
        outcome = await self._registry.call(call.name, call.arguments, context, self._allowed)
        if outcome.effect is None:
            self._tell_finished(call, outcome, started)
        return Worked(call, outcome, started)

    def told_by(self, worked: Sequence[Worked], kept: list[ToolResultMessage]) -> Effects:
        """Do what tools do to the store, and draft all results; `kept` gets them."""

        def effects(tx: Transaction) -> Sequence[EntryDraft]:
            kept.clear()  # a unit may be run again
            for one in worked:
                outcome = one.outcome.effect(tx) if one.outcome.effect else one.outcome
                kept.append(result_of(one.call, outcome, self._clock.now_ms()))
            hidden = self._scope.hidden
            return [draft_message(result, self._context.run_id, hidden=hidden) for result in kept]

        return effects

    def settled(self, worked: Sequence[Worked], kept: Sequence[ToolResultMessage]) -> None:
        """The step is kept: tell of what was done in it, and wake whoever it concerns."""
        for one, result in zip(worked, kept, strict=True):
            if one.outcome.effect is not None:
                self._emit(events.ToolFinished(self._scope, one.call, result, one.started, result.timestamp))
            if one.outcome.after is not None and not result.is_error:
                one.outcome.after()

    def _tell_finished(self, call: ToolCallBlock, outcome: ToolOutcome, started: int) -> None:
        result = result_of(call, outcome, self._clock.now_ms())
        self._emit(events.ToolFinished(self._scope, call, result, started, result.timestamp))


def result_of(call: ToolCallBlock, outcome: ToolOutcome, now_ms: int) -> ToolResultMessage:
    return ToolResultMessage(call.id, call.name, outcome.content, now_ms, outcome.is_error, outcome.details)


def interrupted(call: ToolCallBlock, now_ms: int) -> Worked:
    """The outcome of a call that nobody saw the end of; the model decides what to do."""
    return Worked(call, ToolOutcome((TextBlock(_INTERRUPTED),), is_error=True), now_ms)
