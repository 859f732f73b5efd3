"""`GET /v1/models` and `POST /v1/chat/completions`, as the official clients expect them."""

from __future__ import annotations

from typing import Any, Final

from aiohttp import web

from openclaw.domain.transcript import Usage
from openclaw.gateway.http.answers import Refusal, json_answer, refusal_body
from openclaw.gateway.http.asked import ChatRequest, turn_of_chat
from openclaw.gateway.http.credentials import HttpCaller
from openclaw.gateway.http.follow import RunFollower
from openclaw.gateway.http.guards import read_json
from openclaw.gateway.http.runs import choose_place, find_agent, finished, model_ids, settled, started, texts
from openclaw.gateway.http.site import Site
from openclaw.gateway.http.stream import EventStream
from openclaw.protocol.scopes import READ

Json = dict[str, Any]
KIND: Final = "openai"


async def list_models(site: Site, _request: web.Request, caller: HttpCaller) -> web.StreamResponse:
    caller.require(READ)
    return json_answer({"object": "list", "data": [_model(site, name) for name in model_ids(site.services)]})


async def show_model(site: Site, request: web.Request, caller: HttpCaller) -> web.StreamResponse:
    caller.require(READ)
    name = request.match_info["name"]
    if find_agent(site.services, name) is None:
        raise Refusal(404, "invalid_request_error", f"unknown model {name[:80]!r}", code="model_not_found")
    return json_answer(_model(site, name))


def _model(site: Site, name: str) -> Json:
    return {
        "id": name,
        "object": "model",
        "created": site.services.started_ms // 1000,
        "owned_by": "openclaw",
        "permission": [],
    }


async def complete(site: Site, request: web.Request, caller: HttpCaller) -> web.StreamResponse:
    asked = await read_json(request, ChatRequest)
    turn = turn_of_chat(asked)
    services = site.services
    place = choose_place(services, request, caller, model=asked.model, user=asked.user, kind=KIND)
    about = {
        "id": f"chatcmpl_{services.ids.uuid()}",
        "created": services.clock.now_ms() // 1000,
        "model": asked.model,
    }
    async with started(services, caller, place, turn) as follower:
        if asked.stream:
            with_usage = asked.stream_options is not None and asked.stream_options.include_usage
            return await _stream(request, follower, about, with_usage)
        result = await finished(request, follower)
    message = {"role": "assistant", "content": result.text, "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    return json_answer(
        {**about, "object": "chat.completion", "choices": [choice], "usage": shown_usage(result.usage)}
    )


async def _stream(
    request: web.Request, follower: RunFollower, about: Json, with_usage: bool
) -> web.StreamResponse:
    stream = EventStream(request)
    # With usage asked for, every chunk before the last says that it has none.
    head = {**about, "object": "chat.completion.chunk"} | ({"usage": None} if with_usage else {})

    async def send(delta: Json, finish_reason: str | None = None) -> None:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        await stream.send({**head, "choices": [choice]})

    await send({"role": "assistant", "content": ""})
    try:
        async for text in texts(request, follower):
            await (send({"content": text}) if text else stream.keep_alive())
        result = settled(follower)
    except Refusal as refusal:
        # The status has left already; the clients raise on an error inside the stream.
        await stream.send(refusal_body(refusal, "openai"))
    else:
        await send({}, "stop")
        if with_usage:
            await stream.send({**head, "choices": [], "usage": shown_usage(result.usage)})
    await stream.send("[DONE]")
    return await stream.close()


def shown_usage(usage: Usage | None) -> Json | None:
    """None when the provider did not say: unknown is not zero."""
    if usage is None:
        return None
    asked = usage.input + usage.cache_read + usage.cache_write
    return {
        "prompt_tokens": asked,
        "completion_tokens": usage.output,
        "total_tokens": asked + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
    }
