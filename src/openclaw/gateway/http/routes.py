"""The visible table of addresses, and the order of questions that every request passes.

Host, then origin, then who asks, then what it brings: a refusal tells a stranger as little as it can.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Middleware
from msgspec import Struct

from openclaw.errors import OpenClawError, StoreError
from openclaw.gateway.http import (
    channelhooks,
    chat_completions,
    credentials,
    guards,
    health,
    history,
    hooks,
    metrics,
    page,
    responses,
    tools,
)
from openclaw.gateway.http.answers import Dialect, Refusal, refusal_of, refused
from openclaw.gateway.http.site import Endpoint, Site
from openclaw.gateway.http.stream import ClientGone

log = logging.getLogger("openclaw.http")
OpenHandler = Callable[[Site, web.Request], Awaitable[web.StreamResponse]]
ClosedHandler = Callable[[Site, web.Request, credentials.HttpCaller], Awaitable[web.StreamResponse]]
WebHandler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Open(Struct, frozen=True):
    """An address that needs no credential: it tells nothing about any conversation."""

    method: str
    path: str
    handler: OpenHandler


class Closed(Struct, frozen=True):
    """An address behind the credential; `endpoint` must be on in the configuration, if it names one."""

    method: str
    path: str
    handler: ClosedHandler
    dialect: Dialect = "house"
    endpoint: Endpoint | None = None


ROUTES: Final[tuple[Open | Closed, ...]] = (
    Open("GET", "/healthz", health.healthz),
    Open("GET", "/health", health.healthz),
    Open("GET", "/readyz", health.readyz),
    Open("GET", "/ready", health.readyz),
    Open("GET", "/signin/{code}", page.sign_in),
    # Behind the secret that the connector and its platform share.
    Open("POST", "/channels/{channel}/{account}", channelhooks.take),
    Closed("POST", "/signout", page.sign_out),
    Closed("GET", "/control-ui-config.json", page.show_config),
    Closed("GET", "/metrics", metrics.show_metrics),
    Closed("GET", "/v1/models", chat_completions.list_models, "openai"),
    Closed("GET", "/v1/models/{name:.+}", chat_completions.show_model, "openai"),
    Closed("POST", "/v1/chat/completions", chat_completions.complete, "openai", "chatCompletions"),
    Closed("POST", "/v1/responses", responses.respond, "openai", "responses"),
    Closed("POST", "/tools/invoke", tools.invoke),
    Closed("GET", "/sessions/{key}/history", history.history),
    Closed("POST", "/sessions/{key}/kill", history.kill),
    # Last: everything else that a browser may ask for, and the socket at "/".
    Open("GET", "/{path:.*}", page.show_file),
)


def build_application(site: Site) -> web.Application:
    """The aiohttp application of this gateway's port."""
    app = web.Application(middlewares=[_middleware(site)], client_max_size=guards.MAX_BODY_BYTES)
    app.on_response_prepare.append(_add_headers)
    hook_path = site.services.config().hooks.path
    webhooks = (
        Open("POST", f"{hook_path}/wake", hooks.wake),
        Open("POST", f"{hook_path}/agent", hooks.agent),
    )
    for row in (*webhooks, *ROUTES):
        handler: WebHandler
        if isinstance(row, Open):
            handler = partial(row.handler, site)
        else:
            handler = partial(_admit, site, row)
        app.router.add_route(row.method, row.path, handler)
        # Supervisors ask by HEAD. It must not spend a sign-in link.
        if isinstance(row, Open) and row.handler is not page.sign_in:
            app.router.add_route("HEAD", row.path, handler)
    return app


async def _add_headers(_request: web.BaseRequest, response: web.StreamResponse) -> None:
    for name, value in guards.SECURITY_HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers.pop("Server", None)


async def _admit(site: Site, row: Closed, request: web.Request) -> web.StreamResponse:
    guards.check_site(request)
    caller = site.door.admit(request)
    if row.endpoint is not None and not _is_on(site, row.endpoint):
        message = f"this endpoint is off; turn it on with gateway.http.endpoints.{row.endpoint}.enabled"
        raise Refusal(404, "not_found", message)
    if row.method == "POST" and request.body_exists:
        guards.check_json_type(request)
    return await row.handler(site, request, caller)


def _is_on(site: Site, endpoint: Endpoint) -> bool:
    settings = site.settings
    return settings.chat_completions if endpoint == "chatCompletions" else settings.responses


def _middleware(site: Site) -> Middleware:
    @web.middleware
    async def guard(request: web.Request, handler: WebHandler) -> web.StreamResponse:
        try:
            guards.check_host(request, site.allowed_hosts)
            if not page.asks_for_socket(request):  # a socket's origin is judged together with its credential
                guards.check_origin(request)
            return await handler(request)
        except Refusal as refusal:
            return refused(refusal, _dialect(request))
        except OpenClawError as error:
            if isinstance(error, StoreError):
                log.error("%s %s: %s", request.method, request.path[:200], error)
            return refused(refusal_of(error), _dialect(request))
        except ClientGone:
            return web.Response(status=499)
        except web.HTTPException as error:
            kind = "not_found" if error.status == 404 else "method_not_allowed"
            return refused(Refusal(error.status, kind, error.reason), _dialect(request))
        except Exception:
            log.exception("%s %s failed inside the gateway", request.method, request.path[:200])
            return refused(Refusal(500, "internal_error", "internal error"), _dialect(request))

    return guard


def _dialect(request: web.Request) -> Dialect:
    return "openai" if request.path.startswith("/v1/") else "house"
