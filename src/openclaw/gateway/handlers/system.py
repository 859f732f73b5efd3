"""health, status, agents.list, models.list: what the gateway is and how it does."""

from __future__ import annotations

from openclaw.gateway.services import Caller, GatewayServices, Json, list_defaults
from openclaw.protocol import params, results
from openclaw.store.sessions import ListQuery, SessionPage

RECENT = 10


async def health(services: GatewayServices, _caller: Caller, _params: params.HealthParams) -> results.Health:
    began = services.clock.monotonic()
    settings = services.settings()
    agents: list[Json] = []
    for agent_id in sorted(settings.agents):
        page = await services.store.list_sessions(ListQuery(agent_id=agent_id, limit=RECENT))
        agents.append(
            {
                "agentId": agent_id,
                "isDefault": agent_id == settings.default_agent,
                "heartbeat": {"enabled": False},
                "sessions": _summary(services, page),
            }
        )
    everything = await services.store.list_sessions(ListQuery(limit=RECENT))
    return results.Health(
        ok=True,
        ts=services.clock.now_ms(),
        duration_ms=round((services.clock.monotonic() - began) * 1000, 3),
        default_agent_id=settings.default_agent,
        agents=agents,
        sessions=_summary(services, everything),
        heartbeat_seconds=0,
        channels={},
        channel_order=[],
        channel_labels={},
    )


def _summary(services: GatewayServices, page: SessionPage) -> Json:
    now_ms = services.clock.now_ms()
    recent = [
        {"key": row.session_key, "updatedAt": row.entry.updated_at, "age": now_ms - row.entry.updated_at}
        for row in page.rows
    ]
    return {"path": services.database, "count": page.total, "recent": recent}


async def status(services: GatewayServices, _caller: Caller, params_: params.StatusParams) -> results.Status:
    settings = services.settings()
    page = await services.store.list_sessions(ListQuery(limit=RECENT))
    by_agent: list[Json] = []
    for agent_id in sorted(settings.agents):
        own = await services.store.list_sessions(ListQuery(agent_id=agent_id, limit=RECENT))
        by_agent.append({"agentId": agent_id, **_summary(services, own)})
    projection: Json | None = None
    if params_.include_cli_projection:
        projection = {"agents": {"defaultId": settings.default_agent, "rows": by_agent}}
    unfinished = await services.store.unfinished()
    tasks = {
        "total": len(unfinished.runs),
        "active": len(unfinished.runs),
        "terminal": 0,
        "failures": 0,
        "byStatus": {"running": len(unfinished.runs)},
        "byRuntime": {},
    }
    return results.Status(
        runtime_version=services.version,
        heartbeat={"defaultAgentId": settings.default_agent, "agents": []},
        channel_summary=[],
        queued_system_events=[],
        tasks=tasks,
        task_audit={"total": 0, "warnings": 0, "errors": 0, "byCode": {}},
        sessions={
            "paths": [services.database],
            "count": page.total,
            "defaults": list_defaults(services),
            "recent": _summary(services, page)["recent"],
            "byAgent": by_agent,
        },
        cli_projection=projection,
    )


async def list_agents(
    services: GatewayServices, _caller: Caller, _params: params.AgentsListParams
) -> results.AgentsList:
    settings = services.settings()
    agents: list[Json] = []
    for agent_id, agent in sorted(settings.agents.items()):
        target = agent.default_model
        agents.append(
            {
                "id": agent_id,
                "name": agent.name,
                "workspace": agent.workspace,
                "model": {"primary": f"{target.provider}/{target.model}"},
            }
        )
    return results.AgentsList(
        default_id=settings.default_agent,
        main_key=settings.keys.main_key,
        scope=settings.keys.scope,
        agents=agents,
        ownership="sole",
        selection_required=False,
    )


async def list_models(
    services: GatewayServices, _caller: Caller, _params: params.ModelsListParams
) -> results.ModelsList:
    return results.ModelsList(
        models=[
            {
                "id": row.model,
                "name": row.name,
                "provider": row.provider,
                "contextWindow": row.context_window,
                "reasoning": row.reasoning,
                "available": row.available,
            }
            for row in services.models()
        ]
    )
