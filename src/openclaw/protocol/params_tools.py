"""The parameters of methods that show and use tools from outside a turn.

Shapes only. Which tools a session has, and what they may do, is decided by the gateway.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, field

from openclaw.protocol.connect import ClosedObject
from openclaw.protocol.params import IdText, SessionKeyText

ToolName = Annotated[str, Meta(min_length=1, max_length=128)]


class ToolsCatalogParams(ClosedObject, frozen=True, kw_only=True):
    """Without an agent, the default one."""

    agent_id: IdText | None = None


class ToolsEffectiveParams(ClosedObject, frozen=True, kw_only=True):
    session_key: SessionKeyText
    agent_id: IdText | None = None


class ToolsInvokeParams(ClosedObject, frozen=True, kw_only=True):
    """The tool acts as the session; without one, as the main session of the agent.

    With an idempotency key a call that changed something is not carried out twice.
    """

    name: ToolName
    args: dict[str, Any] = field(default_factory=dict)
    session_key: SessionKeyText | None = None
    agent_id: IdText | None = None
    idempotency_key: IdText | None = None
