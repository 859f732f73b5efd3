"""What is read of an Anthropic messages answer, as typed values. Every field may be missing or null.

Only shapes and their numbers live here; putting an answer together is
`anthropic_reply`'s work.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from openclaw.domain.transcript import Usage
from openclaw.engine.ports import ModelPrice
from openclaw.models.accounting import make_usage


class WireBlock(Struct, gc=False):
    """A content block, whole or as it opens; which fields count depends on `type`."""

    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None


class WireBlockDelta(Struct, gc=False):
    """What a block grows by, and what the end of a message adds."""

    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class WireMessage(Struct, gc=False):
    content: list[WireBlock] | None = None
    stop_reason: str | None = None
    usage: Any = None


class WireEvent(Struct, gc=False):
    """One event of the stream. A whole answer has the same shape, with `type` "message"."""

    type: str | None = None
    index: int | None = None
    message: WireMessage | None = None
    content_block: WireBlock | None = None
    delta: WireBlockDelta | None = None
    usage: Any = None
    error: Any = None
    content: list[WireBlock] | None = None
    stop_reason: str | None = None


class WireUsage(Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None


decode_event = msgspec.json.Decoder(WireEvent).decode


def merge_usage(known: WireUsage | None, reported: Any) -> WireUsage | None:
    """What is known after another report: later figures replace earlier ones, nothing is added up."""
    if not isinstance(reported, dict):
        return known
    try:
        newer = msgspec.convert(reported, WireUsage, strict=False)
    except msgspec.ValidationError:
        return known
    if known is None:
        return newer
    values = ((getattr(known, name), getattr(newer, name)) for name in WireUsage.__struct_fields__)
    return WireUsage(*(before if after is None else after for before, after in values))


def usage_of(reported: WireUsage | None, price: ModelPrice) -> Usage | None:
    """Usage as the transcript holds it (TRX-7). Unknown stays unknown: None, never zeros."""
    if reported is None or (reported.input_tokens is None and reported.output_tokens is None):
        return None
    return make_usage(
        price,
        # On this wire the input is what came neither from nor for the cache.
        input_tokens=reported.input_tokens or 0,
        output_tokens=reported.output_tokens or 0,
        cache_read=reported.cache_read_input_tokens or 0,
        cache_write=reported.cache_creation_input_tokens or 0,
    )
