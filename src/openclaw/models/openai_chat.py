"""OpenAI chat completions over HTTP: `openai_request` makes the body, `openai_reply` reads the answer."""

from __future__ import annotations

from openclaw.engine.ports import ModelTarget
from openclaw.models.openai_reply import ChatReply
from openclaw.models.openai_request import encode_request, entry_position, request_url
from openclaw.models.openai_variants import extra_headers
from openclaw.models.streamed import StreamedModel, Wire
from openclaw.models.transport import base_headers

API = "openai-completions"


def _headers(target: ModelTarget) -> dict[str, str]:
    headers = base_headers() | extra_headers(target)
    key = target.api_key.strip()
    if key:
        headers["Authorization"] = f"Bearer {key}"
    return headers


class OpenAIChatModel(StreamedModel):
    """Any server that speaks the chat-completions wire."""

    wire = Wire(ChatReply, request_url, _headers, encode_request, entry_position)
