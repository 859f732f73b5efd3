"""What platforms post: handed to the connector that opened the address, which alone knows the platform.

The connector judges the headers before a byte of the body is read. An answer of 200 means that what
was posted is on disk; everything else asks the platform to post it again.
"""

from __future__ import annotations

import logging
from typing import Final

from aiohttp import web

from openclaw.errors import OpenClawError
from openclaw.gateway.http import guards
from openclaw.gateway.http.answers import Refusal, json_answer
from openclaw.gateway.http.site import Site

log = logging.getLogger("openclaw.http")
MAX_POST_BYTES: Final = 1 << 20


async def take(site: Site, request: web.Request) -> web.StreamResponse:
    """POST /channels/{channel}/{account}."""
    channel, account_id = request.match_info["channel"], request.match_info["account"]
    taker = site.services.channels.webhooks.taker(channel, account_id)
    if taker is None:
        raise Refusal(404, "not_found", "no connector listens here")
    if not taker.admits(request.headers):
        raise Refusal(401, "unauthorized", "Unauthorized")
    guards.check_json_type(request)
    body = await guards.read_body(request, MAX_POST_BYTES)
    try:
        await taker.take(body)
    except OpenClawError as error:
        log.error("%s (%s): what was posted could not be kept: %s", channel, account_id, error)
        raise Refusal(503, "unavailable", "send it again later") from None
    return json_answer({"ok": True})
