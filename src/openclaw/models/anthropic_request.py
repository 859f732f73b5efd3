"""The Anthropic messages request: our messages in, the bytes of the HTTP body out. No I/O.

The fields that never change come first and the messages last, and nothing but the
cache marks of earlier messages changes from one call to the next (LOOP-2). A
sequence that the provider would refuse is encoded as it is; making it valid is
`domain.context`'s work.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from openclaw.domain.doortext import clean_json
from openclaw.domain.transcript import (
    AssistantMessage,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserBlock,
    UserMessage,
)
from openclaw.engine.ports import ModelRequest, ModelTarget, ToolSpec
from openclaw.models.anthropic_thinking import thinking_fields
from openclaw.models.openai_request import IMAGE_NOT_SHOWN

# How a block of hidden thoughts is kept in a transcript: no signature of the provider holds a colon.
REDACTED_PREFIX = "redacted_thinking:"
HOUR_MS = 3_600_000  # the longer of the two times that the provider offers
# Two of the provider's four marks: the older one stands where the previous call wrote its cache.
_MARKED_USER_TURNS = 2
_NO_OUTPUT = "(no output)"
_NOT_IN_A_TOOL_NAME = re.compile(r"[^A-Za-z0-9_-]")
_MAX_TOOL_NAME = 64
_encode = msgspec.json.Encoder().encode

Wire = dict[str, Any]


def request_url(target: ModelTarget) -> str:
    """Where to post. Accepts a base URL with or without the version and the final path."""
    base = target.base_url.strip().rstrip("/")
    if base.endswith("/messages"):
        return base
    return base + ("/messages" if base.endswith("/v1") else "/v1/messages")


def encode_request(request: ModelRequest) -> bytes:
    """The JSON body. Lone surrogates that slipped through are replaced rather than fatal."""
    body = _body_of(request)
    try:
        return _encode(body)
    except UnicodeEncodeError:
        return _encode(clean_json(body))


def entry_position(request: ModelRequest, number: int) -> int | None:
    """Which message of the request a provider means by the number of a message on the wire, if any.

    Of several that became one on the wire it is the first.
    """
    positions = [position for position, _ in _messages(request)]
    return positions[number] if number < len(positions) else None


def _body_of(request: ModelRequest) -> Wire:
    target = request.target
    max_tokens = request.max_tokens or target.max_tokens
    messages = [message for _, message in _messages(request)]
    thinking = thinking_fields(request.thinking, target.model, max_tokens, reasoning=target.reasoning)
    body: Wire = {"model": target.model, "stream": True, "max_tokens": max_tokens}
    if not (thinking.budgeted and _continues_without_thinking(messages)):
        body |= thinking.fields
    if request.tools:
        body["tools"] = [_tool(spec) for spec in request.tools]
    if request.system.strip():
        body["system"] = [{"type": "text", "text": request.system}]
    body["messages"] = messages
    if request.cache:
        _mark_cached(body, target.cache_ttl_ms)
    return body


def _continues_without_thinking(messages: list[Wire]) -> bool:
    """Is this the middle of a tool loop whose thoughts are gone? The old form is then refused."""
    if len(messages) < 2 or messages[-1]["content"][0]["type"] != "tool_result":
        return False
    first: str = messages[-2]["content"][0]["type"]
    return first not in ("thinking", "redacted_thinking")


def _mark_cached(body: Wire, ttl_ms: int | None) -> None:
    """Let the provider keep what the next call repeats: tools, system, and the conversation so far."""
    users = [message for message in body["messages"] if message["role"] == "user"]
    marked = [body.get("tools", [])[-1:], body.get("system", [])[-1:]]
    marked += [message["content"][-1:] for message in users[-_MARKED_USER_TURNS:]]
    for block in (block for blocks in marked for block in blocks):
        block["cache_control"] = {"type": "ephemeral"} | ({"ttl": "1h"} if (ttl_ms or 0) >= HOUR_MS else {})


def _tool(spec: ToolSpec) -> Wire:
    return {"name": spec.name, "description": spec.description, "input_schema": spec.parameters}


# -- messages ------------------------------------------------------------------------------------


def _messages(request: ModelRequest) -> list[tuple[int, Wire]]:
    """The turns of the wire, each with the position of the first message in it.

    Results and what a person says after them are one turn; a message without content is none.
    """
    turns: list[tuple[int, Wire]] = []
    for position, message in enumerate(request.messages):
        role = "assistant" if isinstance(message, AssistantMessage) else "user"
        content = _content(message, request.target)
        if not content:
            continue
        if turns and turns[-1][1]["role"] == role:
            turns[-1][1]["content"] += content
        else:
            turns.append((position, {"role": role, "content": content}))
    return turns


def _content(message: Message, target: ModelTarget) -> list[Wire]:
    if isinstance(message, AssistantMessage):
        return _assistant(message, target)
    if isinstance(message, ToolResultMessage):
        return [_tool_result(message, target)]
    return _said(message, target)


def _said(message: UserMessage, target: ModelTarget) -> list[Wire]:
    if isinstance(message.content, str):
        return _text(message.content)
    return [part for block in message.content for part in _part(block, target)]


def _tool_result(message: ToolResultMessage, target: ModelTarget) -> Wire:
    content = [part for block in message.content for part in _part(block, target)]
    result: Wire = {
        "type": "tool_result",
        "tool_use_id": message.tool_call_id,
        "content": content or _text(_NO_OUTPUT),
    }
    if message.is_error:
        result["is_error"] = True
    return result


def _assistant(message: AssistantMessage, target: ModelTarget) -> list[Wire]:
    # A signature is worth something only to the model that made it.
    own = (message.provider, message.model) == (target.provider, target.model)
    content: list[Wire] = []
    for block in message.content:
        if isinstance(block, TextBlock):
            content += _text(block.text)
        elif isinstance(block, ToolCallBlock):
            content.append(_tool_use(block))
        elif own and block.thinking_signature:
            content.append(_thinking(block, block.thinking_signature))
    return content


def _thinking(block: ThinkingBlock, signature: str) -> Wire:
    """Thoughts go back exactly as they came, or the provider refuses them."""
    if signature.startswith(REDACTED_PREFIX):
        return {"type": "redacted_thinking", "data": signature.removeprefix(REDACTED_PREFIX)}
    return {"type": "thinking", "thinking": block.thinking, "signature": signature}


def _tool_use(block: ToolCallBlock) -> Wire:
    # A name that a model invented may hold characters which the provider refuses in every later turn.
    name = _NOT_IN_A_TOOL_NAME.sub("_", block.name[:_MAX_TOOL_NAME]) or "unnamed"
    return {"type": "tool_use", "id": block.id, "name": name, "input": block.arguments}


def _part(block: UserBlock, target: ModelTarget) -> list[Wire]:
    if isinstance(block, TextBlock):
        return _text(block.text)
    if not target.images:
        return _text(IMAGE_NOT_SHOWN)
    return [_image(block)]


def _image(block: ImageBlock) -> Wire:
    source = {"type": "base64", "media_type": block.mime_type, "data": block.data}
    return {"type": "image", "source": source}


def _text(text: str) -> list[Wire]:
    """A text block, or none: the provider refuses blank ones."""
    return [{"type": "text", "text": text}] if text.strip() else []
