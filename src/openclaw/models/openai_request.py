"""The OpenAI chat-completions request: our messages in, the bytes of the HTTP body out. No I/O.

The fields that never change come first and the messages last, so that the body
of one call is a byte prefix of the next (LOOP-2). A sequence that a provider
would refuse is encoded as it is; making it valid is `domain.context`'s work.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Raw

from openclaw.domain.doortext import clean_json
from openclaw.domain.transcript import (
    AssistantMessage,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserBlock,
    UserMessage,
)
from openclaw.engine.ports import ModelRequest, ModelTarget, ToolSpec
from openclaw.models.openai_variants import max_tokens_field, reasoning_fields

# Some thinking models refuse a replayed tool call without the thoughts that led to it; this field has them.
REPLAYED_REASONING = "reasoning_content"
IMAGE_NOT_SHOWN = "(an image is here, which this model cannot see)"
_NO_OUTPUT = "(no output)"
_IMAGE_BELOW = "(the image follows in the next message)"
_NOT_IN_A_FUNCTION_NAME = re.compile(r"[^A-Za-z0-9_-]")
_MAX_FUNCTION_NAME = 64
_encode = msgspec.json.Encoder().encode
_MOST_TOOL_SETS = 64
# By identity; the tuple that is kept beside the bytes holds on to it.
_tools_kept: dict[int, tuple[tuple[ToolSpec, ...], Raw]] = {}


def request_url(target: ModelTarget) -> str:
    """Where to post. Accepts a base URL with or without the final path."""
    base = target.base_url.strip().rstrip("/")
    return base if base.endswith("/chat/completions") else base + "/chat/completions"


def encode_request(request: ModelRequest) -> bytes:
    """The JSON body. Lone surrogates that slipped through are replaced rather than fatal."""
    try:
        return _encode(_body_of(request, _encoded_tools(request.tools)))
    except UnicodeEncodeError:
        return _encode(clean_json(_body_of(request, [_tool(spec) for spec in request.tools])))


def _body_of(request: ModelRequest, tools: Raw | list[dict[str, Any]]) -> dict[str, Any]:
    target = request.target
    body: dict[str, Any] = {
        "model": target.model,
        "stream": True,
        "stream_options": {"include_usage": True},
        max_tokens_field(target): request.max_tokens or target.max_tokens,
    }
    body |= reasoning_fields(target, request.thinking)
    if request.tools:
        body["tools"] = tools
    body["messages"] = [message for _, message in _messages(request)]
    return body


def _encoded_tools(tools: tuple[ToolSpec, ...]) -> Raw:
    """The tools as JSON, encoded once for all calls that offer the same: they outweigh most messages."""
    kept = _tools_kept.get(id(tools))
    if kept is not None:
        return kept[1]
    encoded = Raw(_encode([_tool(spec) for spec in tools]))
    if len(_tools_kept) >= _MOST_TOOL_SETS:
        _tools_kept.clear()
    _tools_kept[id(tools)] = (tools, encoded)
    return encoded


def _tool(spec: ToolSpec) -> dict[str, Any]:
    function = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
    return {"type": "function", "function": function}


def entry_position(request: ModelRequest, number: int) -> int | None:
    """Which message of the request a provider means by the number of a message on the wire, if any."""
    positions = [position for position, _ in _messages(request)]
    return positions[number] if number < len(positions) else None


def _messages(request: ModelRequest) -> list[tuple[int | None, dict[str, Any]]]:
    """The messages of the wire, each with the position of the one that it was made from."""
    wire: list[tuple[int | None, dict[str, Any]]] = []
    if request.system:
        wire.append((None, {"role": "system", "content": request.system}))
    sees = request.target.images
    # A tool message carries text only; its images follow as a user message once the run of results is over.
    images: list[dict[str, Any]] = []
    shown_by = 0
    for position, message in enumerate(request.messages):
        if isinstance(message, ToolResultMessage):
            wire.append((position, _tool_result(message, sees)))
            if sees and (found := _tool_images(message)):
                images += found
                shown_by = position
            continue
        if images:
            wire.append((shown_by, {"role": "user", "content": images}))
            images = []
        wire.append((position, _plain_message(message, request.target)))
    if images:
        wire.append((shown_by, {"role": "user", "content": images}))
    return wire


def _plain_message(message: UserMessage | AssistantMessage, target: ModelTarget) -> dict[str, Any]:
    if isinstance(message, AssistantMessage):
        return _assistant(message, target)
    content = message.content
    if isinstance(content, str):
        return {"role": "user", "content": content}
    if target.images and any(isinstance(block, ImageBlock) for block in content):
        return {"role": "user", "content": [_part(block) for block in content if not _is_blank(block)]}
    return {"role": "user", "content": _joined_text(content)}


def _assistant(message: AssistantMessage, target: ModelTarget) -> dict[str, Any]:
    if len(message.content) == 1 and isinstance(said := message.content[0], TextBlock):
        return {"role": "assistant", "content": said.text}  # as most are, and a context has hundreds
    texts = [block.text for block in message.content if isinstance(block, TextBlock)]
    calls = [_tool_call(block) for block in message.content if isinstance(block, ToolCallBlock)]
    text = "\n".join(texts)
    wire: dict[str, Any] = {"role": "assistant", "content": text or (None if calls else "")}
    if calls:
        thoughts = _replayed_thoughts(message, target)
        if thoughts:
            wire[REPLAYED_REASONING] = thoughts
        wire["tool_calls"] = calls
    return wire


def _replayed_thoughts(message: AssistantMessage, target: ModelTarget) -> str:
    if (message.provider, message.model) != (target.provider, target.model):
        return ""
    return "".join(
        block.thinking
        for block in message.content
        if isinstance(block, ThinkingBlock) and block.thinking_signature == REPLAYED_REASONING
    )


def _tool_call(block: ToolCallBlock) -> dict[str, Any]:
    # A name that a model invented may hold characters which the provider refuses in every later turn.
    name = _NOT_IN_A_FUNCTION_NAME.sub("_", block.name[:_MAX_FUNCTION_NAME]) or "unnamed"
    return {
        "id": block.id,
        "type": "function",
        "function": {"name": name, "arguments": _encode_arguments(block.arguments)},
    }


def _encode_arguments(arguments: dict[str, Any]) -> str:
    try:
        return _encode(arguments).decode()
    except UnicodeEncodeError:
        return _encode(clean_json(arguments)).decode()


def _tool_result(message: ToolResultMessage, sees: bool) -> dict[str, Any]:
    text = _joined_text(message.content, mention_images=not sees)
    if not text:
        has_image = any(isinstance(block, ImageBlock) for block in message.content)
        text = _IMAGE_BELOW if has_image else _NO_OUTPUT
    return {"role": "tool", "tool_call_id": message.tool_call_id, "content": text}


def _tool_images(message: ToolResultMessage) -> list[dict[str, Any]]:
    images = [_part(block) for block in message.content if isinstance(block, ImageBlock)]
    if not images:
        return []
    return [{"type": "text", "text": f"Image from the tool {message.tool_name}:"}, *images]


def _part(block: UserBlock) -> dict[str, Any]:
    if isinstance(block, TextBlock):
        return {"type": "text", "text": block.text}
    return {"type": "image_url", "image_url": {"url": f"data:{block.mime_type};base64,{block.data}"}}


def _is_blank(block: UserBlock) -> bool:
    return isinstance(block, TextBlock) and not block.text.strip()


def _joined_text(blocks: tuple[UserBlock, ...], *, mention_images: bool = True) -> str:
    texts = (
        block.text if isinstance(block, TextBlock) else IMAGE_NOT_SHOWN
        for block in blocks
        if mention_images or isinstance(block, TextBlock)
    )
    return "\n".join(texts)
