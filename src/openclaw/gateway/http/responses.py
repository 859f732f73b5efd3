"""`POST /v1/responses`: the part of it that a text conversation needs."""

from __future__ import annotations

from typing import Any, Final

from aiohttp import web
from msgspec import Struct

from openclaw.domain.transcript import Usage
from openclaw.gateway.http.answers import Refusal, json_answer
from openclaw.gateway.http.asked import ResponsesRequest, turn_of_responses
from openclaw.gateway.http.credentials import HttpCaller
from openclaw.gateway.http.follow import RunFollower
from openclaw.gateway.http.guards import read_json
from openclaw.gateway.http.runs import choose_place, finished, settled, started, texts
from openclaw.gateway.http.site import Site
from openclaw.gateway.http.stream import EventStream

Json = dict[str, Any]
KIND: Final = "openresponses"


class _About(Struct, frozen=True):
    """What every picture of one response has in common."""

    response_id: str
    message_id: str
    created_at: int
    model: str
    instructions: str | None

    def picture(
        self, status: str, output: list[Json], usage: Json | None = None, error: Json | None = None
    ) -> Json:
        return {
            "id": self.response_id,
            "object": "response",
            "created_at": self.created_at,
            "status": status,
            "model": self.model,
            "instructions": self.instructions,
            "output": output,
            "usage": usage,
            "error": error,
            "incomplete_details": None,
            "metadata": {},
            "parallel_tool_calls": False,
            "temperature": None,
            "tool_choice": "auto",
            "tools": [],
            "top_p": None,
        }

    def message(self, text: str, status: str = "completed") -> Json:
        content = [] if status == "in_progress" else [_part(text)]
        return {
            "id": self.message_id,
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": content,
        }


async def respond(site: Site, request: web.Request, caller: HttpCaller) -> web.StreamResponse:
    asked = await read_json(request, ResponsesRequest)
    turn = turn_of_responses(asked)
    services = site.services
    place = choose_place(services, request, caller, model=asked.model, user=asked.user, kind=KIND)
    about = _About(
        f"resp_{services.ids.uuid()}",
        f"msg_{services.ids.uuid()}",
        services.clock.now_ms() // 1000,
        asked.model,
        asked.instructions,
    )
    async with started(services, caller, place, turn) as follower:
        if asked.stream:
            return await _stream(request, follower, about)
        result = await finished(request, follower)
    return json_answer(about.picture("completed", [about.message(result.text)], usage=_usage(result.usage)))


async def _stream(request: web.Request, follower: RunFollower, about: _About) -> web.StreamResponse:
    stream = EventStream(request)
    sent = 0

    async def send(kind: str, **fields: Any) -> None:
        nonlocal sent
        await stream.send({"type": kind, "sequence_number": sent, **fields}, kind)
        sent += 1

    place = {"item_id": about.message_id, "output_index": 0, "content_index": 0}
    await send("response.created", response=about.picture("in_progress", []))
    await send("response.in_progress", response=about.picture("in_progress", []))
    await send("response.output_item.added", output_index=0, item=about.message("", "in_progress"))
    await send("response.content_part.added", **place, part=_part(""))
    said: list[str] = []
    try:
        async for text in texts(request, follower):
            if text:
                said.append(text)
                await send("response.output_text.delta", **place, delta=text, logprobs=[])
            else:
                await stream.keep_alive()
        result = settled(follower)
    except Refusal as refusal:
        error = {"code": "server_error", "message": refusal.message}
        await send("response.failed", response=about.picture("failed", [], error=error))
        return await stream.close()
    whole = "".join(said)
    await send("response.output_text.done", **place, text=whole, logprobs=[])
    await send("response.content_part.done", **place, part=_part(whole))
    await send("response.output_item.done", output_index=0, item=about.message(whole))
    await send(
        "response.completed",
        response=about.picture("completed", [about.message(whole)], usage=_usage(result.usage)),
    )
    return await stream.close()


def _part(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _usage(usage: Usage | None) -> Json | None:
    if usage is None:
        return None
    asked = usage.input + usage.cache_read + usage.cache_write
    return {
        "input_tokens": asked,
        "input_tokens_details": {"cached_tokens": usage.cache_read},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": asked + usage.output,
    }
