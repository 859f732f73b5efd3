"""The model calls of one run: which models, with which prompt, and what to do when one fails.

Answers the loop's `ask`. A context that does not fit is compacted and asked again;
an entry that the provider refuses is left out and asked again. What remains a
failure goes back to the loop as data.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import msgspec
from msgspec import Struct

from openclaw.domain.quarantine import QUARANTINE
from openclaw.domain.silence import visible_so_far
from openclaw.domain.transcript import Message, encode
from openclaw.engine import events
from openclaw.engine.asking import Asking
from openclaw.engine.events import EventSink, RunScope
from openclaw.engine.ports import Clock, ModelDone, ModelFailure, ModelRequest, ModelTarget, ToolSpec
from openclaw.engine.purse import Purse
from openclaw.store.records import EntryDraft

log = logging.getLogger("openclaw.runs")
MOST_COMPACTIONS = 3  # of one turn (COMP-10)
TOO_LONG = "The conversation no longer fits this model. Send /compact to shorten it, or /new to start over."


class RunContext(Protocol):
    """The context of a run: what a model is shown, and how it may be mended."""

    async def shown_to(self, target: ModelTarget) -> Sequence[Message]:
        """The messages of the next call, pruned and valid for this model."""
        ...

    async def compact(self, target: ModelTarget) -> bool:
        """Make the context smaller because it does not fit; whether it is."""
        ...

    async def suspects(self) -> Sequence[str]:
        """Entries that the provider may have refused."""
        ...


class CallPlan(Struct, frozen=True):
    """What all calls of one run have in common."""

    targets: tuple[ModelTarget, ...]
    tools: tuple[ToolSpec, ...]
    thinking: str | None
    system: str = ""


class Answering:
    """The model side of one run. Implements `asking.CallListener`."""

    def __init__(
        self,
        plan: CallPlan,
        scope: RunScope,
        context: RunContext,
        purse: Purse,
        *,
        asking: Asking,
        clock: Clock,
        emit: EventSink,
        keep: Callable[[Sequence[EntryDraft]], Awaitable[None]],
        tell_thinking: bool = True,
    ) -> None:
        self._tell_thinking = tell_thinking
        self.plan = plan
        self._scope = scope
        self._context = context
        self._purse = purse
        self._asking = asking
        self._clock = clock
        self._emit = emit
        self._keep = keep
        self._systems: dict[ModelTarget, str] = {}
        self._step = 0
        self._compactions = 0
        self.partial = ""
        self.target = plan.targets[0]
        self.fell_back = False

    def use_prompts(self, systems: Sequence[str]) -> None:
        """What calls of this run say first, to each of its models: a fallback reads of itself as well."""
        self.plan = msgspec.structs.replace(self.plan, system=systems[0])
        self._systems = dict(zip(self.plan.targets, systems, strict=True))

    async def ask(self, step: int) -> ModelDone:
        """One answer over the context as it is now. Never raises for a provider's failure."""
        self._step = step
        while True:
            answer = await self._asking.answer(self.plan.targets, self._request, self, self._purse.reserve)
            self.target = answer.target
            self.fell_back = self.fell_back or answer.fell_back
            failure = answer.done.failure
            if failure is None:
                return answer.done
            if not await self._mend(failure, answer.target):
                return _explained(answer.done, failure)

    async def _request(self, target: ModelTarget) -> ModelRequest:
        plan = self.plan
        return ModelRequest(
            target,
            self._systems.get(target, plan.system),
            tuple(await self._context.shown_to(target)),
            plan.tools,
            plan.thinking,
            now_ms=self._clock.now_ms(),
        )

    # -- what is heard during a call -----------------------------------------------------------

    def calling(self, target: ModelTarget) -> None:
        self.target = target
        self.partial = ""
        self._emit(events.RunPhase(self._scope, "starting_model"))
        self._emit(events.ModelCalled(self._scope, target.provider, target.model))

    def heard_text(self, delta: str) -> None:
        self.partial += delta
        shown = visible_so_far(self.partial)
        if shown:
            self._emit(events.TextStreamed(self._scope, self._step, delta, shown))

    def heard_thinking(self, delta: str) -> None:
        if self._tell_thinking:
            self._emit(events.ThinkingStreamed(self._scope, self._step, delta))

    def answered(self, done: ModelDone, target: ModelTarget) -> None:
        self._purse.pay(done, target)

    def retrying(self, failure: ModelFailure, delay_s: float) -> None:
        log.warning("run %s: %s Trying again in %.1f s.", self._scope.run_id, failure.message, delay_s)
        self._emit(events.RunPhase(self._scope, "retrying", failure.message))

    # -- mending -------------------------------------------------------------------------------

    async def _mend(self, failure: ModelFailure, target: ModelTarget) -> bool:
        """Whether the context was changed so that asking again makes sense."""
        if failure.kind == "overflow":
            if self._compactions >= MOST_COMPACTIONS:
                return False
            self._compactions += 1
            self._emit(events.RunPhase(self._scope, "compacting"))
            return await self._context.compact(target)
        if failure.kind == "invalid_entry" or (
            failure.kind == "bad_request" and failure.status in (400, 422)
        ):
            return await self._quarantine(failure)
        return False

    async def _quarantine(self, failure: ModelFailure) -> bool:
        """Leave out what the provider may have refused, and say so in the transcript."""
        found = await self._context.suspects()
        if not found:
            return False
        run_id = self._scope.run_id
        log.warning("run %s: %s Left out of the context from now on: %s", run_id, failure.message, found)
        data = {"entryIds": list(found), "reason": failure.message}
        body = encode({"customType": QUARANTINE, "data": data})
        await self._keep((EntryDraft("custom", body, audience="internal", run_id=run_id),))
        return True


def _explained(done: ModelDone, failure: ModelFailure) -> ModelDone:
    """The failure with what a person can do about it."""
    if failure.kind != "overflow":
        return done
    told = msgspec.structs.replace(failure, message=f"{failure.message} {TOO_LONG}")
    return ModelDone(msgspec.structs.replace(done.message, error_message=told.message), told)
