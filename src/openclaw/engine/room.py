"""Room for a run: what it does when its context is too large, and what is done for the next turn after it."""

from __future__ import annotations

from collections.abc import Callable

from openclaw.domain.compaction import Trigger
from openclaw.engine.answering import CallPlan
from openclaw.engine.care import Care, Overhead
from openclaw.engine.compaction import Compacted
from openclaw.engine.errands import flush_input
from openclaw.engine.ports import Clock, ModelTarget
from openclaw.engine.purse import Purse
from openclaw.engine.settings import AgentSettings
from openclaw.engine.sidenotes import SideNotes
from openclaw.store.errands import Errands
from openclaw.store.records import Purpose, RunRow, SessionRow


class Room:
    def __init__(
        self,
        run: RunRow,
        agent: AgentSettings,
        purse: Purse,
        plan: Callable[[], CallPlan],
        *,
        care: Care,
        errands: Errands,
        notes: SideNotes,
        clock: Clock,
        heartbeat: bool = False,
    ) -> None:
        self._run = run
        self._agent = agent
        self._purse = purse
        self._plan = plan
        self._care = care
        self._errands = errands
        self._notes = notes
        self._clock = clock
        self._heartbeat = heartbeat

    async def compact(
        self, session: SessionRow, trigger: Trigger, attempt: int = 1, *, running: bool = False
    ) -> Compacted | None:
        """Compact the session on this run's account; None when nothing was changed."""
        plan = self._plan()
        await self._notes.compaction_begins()
        result = await self._care.compact(
            session,
            self._agent,
            trigger,
            Overhead(plan.system, plan.tools),
            self._purse,
            attempt=attempt,
            run=self._run if running else None,
        )
        await self._notes.compaction_ended(result)
        return result if isinstance(result, Compacted) else None

    async def prepare_next(self, session: SessionRow, purpose: Purpose | None, target: ModelTarget) -> bool:
        """Notes first, then a compaction (FLUSH-1, COMP-2); whether a turn of ours waits now."""
        plan = None
        if purpose is None:
            plan = await self._care.plan_flush(session, self._agent, target, heartbeat=self._heartbeat)
        if plan is not None:
            now_ms = self._clock.now_ms()
            run_id = f"{self._run.run_id}:flush"
            errand = flush_input(session, plan, run_id, now_ms, self._notes.route)
            return await self._errands.queue(errand, now_ms=now_ms)
        if self._care.is_due(session, self._agent, target):
            await self.compact(session, "threshold")
        return False

    async def note_flush(self, session: SessionRow) -> None:
        await self._care.note_flush(session)
