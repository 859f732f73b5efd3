"""What is read of an OpenAI chat-completions answer, as typed values. Every field may be missing or null.

Only shapes and their numbers live here; putting an answer together is
`openai_reply`'s work.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from openclaw.domain.transcript import Usage
from openclaw.engine.ports import ModelPrice
from openclaw.models.accounting import make_usage


class WireFunction(Struct, gc=False):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class WireToolCall(Struct, gc=False):
    index: int | None = None
    id: str | None = None
    function: WireFunction | None = None


class WirePart(Struct, gc=False):
    text: str | None = None


class WireDelta(Struct, gc=False):
    content: str | list[WirePart] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[WireToolCall] | None = None


class WireChoice(Struct, gc=False):
    index: int | None = None
    delta: WireDelta | None = None
    message: WireDelta | None = None
    finish_reason: str | None = None


class WireChunk(Struct, gc=False):
    choices: list[WireChoice] | None = None
    usage: Any = None
    error: Any = None
    # Some servers report an error as a bare object: {"object": "error", "message": …, "code": …}.
    object: Any = None
    message: Any = None
    code: Any = None


class WireTokenDetails(Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class WireUsage(Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: WireTokenDetails | None = None
    prompt_cache_hit_tokens: int | None = None


decode_chunk = msgspec.json.Decoder(WireChunk).decode


def read_usage(reported: Any, price: ModelPrice) -> Usage | None:
    """Usage as the transcript holds it: cached tokens apart from input (TRX-7).

    Unknown stays unknown: None, never zeros.
    """
    if not isinstance(reported, dict):
        return None
    try:
        usage = msgspec.convert(reported, WireUsage, strict=False)
    except msgspec.ValidationError:
        return None
    if usage.prompt_tokens is None and usage.completion_tokens is None:
        return None
    details = usage.prompt_tokens_details or WireTokenDetails()
    cached = details.cached_tokens or usage.prompt_cache_hit_tokens or 0
    written = details.cache_write_tokens or 0
    return make_usage(
        price,
        input_tokens=(usage.prompt_tokens or 0) - cached - written,
        output_tokens=usage.completion_tokens or 0,
        cache_read=cached,
        cache_write=written,
        total_tokens=usage.total_tokens,
    )
