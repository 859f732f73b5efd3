"""Why a provider call failed, as a value: kind, plain message, whether trying again can help.

Every message names provider and model, says what to do where that is known, and
quotes at most 500 characters of the provider's words with secrets masked. This
room decides nothing about retries, fall-back or compaction; the engine does.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
import msgspec

from openclaw.domain.doortext import clean_text
from openclaw.domain.redaction import MASK, redact
from openclaw.engine.ports import ModelFailure, ModelTarget
from openclaw.models.cleaning import decode_leniently

# kind -> can the same request succeed a little later?
RETRYABLE = {
    "auth": False,
    "billing": False,
    "rate_limit": True,
    "overloaded": True,
    "server_error": True,
    "timeout": True,
    "network": True,
    "protocol": True,
    # The conversation does not fit: compaction may help (COMP-4).
    "overflow": False,
    # One message of the conversation is refused: leaving it out may help (PITFALLS B2).
    "invalid_entry": False,
    # A safety filter, or the model itself, declined to answer.
    "refused": False,
    "bad_request": False,
    "internal": False,
}

_EXCERPT_CHARS = 500
_NAME_CHARS = 100
_CLASSIFIED_CHARS = 4096
_MAX_RETRY_AFTER_S = 24 * 3600.0
# Shorter values ("none", "x") are placeholders that local servers ask for; masking them only garbles text.
_MIN_SECRET_CHARS = 4

# How providers say that the request does not fit the model's window (COMP-4). Lower case.
_OVERFLOW_WORDS = (
    "context_length_exceeded",
    "context length exceeded",
    "exceed_context_size",
    "maximum context length",
    "max context length",
    "maximum model length",
    "max_model_len",
    "model_context_window_exceeded",
    "context window",
    "context size",
    "context limit",
    "greater than the context length",
    "exceeds the context length",
    "prompt is too long",
    "prompt too long",
    "prompt contains too many tokens",
    "input is too long",
    "input too long",
    "too many input tokens",
    "too many tokens",
    "too large for model",
    "reduce the length of the messages",
    "reduce the length of the prompt",
    "input token count",
    "input tokens exceed",
    "exceeded model token limit",
    "exceeds token limit",
    "exceeds the maximum number of tokens",
    "token limit exceeded",
    "tokens exceeds the",
    "maximum prompt length",
    "maximum allowed input length",
    "request too large",
    "request_too_large",
    "request entity too large",
    "payload too large",
)
_OVERFLOW_STATUSES = frozenset({0, 400, 413, 422, 500})

# How providers say that somebody has to pay first, whatever the status.
_BILLING_WORDS = (
    "insufficient_quota",
    "exceeded your current quota",
    "insufficient balance",
    "insufficient credit",
    "insufficient funds",
    "credit balance is too low",
    "billing_error",
    "billing_not_active",
    "billing hard limit",
    "payment required",
    "spend_limit",
    "spend limit",
    "requires more credits",
    "out of credits",
)
_BILLING_STATUSES = frozenset({0, 400, 403, 429})

# How providers name one message that they do not accept.
_INVALID_ENTRY_WORDS = (
    "invalid `signature` in `thinking` block",
    "thinking blocks in the latest assistant message cannot be modified",
    "expected `thinking`",
    "text content blocks must be non-empty",
    "must have non-empty content",
    "content cannot be empty",
    "without `tool_result` blocks",
    "unexpected `tool_use_id`",
    "tool_call_ids did not have response messages",
    "must be a response to a preceeding message",
    "must be a response to a preceding message",
    "could not process image",
    "image exceeds",
    "invalid base64",
    "invalid image",
    "unsupported image",
    "image dimensions exceed",
)
_NAMED_ENTRY = re.compile(r"messages[.\[]([0-9]{1,6})")
_FILTER_WORDS = ("content_filter", "content_policy", "content management policy", "content filtering policy")
_REQUEST_STATUSES = frozenset({0, 400, 422})

# Errors inside a stream often have a word instead of an HTTP status. First match wins.
_WORDS_TO_STATUS = (
    ("rate_limit", 429),
    ("rate limit", 429),
    ("insufficient_quota", 429),
    ("overloaded", 503),
    ("timeout_error", 504),
    ("billing_error", 402),
    ("invalid_api_key", 401),
    ("authentication", 401),
    ("permission_error", 403),
    ("not_found_error", 404),
    ("request_too_large", 413),
    ("invalid_request", 400),
)


def label_of(target: ModelTarget) -> str:
    """`provider/model`, safe to print."""
    return clean_text(f"{target.provider[:_NAME_CHARS]}/{target.model[:_NAME_CHARS]}")


def excerpt(text: str, target: ModelTarget) -> str:
    """At most 500 characters of a provider's words on one line, with the API key and key-like text masked."""
    # Masking comes before cutting: the front half of a cut key would not be recognised.
    text = clean_text(text[: 2 * _CLASSIFIED_CHARS])
    key = target.api_key.strip()
    if len(key) >= _MIN_SECRET_CHARS:
        text = text.replace(key, MASK)
    text = " ".join(redact(text).text.split())
    return text if len(text) <= _EXCERPT_CHARS else text[: _EXCERPT_CHARS - 1] + "…"


