"""The visible table: method name -> handler. A method without a row does not exist."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from openclaw.gateway.handlers import agent, chat, sessions, system, tools, upkeep
from openclaw.gateway.services import Caller, GatewayServices

Handler = Callable[[GatewayServices, Caller, Any], Awaitable[object]]

HANDLERS: Mapping[str, Handler] = {
    "health": system.health,
    "status": system.status,
    "agents.list": system.list_agents,
    "models.list": system.list_models,
    "sessions.list": sessions.list_sessions,
    "sessions.subscribe": sessions.subscribe,
    "sessions.messages.subscribe": sessions.subscribe_messages,
    "sessions.messages.unsubscribe": sessions.unsubscribe_messages,
    "sessions.describe": sessions.describe,
    "sessions.resolve": sessions.resolve,
    "sessions.create": sessions.create,
    "sessions.patch": sessions.patch,
    "sessions.cleanup": upkeep.clean_up,
    "sessions.erase": upkeep.erase,
    "sessions.export": upkeep.export,
    "backup.create": upkeep.back_up,
    "chat.history": chat.history,
    "chat.send": chat.send,
    "chat.abort": chat.abort,
    "chat.inject": chat.inject,
    "agent": agent.run_agent,
    "agent.wait": agent.wait_for_run,
    "tools.catalog": tools.catalog,
    "tools.effective": tools.effective,
    "tools.invoke": tools.invoke,
}
