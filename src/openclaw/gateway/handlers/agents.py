"""agents.list, agent.identity.get, models.list, commands.list: what a client can choose from.

And the lists of things that this gateway does not have, which clients ask for again and
again: they are empty, and that is true.
"""

from __future__ import annotations

from openclaw.domain.commandtable import command_rows
from openclaw.gateway.services import Caller, GatewayServices, Json, ModelRow, resolve_seed
from openclaw.protocol import params, params_sessions, results, results_sessions
from openclaw.protocol.rows import levels_of, thinking_choices

DEFAULT_NAME = "Assistant"


async def list_agents(
    services: GatewayServices, _caller: Caller, _asked: params.AgentsListParams
) -> results.AgentsList:
    settings = services.settings()
    return results.AgentsList(
        default_id=settings.default_agent,
        main_key=settings.keys.main_key,
        scope=settings.keys.scope,
        agents=[agent_row(services, agent_id) for agent_id in sorted(settings.agents)],
        ownership="sole",
        selection_required=False,
    )


def agent_row(services: GatewayServices, agent_id: str) -> Json:
    agent = services.settings().agent(agent_id)
    target = agent.default_model
    return {
        "id": agent_id,
        "name": agent.name,
        "workspace": agent.workspace,
        "model": {"primary": f"{target.provider}/{target.model}"},
        **thinking_choices(levels_of(target.reasoning), agent.thinking_default or "off"),
    }


async def identity(
    services: GatewayServices, _caller: Caller, asked: params_sessions.AgentIdentityParams
) -> results_sessions.AgentIdentity:
    settings = services.settings()
    agent_id = asked.agent_id or settings.default_agent
    if asked.session_key is not None or asked.agent_id is not None:
        agent_id = resolve_seed(services, asked.session_key or "main", asked.agent_id).agent_id
    name = settings.agent(agent_id).name
    is_named = bool(name) and name != agent_id
    shown = name if is_named else DEFAULT_NAME
    return results_sessions.AgentIdentity(
        agent_id=agent_id,
        name=shown,
        name_source="config" if is_named else "default",
        avatar=shown[0].upper(),
    )


# -- models ------------------------------------------------------------------------------------


async def list_models(
    services: GatewayServices, _caller: Caller, asked: params.ModelsListParams
) -> results.ModelsList:
    """`configured` leaves out what needs no configuration; the other views show everything there is."""
    agent_id = asked.agent_id
    if asked.session_key is not None:
        agent_id = resolve_seed(services, asked.session_key, asked.agent_id).agent_id
    rows = model_rows(services, agent_id)
    if asked.view in ("configured", "provider-config"):
        rows = [row for row in rows if row["provider"] != "offline" or "tags" in row]
    return results.ModelsList(models=rows)


def model_rows(services: GatewayServices, agent_id: str | None) -> list[Json]:
    """Every model, the agent's own marked as its default."""
    settings = services.settings()
    default = settings.agent(agent_id or settings.default_agent).default_model
    return [
        _model_row(row, is_default=(row.provider, row.model) == (default.provider, default.model))
        for row in services.models()
    ]


def _model_row(row: ModelRow, *, is_default: bool) -> Json:
    shown: Json = {
        "id": row.model,
        "name": row.name,
        "provider": row.provider,
        "contextWindow": row.context_window,
        "reasoning": row.reasoning,
        "thinkingLevels": list(levels_of(row.reasoning)),
        "thinkingDefault": "off",
        "available": row.available,
    }
    if is_default:
        shown["tags"] = ["default"]
    return shown


# -- commands ----------------------------------------------------------------------------------


async def list_commands(
    _services: GatewayServices, caller: Caller, asked: params_sessions.CommandsListParams
) -> results_sessions.CommandsList:
    """The chat commands that the caller may give (CMD-13)."""
    rows = command_rows(owner=caller.commands.owner)
    if not asked.include_args:
        rows = [{name: value for name, value in row.items() if name != "args"} for row in rows]
    return results_sessions.CommandsList(commands=rows)


# -- what is not there -------------------------------------------------------------------------


async def list_task_suggestions(
    _services: GatewayServices, _caller: Caller, _asked: params_sessions.NothingListedParams
) -> results_sessions.TaskSuggestions:
    """Nothing here suggests tasks."""
    return results_sessions.TaskSuggestions(suggestions=[])


async def list_approvals(
    _services: GatewayServices, _caller: Caller, _asked: params_sessions.NothingListedParams
) -> list[Json]:
    """Nothing here waits for an approval: a tool is allowed or refused by its policy."""
    return []
