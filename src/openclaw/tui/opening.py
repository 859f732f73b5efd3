"""Which session is shown first: the one asked for, the one where a person left, the main one (CLI-12)."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from openclaw.api.connection import Address, Link
from openclaw.api.failures import GatewayGone
from openclaw.errors import OpenClawError
from openclaw.tui.memory import ClientMemory

Json = dict[str, Any]


class TuiOptions(Struct, frozen=True, kw_only=True):
    """What was asked for on the command line (CLI-13). `gateway` names the place in the memory."""

    address: Address
    gateway: str
    session: str | None = None
    agent_id: str | None = None
    history_limit: int = 200
    deliver: bool = False
    thinking: str | None = None
    message: str | None = None


def agent_of(key: str) -> str:
    """The agent that a session key names."""
    parts = key.split(":", 2)
    return parts[1] if len(parts) == 3 and parts[0] == "agent" else "main"


async def choose_session(link: Link, memory: ClientMemory, options: TuiOptions, hello: Json) -> str:
    """The key of the session to open, as the gateway spells it. Raises what the gateway refuses."""
    if options.session is not None:
        return await _find(link, options.session, options.agent_id)
    last = memory.last_session(options.gateway, options.agent_id)
    # What was deleted since is not begun anew by looking at it.
    if last is not None and (await link.call("sessions.describe", {"key": last})).get("session"):
        return last
    if options.agent_id is not None:
        return await _spell(link, "main", options.agent_id)
    return str(hello["snapshot"]["sessionDefaults"]["mainSessionKey"])


async def _find(link: Link, name: str, agent_id: str | None) -> str:
    """A key or a label; a name that nothing has yet is the key of a session to come."""
    for way in ("key", "label"):
        params = {way: name, "allowMissing": True} | _of(agent_id)
        try:
            found = await link.call("sessions.resolve", params)
        except GatewayGone:
            raise
        except OpenClawError:
            continue  # what cannot be a key may still be a label
        if found.get("ok"):
            return str(found["key"])
    return await _spell(link, name, agent_id)


async def _spell(link: Link, name: str, agent_id: str | None) -> str:
    """The canonical key; events carry no other."""
    history = await link.call("chat.history", {"sessionKey": name, "limit": 1} | _of(agent_id))
    return str(history["sessionKey"])


def _of(agent_id: str | None) -> Json:
    return {} if agent_id is None else {"agentId": agent_id}
