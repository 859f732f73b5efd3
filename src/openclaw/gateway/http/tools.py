"""`POST /tools/invoke`: one tool of an agent, called as a session, for scripts.

The same policy as the method `tools.invoke`. A script at this door is nobody's owner: the tools of
owners are refused, and the tools that reach into other sessions are closed until the configuration
opens them by name, because a stolen token must not be enough to steer every conversation.
"""

from __future__ import annotations

from typing import Any, Final

from aiohttp import web
from msgspec import Struct

from openclaw.domain.keys import format_key, main_session_key
from openclaw.domain.toolpolicy import OWNER_TOOLS, SESSION_TOOLS, TOOL_GROUPS, covers
from openclaw.errors import InvalidRequest
from openclaw.gateway.handlers.tools import TURN_ONLY, invoke_tool
from openclaw.gateway.http.answers import Refusal, json_answer
from openclaw.gateway.http.credentials import HttpCaller
from openclaw.gateway.http.guards import read_json
from openclaw.gateway.http.site import HttpSettings, Site
from openclaw.gateway.services import GatewayServices, find_session
from openclaw.protocol.params_tools import ToolsInvokeParams
from openclaw.protocol.scopes import WRITE

# Closed unless `gateway.tools.allow` names them: they reach other sessions, or run the gateway.
CLOSED_TOOLS: Final = frozenset((*SESSION_TOOLS, *TOOL_GROUPS["group:automation"]))
MAX_BODY_BYTES: Final = 2 << 20


class InvokeRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """`tool` may also be called `name`, as the method has it."""

    tool: str = ""
    name: str = ""
    args: dict[str, Any] = {}
    session_key: str | None = None
    agent_id: str | None = None
    idempotency_key: str | None = None


async def invoke(site: Site, request: web.Request, caller: HttpCaller) -> web.StreamResponse:
    caller.require(WRITE)
    asked = await read_json(request, InvokeRequest, limit=MAX_BODY_BYTES)
    name = (asked.tool or asked.name).strip()
    if not name:
        raise Refusal(400, "invalid_request_error", "name the tool in `tool`")
    await _check_tool(site, asked, name)
    answer = await invoke_tool(
        site.services,
        ToolsInvokeParams(
            name=name,
            args=asked.args,
            session_key=asked.session_key,
            agent_id=asked.agent_id,
            idempotency_key=asked.idempotency_key,
        ),
        owner=False,
    )
    if answer.ok:
        return json_answer({"ok": True, "result": answer.output})
    problem = answer.error or {}
    forbidden = problem.get("code") == "forbidden"
    raise Refusal(
        403 if forbidden else 400,
        "forbidden" if forbidden else "tool_error",
        str(problem.get("message") or "the tool failed"),
    )


async def _check_tool(site: Site, asked: InvokeRequest, name: str) -> None:
    """Refuse in the order that tells least: what is not there, then what is closed."""
    if name not in site.services.tools.names():
        raise Refusal(404, "not_found", f"Tool not available: {name[:80]}")
    refused = closed_because(site.settings, name)
    if refused is not None:
        raise Refusal(403, "forbidden", refused)
    if name not in await _allowed(site.services, asked):
        raise Refusal(404, "not_found", f"Tool not available: {name[:80]}")


def closed_because(settings: HttpSettings, name: str) -> str | None:
    """Why a tool is not for this door; None when it is."""
    if name in TURN_ONLY:
        return f"{name} ends a turn; it can only be called from inside one"
    if covers(settings.tools_deny, name):
        return f"{name} is closed over HTTP by gateway.tools.deny"
    if name in OWNER_TOOLS:
        return f"{name} is for owners; call it over the WebSocket with admin scope"
    if name in CLOSED_TOOLS and not covers(settings.tools_allow, name):
        return f'{name} is closed over HTTP; open it with gateway.tools.allow: ["{name}"]'
    return None


async def _allowed(services: GatewayServices, asked: InvokeRequest) -> tuple[str, ...]:
    settings = services.settings()
    agent_id = (asked.agent_id or settings.default_agent).strip().lower()
    key = asked.session_key or format_key(main_session_key(agent_id, settings.keys))
    row = await find_session(services, key, agent_id)
    if row is None:
        raise InvalidRequest(f"No session found: {key[:200]}; say something in it first")
    return tuple(settings.agent(row.agent_id).tools_for(row.entry, row.session_key))
