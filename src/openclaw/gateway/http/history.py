"""`GET /sessions/<key>/history` and `POST /sessions/<key>/kill`.

History is the display form that every client gets (RPC-11), page by page from the newest backwards,
or as a stream that goes on with what is said next.
"""

from __future__ import annotations

from typing import Any, Final

from aiohttp import web
from msgspec import Struct

from openclaw.domain.display import visible_rows
from openclaw.gateway.http.answers import Refusal, json_answer
from openclaw.gateway.http.credentials import HttpCaller
from openclaw.gateway.http.site import Site
from openclaw.gateway.http.stream import KEEP_ALIVE_S, EventStream
from openclaw.gateway.services import resolve_seed
from openclaw.gateway.sessionview import message_for_client
from openclaw.protocol.scopes import ADMIN, READ
from openclaw.store.transcript import LAST

Json = dict[str, Any]
DEFAULT_LIMIT: Final = 200
MAX_LIMIT: Final = 1000


class _Page(Struct, frozen=True):
    body: Json
    last_seq: int


async def history(site: Site, request: web.Request, caller: HttpCaller) -> web.StreamResponse:
    caller.require(READ)
    key = resolve_seed(site.services, request.match_info["key"], None).session_key
    limit = _number(request, "limit", DEFAULT_LIMIT, MAX_LIMIT)
    cursor = _number(request, "cursor", LAST, LAST)
    if "text/event-stream" in request.headers.get("Accept", ""):
        return await _follow(site, request, key, limit)
    return json_answer((await _page(site, key, limit, cursor)).body)


async def kill(site: Site, request: web.Request, caller: HttpCaller) -> web.StreamResponse:
    """Stop what runs in a session, what waits there, and the helpers below it."""
    caller.require(ADMIN)
    services = site.services
    key = resolve_seed(services, request.match_info["key"], None).session_key
    if await services.store.session(key) is None:
        raise _unknown(key)
    stopped = list(await services.turns.abort(key, reason="kill"))
    for helper, _run in await services.commands.descendants(key):
        stopped += await services.turns.abort(helper.session_key, reason="kill")
    return json_answer({"ok": True, "sessionKey": key, "killed": bool(stopped), "runIds": stopped})


async def _page(site: Site, key: str, limit: int, before_seq: int) -> _Page:
    page = await site.services.store.history(key, limit + 1, before_seq=before_seq)
    if page is None:
        raise _unknown(key)
    entries = page.entries[-limit:]
    has_more = len(page.entries) > limit
    shown = [row for entry in entries if (row := message_for_client(entry)) is not None]
    body: Json = {
        "sessionKey": key,
        "sessionId": page.session.entry.session_id,
        "items": visible_rows(shown),
        "hasMore": has_more,
    }
    if has_more:
        body["nextCursor"] = str(entries[0].seq)
    return _Page(body, entries[-1].seq if entries else 0)


async def _follow(site: Site, request: web.Request, key: str, limit: int) -> web.StreamResponse:
    """The newest page, then every message as it is stored. Too slow a reader is told to begin anew."""
    with site.services.followers.session(key) as follower:
        page = await _page(site, key, limit, LAST)
        stream = EventStream(request)
        await stream.send(page.body, "history")
        while not follower.stopped:
            told = await follower.next(KEEP_ALIVE_S)
            if told is None:
                if follower.lost:
                    await stream.send({"sessionKey": key, "reason": "too slow"}, "resync")
                    break
                if not follower.stopped:
                    await stream.keep_alive()
                continue
            # Stored between the beginning of following and the reading of the page: told already.
            is_new = told.scope.session_id != page.body["sessionId"] or told.entry.seq > page.last_seq
            shown = message_for_client(told.entry) if is_new else None
            if shown is not None:
                message = {
                    "sessionKey": key,
                    "sessionId": told.scope.session_id,
                    "message": shown,
                    "messageId": told.entry.entry_id,
                    "messageSeq": told.entry.seq,
                }
                await stream.send(message, "message")
        return await stream.close()


def _unknown(key: str) -> Refusal:
    return Refusal(404, "not_found", f"Session not found: {key}")


def _number(request: web.Request, name: str, default: int, most: int) -> int:
    text = request.query.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 15 and int(text) > 0):
        raise Refusal(400, "invalid_request_error", f"{name} must be a positive whole number")
    return min(int(text), most)
