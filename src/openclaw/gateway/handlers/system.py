"""health, status: what the gateway is and how it does."""

from __future__ import annotations

from collections import Counter

from openclaw.domain.keys import format_key, main_session_key
from openclaw.gateway.services import Caller, GatewayServices, Json, list_defaults
from openclaw.protocol import params, results
from openclaw.store.sessions import ListQuery, SessionPage

RECENT = 10


async def health(services: GatewayServices, _caller: Caller, _params: params.HealthParams) -> results.Health:
    """Always as it is now; `probe` asks for nothing more while no channel is connected."""
    return await health_now(services)


async def health_now(services: GatewayServices) -> results.Health:
    began = services.clock.monotonic()
    settings = services.settings()
    agents: list[Json] = []
    for agent_id in sorted(settings.agents):
        page = await services.store.list_sessions(ListQuery(agent_id=agent_id, limit=RECENT))
        agents.append(
            {
                "agentId": agent_id,
                "isDefault": agent_id == settings.default_agent,
                "heartbeat": _heartbeat(services, agent_id),
                "sessions": _summary(services, page),
            }
        )
    everything = await services.store.list_sessions(ListQuery(limit=RECENT))
    channels = services.about.channels()
    return results.Health(
        ok=True,
        ts=services.clock.now_ms(),
        duration_ms=round((services.clock.monotonic() - began) * 1000, 3),
        default_agent_id=settings.default_agent,
        agents=agents,
        sessions=_summary(services, everything),
        heartbeat_seconds=_heartbeat(services, settings.default_agent).get("everyMs", 0) // 1000,
        channels=dict(channels.states),
        channel_order=list(channels.order),
        channel_labels=dict(channels.labels),
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
    main_key = format_key(main_session_key(settings.default_agent, settings.keys))
    waiting = await services.about.waking.waiting(main_key)
    return results.Status(
        runtime_version=services.version,
        heartbeat={"defaultAgentId": settings.default_agent, "agents": _heartbeats(services)},
        channel_summary=list(services.about.channels().summary) if params_.include_channel_summary else [],
        queued_system_events=[event.text for event in waiting],
        tasks=await _tasks(services),
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


def _heartbeats(services: GatewayServices) -> list[Json]:
    agents = sorted(services.settings().agents)
    return [{"agentId": agent_id} | _heartbeat(services, agent_id) for agent_id in agents]


def _heartbeat(services: GatewayServices, agent_id: str) -> Json:
    """An agent has one only if the configuration asks for it."""
    rules = services.settings().agent(agent_id).heartbeat
    if rules is None or rules.every_ms <= 0:
        return {"enabled": False}
    minutes = rules.every_ms / 60_000
    return {
        "enabled": True,
        "every": f"{minutes:g}m",
        "everyMs": rules.every_ms,
        "prompt": rules.prompt,
        "target": rules.target,
        "ackMaxChars": rules.ack_max_chars,
    }


async def _tasks(services: GatewayServices) -> Json:
    """The work under way, by lane. What has ended is in the sessions, not here."""
    unfinished = await services.store.unfinished()
    lanes = Counter(run.lane for run in unfinished.runs)
    return {
        "total": len(unfinished.runs) + len(unfinished.waiting),
        "active": len(unfinished.runs),
        "terminal": 0,
        "failures": 0,
        "byStatus": {"queued": len(unfinished.waiting), "running": len(unfinished.runs)},
        "byRuntime": dict(lanes),
    }