def make_failure(
    target: ModelTarget,
    kind: str,
    what: str,
    *,
    retryable: bool | None = None,
    status: int = 0,
    retry_after_s: float | None = None,
    entry: int | None = None,
) -> ModelFailure:
    """A failure whose message reads `provider/model: what`."""
    return ModelFailure(
        kind=kind,
        message=f"{label_of(target)}: {what}",
        retryable=RETRYABLE[kind] if retryable is None else retryable,
        status=status,
        retry_after_s=retry_after_s,
        entry=entry,
    )


def http_failure(target: ModelTarget, status: int, body: bytes, headers: Mapping[str, str]) -> ModelFailure:
    """A failure from an HTTP answer that is not a success."""
    return _classify(target, status, _words_of_body(body), f"HTTP {status}", _retry_after(headers))


def reported_failure(target: ModelTarget, error: Any) -> ModelFailure:
    """A failure that the provider reported inside a stream or a 200 answer; `error` is its decoded JSON."""
    words = _words_of_error(error)
    return _classify(target, _status_of_error(error, words), words, "reported in its reply", None)


def exception_failure(target: ModelTarget, error: Exception, *, answering: bool) -> ModelFailure:
    """A failure from an exception of the transport. `answering`: the reply had begun."""
    if isinstance(error, TimeoutError):
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            return make_failure(target, "timeout", "could not connect in time.")
        return make_failure(target, "timeout", "sent nothing for too long; the call was given up.")
    if isinstance(error, aiohttp.ClientSSLError):
        what = f"no secure connection: {excerpt(str(error), target)}"
        return make_failure(target, "network", what, retryable=False)
    if isinstance(error, aiohttp.ClientConnectorError):
        return make_failure(target, "network", f"could not connect: {excerpt(str(error), target)}")
    if isinstance(error, aiohttp.InvalidURL | aiohttp.NonHttpUrlClientError):
        return make_failure(
            target, "bad_request", f"the base URL is not usable. {setting_hint(target, 'baseUrl')}"
        )
    if isinstance(error, aiohttp.ClientError | OSError):
        if answering:
            return make_failure(target, "protocol", "the connection broke in the middle of the reply.")
        return make_failure(target, "network", f"the connection broke: {excerpt(str(error), target)}")
    # A fault of ours must not look like one of the provider, or fall-back would hide it.
    what = f"the call could not be made ({type(error).__name__}: {excerpt(str(error), target)})"
    return make_failure(target, "internal", what)


def _classify(
    target: ModelTarget, status: int, words: str, where: str, retry_after_s: float | None
) -> ModelFailure:
    lowered = words[:_CLASSIFIED_CHARS].lower()
    kind = _kind_of(status, lowered)
    hint = ""
    if kind == "auth":
        hint = setting_hint(target, "apiKey")
    elif kind == "billing":
        hint = "Waiting does not help; look at the account."
    elif status == 404 or 300 <= status < 400:
        hint = "Check the model's name. " + setting_hint(target, "baseUrl")
    said = excerpt(words, target)
    parts = [f"{_SENTENCES[kind]} ({where}).", f"It said: {said}" if said else "", hint]
    named = _NAMED_ENTRY.search(lowered) if kind == "invalid_entry" else None
    return make_failure(
        target,
        kind,
        " ".join(part for part in parts if part),
        status=status,
        retry_after_s=retry_after_s,
        entry=int(named.group(1)) if named else None,
    )


