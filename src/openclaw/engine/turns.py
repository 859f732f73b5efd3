"""Turns from outside: accept a message, abort, wait for a run, go on after a crash.

The way of every message, whatever surface it came from (docs/topics/design.md): policy
first, then one commit, then the acknowledgement. Nothing here knows a wire.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
from msgspec import Struct

from openclaw.domain import queueing
from openclaw.domain.commands import CommandCaller
from openclaw.domain.entry import SessionEntry
from openclaw.domain.lifecycle import TurnSource
from openclaw.domain.modelhint import ModelHint
from openclaw.domain.resets import choose_model, parse_reset, rotation_events
from openclaw.domain.transcript import TextBlock, UserBlock
from openclaw.engine import events
from openclaw.engine.commands.ports import Handled, Ignored, NotACommand, PassOn, ReadOutcome
from openclaw.engine.drafts import draft_inputs_in
from openclaw.engine.events import EngineEvent, EventSink, RunScope
from openclaw.engine.ports import Clock, Ids
from openclaw.engine.prompt import greeting_prompt
from openclaw.engine.runs import Run
from openclaw.engine.settings import EngineSettings
from openclaw.engine.workers import Workers, lane_of
from openclaw.errors import InvalidRequest
from openclaw.store.database import Transaction
from openclaw.store.inbox import Admission, ExternalId, Inbound, Known, NewInput
from openclaw.store.records import RunRow, SessionSeed, UserInput
from openclaw.store.runs import RunPlan
from openclaw.store.store import Accepted, Store


class Incoming(Struct, frozen=True):
    """A message for a session, from any surface."""

    run_id: str
    seed: SessionSeed
    source: TurnSource
    principal: str
    body: UserInput
    external: ExternalId | None = None
    expires_at: int | None = None
    timeout_s: float | None = None
    # Who may give commands and resets, and of what rank; None: nobody's words are read as such.
    caller: CommandCaller | None = None
    inbound: Inbound | None = None
    # What else happens in the commit that takes it in.
    also: Callable[[Transaction], None] | None = None


class Receipt(Struct, frozen=True):
    """The answer to an accepted message: it is on disk."""

    run_id: str
    session_key: str
    accepted_at: int
    duplicate: bool = False
    finished: bool = False
    # Where the message stands in the transcript, if its turn began in the same commit.
    message_seq: int | None = None


ReadCommand = Callable[[NewInput, CommandCaller], Awaitable[ReadOutcome]]


class Turns:
    def __init__(
        self,
        store: Store,
        workers: Workers,
        settings: Callable[[], EngineSettings],
        clock: Clock,
        ids: Ids,
        emit: EventSink,
    ) -> None:
        self._store = store
        self._workers = workers
        self._settings = settings
        self._clock = clock
        self._ids = ids
        self._emit = emit
        self._read_command: ReadCommand | None = None
        self._waiters: dict[str, set[asyncio.Future[None]]] = {}

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def use_commands(self, read_command: ReadCommand) -> None:
        """Commands work with turns, so turns hear of them last."""
        self._read_command = read_command

    # -- in ------------------------------------------------------------------------------------

    async def accept(self, incoming: Incoming) -> Receipt:
        """Take a message in durably and see that it runs. A refusal stores nothing."""
        settings, key = self._settings(), incoming.seed.session_key
        outcome = await self._command(incoming)
        if isinstance(outcome, Handled):
            finished = outcome.text is not None
            return Receipt(
                outcome.run_id, outcome.session_key, outcome.accepted_at, outcome.duplicate, finished
            )
        if isinstance(outcome, Ignored):
            return Receipt(incoming.run_id, key, self._clock.now_ms(), finished=True)
        if isinstance(outcome, PassOn):
            incoming = msgspec.structs.replace(incoming, body=outcome.body)
        new = _read_trigger(settings, incoming)
        if new.reset is not None:
            new = await self._greet(settings, new)
        if new.reset is None:
            return await self._take(settings, incoming, new)
        # What waits in the old window must not begin between the stop of its run and the reset (LIFE-12).
        async with self._workers.held(key):
            if await self._store.input_state(incoming.run_id) is None:
                await self._workers.abort(key, "reset")
            return await self._take(settings, incoming, new, holding=True)

    async def _take(
        self, settings: EngineSettings, incoming: Incoming, new: NewInput, *, holding: bool = False
    ) -> Receipt:
        """Accept an input that is no command, and see that it runs."""
        key, now_ms = incoming.seed.session_key, self._clock.now_ms()
        lane = lane_of(key)
        gathering = (incoming.body.gather_until or 0) > now_ms
        reserved = not gathering and self._workers.reserve(key, lane, holding=holding)
        try:
            taken = await self._store.accept(
                new,
                settings.resets,
                session_id=self._ids.uuid(),
                now_ms=now_ms,
                start=self._plan(settings, incoming, lane) if reserved else None,
                draft_inputs=draft_inputs_in(settings.resets.zone),
            )
        except BaseException:
            if reserved:
                self._workers.cancel_reservation(key, lane)
            raise
        if isinstance(taken, Known):
            if reserved:
                self._workers.cancel_reservation(key, lane)
            return await self._replay(taken, now_ms)
        self._tell_taken(taken, incoming)
        if reserved:
            self._workers.begin(key, lane, taken.claimed)
        else:
            self._workers.wake(key)
            active = self._workers.active_run(key)
            older = active if active and came_before(active, taken.admission) else None
            if older and _mode(settings, taken, incoming) == "interrupt":
                self._workers.interrupt(older)
        kept = taken.claimed.entries if taken.claimed else ()
        said_at = next((entry.seq for entry in kept if entry.role == "user"), None)
        return Receipt(incoming.run_id, key, now_ms, message_seq=said_at)

    async def _greet(self, settings: EngineSettings, new: NewInput) -> NewInput:
        """A bare reset is greeted; where another model answers, the default one is named (LIFE-18)."""
        if new.body.extra_system_prompt != greeting_prompt():
            return new
        row = await self._store.session(new.seed.session_key)
        agent = settings.agent(new.seed.agent_id)
        entry = row.entry if row else SessionEntry(session_id="", updated_at=0)
        entry = new.edit(entry) if new.edit else entry
        answering, default = agent.choose_models(entry, new.body.model)[0], agent.default_model
        if answering == default or entry.model_override_source == "auto":
            return new
        note = f"Mention that the default model is {default.provider}/{default.model}."
        prompt = f"{new.body.extra_system_prompt}\n{note}"
        return msgspec.structs.replace(
            new, body=msgspec.structs.replace(new.body, extra_system_prompt=prompt)
        )

    async def _command(self, incoming: Incoming) -> ReadOutcome:
        """What commands make of a message, before it counts as one (QUE-9)."""
        if self._read_command is None or incoming.caller is None:
            return NotACommand()
        new = NewInput(
            incoming.run_id, incoming.seed, incoming.source, incoming.principal, incoming.body,
            incoming.external, incoming.expires_at, inbound=incoming.inbound,
        )  # fmt: skip
        return await self._read_command(new, incoming.caller)

    def _plan(self, settings: EngineSettings, incoming: Incoming, lane: str) -> RunPlan:
        timeout_s = incoming.timeout_s
        if timeout_s is None:
            timeout_s = settings.agent(incoming.seed.agent_id).timeout_s
        return RunPlan("turn", lane, self._workers.owner, self._workers.deadline(timeout_s))

    async def _replay(self, known: Known, now_ms: int) -> Receipt:
        run = await self._store.run(known.consumed_by) if known.consumed_by else None
        finished = known.state == "cancelled" or (run is not None and run.state == "ended")
        return Receipt(known.run_id, known.session_key, now_ms, duplicate=True, finished=finished)

    def _tell_taken(self, taken: Accepted, incoming: Incoming) -> None:
        session = taken.claimed.session if taken.claimed else taken.admission.session
        scope = RunScope(incoming.run_id, session.session_key, session.agent_id, session.entry.session_id)
        event = events.InputTaken(
            scope, session, taken.admission.created, taken.admission.rotation, taken.claimed is None,
            incoming.body, incoming.source,
        )  # fmt: skip
        # After the caller's own acknowledgement, before anything of the run.
        tell_later = asyncio.get_running_loop().call_soon
        rotation = taken.admission.rotation
        if taken.admission.created or rotation is not None:
            notices = rotation_events(
                session.session_key,
                previous_id=rotation.previous_session_id if rotation else None,
                session_id=session.entry.session_id,
                reason=rotation.reason if rotation else "first",
            )
            tell_later(self._emit, events.WindowsChanged(session, notices))
        told = [(run_id, "dropped") for run_id in taken.admission.dropped]
        told += [(run_id, "reset") for run_id in taken.admission.cancelled]
        for run_id, why in told:
            tell_later(self._emit, events.InputCancelled(run_id, session.session_key, session.agent_id, why))
        tell_later(self._emit, event)

    # -- stop ----------------------------------------------------------------------------------

    async def abort(
        self, session_key: str, run_id: str | None = None, reason: str = "rpc"
    ) -> tuple[str, ...]:
        """Cancel queued inputs, then the active run; only `run_id` when it is given. The ids stopped."""
        if run_id is not None:
            await self._refuse_foreign(session_key, run_id)
        # Read before the change: once it is committed, nothing may keep us from telling.
        row = await self._store.session(session_key)
        stopped = list(await self._store.cancel(session_key, run_id))
        for cancelled in stopped:
            self._emit(events.InputCancelled(cancelled, session_key, row.agent_id if row else ""))
        active = self._workers.active_run(session_key)
        if active is not None and run_id in (None, active.run.run_id, *active.absorbed):
            aborted = await self._workers.abort(session_key, reason)
            if aborted is not None:
                stopped.append(aborted)
        return tuple(stopped)

    async def _refuse_foreign(self, session_key: str, run_id: str) -> None:
        known = await self._store.input_state(run_id)
        if known is not None and known.session_key != session_key:
            raise InvalidRequest(f"run {run_id} does not belong to session {session_key}")

    # -- wait ----------------------------------------------------------------------------------

    async def wait(self, run_id: str, timeout_s: float) -> RunRow | None:
        """The run that took this input, once it has ended; None when the time is up (RPC-16, RPC-17).

        The answer comes from the row, so a wait survives reconnects and restarts of clients.
        """
        settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        handles = [run_id]
        self._waiters.setdefault(run_id, set()).add(settled)
        try:
            known = await self._store.input_state(run_id)
            if known is not None and known.consumed_by not in (None, "", run_id):
                # A run that goes on after a crash does not know any more what it had taken in.
                handles.append(str(known.consumed_by))
                self._waiters.setdefault(handles[1], set()).add(settled)
            ended = await self._ended(run_id)
            cancelled = known is not None and known.state == "cancelled"  # nothing will ever come of it
            if ended is None and timeout_s > 0 and not cancelled:
                await asyncio.wait({settled}, timeout=timeout_s)
                ended = await self._ended(run_id)
            return ended
        finally:
            for handle in handles:
                waiting = self._waiters.get(handle)
                if waiting is not None:
                    waiting.discard(settled)
                    if not waiting:
                        del self._waiters[handle]

    async def _ended(self, run_id: str) -> RunRow | None:
        known = await self._store.input_state(run_id)
        run = await self._store.run((known.consumed_by if known else None) or run_id)
        return run if run is not None and run.state == "ended" else None

    def note_settled(self, run_id: str) -> None:
        """Wake whoever waits for this run."""
        for waiter in self._waiters.get(run_id, ()):
            if not waiter.done():
                waiter.set_result(None)

    def observe(self, event: EngineEvent) -> None:
        """Part of the event sink: the end of a run settles its inputs."""
        if isinstance(event, events.RunEnded):
            for run_id in (event.scope.run_id, *event.absorbed):
                self.note_settled(run_id)
        elif isinstance(event, events.InputCancelled):
            self.note_settled(event.run_id)
        elif isinstance(event, events.CommandAnswered):
            self.note_settled(event.scope.run_id)

    # -- after a crash -------------------------------------------------------------------------

    async def recover(self) -> tuple[int, int]:
        """Ask the rows what is unfinished and go on; (runs resumed, sessions woken)."""
        await self._store.recover_deliveries(now_ms=self._clock.now_ms())
        unfinished = await self._store.unfinished()
        for run in unfinished.runs:
            self._workers.resume(run)
        resumed = {run.session_key for run in unfinished.runs}
        waiting = [key for key in unfinished.waiting if key not in resumed]
        for session_key in waiting:
            self._workers.wake(session_key)
        return len(unfinished.runs), len(waiting)


def came_before(run: Run, new: Admission) -> bool:
    """Whether a run answers only what was accepted before this input: it may be stopped for it only then.

    By the time that an input hears of its acceptance, a run may have begun that took it along, or one of
    a later message, such as a reset that cancelled it.
    """
    itself = new.run_id in (run.run.run_id, *run.absorbed)
    return not itself and all(item.admission < new.admission for item in run.start.inputs)


def _read_trigger(settings: EngineSettings, incoming: Incoming) -> NewInput:
    """`/new` and `/reset` rotate the session; the rest of the text is the first message (LIFE-13)."""
    body, reset, edit = incoming.body, None, None
    said = _first_text(body.content)
    spoken = body.provenance is None or body.provenance.kind == "external_user"
    if incoming.caller is not None and said and spoken:
        agent = settings.agent(incoming.seed.agent_id)
        default = agent.default_model
        command = parse_reset(
            said,
            authorised=incoming.caller.authorised,
            extra_triggers=settings.reset_triggers,
            mention_names=agent.call_names.plain if incoming.caller.in_group else (),
            candidates=settings.model_candidates,
            default_model=(default.provider, default.model),
        )
        if command is not None:
            reset = command.reason
            edit = None if command.model is None else _choosing(command.model)
            if command.body or not isinstance(body.content, str):
                body = msgspec.structs.replace(body, content=_with_first_text(body.content, command.body))
            else:
                body = msgspec.structs.replace(body, extra_system_prompt=greeting_prompt())
    if incoming.timeout_s is not None:
        body = msgspec.structs.replace(body, timeout_ms=int(incoming.timeout_s * 1000))
    seed = incoming.seed
    return NewInput(
        incoming.run_id,
        seed,
        incoming.source,
        incoming.principal,
        body,
        incoming.external,
        incoming.expires_at,
        reset,
        settings.send_policy,
        incoming.inbound,
        fork_from=seed.parent_session_key if seed.session_type == "thread" else None,
        queue=settings.queue,
        edit=edit,
        also=incoming.also,
    )


def _first_text(content: str | tuple[UserBlock, ...]) -> str:
    """The words of a message; beside attachments they come first."""
    if isinstance(content, str):
        return content
    return content[0].text if content and isinstance(content[0], TextBlock) else ""


def _with_first_text(content: str | tuple[UserBlock, ...], text: str) -> str | tuple[UserBlock, ...]:
    if isinstance(content, str):
        return text
    return (TextBlock(text), *content[1:]) if text else content[1:]


def _choosing(hint: ModelHint) -> Callable[[SessionEntry], SessionEntry]:
    return lambda entry: choose_model(entry, hint)


def _mode(settings: EngineSettings, taken: Accepted, incoming: Incoming) -> str:
    """What happens to an input that found its session busy (QUE-4)."""
    entry = taken.admission.session.entry
    stored = queueing.stored_overrides(entry)
    resolved = queueing.resolve_queue(settings.queue, channel=entry.channel, stored=stored)
    return incoming.body.queue_mode or resolved.mode
