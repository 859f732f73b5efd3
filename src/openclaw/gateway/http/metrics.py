"""`GET /metrics`: the gateway's figures in the text form that Prometheus reads."""

from __future__ import annotations

from aiohttp import web

from openclaw.gateway.http.credentials import HttpCaller
from openclaw.gateway.http.site import Site
from openclaw.gateway.metrics import CONTENT_TYPE
from openclaw.protocol.scopes import READ


async def show_metrics(site: Site, _request: web.Request, caller: HttpCaller) -> web.StreamResponse:
    """Behind the credential: counts of turns and money are nobody else's business."""
    caller.require(READ)
    headers = {"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store"}
    return web.Response(body=await site.services.about.metrics.scrape(), headers=headers)
