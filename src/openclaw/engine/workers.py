"""One worker task per busy session: it claims what waits, runs it, and goes home when nothing waits.

Workers are derived from rows: they may vanish at any moment and a query finds
the work again. What must never happen is a session with waiting inputs and no
worker; `wake` is therefore called after every accepted input, and a worker looks
once more before it leaves.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from openclaw.domain import queueing
from openclaw.domain.transcript import TextBlock
from openclaw.engine.contexts import draft_input
from openclaw.engine.lanes import Lanes
from openclaw.engine.runs import Run, RunServices
from openclaw.engine.settings import EngineSettings
from openclaw.errors import OpenClawError
from openclaw.store.records import QueuedInput, RunRow, SessionRow
from openclaw.store.runs import Claimed, RunEnd, RunLost, RunPlan

log = logging.getLogger("openclaw.workers")
MAX_RESUMES = 3


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

    # -- what others ask -----------------------------------------------------------------------

    def reserve(self, session_key: str, lane: str) -> bool:
        """Take the session and a lane place for a run that is about to be claimed with its input."""
        if session_key in self._busy or not self.lanes.lane(lane).try_enter():
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
        """Something waits in this session."""
        if session_key in self._busy:
            self._busy[session_key] = True
            return
        self._busy[session_key] = True
        self._spawn(self._work(session_key, lane_of(session_key), None, entered=False))

    def resume(self, run: RunRow) -> None:
        """Go on with a run that a crash interrupted."""
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
        task.cancel()
        await asyncio.wait({task})
        return run.run.run_id

    async def idle(self) -> None:
        """Wait until nothing runs; for a graceful stop."""
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
                    if not self._busy[session_key]:
                        return
                    continue
                more = await self._execute(claimed.run, claimed.session, claimed.inputs, claimed)
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
        store, clock = self._services.store, self._services.clock
        while waiting := await store.queued(session_key):
            session = await store.session(session_key)
            assert session is not None, "an input never outlives its session"
            settings = self._settings()
            queue = queueing.resolve_queue(
                settings.queue,
                channel=session.entry.channel,
                stored=queueing.stored_overrides(session.entry),
            )
            plan = queueing.plan_drain(queue, [_as_queued(item) for item in waiting], clock.now_ms())
            if isinstance(plan, queueing.WaitUntil):
                await clock.sleep(max(0, plan.at_ms - clock.now_ms()) / 1000)
                continue
            admissions = tuple(item.admission for item in plan.batches[0].inputs)
            run_plan = self.plan_run(session, lane)
            claimed = await store.claim(session_key, admissions, run_plan, draft_input, now_ms=clock.now_ms())
            if claimed is not None:
                return claimed
            left_over = await store.active_run(session_key)
            if left_over is not None:
                # Its end could not be written: nobody works on it, so it goes on here and now.
                await self._go_on(left_over)
        return None

    def plan_run(self, session: SessionRow, lane: str) -> RunPlan:
        agent = self._settings().agent(session.agent_id)
        return RunPlan("turn", lane, self.owner, self.deadline(agent.timeout_s))

    def deadline(self, timeout_s: float) -> int | None:
        return self._services.clock.now_ms() + int(timeout_s * 1000) if timeout_s > 0 else None

    async def _execute(
        self,
        run: RunRow,
        session: SessionRow,
        inputs: tuple[QueuedInput, ...],
        claimed: Claimed | None,
    ) -> bool:
        """Run to the end; whether more may wait."""
        active = Run(self._services, self._settings(), run, session, inputs)
        task = self._spawn(active.execute(claimed.entries if claimed else ()))
        self._active[run.session_key] = (active, task)
        try:
            await asyncio.wait({task})
        finally:
            del self._active[run.session_key]
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
        if ours.resumes > MAX_RESUMES:
            end = RunEnd("interrupted", "error", "interrupted three times without progress; send it again")
            await store.finish(ours, (), end, now_ms=clock.now_ms())
        else:
            log.info("run %s was interrupted; going on with it", run.run_id)
            await self._execute(ours, session, (), None)


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
        provenance=provenance.kind if provenance else "external_user",
    )
