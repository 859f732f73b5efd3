"""Errors as the wire shows them: one closed object, a handful of codes.

This is the only place where an exception becomes something a client reads. It
never shows what an unknown exception says, and never a store's own words.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from openclaw.errors import (
    ConfigInvalid,
    Forbidden,
    InvalidRequest,
    OpenClawError,
    StoreError,
    Unavailable,
    VersionConflict,
)

INVALID_REQUEST: Final = "INVALID_REQUEST"
FORBIDDEN: Final = "FORBIDDEN"
UNAVAILABLE: Final = "UNAVAILABLE"
NOT_PAIRED: Final = "NOT_PAIRED"

# A message may quote what the client sent; the answer stays small whatever that was.
MAX_MESSAGE_CHARS = 1000
_MAX_DETAIL_DEPTH = 6


class ErrorShape(Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """The `error` object of a response (RPC-2)."""

    code: str
    message: str
    details: dict[str, Any] | None = None
    retryable: bool | None = None
    retry_after_ms: int | None = None


def wire_error(error: BaseException) -> ErrorShape:
    """What a client may know about this exception (RPC-2).

    Fields of refusals become `details` in camelCase, as far as they are plain
    JSON values; `retry_after_ms` has a place of its own.
    """
    if isinstance(error, StoreError):
        # The class's own sentence: a store's message may name paths or statements.
        return ErrorShape(UNAVAILABLE, error.default_message(), retryable=error.retryable)
    if isinstance(error, Unavailable):
        return _shape(UNAVAILABLE, error, retryable=error.retryable)
    if isinstance(error, VersionConflict):
        return _shape(INVALID_REQUEST, error, retryable=True, reason="session-changed")
    if isinstance(error, (InvalidRequest, ConfigInvalid)):
        return _shape(INVALID_REQUEST, error)
    if isinstance(error, Forbidden):
        return _shape(FORBIDDEN, error)
    return ErrorShape(UNAVAILABLE, "internal error", retryable=False)


def _shape(
    code: str, error: OpenClawError, *, retryable: bool | None = None, reason: str | None = None
) -> ErrorShape:
    fields = dict(error.fields)
    retry_after_ms = fields.pop("retry_after_ms", None)
    details: dict[str, Any] = {} if reason is None else {"reason": reason}
    details.update((_camel(name), value) for name, value in fields.items() if _is_plain(value, 0))
    return ErrorShape(
        code,
        clip(error.message, MAX_MESSAGE_CHARS),
        details=details or None,
        retryable=retryable,
        retry_after_ms=retry_after_ms if isinstance(retry_after_ms, int) else None,
    )


def clip(text: str, limit: int) -> str:
    """The text, or its beginning and an ellipsis when it is longer than `limit` characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


def _is_plain(value: object, depth: int) -> bool:
    if depth > _MAX_DETAIL_DEPTH:
        return False
    if value is None or isinstance(value, (str, int, float)):
        return True
    if isinstance(value, (list, tuple)):
        return all(_is_plain(item, depth + 1) for item in value)
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item, depth + 1) for key, item in value.items())
    return False