_SENTENCES = {
    "auth": "refused the API key",
    "billing": "the account has no credit left",
    "rate_limit": "too many requests",
    "overloaded": "the provider is overloaded",
    "server_error": "the provider failed",
    "timeout": "the provider gave up waiting",
    "overflow": "the conversation is too long for this model",
    "invalid_entry": "did not accept one message of the conversation",
    "refused": "a content filter of the provider refused the request",
    "bad_request": "did not accept the request",
}


def _kind_of(status: int, lowered: str) -> str:
    if status == 402 or (status in _BILLING_STATUSES and _has(lowered, _BILLING_WORDS)):
        return "billing"
    if status in (401, 403):
        return "auth"
    if status == 429:
        return "rate_limit"
    if status in _OVERFLOW_STATUSES and _has(lowered, _OVERFLOW_WORDS):
        return "overflow"
    if status == 413:
        return "overflow"
    if status in _REQUEST_STATUSES:
        if _has(lowered, _FILTER_WORDS):
            return "refused"
        if _has(lowered, _INVALID_ENTRY_WORDS) or _NAMED_ENTRY.search(lowered):
            return "invalid_entry"
    if status in (408, 504):
        return "timeout"
    if status in (503, 529):
        return "overloaded"
    if status >= 500 or status == 0:
        return "server_error"
    return "bad_request"


def _has(lowered: str, words: tuple[str, ...]) -> bool:
    return any(word in lowered for word in words)


def setting_hint(target: ModelTarget, field: str) -> str:
    """Which setting to look at."""
    return f"Check models.providers.{clean_text(target.provider[:_NAME_CHARS])}.{field}."


def _words_of_body(body: bytes) -> str:
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        try:
            decoded = decode_leniently(body)
        except ValueError:
            return body.decode("utf-8", "replace")
    return _words_of_error(decoded)


def _words_of_error(error: Any) -> str:
    """The provider's words: message first, then what names the error; the whole value if it has neither."""
    if isinstance(error, str):
        return error
    if not isinstance(error, dict):
        return "" if error is None else str(error)[:_CLASSIFIED_CHARS]
    inner = error.get("error")
    if isinstance(inner, dict | str) and inner:
        return _words_of_error(inner)
    named = [error.get(name) for name in ("message", "detail", "code", "type")]
    words = [str(word)[:_CLASSIFIED_CHARS] for word in named if isinstance(word, str | int) and word != ""]
    return " ".join(words) if words else str(error)[:_CLASSIFIED_CHARS]


def _status_of_error(error: Any, words: str) -> int:
    if isinstance(error, dict):
        for name in ("code", "status"):
            value = error.get(name)
            text = str(value) if isinstance(value, int | str) else ""
            if len(text) == 3 and text.isascii() and text.isdigit() and 400 <= int(text) < 600:
                return int(text)
    lowered = words[:_CLASSIFIED_CHARS].lower()
    for word, status in _WORDS_TO_STATUS:
        if word in lowered:
            return status
    return 0


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """How long the provider asks to wait: `retry-after-ms`, or `Retry-After` in seconds or as a date."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return _bounded_wait(milliseconds / 1000)
    value = headers.get("Retry-After")
    if value is None:
        return None
    seconds = _number(value)
    if seconds is None:
        try:
            seconds = parsedate_to_datetime(value[:64]).timestamp() - time.time()
        except (ValueError, OverflowError):
            return None
    return _bounded_wait(seconds)


def _number(value: str | None) -> float | None:
    if value is None:
        return None
    try:
        number = float(value[:32])
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _bounded_wait(seconds: float) -> float:
    return max(0.0, min(seconds, _MAX_RETRY_AFTER_S))
