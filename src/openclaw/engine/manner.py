"""The manner of one turn: models, tools, rights and what is shown of it, decided once at its beginning.

The words of the message come first, then what the session keeps, then the agent's
defaults (CMD-10). Nothing here changes while the turn runs.
"""

from __future__ import annotations

from msgspec import Struct

from openclaw.domain.elevation import Elevated, decide_elevation
from openclaw.domain.showing import ShownLevels, resolve_shown
from openclaw.engine.answering import CallPlan
from openclaw.engine.ports import ToolContext
from openclaw.engine.replies import reply_route
from openclaw.engine.settings import AgentSettings
from openclaw.engine.started import StartedRun
from openclaw.engine.tools.registry import ToolRegistry


class Manner(Struct, frozen=True):
    plan: CallPlan
    allowed: tuple[str, ...]
    context: ToolContext
    shown: ShownLevels


def manner_of(start: StartedRun, agent: AgentSettings, tools: ToolRegistry) -> Manner:
    """How the turn that was claimed shall run."""
    run, entry = start.run, start.session.entry
    first = start.inputs[0].body if start.inputs else None
    allowed = agent.tools_for(entry, run.session_key)
    plan = CallPlan(
        targets=agent.choose_models(entry, first.model if first else None),
        tools=tools.specs(allowed),
        thinking=(first.thinking if first else None) or entry.thinking_level or agent.thinking_default,
    )
    shown = resolve_shown(
        entry,
        verbose=first.verbose if first else None,
        reasoning=first.reasoning if first else None,
        verbose_default=agent.verbose_default,
    )
    return Manner(plan, allowed, _tool_context(start, agent), shown)


def _tool_context(start: StartedRun, agent: AgentSettings) -> ToolContext:
    run, entry = start.run, start.session.entry
    first = start.inputs[0].body if start.inputs else None
    owner = bool(start.inputs) and all(item.principal == "operator" for item in start.inputs)
    level = (first.elevated if first else None) or entry.elevated_level
    return ToolContext(
        run.session_key, entry.session_id, run.agent_id, run.run_id, "", 0, owner=owner,
        workspace=agent.workspace, workspace_access=agent.access_for(run.session_key),
        sandboxed=agent.is_sandboxed(run.session_key), hops=first.hops if first else 0,
        network=agent.sandbox_network, scratch=agent.scratch_for(run.session_key),
        elevated=isinstance(decide_elevation(level, caller_is_owner=owner), Elevated),
        route=reply_route(start),
    )  # fmt: skip
