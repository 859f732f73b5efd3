"""What handlers work with, and the questions that all of them ask.

Explicit values: there is no global state, and a handler can be called in a test
with a store, an engine and a caller of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Literal

from msgspec import Struct

from openclaw.channels.front import Channels
from openclaw.config.schema import Config
from openclaw.domain.commandcallers import operator_caller
from openclaw.domain.commands import CommandCaller
from openclaw.domain.explanation import Explanation
from openclaw.domain.groups import channel_of_client
from openclaw.domain.keys import canonical_key, format_key
from openclaw.domain.lifecycle import TurnSource
from openclaw.domain.origin import InboundContext
from openclaw.engine.cron import Cron
from openclaw.engine.events import EventSink
from openclaw.engine.heartbeats import Heartbeats
from openclaw.engine.ports import Clock, Ids, ToolOutcome
from openclaw.engine.seeds import seed_for_key
from openclaw.engine.sessionwork import SessionWork
from openclaw.engine.settings import EngineSettings
from openclaw.engine.tools.registry import ToolRegistry
from openclaw.engine.turns import Turns
from openclaw.engine.workers import Workers
from openclaw.errors import InvalidRequest
from openclaw.gateway.about import About
from openclaw.gateway.client import Client
from openclaw.gateway.doorkeeper import Doorkeeper
from openclaw.gateway.http.follow import Followers
from openclaw.gateway.http.signin import Signins
from openclaw.gateway.hub import Hub
from openclaw.protocol.params_insight import ExplainParams, SecurityAuditParams
from openclaw.store.commands import CommandStore
from openclaw.store.database import Transaction
from openclaw.store.diagnostics import Diagnostics
from openclaw.store.families import Families
from openclaw.store.inbox import Inbound
from openclaw.store.outboxdesk import OutboxDesk
from openclaw.store.pages import Pages
from openclaw.store.records import SessionRow, SessionSeed
from openclaw.store.sessionusage import SessionUsages
from openclaw.store.store import Store
from openclaw.store.upkeep import Upkeep

Json = dict[str, Any]


class ModelRow(Struct, frozen=True):
    """A configured model as `models.list` shows it."""

    provider: str
    model: str
    name: str
    context_window: int
    reasoning: bool
    available: bool = True


class GatewayServices(Struct, frozen=True):
    """The parts of a running gateway."""

    store: Store
    commands: CommandStore
    tools: ToolRegistry
    # Carries out what a tool does to the store, outside a run.
    keep: Callable[[Callable[[Transaction], ToolOutcome]], Awaitable[ToolOutcome]]
    upkeep: Upkeep
    session_work: SessionWork
    pages: Pages
    usages: SessionUsages
    families: Families
    about: About
    outbox: OutboxDesk
    diagnostics: Diagnostics
    # Why things are as they are, and what to look at: answered from the configuration in force.
    explain: Callable[[ExplainParams], Awaitable[Explanation]]
    audit: Callable[[SecurityAuditParams], Awaitable[Struct]]
    turns: Turns
    workers: Workers
    hub: Hub
    # Tells everybody inside the gateway, the hub among them, what was committed.
    emit: EventSink
    channels: Channels
    cron: Cron
    heartbeats: Heartbeats
    config: Callable[[], Config]
    door: Doorkeeper
    # For plain requests: what they follow, and which browsers are signed in.
    followers: Followers
    signins: Signins
    clock: Clock
    ids: Ids
    settings: Callable[[], EngineSettings]
    models: Callable[[], tuple[ModelRow, ...]]
    check_model: Callable[[str], str]
    version: str
    database: str
    started_ms: int
    spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]


class Caller(Struct, frozen=True):
    """Who asked, and under which request id a later answer goes."""

    client: Client
    request_id: str
    had_params: bool
    answer_later: Callable[[object], None]

    @property
    def channel(self) -> Literal["webchat", "internal"]:
        """The channel of a session that is reached over RPC only (AMB-37)."""
        info = self.client.connection.client
        return channel_of_client(info.mode if info else None, info.id if info else None)

    @property
    def source(self) -> TurnSource:
        return "webchat" if self.channel == "webchat" else "cli"

    @property
    def commands(self) -> CommandCaller:
        """Which chat commands this client may give (CMD-13)."""
        return operator_caller(self.client.connection.scopes, channel=self.channel)

    @property
    def principal(self) -> str:
        """Whose words these are. Only an operator with admin scope is an owner (AMB-35)."""
        return "operator" if self.commands.owner else "client"

    @property
    def inbound(self) -> Inbound:
        """A turn from inside: it never replaces a route to the outside (ORG-8)."""
        return Inbound(InboundContext(source=self.source, provider=self.channel))


def resolve_seed(
    services: GatewayServices, key_text: str, agent_id: str | None, channel: str | None = None
) -> SessionSeed:
    """What a client typed as a key, as the session it means. Unknown agents are refused by name."""
    settings = services.settings()
    key = canonical_key(key_text, agent_id=agent_id or settings.default_agent, settings=settings.keys)
    owner = key.agent_id or settings.default_agent
    if owner not in settings.agents:
        known = ", ".join(sorted(settings.agents))
        raise InvalidRequest(f'unknown agent id "{owner[:64]}"; configured: {known}')
    return seed_for_key(key, owner, settings.keys, channel)


def meant_key(services: GatewayServices, key_text: str, agent_id: str | None) -> str:
    """The key that is meant, also of an agent that is no longer configured: its sessions are still there."""
    settings = services.settings()
    return format_key(
        canonical_key(key_text, agent_id=agent_id or settings.default_agent, settings=settings.keys)
    )


async def find_session(services: GatewayServices, key_text: str, agent_id: str | None) -> SessionRow | None:
    seed = resolve_seed(services, key_text, agent_id)
    return await services.store.session(seed.session_key)


def list_defaults(services: GatewayServices) -> Json:
    """What a new session of the default agent would use."""
    settings = services.settings()
    target = settings.agent(settings.default_agent).default_model
    return {
        "modelProvider": target.provider,
        "model": target.model,
        "contextTokens": target.context_window,
    }
