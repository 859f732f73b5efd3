"""One run: load the context, run the loop, commit each step, end it exactly once.

`Run` is the loop's powers over store, model and tools. Whatever happens inside
(a failing provider, a time-out, an abort) ends in one `finish`; only a lost run
or a stopping gateway leaves the row as it is, for recovery to find.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import aclosing

from msgspec import Struct

from openclaw.domain import queueing
from openclaw.domain.context import make_valid
from openclaw.domain.transcript import (
    AssistantMessage,
    Message,
    StopReason,
    TextBlock,
    ToolCallBlock,
    ToolResultMessage,
    decode_message,
    encode,
    text_of,
)
from openclaw.engine import events
from openclaw.engine.contexts import ContextCache, draft_input, draft_message, open_calls
from openclaw.engine.events import EventSink, RunScope
from openclaw.engine.loop import LoopEnd, run_loop
from openclaw.engine.ports import (
    Clock,
    Model,
    ModelDone,
    ModelFailure,
    ModelRequest,
    ModelTarget,
    TextDelta,
    ToolContext,
)
from openclaw.engine.prompt import system_prompt
from openclaw.engine.settings import AgentSettings, EngineSettings
from openclaw.engine.tools.registry import ToolRegistry
from openclaw.errors import OpenClawError
from openclaw.store.records import (
    DeliveryDraft,
    QueuedInput,
    RunOutcome,
    RunRow,
    SessionRow,
    StoredEntry,
    UsageRow,
)
from openclaw.store.runs import Finished, RunEnd, RunLost
from openclaw.store.store import Store

log = logging.getLogger("openclaw.runs")
DELIVERY_TTL_MS = 15 * 60 * 1000


class RunServices(Struct, frozen=True):
    """Everything a run needs from outside."""

    store: Store
    models: dict[str, Model]
    tools: ToolRegistry
    contexts: ContextCache
    clock: Clock
    emit: EventSink


class Run:
    """Carries one claimed run to its end. Implements `loop.LoopPowers`."""

    def __init__(
        self,
        services: RunServices,
        settings: EngineSettings,
        run: RunRow,
        session: SessionRow,
        inputs: tuple[QueuedInput, ...],
    ) -> None:
        self.services = services
        self.settings = settings
        self.run = run
        self.session = session
        self.inputs = inputs
        self.agent: AgentSettings = settings.agent(session.agent_id)
        self.scope = RunScope(run.run_id, run.session_key, run.agent_id, session.entry.session_id)
        self.abort_reason: str | None = None
        self.settling = False
        self.more_waiting = True  # unknown until the end has looked
        self.absorbed: list[str] = [item.run_id for item in inputs if item.run_id != run.run_id]
        self._target: ModelTarget | None = None
        self._partial = ""
        self._usage: list[UsageRow] = []

    # -- from beginning to end -----------------------------------------------------------------

    async def execute(self, user_entries: Sequence[StoredEntry]) -> None:
        """Run to the end and settle. Raises only cancellation of a stopping gateway."""
        emit, scope = self.services.emit, self.scope
        emit(events.RunPhase(scope, "preparing_context"))
        self._announce(user_entries)
        self.services.contexts.extend(self.run.window_no, user_entries)
        resumed = self.run.fence > 1
        emit(events.RunStarted(scope, self.session, self.run.started_at, resumed))
        try:
            await self._settle(*await self._guarded_loop())
        except RunLost:
            log.warning("run %s was taken over or reset; its last step was not kept", self.run.run_id)
        except OpenClawError as error:
            log.error("run %s could not be settled: %s", self.run.run_id, error)
            self._tell_unsettled(error)

    async def _guarded_loop(self) -> tuple[LoopEnd | None, RunEnd]:
        """The loop's end, or what stopped it: deadline, abort, or a failure of our own ground."""
        try:
            async with asyncio.timeout(self._seconds_left()):
                end = await run_loop(await self._load_context(), self)
        except TimeoutError:
            return None, self._end("timeout", "error", f"timed out after {self.agent.timeout_s:g} s")
        except asyncio.CancelledError:
            if self.abort_reason is None:
                raise
            task = asyncio.current_task()
            assert task is not None
            task.uncancel()
            return None, self._end("aborted", self.abort_reason, None)
        except OpenClawError as error:
            if isinstance(error, RunLost):
                raise
            return None, self._end("error", "error", error.message)
        except Exception:
            log.exception("run %s failed inside the gateway", self.run.run_id)
            return None, self._end("error", "error", "internal error; the gateway's log has the details")
        if end.failure is not None:
            return end, self._end("error", "error", end.failure.message)
        return end, self._end("ok", end.message.stop_reason or "stop", None)

    def _seconds_left(self) -> float | None:
        if self.run.deadline is None:
            return None
        return max(0.0, (self.run.deadline - self.services.clock.now_ms()) / 1000)

    async def _load_context(self) -> Sequence[Message]:
        messages = await self.services.contexts.messages(self.run.window_no, self.session.last_seq)
        left_open = open_calls(messages, self.services.clock.now_ms())
        if left_open and self.run.fence > 1:
            await self.keep_results(left_open)
            messages = (*messages, *left_open)
        return messages

    def _end(self, outcome: RunOutcome, stop_reason: str, error: str | None) -> RunEnd:
        target = self._target
        last = self._usage[-1] if self._usage else None
        return RunEnd(
            outcome,
            stop_reason,
            error,
            input_tokens=last.input if last else None,
            output_tokens=last.output if last else None,
            cache_read=last.cache_read if last else None,
            cache_write=last.cache_write if last else None,
            context_tokens=target.context_window if target else None,
            provider=target.provider if target else None,
            model=target.model if target else None,
        )

    async def _settle(self, loop_end: LoopEnd | None, end: RunEnd) -> None:
        self.settling = True  # from here on it is too late to abort
        now_ms = self.services.clock.now_ms()
        message = loop_end.message if loop_end else self._partial_message(end, now_ms)
        drafts = (draft_message(message, self.run.run_id),) if message else ()
        deliveries = self._deliveries(message, now_ms) if end.outcome == "ok" else ()
        finished: Finished = await self.services.store.finish(
            self.run, drafts, end, tuple(self._usage), deliveries, now_ms=now_ms
        )
        self.session = finished.session
        self.more_waiting = finished.more_waiting
        self.services.contexts.extend(self.run.window_no, finished.entries)
        self._announce(finished.entries)
        self.services.emit(
            events.RunEnded(
                self.scope, finished.session, end.outcome, end.stop_reason, end.error,
                text_of(message) if message else "", message, self.run.started_at, now_ms,
                tuple(self.absorbed),
            )
        )  # fmt: skip

    def _partial_message(self, end: RunEnd, now_ms: int) -> AssistantMessage | None:
        """What had been said when the run was stopped, kept as such (LOOP-4)."""
        if not self._partial and end.outcome == "aborted":
            return None
        content = (TextBlock(self._partial),) if self._partial else ()
        reason: StopReason = "aborted" if end.outcome == "aborted" else "error"
        target = self._target
        return AssistantMessage(
            content, now_ms, target.api if target else "", target.provider if target else "",
            target.model if target else "", None, reason, end.error,
        )  # fmt: skip

    def _deliveries(self, message: AssistantMessage | None, now_ms: int) -> tuple[DeliveryDraft, ...]:
        """The reply goes where the message came from, captured on the input (ROUTE-2, PITFALLS G2)."""
        first = self.inputs[0] if self.inputs else None
        route = first.body.route if first and first.body.deliver else None
        text = text_of(message) if message else ""
        if route is None or not route.channel or not route.to or not text:
            return ()
        body = encode({"text": text})
        return (DeliveryDraft(f"{self.run.run_id}:reply", route, body, now_ms + DELIVERY_TTL_MS),)

    def _tell_unsettled(self, error: OpenClawError) -> None:
        now_ms = self.services.clock.now_ms()
        self.services.emit(
            events.RunEnded(
                self.scope, self.session, "error", "error", error.message, "", None, self.run.started_at,
                now_ms, tuple(self.absorbed),
            )
        )  # fmt: skip

    def _announce(self, entries: Sequence[StoredEntry]) -> None:
        for entry in entries:
            if entry.type == "message" and entry.audience == "people":
                self.services.emit(events.MessageStored(self.scope, self.session, entry))

    # -- the loop's powers ---------------------------------------------------------------------

    async def ask(self, messages: Sequence[Message], step: int) -> ModelDone:
        services = self.services
        override = self.inputs[0].body.model if self.inputs else None
        target = self._target = self.agent.choose_model(self.session.entry, override)
        self._partial = ""
        services.emit(events.RunPhase(self.scope, "starting_model"))
        services.emit(events.ModelCalled(self.scope, target.provider, target.model))
        request = ModelRequest(
            target,
            system_prompt(self.agent, self._extra_prompt()),
            make_valid(messages, "openai"),
            services.tools.specs(self.agent.tools),
            self._thinking(),
            now_ms=services.clock.now_ms(),
        )
        async with aclosing(services.models[target.api].stream(request)) as stream:
            async for event in stream:
                if isinstance(event, TextDelta):
                    self._partial += event.text
                    services.emit(events.TextStreamed(self.scope, step, event.text, self._partial))
                elif isinstance(event, ModelDone):
                    self._note_usage(event.message, target, step)
                    return event
        return _silent(target, services.clock.now_ms())

    def _extra_prompt(self) -> str | None:
        return self.inputs[0].body.extra_system_prompt if self.inputs else None

    def _thinking(self) -> str | None:
        asked = self.inputs[0].body.thinking if self.inputs else None
        return asked or self.session.entry.thinking_level

    def _note_usage(self, message: AssistantMessage, target: ModelTarget, step: int) -> None:
        used = message.usage
        if used is None:
            return
        priced = target.price.input is not None and target.price.output is not None
        self._usage.append(
            UsageRow(
                f"{self.run.run_id}:{self.run.fence}:{step}", target.provider, target.model, used.input,
                used.output, used.cache_read, used.cache_write, used.cost.total if priced else None,
            )
        )  # fmt: skip

    async def keep_calls(self, message: AssistantMessage, step: int) -> None:
        await self._commit((message,), tuple(self._usage))
        self._usage.clear()

    async def run_tools(self, calls: Sequence[ToolCallBlock]) -> Sequence[ToolResultMessage]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._run_tool(call)) for call in calls]
        return [task.result() for task in tasks]

    async def _run_tool(self, call: ToolCallBlock) -> ToolResultMessage:
        clock = self.services.clock
        started = clock.now_ms()
        self.services.emit(events.ToolStarted(self.scope, call, started))
        context = ToolContext(
            self.run.session_key, self.scope.session_id, self.run.agent_id, self.run.run_id, call.id, started
        )
        outcome = await self.services.tools.call(call.name, call.arguments, context, self.agent.tools)
        ended = clock.now_ms()
        result = ToolResultMessage(
            call.id, call.name, outcome.content, ended, outcome.is_error, outcome.details
        )
        self.services.emit(events.ToolFinished(self.scope, call, result, started, ended))
        return result

    async def keep_results(self, results: Sequence[ToolResultMessage]) -> None:
        await self._commit(results, ())

    async def _commit(self, messages: Sequence[Message], usage: tuple[UsageRow, ...]) -> None:
        drafts = tuple(draft_message(message, self.run.run_id) for message in messages)
        entries = await self.services.store.step(self.run, drafts, usage, now_ms=self.services.clock.now_ms())
        self.services.contexts.extend(self.run.window_no, entries)
        self._announce(entries)

    async def take_steering(self) -> Sequence[Message]:
        waiting = await self.services.store.queued(self.run.session_key)
        queue = queueing.resolve_queue(
            self.settings.queue,
            channel=self.session.entry.channel,
            stored=queueing.stored_overrides(self.session.entry),
        )
        steered = [item for item in waiting if (item.body.queue_mode or queue.mode) == "steer"]
        if not steered:
            return ()
        entries = await self.services.store.absorb(
            self.run,
            tuple(item.admission for item in steered),
            draft_input,
            now_ms=self.services.clock.now_ms(),
        )
        self.absorbed += [entry.run_id for entry in entries if entry.run_id]
        self.services.contexts.extend(self.run.window_no, entries)
        self._announce(entries)
        return [decode_message(entry.body) for entry in entries]


def _silent(target: ModelTarget, now_ms: int) -> ModelDone:
    """A stream that ended without its last event: the adapter broke its promise, the run does not hang."""
    failure = ModelFailure("protocol", f"{target.provider}/{target.model} ended without an answer", False)
    message = AssistantMessage(
        (), now_ms, target.api, target.provider, target.model, None, "error", failure.message
    )
    return ModelDone(message, failure)
