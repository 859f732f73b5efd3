"""One run: prepare, run the loop, commit each step, end it exactly once.

`Run` is the loop's powers over store, models and tools. Whatever happens inside
(a failing provider, a time-out, an abort) ends in one `finish`; only a lost run
or a stopping gateway leaves the row as it is, for recovery to find.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec import Struct

from openclaw.domain.transcript import (
    AssistantMessage,
    Message,
    ToolCallBlock,
    ToolResultMessage,
    text_of,
)
from openclaw.engine import events
from openclaw.engine.aftermath import Aftermath
from openclaw.engine.answering import Answering
from openclaw.engine.asking import Asking
from openclaw.engine.care import Care, window_of
from openclaw.engine.contexts import ContextCache
from openclaw.engine.drafts import (
    draft_boundary,
    draft_inputs_in,
    draft_message,
    open_calls,
    turn_was_yielded,
)
from openclaw.engine.events import EventSink, RunScope
from openclaw.engine.loop import LoopEnd, run_loop
from openclaw.engine.manner import manner_of
from openclaw.engine.ports import Clock, ModelDone, ModelTarget
from openclaw.engine.prompt import Prompts, digest_of, prompt_report
from openclaw.engine.purse import Purse, account_of
from openclaw.engine.replies import Reply, beside_reply, partial_message, reply_of, reply_route
from openclaw.engine.room import Room
from openclaw.engine.runcontext import RunView
from openclaw.engine.settings import AgentSettings, EngineSettings
from openclaw.engine.sidenotes import SideNotes
from openclaw.engine.started import StartedRun
from openclaw.engine.steering import Steering
from openclaw.engine.tools.registry import ToolRegistry
from openclaw.engine.toolwork import ToolWork, Worked, interrupted, result_of
from openclaw.engine.uncut import uncut
from openclaw.errors import OpenClawError
from openclaw.store.budgets import Budgets
from openclaw.store.claiming import Claims
from openclaw.store.errands import Errands
from openclaw.store.records import EntryDraft, RunOutcome, StoredEntry, UsageRow
from openclaw.store.runs import Effects, Finished, RunEnd, RunLost
from openclaw.store.sidenotes import SideNoteDesk
from openclaw.store.store import Store

log = logging.getLogger("openclaw.runs")


class RunServices(Struct, frozen=True):
    """Everything a run needs from outside."""

    store: Store
    claims: Claims
    errands: Errands
    notes: SideNoteDesk
    budgets: Budgets
    asking: Asking
    care: Care
    prompts: Prompts
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
        start: StartedRun,
        wake: Callable[[str], None] = lambda _session_key: None,
    ) -> None:
        self.services = services
        self._aftermath = Aftermath(start, wake)
        self.settings = settings
        self.start = start
        self.run = run = start.run
        self.session = start.session
        self.agent: AgentSettings = settings.agent(run.agent_id)
        self._purpose = start.inputs[0].body.purpose if start.inputs else None
        # What the gateway asks for itself is between it and the model; people see nothing of it (FLUSH-7).
        hidden = self._purpose in ("flush", "announce")
        self.scope = RunScope(
            run.run_id, run.session_key, run.agent_id, start.session.entry.session_id, hidden
        )
        self.abort_reason: str | None = None
        self.abandoned = asyncio.Event()  # nobody waits for this run's task any more
        self.begun = False
        self.settling = False
        self.told = False  # what comes after the end may fail; the end is told once
        self.more_waiting = True  # unknown until the end has looked
        self._report: dict[str, Any] | None = None
        self.absorbed: list[str] = [item.run_id for item in start.inputs if item.run_id != run.run_id]
        self.last_sign_s = services.clock.monotonic()  # when something last moved, for the watchdog
        self._view = RunView(
            services.contexts, run, start.session, clock=services.clock, pruning=self.agent.pruning,
            window_of=partial(window_of, self.agent), compact=self._compact_overflow,
        )  # fmt: skip
        account = account_of(start.session, self.agent, run.run_id, f"{run.run_id}:{run.fence}")
        self._purse = Purse(account, self.agent, services.budgets, services.clock)
        manner = manner_of(start, self.agent, services.tools)
        self.shown = manner.shown
        self._answering = Answering(
            manner.plan, self.scope, self._view, self._purse, asking=services.asking, clock=services.clock,
            emit=self._emit, keep=self._keep_drafts, tell_thinking=manner.shown.reasoning != "off",
        )  # fmt: skip
        self._notes = SideNotes(
            start, self.scope, manner.shown, settings, store=services.store, desk=services.notes,
            tools=services.tools, clock=services.clock, emit=self._emit,
        )  # fmt: skip
        self._room = Room(
            run, self.agent, self._purse, lambda: self._answering.plan, care=services.care,
            errands=services.errands, notes=self._notes, clock=services.clock,
            heartbeat=bool(start.inputs) and start.inputs[0].source == "heartbeat",
        )  # fmt: skip
        self._steering = Steering(services.store, settings, start, services.clock)
        self._tools = ToolWork(
            services.tools, manner.allowed, manner.context, self.scope, clock=services.clock,
            emit=self._emit, steered=self._steering.any,
        )  # fmt: skip

    def _emit(self, event: events.EngineEvent) -> None:
        self.last_sign_s = self.services.clock.monotonic()
        self.services.emit(event)

    # -- from beginning to end -----------------------------------------------------------------

    async def execute(self) -> None:
        """Run to the end and settle. Raises only cancellation of a stopping gateway."""
        self.begun = True
        self._emit(events.RunPhase(self.scope, "preparing_context"))
        self._announce(self.start.entries)
        self._view.begin(self.start.entries)
        resumed = self.run.fence > 1
        self._emit(events.RunStarted(self.scope, self.session, self.run.started_at, resumed))
        try:
            loop_end, end = await self._guarded_loop()
            await self._settle(loop_end, end)
            await self._look_after(end)
            await self._purse.settle()
        except RunLost:
            log.warning("run %s was taken over or reset; its last step was not kept", self.run.run_id)
            with suppress(OpenClawError):  # what was set aside for it counts, whoever ended it
                await self._purse.settle()
        except OpenClawError as error:
            log.error("run %s could not be settled: %s", self.run.run_id, error)
            if not self.told:
                self._tell_unsettled(error)

    async def _guarded_loop(self) -> tuple[LoopEnd | None, RunEnd]:
        """The loop's end, or what stopped it: deadline, abort, or a failure of our own ground."""
        if self.abort_reason is not None:
            return None, self._end("aborted", self.abort_reason, None)
        try:
            async with asyncio.timeout(self._seconds_left()):
                await self._use_prompt()
                ended = await self._close_open_calls()
                end = LoopEnd(None, None, 0) if ended else await run_loop(self)
        except TimeoutError:
            seconds = ((self.run.deadline or 0) - self.run.started_at) / 1000
            return None, self._end("timeout", "error", f"timed out after {seconds:g} s")
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
        if end.message is None:
            return end, self._end("ok", "yielded", None)
        return end, self._end("ok", end.message.stop_reason or "stop", None)

    async def _use_prompt(self) -> None:
        """The prompt of the agent; one that differs from the last turn's is a boundary (LOOP-2)."""
        plan = self._answering.plan
        first = plan.targets[0]
        prompts = [
            await self.services.prompts.for_session(self.session, self.agent, one) for one in plan.targets
        ]
        prompt = prompts[0]
        self._answering.use_prompts([one.text for one in prompts])
        last = (self.session.entry.system_prompt_report or {}).get("digest")
        model = f"{first.provider}/{first.model}"
        if last != digest_of(prompt, plan.tools, model):
            if last is not None:
                self._view.boundaries.append("prompt")
            self._report = prompt_report(prompt, plan.tools, model)

    def _seconds_left(self) -> float | None:
        if self.run.deadline is None:
            return None
        return max(0.0, (self.run.deadline - self.services.clock.now_ms()) / 1000)

    async def _close_open_calls(self) -> bool:
        """After a crash a tool call may have no result: it gets one; whether the turn had ended with it."""
        if self.run.fence == 1:
            return False
        await self._finish_calls(open_calls(await self._view.messages()))
        return turn_was_yielded(await self._view.messages())

    async def _finish_calls(self, calls: Sequence[ToolCallBlock]) -> None:
        """Calls that a crash cut off: what we keep ourselves is done again, the rest may have happened."""
        if not calls:
            return
        repeated = [call for call in calls if self.services.tools.may_be_repeated(call.name)]
        worked = {one.call.id: one for one in await self._tools.run(repeated)}
        now_ms = self.services.clock.now_ms()
        await self._keep_results([worked.get(call.id) or interrupted(call, now_ms) for call in calls])

    def _end(self, outcome: RunOutcome, stop_reason: str, error: str | None) -> RunEnd:
        target, last = self._answering.target, self._purse.last_usage
        return RunEnd(
            outcome,
            stop_reason,
            error,
            input_tokens=last.input if last else None,
            output_tokens=last.output if last else None,
            cache_read=last.cache_read if last else None,
            cache_write=last.cache_write if last else None,
            context_tokens=target.context_window,
            provider=target.provider,
            model=target.model,
            fell_back=self._answering.fell_back,
            prompt_report=self._report,
        )

    async def _settle(self, loop_end: LoopEnd | None, end: RunEnd) -> None:
        self.settling = True  # from here on it is too late to abort
        now_ms = self.services.clock.now_ms()
        said, target = self._answering.partial, self._answering.target
        message = loop_end.message if loop_end else partial_message(said, target, end, now_ms)
        drafts = await self._last_drafts(message, now_ms)
        session = self.session
        if reply_route(self.start) is not None:
            session = await self.services.store.session(self.run.session_key) or session
        beside = beside_reply(message, self.shown, self._purse.paid, target.context_window)
        reply = reply_of(message, self.start, session, self.settings, end.outcome, now_ms, beside)
        finished: Finished = await self.services.store.finish(
            self.run, drafts, end, self._purse.take_usage(), reply.deliveries, now_ms=now_ms,
            also=self._aftermath.unit(end, text_of(message) if message else "", now_ms),
        )  # fmt: skip
        self.session = finished.session
        self.more_waiting = finished.more_waiting
        self._aftermath.kept()
        self._view.note(finished.entries)
        self._announce(finished.entries)
        self._tell_ended(end, message, reply, now_ms)

    async def _last_drafts(self, message: AssistantMessage | None, now_ms: int) -> tuple[EntryDraft, ...]:
        """The final message, after results for calls that the end of the run left open (LOOP-4)."""
        drafts = [self._draft(message)] if message else []
        if message is None or message.stop_reason in ("aborted", "error"):
            left_open = [interrupted(call, now_ms) for call in open_calls(await self._view.messages())]
            results = [result_of(one.call, one.outcome, now_ms) for one in left_open]
            drafts = [*(self._draft(result) for result in results), *drafts]
        return (*self._boundary_drafts(), *drafts)

    # -- after the turn ------------------------------------------------------------------------

    async def _look_after(self, end: RunEnd) -> None:
        """Make room for the next turn: notes first, then a compaction. A stop ends it like any work."""
        self.settling = False
        try:
            if self._purpose == "flush":
                if end.outcome != "ok":
                    log.warning("the memory flush of %s failed: %s", self.run.session_key, end.error)
                await self._room.note_flush(self.session)
            if end.outcome == "ok":
                target = self._answering.target
                queued = await self._room.prepare_next(self.session, self._purpose, target)
                self.more_waiting = self.more_waiting or queued
        except asyncio.CancelledError:
            if self.abort_reason is None:
                raise
            task = asyncio.current_task()
            assert task is not None
            task.uncancel()

    async def _compact_overflow(self, _target: ModelTarget, attempt: int) -> bool:
        done = await self._room.compact(self.session, "overflow", attempt, running=True)
        if done is None:
            return False
        self.session = done.session
        self._view.note((done.entry,))
        return True

    def _tell_ended(self, end: RunEnd, message: AssistantMessage | None, reply: Reply, now_ms: int) -> None:
        self.told = True
        self._emit(
            events.RunEnded(
                self.scope, self.session, end.outcome, end.stop_reason, end.error, reply.text, message,
                self.run.started_at, now_ms, tuple(self.absorbed), reply.thinking,
            )
        )  # fmt: skip

    def _tell_unsettled(self, error: OpenClawError) -> None:
        end = RunEnd("error", "error", error.message)
        self._tell_ended(end, None, Reply(""), self.services.clock.now_ms())

    def _announce(self, entries: Sequence[StoredEntry]) -> None:
        for entry in entries:
            if entry.type == "message" and entry.audience == "people":
                self._emit(events.MessageStored(self.scope, self.session, entry))

    # -- the loop's powers ---------------------------------------------------------------------

    async def ask(self, step: int) -> ModelDone:
        return await self._answering.ask(step)

    async def run_tools(self, calls: Sequence[ToolCallBlock]) -> bool:
        worked = await self._tools.run(calls)
        await self._keep_results(worked)
        return any(one.outcome.ends_turn for one in worked)

    async def keep_calls(self, message: AssistantMessage) -> None:
        drafts = (*self._boundary_drafts(), self._draft(message))
        note = await self._notes.of_calls(message)
        await self._keep_drafts(drafts, self._purse.take_usage(), note)

    async def _keep_results(self, worked: Sequence[Worked]) -> None:
        """What tools did stands in one commit; whom it concerns is woken also if the run is stopped now."""
        kept: list[ToolResultMessage] = []

        def note(entries: Sequence[StoredEntry]) -> None:
            self._note_kept(entries)
            self._tools.settled(worked, kept)

        effects = await self._notes.of_results(self._tools.told_by(worked, kept), kept)
        now_ms = self.services.clock.now_ms()
        await uncut(self.services.store.step(self.run, (), (), now_ms=now_ms, effects=effects), note)

    async def _keep_drafts(
        self, drafts: Sequence[EntryDraft], usage: tuple[UsageRow, ...] = (), effects: Effects | None = None
    ) -> None:
        now_ms = self.services.clock.now_ms()
        step = self.services.store.step(self.run, tuple(drafts), usage, now_ms=now_ms, effects=effects)
        await uncut(step, self._note_kept)

    def _note_kept(self, entries: Sequence[StoredEntry]) -> None:
        self.absorbed += [entry.run_id for entry in entries if entry.run_id and entry.role == "user"]
        self._answering.partial = ""  # it stands in the transcript: a stop must not keep it again
        self._view.note(entries)
        self._announce(entries)
        self._notes.told()

    def _draft(self, message: Message) -> EntryDraft:
        return draft_message(message, self.run.run_id, hidden=self.scope.hidden)

    def _boundary_drafts(self) -> Sequence[EntryDraft]:
        """Why the next request does not begin like the last one, written down once."""
        kinds, self._view.boundaries = self._view.boundaries, []
        return [draft_boundary(kind, self.run.run_id) for kind in kinds]

    async def take_steering(self) -> bool:
        steered = await self._steering.waiting()
        if not steered:
            return False
        absorb = self.services.store.absorb(
            self.run,
            tuple(item.admission for item in steered),
            draft_inputs_in(self.settings.resets.zone),
            now_ms=self.services.clock.now_ms(),
        )
        entries = await uncut(absorb, self._note_kept)
        return bool(entries)
