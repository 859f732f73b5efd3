"""tools.catalog, tools.effective, tools.invoke: the agents' tools, seen and used from outside a turn.

A tool that is invoked here acts as a named session: with that session's agent, policy and
visibility, and as an owner only for a connection with admin scope (AMB-35). What it changes
in the store is one transaction of its own. Nothing is written into the session's transcript.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import msgspec

from openclaw.domain.entry import SessionEntry
from openclaw.domain.keys import format_key, main_session_key
from openclaw.domain.toolpolicy import PROFILES, TOOL_GROUPS, covers
from openclaw.domain.transcript import TextBlock
from openclaw.engine.ports import ToolContext, ToolOutcome, ToolSpec
from openclaw.engine.settings import AgentSettings
from openclaw.errors import InvalidRequest
from openclaw.gateway.services import Caller, GatewayServices, Json, find_session, resolve_seed
from openclaw.protocol import params_tools as params
from openclaw.protocol import results_tools as results
from openclaw.store.database import Transaction
from openclaw.store.records import SessionRow

# They end the turn that calls them, and outside a turn there is none.
TURN_ONLY = frozenset(("sessions_yield",))
OTHER = "other"


async def catalog(
    services: GatewayServices, _caller: Caller, asked: params.ToolsCatalogParams
) -> results.ToolsCatalog:
    agent = _agent(services, asked.agent_id)
    tools = services.tools
    return results.ToolsCatalog(
        agent_id=agent.agent_id,
        profiles=[{"id": profile, "label": profile.title()} for profile in (*PROFILES, "full")],
        groups=_grouped(
            tools.specs(tools.names()), lambda spec: {"defaultProfiles": _profiles_with(spec.name)}
        ),
    )


async def effective(
    services: GatewayServices, _caller: Caller, asked: params.ToolsEffectiveParams
) -> results.ToolsEffective:
    """Also for a session that does not exist yet: its first turn would have these tools (TOOL-4)."""
    seed = resolve_seed(services, asked.session_key, asked.agent_id)
    agent = services.settings().agent(seed.agent_id)
    row = await services.store.session(seed.session_key)
    entry = SessionEntry(session_id="", updated_at=0) if row is None else row.entry
    allowed = agent.tools_for(entry, seed.session_key)
    return results.ToolsEffective(
        agent_id=seed.agent_id,
        session_key=seed.session_key,
        groups=_grouped(services.tools.specs(allowed), _how_to_call),
    )


async def invoke(
    services: GatewayServices, caller: Caller, asked: params.ToolsInvokeParams
) -> results.ToolsInvoked:
    return await invoke_tool(services, asked, owner=caller.commands.owner)


async def invoke_tool(
    services: GatewayServices, asked: params.ToolsInvokeParams, *, owner: bool
) -> results.ToolsInvoked:
    """Call a tool as a session, with an owner's rights or without them."""
    session = await _acting(services, asked)
    agent = services.settings().agent(session.agent_id)
    if asked.name in TURN_ONLY:
        raise InvalidRequest(f"{asked.name} ends a turn; call it from inside one")
    context = _context(services, asked, session, agent, owner)
    allowed = agent.tools_for(session.entry, session.session_key)
    outcome = await services.tools.call(asked.name, asked.args, context, allowed)
    if outcome.effect is not None:
        outcome = await _keep(services, outcome.effect, outcome.after)
    return _answer(asked.name, outcome)


# -- acting as a session -----------------------------------------------------------------------


async def _acting(services: GatewayServices, asked: params.ToolsInvokeParams) -> SessionRow:
    key = asked.session_key
    if key is None:
        settings = services.settings()
        agent = _agent(services, asked.agent_id)
        key = format_key(main_session_key(agent.agent_id, settings.keys))
    row = await find_session(services, key, asked.agent_id)
    if row is None:
        raise InvalidRequest(f"No session found: {key}; create it with sessions.create")
    return row


def _context(
    services: GatewayServices,
    asked: params.ToolsInvokeParams,
    session: SessionRow,
    agent: AgentSettings,
    owner: bool,
) -> ToolContext:
    """The same rights as a turn of the session has that this caller's words began."""
    named = f"{session.session_key}\0{asked.idempotency_key or services.ids.uuid()}"
    return ToolContext(
        session_key=session.session_key,
        session_id=session.entry.session_id,
        agent_id=session.agent_id,
        # What a tool keeps is known by its run and call: the same key in the same session is the same call.
        run_id=f"invoke-{hashlib.sha256(named.encode()).hexdigest()[:32]}",
        tool_call_id="invoke",
        now_ms=services.clock.now_ms(),
        owner=owner,
        workspace=agent.workspace,
        workspace_access=agent.access_for(session.session_key),
        sandboxed=agent.is_sandboxed(session.session_key),
        network=agent.sandbox_network,
        scratch=agent.scratch_for(session.session_key),
    )


async def _keep(
    services: GatewayServices,
    effect: Callable[[Transaction], ToolOutcome],
    after: Callable[[], None] | None,
) -> ToolOutcome:
    """Carry out what a tool does to the store; outside a run there is no step that it could be part of."""
    outcome = await services.keep(effect)
    if after is not None and not outcome.is_error:
        after()
    return outcome


def _answer(name: str, outcome: ToolOutcome) -> results.ToolsInvoked:
    if outcome.is_error:
        return results.ToolsInvoked(ok=False, tool_name=name, error=_problem(outcome))
    output: Json = {"content": msgspec.to_builtins(outcome.content)}
    if outcome.details is not None:
        output["details"] = outcome.details
    return results.ToolsInvoked(ok=True, tool_name=name, output=output)


def _problem(outcome: ToolOutcome) -> Json:
    told = outcome.details or {}
    texts = [block.text for block in outcome.content if isinstance(block, TextBlock)]
    code = "forbidden" if told.get("status") == "forbidden" else "error"
    return {"code": code, "message": str(told.get("error") or "\n".join(texts))}


# -- showing -----------------------------------------------------------------------------------


def _agent(services: GatewayServices, agent_id: str | None) -> AgentSettings:
    settings = services.settings()
    wanted = (agent_id or settings.default_agent).strip().lower()
    if wanted not in settings.agents:
        known = ", ".join(sorted(settings.agents))
        raise InvalidRequest(f'unknown agent id "{wanted[:64]}"; configured: {known}')
    return settings.agents[wanted]


def _grouped(specs: Sequence[ToolSpec], more: Callable[[ToolSpec], Json]) -> list[Json]:
    """The tools under the groups that a policy can name, in that order, without empty groups."""
    placed: dict[str, list[Json]] = {}
    for spec in specs:
        row = {"id": spec.name, "label": spec.name, "description": spec.description, "source": "core"}
        placed.setdefault(_group_of(spec.name), []).append(row | more(spec))
    names = [name.removeprefix("group:") for name in TOOL_GROUPS]
    return [
        {"id": name, "label": name.title(), "source": "core", "tools": placed[name]}
        for name in (*names, OTHER)
        if name in placed
    ]


def _group_of(tool: str) -> str:
    named = (group for group, members in TOOL_GROUPS.items() if tool in members)
    return next(named, OTHER).removeprefix("group:")


def _profiles_with(tool: str) -> list[str]:
    return [*(profile for profile, patterns in PROFILES.items() if covers(patterns, tool)), "full"]


def _how_to_call(spec: ToolSpec) -> Json:
    call: Json = {"parameters": spec.parameters}
    if spec.name in TURN_ONLY:
        call["turnOnly"] = True
    return call
