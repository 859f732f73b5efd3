"""Turns from outside: accept a message, abort, wait for a run, go on after a crash.

The way of every message, whatever surface it came from (docs/topics/design.md): policy
first, then one commit, then the acknowledgement. Nothing here knows a wire.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal

import msgspec
from msgspec import Struct

from openclaw.domain.lifecycle import TurnSource
from openclaw.domain.resets import match_trigger
from openclaw.engine import events
from openclaw.engine.contexts import draft_input
from openclaw.engine.events import EngineEvent, EventSink, RunScope
from openclaw.engine.ports import Clock, Ids
from openclaw.engine.prompt import greeting_prompt
from openclaw.engine.settings import EngineSettings
from openclaw.engine.workers import Workers, lane_of
from openclaw.errors import InvalidRequest
from openclaw.store.inbox import ExternalId, Inbound, Known, NewInput
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
    may_reset: bool = True
    inbound: Inbound | None = None


class Receipt(Struct, frozen=True):
    """The answer to an accepted message: it is on disk."""

    run_id: str
    session_key: str
    accepted_at: int
    duplicate: bool = False
    finished: bool = False


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
        self._waiters: dict[str, set[asyncio.Future[None]]] = {}

    # -- in ------------------------------------------------------------------------------------

    async def accept(self, incoming: Incoming) -> Receipt:
        """Take a message in durably and see that it runs. A refusal stores nothing."""
        settings, key = self._settings(), incoming.seed.session_key
        new = self._read_trigger(settings, incoming)
        lane, now_ms = lane_of(key), self._clock.now_ms()
        if new.reset is not None:
            await self._workers.abort(key, "reset")
        reserved = self._workers.reserve(key, lane)
        try:
            taken = await self._store.accept(
                new,
                settings.resets,
                session_id=self._ids.uuid(),
                now_ms=now_ms,
                start=self._plan(settings, incoming, lane) if reserved else None,
                draft_input=draft_input,
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
            if incoming.body.queue_mode == "interrupt":
                await self._workers.abort(key, "interrupt")
        return Receipt(incoming.run_id, key, now_ms)

    def _plan(self, settings: EngineSettings, incoming: Incoming, lane: str) -> RunPlan:
        timeout_s = incoming.timeout_s
        if timeout_s is None:
            timeout_s = settings.agent(incoming.seed.agent_id).timeout_s
        return RunPlan("turn", lane, self._workers.owner, self._workers.deadline(timeout_s))

    def _read_trigger(self, settings: EngineSettings, incoming: Incoming) -> NewInput:
        """`/new` and `/reset` rotate the session; the rest of the text is the first message (LIFE-13)."""
        body = incoming.body
        reset: Literal["new", "reset"] | None = None
        if incoming.may_reset and isinstance(body.content, str):
            match = match_trigger(body.content, extra_triggers=settings.reset_triggers, authorised=True)
            if match is not None:
                reset = "reset" if match.trigger == "/reset" else "new"
                if match.remainder:
                    body = msgspec.structs.replace(body, content=match.remainder)
                else:
                    body = msgspec.structs.replace(body, extra_system_prompt=greeting_prompt())
        return NewInput(
            incoming.run_id, incoming.seed, incoming.source, incoming.principal, body, incoming.external,
            incoming.expires_at, reset, settings.send_policy, incoming.inbound,
        )  # fmt: skip

    async def _replay(self, known: Known, now_ms: int) -> Receipt:
        run = await self._store.run(known.consumed_by) if known.consumed_by else None
        finished = known.state == "cancelled" or (run is not None and run.state == "ended")
        return Receipt(known.run_id, known.session_key, now_ms, duplicate=True, finished=finished)

    def _tell_taken(self, taken: Accepted, incoming: Incoming) -> None:
        session = taken.claimed.session if taken.claimed else taken.admission.session
        scope = RunScope(incoming.run_id, session.session_key, session.agent_id, session.entry.session_id)
        event = events.InputTaken(
            scope, session, taken.admission.created, taken.admission.rotation, taken.claimed is None
        )
        # After the caller's own acknowledgement, before anything of the run.
        asyncio.get_running_loop().call_soon(self._emit, event)

    # -- stop ----------------------------------------------------------------------------------

    async def abort(
        self, session_key: str, run_id: str | None = None, reason: str = "rpc"
    ) -> tuple[str, ...]:
        """Cancel queued inputs, then the active run; only `run_id` when it is given. The ids stopped."""
        if run_id is not None:
            await self._refuse_foreign(session_key, run_id)
        stopped = list(await self._store.cancel(session_key, run_id))
        row = await self._store.session(session_key) if stopped else None
        for cancelled in stopped:
            self._emit(events.InputCancelled(cancelled, session_key, row.agent_id if row else ""))
            self.note_settled(cancelled)
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
        self._waiters.setdefault(run_id, set()).add(settled)
        try:
            ended = await self._ended(run_id)
            if ended is None and timeout_s > 0:
                await asyncio.wait({settled}, timeout=timeout_s)
                ended = await self._ended(run_id)
            return ended
        finally:
            waiting = self._waiters.get(run_id)
            if waiting is not None:
                waiting.discard(settled)
                if not waiting:
                    del self._waiters[run_id]

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
