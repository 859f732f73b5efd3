"""Anthropic messages over HTTP: `anthropic_request` makes the body, `anthropic_reply` reads the answer."""

from __future__ import annotations

from openclaw.engine.ports import ModelTarget
from openclaw.models.anthropic_reply import MessagesReply
from openclaw.models.anthropic_request import encode_request, entry_position, request_url
from openclaw.models.streamed import StreamedModel, Wire
from openclaw.models.transport import base_headers

API = "anthropic-messages"
_API_VERSION = "2023-06-01"
# Tokens that a person's own login gives, unlike keys, travel as a bearer and need this word with them.
_LOGIN_TOKEN_PREFIX = "sk-ant-oat"
_LOGIN_FEATURE = "oauth-2025-04-20"


def _headers(target: ModelTarget) -> dict[str, str]:
    headers = base_headers() | {"anthropic-version": _API_VERSION}
    key = target.api_key.strip()
    if key.startswith(_LOGIN_TOKEN_PREFIX):
        headers["Authorization"] = f"Bearer {key}"
        headers["anthropic-beta"] = _LOGIN_FEATURE
    elif key:
        headers["x-api-key"] = key
    return headers


class AnthropicModel(StreamedModel):
    """Any server that speaks the messages wire."""

    wire = Wire(MessagesReply, request_url, _headers, encode_request, entry_position)
