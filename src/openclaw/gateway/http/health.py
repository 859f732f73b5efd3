"""Whether the gateway lives and is ready, for supervisors. Open to everybody, and says nothing else."""

from __future__ import annotations

from aiohttp import web

from openclaw.gateway.http.answers import json_answer
from openclaw.gateway.http.site import Site


async def healthz(_site: Site, _request: web.Request) -> web.StreamResponse:
    return json_answer({"ok": True, "status": "live"})


async def readyz(site: Site, _request: web.Request) -> web.StreamResponse:
    uptime_ms = site.services.clock.now_ms() - site.services.started_ms
    ready = not site.is_stopping()
    body = {"ready": ready, "failing": [] if ready else ["stopping"], "uptimeMs": uptime_ms}
    return json_answer(body, status=200 if ready else 503)
