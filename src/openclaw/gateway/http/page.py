"""The web page: its files, its configuration, and how a browser signs in and out."""

from __future__ import annotations

from typing import Any, Final

from aiohttp import web

from openclaw.gateway.http.answers import Refusal, json_answer
from openclaw.gateway.http.credentials import HttpCaller
from openclaw.gateway.http.guards import is_https
from openclaw.gateway.http.signin import SIGNED_IN_MS
from openclaw.gateway.http.site import Site
from openclaw.protocol.scopes import READ

Json = dict[str, Any]
ASSISTANT: Final = "Assistant"
SPENT: Final = (
    "This sign-in link is not good any more: it works once, and for a minute.\n"
    "Ask for a new one with:  openclaw dashboard\n"
)


def asks_for_socket(request: web.Request) -> bool:
    asked = request.headers.get("Upgrade", "").lower()
    return asked == "websocket" and request.path == "/" and request.method == "GET"


async def show_file(site: Site, request: web.Request) -> web.StreamResponse:
    """The page, one of its files, or the socket for a client that asks for it."""
    if asks_for_socket(request):
        return await site.serve_socket(request)
    answer = site.pages.answer(request) if site.settings.page else None
    if answer is not None:
        return answer
    if request.path == "/":
        return web.Response(text="OpenClaw gateway. Its web page is off (gateway.controlUi.enabled).\n")
    raise Refusal(404, "not_found", "there is nothing at this address")


async def show_config(site: Site, _request: web.Request, caller: HttpCaller) -> web.StreamResponse:
    caller.require(READ)
    services = site.services
    agent_id = services.settings().default_agent
    return json_answer(
        {
            "basePath": "",
            "assistantName": ASSISTANT,
            "assistantAvatar": ASSISTANT[0],
            "assistantAgentId": agent_id,
            "serverVersion": services.version,
        }
    )


async def sign_in(site: Site, request: web.Request) -> web.StreamResponse:
    """Spend a one-time link: the browser gets its cookie, and the address loses the code."""
    signins = site.services.signins
    value = signins.redeem(request.match_info["code"])
    if value is None:
        return web.Response(text=SPENT, status=410, headers={"Cache-Control": "no-store"})
    await signins.keep()
    response = web.Response(status=303, headers={"Location": "/", "Cache-Control": "no-store"})
    response.set_cookie(
        signins.cookie_name,
        value,
        max_age=SIGNED_IN_MS // 1000,
        path="/",
        httponly=True,
        samesite="Strict",
        secure=is_https(request),
    )
    return response


async def sign_out(site: Site, request: web.Request, _caller: HttpCaller) -> web.StreamResponse:
    """End the sign-in of the browser that asks, and its sockets."""
    signins = site.services.signins
    signin = site.door.signed_in(request)
    ended = signin is not None and signins.end(signin.digest)
    await signins.keep()
    response = json_answer({"ok": True, "ended": ended})
    response.del_cookie(signins.cookie_name, path="/")
    return response
