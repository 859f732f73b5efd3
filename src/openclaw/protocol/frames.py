"""Frames: the one border between text on the socket and values inside.

Requests are decoded in two stages, so that a frame can be answered even when its
parameters are wrong. An event's payload is encoded once for all connections;
only its sequence number differs. Sizes are the caller's rule, passed in.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Raw, Struct

from openclaw.protocol.errors import ErrorShape
from openclaw.protocol.intake import (
    MAX_DEPTH,
    is_too_deep,
    replace_escaped_surrogates,
    replace_surrogates_in_value,
    to_utf8,
)
from openclaw.protocol.violations import describe_violation

NonEmpty = Annotated[str, Meta(min_length=1)]


class Request(Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """A request frame. `params` stays undecoded until the method is known."""

    type: Literal["req"]
    id: NonEmpty
    method: NonEmpty
    params: Raw = Raw()
    traceparent: Annotated[str, Meta(max_length=128)] | None = None
    expected_profile_id: Annotated[str, Meta(min_length=1, max_length=128)] | None = None

    def has_params(self) -> bool:
        """Whether the client sent an object with at least one member."""
        return bool(self.params) and msgspec.json.decode(self.params) not in (None, {})


BadFrameKind = Literal["too_large", "not_json", "not_request"]


class BadFrame(Struct, frozen=True):
    """Why a frame is not a request. `id` is there when the frame can still be answered."""

    kind: BadFrameKind
    message: str
    id: str | None = None


class StateVersion(Struct, frozen=True):
    """Counts of changes, so that a client knows whether its picture is old."""

    presence: int
    health: int


class _Addressed(Struct):
    id: str = ""


_decode_frame = msgspec.json.Decoder(Request).decode
_decode_address = msgspec.json.Decoder(_Addressed).decode
_check_syntax = msgspec.json.Decoder(Raw).decode
_encode = msgspec.json.Encoder().encode


def decode_request(data: bytes | str, max_bytes: int) -> Request | BadFrame:
    """Read one frame. Never raises, whatever the bytes are (RPC-1)."""
    text = to_utf8(data)
    if text is None:
        return BadFrame("not_json", "invalid request frame: not UTF-8")
    if len(text) > max_bytes:
        return BadFrame("too_large", f"frame larger than {max_bytes} bytes")
    text = replace_escaped_surrogates(text)
    try:
        if is_too_deep(text):
            return _not_request(text, f"nested deeper than {MAX_DEPTH} levels")
        return _decode_frame(text)
    except msgspec.ValidationError as error:
        return _not_request(text, describe_violation(error))
    except (msgspec.DecodeError, RecursionError):
        return BadFrame("not_json", "invalid request frame: not JSON")


def _not_request(text: bytes, problem: str) -> BadFrame:
    try:
        # The first complaint may stand before a syntax error, so the whole text is checked once more.
        _check_syntax(text)
    except (msgspec.DecodeError, RecursionError):
        return BadFrame("not_json", "invalid request frame: not JSON")
    return BadFrame("not_request", f"invalid request frame: {problem}", _read_id(text))


def _read_id(text: bytes) -> str | None:
    try:
        return _decode_address(text).id or None
    except msgspec.ValidationError:
        return None


def encode_json(value: object) -> bytes:
    """JSON bytes of any wire value; a stray lone surrogate becomes U+FFFD instead of an exception."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(value, enc_hook=_decode_raw)
        return _encode(replace_surrogates_in_value(plain))


def _decode_raw(value: object) -> object:
    if isinstance(value, Raw):
        return msgspec.json.decode(value)
    raise TypeError(f"cannot be sent as JSON: {type(value).__name__}")


def encode_response(request_id: str, payload: object) -> bytes:
    """A successful answer. `payload` may be a value or, as msgspec.Raw, JSON that is already encoded."""
    return b'{"type":"res","id":%b,"ok":true,"payload":%b}' % (encode_json(request_id), encode_json(payload))


def encode_error(request_id: str, error: ErrorShape) -> bytes:
    return b'{"type":"res","id":%b,"ok":false,"error":%b}' % (encode_json(request_id), encode_json(error))


@lru_cache(64)
def _beginning(event: str) -> bytes:
    return b'{"type":"event","event":%b,"payload":' % encode_json(event)


class PreparedEvent:
    """An event that is encoded once and numbered per connection by splicing bytes."""

    __slots__ = ("_head", "_tail", "event")

    def __init__(self, event: str, payload: object, state_version: StateVersion | None = None) -> None:
        self.event = event
        # What stands before and after the sequence number.
        self._head = _beginning(event) + encode_json(payload)
        self._tail = b"}" if state_version is None else b',"stateVersion":%b}' % _encode(state_version)

    def unnumbered(self) -> bytes:
        """The frame without `seq`; only the challenge goes out like this."""
        return self._head + self._tail

    def numbered(self, seq: int) -> bytes:
        return b"".join((self._head, b',"seq":', str(seq).encode(), self._tail))


def encode_event(event: str, payload: object, seq: int, state_version: StateVersion | None = None) -> bytes:
    """One event for one connection. For several, prepare it once and number it for each."""
    return PreparedEvent(event, payload, state_version).numbered(seq)
