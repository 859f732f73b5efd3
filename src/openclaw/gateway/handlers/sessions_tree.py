"""sessions.tree: who asked whom for help, how far they are and what it cost. Reads rows, never transcripts.

A node is a part of the session row that lists and change events show, so a client can keep its tree up to
date from `sessions.changed` alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from openclaw.engine.settings import EngineSettings
from openclaw.gateway.services import Caller, GatewayServices, Json, meant_key
from openclaw.gateway.sessionview import row_for_client
from openclaw.protocol import params_sessions as params
from openclaw.protocol import results_sessions as results
from openclaw.store.families import Family, FamilyQuery

FIELDS: Final = (
    "key", "agentId", "sessionId", "kind", "isMain", "label", "displayName", "derivedTitle", "spawnedBy",
    "parentSessionKey", "status", "hasActiveRun", "activeRunIds", "startedAt", "endedAt", "runtimeMs",
    "inputTokens", "outputTokens", "totalTokens", "totalTokensFresh", "contextTokens", "estimatedCostUsd",
    "modelProvider", "model", "createdAt", "updatedAt", "archived",
)  # fmt: skip


async def tree(
    services: GatewayServices, _caller: Caller, asked: params.SessionsTreeParams
) -> results.SessionsTree:
    key = None if asked.key is None else meant_key(services, asked.key, asked.agent_id)
    family = await services.families.read(FamilyQuery(key, asked.include_archived, asked.limit))
    active: dict[str, str] = {}
    for member in family.members:
        run = services.workers.active_run(member.row.session_key)
        if run is not None:
            active[member.row.session_key] = run.run.run_id
    now_ms = services.clock.now_ms()
    # A thousand rows take long enough that everybody else would notice.
    nodes = await asyncio.to_thread(_nodes, family, active, services.settings(), now_ms)
    return results.SessionsTree(ts=now_ms, nodes=nodes, has_more=family.more)


def _nodes(family: Family, active: Mapping[str, str], settings: EngineSettings, now_ms: int) -> list[Json]:
    nodes: list[Json] = []
    for member in family.members:
        run_id = active.get(member.row.session_key)
        shown = row_for_client(
            member.row, settings, now_ms=now_ms, active_run_ids=(run_id,) if run_id else (), titles=True
        )
        node: Json = {name: shown[name] for name in FIELDS if name in shown}
        if member.task_status is not None:
            node["task"] = {"status": member.task_status, "runtimeMs": member.task_runtime_ms}
        nodes.append(node)
    return nodes
