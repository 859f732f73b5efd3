"""OpenAI chat completions over HTTP: `openai_request` makes the body, `openai_reply` reads the answer."""

from __future__ import annotations

from functools import partial

from openclaw.engine.ports import ModelRequest, ModelTarget
from openclaw.models.openai_reply import ChatReply
from openclaw.models.openai_request import encode_request, entry_position, request_url
from openclaw.models.openai_variants import extra_headers
from openclaw.models.streamed import StreamedModel, Wire
from openclaw.models.transport import Call, base_headers

API = "openai-completions"


def _headers(target: ModelTarget) -> dict[str, str]:
    headers = base_headers() | extra_headers(target)
    key = target.api_key.strip()
    if key:
        headers["Authorization"] = f"Bearer {key}"
    return headers


def _call(request: ModelRequest) -> Call:
    target = request.target
    return Call(
        target,
        request_url(target),
        _headers(target),
        partial(encode_request, request),
        partial(entry_position, request),
    )


class OpenAIChatModel(StreamedModel):
    """Any server that speaks the chat-completions wire."""

    wire = Wire(ChatReply, _call)
