"""Why a provider call failed, as a value: kind, plain message, whether trying again can help.

Every message names provider and model, says what to do where that is known, and
quotes at most 500 characters of the provider's words with secrets masked. This
room decides nothing about retries, fall-back or compaction; the engine does.
"""

from __future__ import annotations

import math
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
    "rate_limited": True,
    "overloaded": True,
    "server_error": True,
    "bad_request": False,
    "context_overflow": False,
    "network": True,
    "protocol": True,
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
    "maximum context length",
    "max context length",
    "model_context_window_exceeded",
    "context window",
    "context size",
    "greater than the context length",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "input too long",
    "too many input tokens",
    "too many tokens",
    "reduce the length of the messages",
    "input token count",
    "exceeded model token limit",
    "exceeds token limit",
    "token limit exceeded",
    "maximum prompt length",
    "request too large",
    "request_too_large",
)
_OVERFLOW_STATUSES = frozenset({0, 400, 413, 422, 500})
_NO_CREDIT_WORDS = ("insufficient_quota", "exceeded your current quota", "insufficient balance", "billing")

# Errors inside a stream often have a word instead of an HTTP status. First match wins.
_WORDS_TO_STATUS = (
    ("rate_limit", 429),
    ("rate limit", 429),
    ("insufficient_quota", 429),
    ("overloaded", 503),
    ("invalid_api_key", 401),
    ("authentication", 401),
    ("permission_error", 403),
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
) -> ModelFailure:
    """A failure whose message reads `provider/model: what`."""
    return ModelFailure(
        kind=kind,
        message=f"{label_of(target)}: {what}",
        retryable=RETRYABLE[kind] if retryable is None else retryable,
        status=status,
        retry_after_s=retry_after_s,
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
            return make_failure(target, "network", "could not connect in time.")
        return make_failure(target, "network", "sent nothing for too long; the call was given up.")
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
    retryable = RETRYABLE[kind]
    what = _SENTENCES[kind]
    hint = ""
    if kind == "auth":
        hint = setting_hint(target, "apiKey")
    elif kind == "rate_limited" and any(word in lowered for word in _NO_CREDIT_WORDS):
        retryable, hint = False, "The account seems to have no credit left."
    elif status == 404 or 300 <= status < 400:
        hint = "Check the model's name. " + setting_hint(target, "baseUrl")
    said = excerpt(words, target)
    parts = [f"{what} ({where}).", f"It said: {said}" if said else "", hint]
    return make_failure(
        target,
        kind,
        " ".join(part for part in parts if part),
        retryable=retryable,
        status=status,
        retry_after_s=retry_after_s,
    )


_SENTENCES = {
    "auth": "refused the API key",
    "rate_limited": "too many requests",
    "overloaded": "the provider is overloaded",
    "server_error": "the provider failed",
    "bad_request": "did not accept the request",
    "context_overflow": "the conversation is too long for this model",
    "network": "the provider gave up waiting",
}


def _kind_of(status: int, lowered: str) -> str:
    if status in (401, 403):
        return "auth"
    if status == 429:
        return "rate_limited"
    if status in _OVERFLOW_STATUSES and any(word in lowered for word in _OVERFLOW_WORDS):
        return "context_overflow"
    if status == 408:
        return "network"
    if status in (503, 529):
        return "overloaded"
    if status >= 500 or status == 0:
        return "server_error"
    return "bad_request"


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
