"""Keeping a session's context healthy: compacting it when it must, and the memory flush before that.

Brings the pipeline of `engine.compaction` together with models, budgets and caches.
A summary is a call like any other: it is accounted, and it obeys the spending
limits. What a run does with a smaller context is the run's business.
"""

from __future__ import annotations

import logging

from msgspec import Struct

from openclaw.domain.compaction import Trigger, needs_compaction
from openclaw.domain.flush import FlushPlan
from openclaw.domain.tokens import context_window, text_tokens, tool_tokens
from openclaw.engine.asking import Asking
from openclaw.engine.compaction import Compacted, CompactionJob, CompactionResult, Compactor
from openclaw.engine.contexts import ContextCache
from openclaw.engine.flush import flush_facts, flush_plan
from openclaw.engine.ports import Clock, ModelDone, ModelFailure, ModelRequest, ModelTarget, ToolSpec
from openclaw.engine.purse import Purse
from openclaw.engine.settings import AgentSettings
from openclaw.engine.workspace import is_writable
from openclaw.store.compactions import Compactions
from openclaw.store.records import RunRow, SessionRow

log = logging.getLogger("openclaw.compaction")


class Overhead(Struct, frozen=True):
    """What a call costs besides the messages."""

    system: str
    tools: tuple[ToolSpec, ...]

    def tokens(self) -> int:
        tools = sum(tool_tokens(tool.name, tool.description, tool.parameters) for tool in self.tools)
        return text_tokens(self.system) + tools


class Care:
    def __init__(
        self,
        compactor: Compactor,
        compactions: Compactions,
        contexts: ContextCache,
        asking: Asking,
        clock: Clock,
    ) -> None:
        self._compactor = compactor
        self._compactions = compactions
        self._contexts = contexts
        self._asking = asking
        self._clock = clock

    async def compact(
        self,
        session: SessionRow,
        agent: AgentSettings,
        trigger: Trigger,
        overhead: Overhead,
        purse: Purse,
        *,
        instructions: str = "",
        attempt: int = 1,
        run: RunRow | None = None,
    ) -> CompactionResult:
        """Compact a session, or say why not. The rest of the world finds the smaller context at once."""
        going_on = agent.choose_models(session.entry, None)[0]
        writer = agent.compaction_model or going_on
        listener = QuietListener(purse)

        async def summarise(request: ModelRequest) -> ModelDone:
            async def same(_target: ModelTarget) -> ModelRequest:
                return request

            return (await self._asking.answer((writer,), same, listener, purse.reserve)).done

        result = await self._compactor.compact(
            CompactionJob(
                session=session,
                trigger=trigger,
                window=window_of(agent, going_on),
                settings=agent.compaction,
                overhead_tokens=overhead.tokens(),
                target=writer,
                summarise=None if writer.api == "offline" else summarise,
                instructions=instructions,
                attempt=attempt,
                run=run,
            )
        )
        if isinstance(result, Compacted):
            self._contexts.forget(session.window_no)
        return result

    def is_due(self, session: SessionRow, agent: AgentSettings, target: ModelTarget) -> bool:
        """Whether the context has grown past what the next turn needs free (COMP-2, COMP-4)."""
        entry = session.entry
        tokens = entry.total_tokens if entry.total_tokens_fresh else None
        return needs_compaction(
            agent.compaction,
            context_tokens=tokens,
            window=window_of(agent, target),
            active_bytes=self._contexts.size_of(session.window_no),
        )

    async def plan_flush(
        self, session: SessionRow, agent: AgentSettings, target: ModelTarget, *, heartbeat: bool = False
    ) -> FlushPlan | None:
        """The silent turn that is due before the next compaction, if one is (FLUSH-1)."""
        facts = flush_facts(
            session,
            window=window_of(agent, target),
            workspace_writable=True,
            sandboxed=agent.is_sandboxed(session.session_key),
            workspace_access=agent.access_for(session.session_key),
            heartbeat=heartbeat,
        )
        now_ms = self._clock.now_ms()
        plan = flush_plan(facts, agent.flush, agent.compaction, now_ms=now_ms, zone=agent.zone)
        # Looking at the disk comes last: nearly every turn is far below the threshold (FLUSH-2).
        return plan if isinstance(plan, FlushPlan) and await is_writable(agent.workspace) else None

    async def undo(self, session: SessionRow, agent: AgentSettings, window: int, overhead_tokens: int) -> int:
        """Take the last compaction back; about how many tokens the context has then."""
        kept = await self._compactor.undo(
            session, window=window, settings=agent.compaction, overhead_tokens=overhead_tokens
        )
        self._contexts.forget(session.window_no)
        return kept.session.entry.total_tokens or 0

    async def note_flush(self, session: SessionRow) -> None:
        """The flush of this cycle has been made, well or not (FLUSH-4)."""
        await self._compactions.note_flush(
            session.session_key, session.entry.compaction_count, now_ms=self._clock.now_ms()
        )


def window_of(agent: AgentSettings, target: ModelTarget) -> int:
    """The window of a model for this agent."""
    return context_window(of_model=target.context_window, cap=agent.context_tokens)


class QuietListener:
    """Listens to calls that nobody watches: they are paid for, and that is all."""

    def __init__(self, purse: Purse) -> None:
        self._purse = purse

    def calling(self, target: ModelTarget) -> None:
        log.debug("asking %s/%s for a summary", target.provider, target.model)

    def heard_text(self, delta: str) -> None:
        """A summary is not streamed to anybody."""

    def heard_thinking(self, delta: str) -> None:
        """Nor is what was thought on the way."""

    def answered(self, done: ModelDone, target: ModelTarget) -> None:
        self._purse.pay(done, target)

    def retrying(self, failure: ModelFailure, delay_s: float) -> None:
        log.warning("a summary failed: %s Trying again in %.1f s.", failure.message, delay_s)
