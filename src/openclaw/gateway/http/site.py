"""What HTTP handlers work with: the gateway's services and the settings of this door."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal

from aiohttp import web
from msgspec import Struct

from openclaw.gateway.http.credentials import Door
from openclaw.gateway.http.files import Pages
from openclaw.gateway.services import GatewayServices

Endpoint = Literal["chatCompletions", "responses"]


class HttpSettings(Struct, frozen=True):
    """What of HTTP is open (`gateway.http`, `gateway.tools`, `gateway.controlUi`)."""

    chat_completions: bool = False
    responses: bool = False
    tools_allow: tuple[str, ...] = ()
    tools_deny: tuple[str, ...] = ()
    page: bool = True


class Site(Struct, frozen=True):
    """One per server. `serve_socket` takes over a request that asks for a WebSocket."""

    services: GatewayServices
    settings: HttpSettings
    allowed_hosts: frozenset[str]
    door: Door
    pages: Pages
    serve_socket: Callable[[web.Request], Awaitable[web.StreamResponse]]
    is_stopping: Callable[[], bool]
