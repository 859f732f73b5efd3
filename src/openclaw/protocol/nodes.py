"""What a node may ask for: its own small table of methods, with their shapes.

A node is a paired device that brings words into a session and hears the answer. It
holds no scope, and nothing of the operators' table is open to it (RPC-3).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from openclaw.protocol.connect import ClosedObject
from openclaw.protocol.results import Answer

MAX_EVENT_CHARS: Final = 128
MAX_WORDS: Final = 20_000
MAX_TIMEOUT_S: Final = 24 * 3600


class NodeEventParams(ClosedObject, frozen=True, kw_only=True):
    """Something happened on a node. Its payload is an object, or the same as text in `payloadJSON`."""

    event: Annotated[str, Meta(min_length=1, max_length=MAX_EVENT_CHARS)]
    payload: dict[str, Any] | None = None
    payload_json: str | None = msgspec.field(default=None, name="payloadJSON")


class _Payload(Struct, frozen=True, kw_only=True, rename="camel"):
    """Nodes of other releases send more than is read here, so unknown properties are passed over."""

    session_key: str | None = None


class AgentRequest(_Payload, frozen=True, kw_only=True):
    """`agent.request`: a message for an agent."""

    message: Annotated[str, Meta(max_length=MAX_WORDS)]
    thinking: str | None = None
    deliver: bool = False
    timeout_seconds: Annotated[float, Meta(gt=0, le=MAX_TIMEOUT_S)] | None = None
    idempotency_key: Annotated[str, Meta(min_length=1, max_length=128)] | None = None


class VoiceTranscript(_Payload, frozen=True, kw_only=True):
    """`voice.transcript`: what a person said to the node."""

    text: Annotated[str, Meta(max_length=MAX_WORDS)]


class ChatFollowed(_Payload, frozen=True, kw_only=True):
    """`chat.subscribe` and `chat.unsubscribe`."""


class NodeEventTaken(Answer, frozen=True, kw_only=True):
    """`handled` is false for an event that this gateway has no use for."""

    ok: bool
    event: str
    handled: bool
    run_id: str | None = None
    session_key: str | None = None


class NodeMethodSpec(Struct, frozen=True):
    params: type[ClosedObject]
    result: type[Answer]


NODE_METHODS: Final[Mapping[str, NodeMethodSpec]] = {
    "node.event": NodeMethodSpec(NodeEventParams, NodeEventTaken)
}
