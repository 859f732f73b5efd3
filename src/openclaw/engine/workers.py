"""One worker task per busy session: it claims what waits, runs it, and goes home when nothing waits.

Workers are derived from rows: they may vanish at any moment and a query finds
the work again. What must never happen is a session with waiting inputs and no
worker; `wake` is therefore called after every accepted input, and a worker looks
once more before it leaves.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from openclaw.domain import queueing
from openclaw.domain.transcript import TextBlock
from openclaw.engine import events
from openclaw.engine.aftermath import Aftermath
from openclaw.engine.drafts import draft_inputs_in, draft_message, open_calls
from openclaw.engine.events import RunScope
from openclaw.engine.lanes import Lanes
from openclaw.engine.runs import Run, RunServices
from openclaw.engine.settings import EngineSettings
from openclaw.engine.started import StartedRun
from openclaw.engine.toolwork import interrupted, result_of
from openclaw.errors import OpenClawError
from openclaw.store.claiming import Chosen, Later
from openclaw.store.records import QueuedInput, RunOutcome, RunRow, SessionRow
from openclaw.store.runs import Claimed, RunEnd, RunLost, RunPlan

log = logging.getLogger("openclaw.workers")
MAX_RESUMES = 3
STOP_WITHIN_S = 15.0  # how long a run may take to stop when it is told to (LIFE-22, COMP-9)


class Workers:
    """The busy sessions of this process."""

    def __init__(
        self,
        services: RunServices,
        settings: Callable[[], EngineSettings],
        lanes: Lanes,
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
        owner: str,
    ) -> None:
        self._services = services
        self._settings = settings
        self.lanes = lanes
        self.owner = owner
        self._spawn = spawn
        self._busy: dict[str, bool] = {}  # session key -> something may wait that the worker has not seen
        self._active: dict[str, tuple[Run, asyncio.Task[None]]] = {}
        self._draining = False
        self._abandoning = asyncio.Lock()
        self._held: dict[str, asyncio.Event] = {}  # sessions whose next turn must wait for a moment

    # -- what others ask -----------------------------------------------------------------------

    def reserve(self, session_key: str, lane: str, *, holding: bool = False) -> bool:
        """Take the session and a lane place for a run that is about to be claimed with its input.

        While somebody holds the session only they may, and say so with `holding`.
        """
        if self._draining or session_key in self._busy or (session_key in self._held and not holding):
            return False
        if not self.lanes.lane(lane).try_enter():
            return False
        self._busy[session_key] = False
        return True

    def begin(self, session_key: str, lane: str, claimed: Claimed | None) -> None:
        """Use a reservation: run what was claimed, then what waits; or give it back."""
        self._spawn(self._work(session_key, lane, claimed))

    def cancel_reservation(self, session_key: str, lane: str) -> None:
        self.lanes.lane(lane).leave()
        if self._busy.pop(session_key):
            self.wake(session_key)

    def wake(self, session_key: str) -> None:
        """Something waits in this session. While the gateway stops it waits for the next start."""
        if session_key in self._busy:
            self._busy[session_key] = True
            return
        if self._draining:
            return
        self._busy[session_key] = True
        self._spawn(self._work(session_key, lane_of(session_key), None, entered=False))

    def resume(self, run: RunRow) -> None:
        """Go on with a run that a crash interrupted. Who looks after its session already finds it there."""
        if run.session_key in self._busy:
            self._busy[run.session_key] = True
            return
        self._busy[run.session_key] = True
        self._spawn(self._resume(run))

    def active_run(self, session_key: str) -> Run | None:
        found = self._active.get(session_key)
        return found[0] if found else None

    async def abort(self, session_key: str, reason: str) -> str | None:
        """Stop the active run and wait until it is settled. The run id, or None when none was stopped."""
        found = self._active.get(session_key)
        if found is None or found[0].settling:
            return None
        run, task = found
        run.abort_reason = reason
        if run.begun:
            task.cancel()
        # A task that is cancelled before its first step would settle nothing: it finds the reason by itself.
        _, still_running = await asyncio.wait({task}, timeout=STOP_WITHIN_S)
        if still_running:
            log.error("run %s did not stop within %.0f s; it is abandoned", run.run.run_id, STOP_WITHIN_S)
            await self.abandon(run)
            return run.run.run_id
        # An end that could not be written is no stop: the run goes on when its session is next woken.
        row = await self._services.store.run(run.run.run_id)
        return run.run.run_id if row is None or row.state == "ended" else None

    def interrupt(self, run: Run) -> None:
        """Stop a run for the sake of a message that is safe already: nobody waits for it."""
        self._spawn(self._interrupt(run))

    async def _interrupt(self, run: Run) -> None:
        found = self._active.get(run.run.session_key)
        if found is None or found[0] is not run:
            return  # it ended by itself
        try:
            await self.abort(run.run.session_key, "interrupt")
        except OpenClawError as error:
            log.error("run %s could not be interrupted, the next waits for it: %s", run.run.run_id, error)

    @asynccontextmanager
    async def held(self, session_key: str) -> AsyncIterator[None]:
        """Begin no turn of a session meanwhile: between the stop of its run and what replaces it."""
        while (other := self._held.get(session_key)) is not None:
            await other.wait()
        released = self._held[session_key] = asyncio.Event()
        try:
            yield
        finally:
            del self._held[session_key]
            released.set()

    async def abandon(self, run: Run) -> None:
        """Take a run away from a task that does not stop; whatever the task still writes is refused."""
        session_key = run.run.session_key
        found = self._active.get(session_key)
        async with self._abandoning:  # two who gave it up at once would take it from each other
            ours = await self._services.store.take_over(
                run.run.run_id, self.owner, now_ms=self._services.clock.now_ms()
            )
            if ours is not None:
                why = "stopped answering and was abandoned; send it again"
                await self._give_up(ours, run.session, why, absorbed=run.absorbed)
        if found is not None and found[0] is run:
            run.abandoned.set()

    def active_runs(self) -> tuple[Run, ...]:
        return tuple(run for run, _ in self._active.values())

    def is_busy(self, session_key: str) -> bool:
        """Whether a worker looks after this session."""
        return session_key in self._busy

    async def drain(self) -> None:
        """Start nothing more and wait until nothing runs; inputs are kept for the next start (REST-6)."""
        self._draining = True
        while self._active:
            await asyncio.wait({task for _, task in self._active.values()})

    # -- the work ------------------------------------------------------------------------------

    async def _work(
        self, session_key: str, lane: str, claimed: Claimed | None, *, entered: bool = True
    ) -> None:
        place = self.lanes.lane(lane)
        try:
            while True:
                if not entered:
                    await place.enter()
                    entered = True
                if claimed is None:
                    self._busy[session_key] = False
                    claimed = await self._claim_next(session_key, lane)
                if claimed is None:
                    if self._draining or not self._busy[session_key]:
                        return
                    continue
                more = await self._execute(
                    StartedRun(claimed.run, claimed.session, claimed.inputs, claimed.entries, claimed.opened)
                )
                claimed = None
                place.leave()
                entered = False
                if not more and not self._busy[session_key]:
                    return
        except OpenClawError as error:
            log.error("session %s: %s; its inputs stay queued", session_key, error)
        except Exception:
            log.exception("session %s: its worker failed; its inputs stay queued", session_key)
        finally:
            if entered:
                place.leave()
            self._busy.pop(session_key, None)

    async def _claim_next(self, session_key: str, lane: str) -> Claimed | None:
        """Claim the next turn of a session, after its quiet window when it collects (QUE-2)."""
        claims, clock = self._services.claims, self._services.clock
        while not self._draining:
            while (held := self._held.get(session_key)) is not None:
                await held.wait()
            settings = self._settings()
            found = await claims.next(
                session_key,
                partial(self._choose, settings, lane, clock.now_ms()),
                draft_inputs_in(settings.resets.zone),
                now_ms=clock.now_ms(),
            )
            self._tell_expired(session_key, found.expired)
            if found.claimed is not None:
                return found.claimed
            if found.later_ms is not None:
                await clock.sleep(max(0, found.later_ms - clock.now_ms()) / 1000)
            elif found.left_over is not None:
                # Its end could not be written: nobody works on it, so it goes on here and now.
                await self._go_on(found.left_over)
            else:
                return None
        return None

    def _choose(
        self,
        settings: EngineSettings,
        lane: str,
        now_ms: int,
        session: SessionRow,
        waiting: tuple[QueuedInput, ...],
    ) -> Chosen | Later:
        """Which of the waiting inputs the next turn takes. Runs inside the commit: it only decides."""
        queue = queueing.resolve_queue(
            settings.queue,
            channel=session.entry.channel,
            stored=queueing.stored_overrides(session.entry),
        )
        plan = queueing.plan_drain(queue, [_as_queued(item) for item in waiting], now_ms)
        if isinstance(plan, queueing.WaitUntil):
            return Later(plan.at_ms)
        admissions = tuple(item.admission for item in plan.batches[0].inputs)
        first = next(item for item in waiting if item.admission == admissions[0])
        return Chosen(admissions, self.plan_run(session, lane, first.body.timeout_ms))

    def _tell_expired(self, session_key: str, run_ids: Sequence[str]) -> None:
        """What waited for too long was settled without a run, visibly (QUE-8)."""
        for run_id in run_ids:
            log.warning("input %s of %s waited for too long and was not run", run_id, session_key)
            agent_id = session_key.split(":")[1] if session_key.startswith("agent:") else ""
            self._services.emit(events.InputCancelled(run_id, session_key, agent_id, "expired"))

    def plan_run(self, session: SessionRow, lane: str, timeout_ms: int | None) -> RunPlan:
        timeout_s = self._settings().agent(session.agent_id).timeout_s
        return RunPlan(
            "turn", lane, self.owner, self.deadline(timeout_ms / 1000 if timeout_ms else timeout_s)
        )

    def deadline(self, timeout_s: float) -> int | None:
        return self._services.clock.now_ms() + int(timeout_s * 1000) if timeout_s > 0 else None

    async def _execute(self, start: StartedRun) -> bool:
        """Run to the end; whether more may wait."""
        try:
            active = Run(self._services, self._settings(), start, self.wake)
        except OpenClawError as error:
            others = [item.run_id for item in start.inputs[1:]]
            await self._give_up(start.run, start.session, error.message, "error", absorbed=others)
            return True
        task = self._spawn(active.execute())
        session_key = start.run.session_key
        self._active[session_key] = (active, task)
        abandoned = asyncio.ensure_future(active.abandoned.wait())
        try:
            await asyncio.wait({task, abandoned}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            abandoned.cancel()
            del self._active[session_key]
        return active.more_waiting

    async def _resume(self, run: RunRow) -> None:
        """Go on with a run in its lane, then with what waits behind it."""
        place = self.lanes.lane(run.lane)
        await place.enter()
        try:
            await self._go_on(run)
        except RunLost:
            log.info("run %s ended by itself", run.run_id)
        except OpenClawError as error:
            log.error("run %s cannot be resumed: %s", run.run_id, error)
        finally:
            place.leave()
            self._busy.pop(run.session_key, None)
        self.wake(run.session_key)

    async def _go_on(self, run: RunRow) -> None:
        """Take a run over; after three resumes without progress, say so and settle it (REST-3)."""
        store, clock = self._services.store, self._services.clock
        ours = await store.take_over(run.run_id, self.owner, now_ms=clock.now_ms())
        session = await store.session(run.session_key)
        if ours is None or session is None:
            return
        if session.window_no != ours.window_no:
            await self._give_up(ours, session, "its session was reset before it could go on")
            return
        if ours.resumes > MAX_RESUMES:
            await self._give_up(ours, session, "interrupted three times without progress; send it again")
            return
        log.info("run %s was interrupted; going on with it", run.run_id)
        first = await store.input(run.run_id)
        begun = await store.entry(run.window_no, 1)
        opened = None
        if begun is not None and begun.run_id == run.run_id:
            opened = await store.window_reason(run.window_no)
        await self._execute(StartedRun(ours, session, (first,) if first else (), (), opened))

    async def _give_up(
        self,
        run: RunRow,
        session: SessionRow,
        why: str,
        outcome: RunOutcome = "interrupted",
        *,
        absorbed: Sequence[str] = (),
    ) -> None:
        """Settle a run that cannot go on, in the rows and for whoever waits (REST-3)."""
        now_ms = self._services.clock.now_ms()
        session = await self._services.store.session(run.session_key) or session
        messages = await self._services.contexts.messages(run.window_no, session.last_seq)
        left_open = [interrupted(call, now_ms) for call in open_calls(messages)]
        results = [result_of(one.call, one.outcome, now_ms) for one in left_open]
        drafts = tuple(draft_message(result, run.run_id) for result in results)
        first, end = await self._services.store.input(run.run_id), RunEnd(outcome, "error", why)
        aftermath = Aftermath(StartedRun(run, session, (first,) if first else ()), self.wake)
        finished = await self._services.store.finish(
            run, drafts, end, now_ms=now_ms, also=aftermath.unit(end, "", now_ms)
        )
        aftermath.kept()
        scope = RunScope(run.run_id, run.session_key, run.agent_id, session.entry.session_id)
        self._services.emit(
            events.RunEnded(
                scope,
                finished.session,
                outcome,
                "error",
                why,
                "",
                None,
                run.started_at,
                now_ms,
                tuple(absorbed),
            )
        )


def lane_of(session_key: str) -> str:
    """The lane of a session's turns."""
    rest = session_key.split(":", 2)[-1]
    if rest.startswith("subagent:"):
        return "subagent"
    return "cron" if rest.startswith("cron:") else "main"


def _as_queued(item: QueuedInput) -> queueing.QueuedInput:
    route, content = item.body.route, item.body.content
    text = (
        content
        if isinstance(content, str)
        else "\n".join(block.text for block in content if isinstance(block, TextBlock))
    )
    provenance = item.body.provenance
    return queueing.QueuedInput(
        admission=item.admission,
        text=text,
        accepted_ms=item.accepted_at,
        channel=route.channel if route else None,
        to=route.to if route else None,
        account=route.account_id if route else None,
        thread=route.thread_id if route else None,
        from_owner=item.principal == "operator",
        principal=item.principal,
        gather_until_ms=item.body.gather_until,
        provenance=provenance.kind if provenance else "external_user",
    )
