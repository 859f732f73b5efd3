"""Failures as data: kinds, retries, words, and no secrets."""

from __future__ import annotations

import time
from email.utils import formatdate

import aiohttp
import msgspec
import pytest
from aiohttp.client_reqrep import ConnectionKey

from openclaw.models.failures import (
    RETRYABLE,
    exception_failure,
    excerpt,
    http_failure,
    label_of,
    reported_failure,
)
from tests.unit.models.asking import API_KEY, make_target

TARGET = make_target()


def http(status: int, body: object = None, headers: dict[str, str] | None = None) -> tuple[str, bool]:
    data = body if isinstance(body, bytes) else msgspec.json.encode(body)
    failure = http_failure(TARGET, status, data, headers or {})
    assert failure.status == status
    assert failure.message.startswith("acme/coyote-1: ")
    assert f"HTTP {status}" in failure.message
    return failure.kind, failure.retryable


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (301, "bad_request", False),
        (400, "bad_request", False),
        (401, "auth", False),
        (402, "billing", False),
        (403, "auth", False),
        (404, "bad_request", False),
        (408, "timeout", True),
        (413, "overflow", False),
        (422, "bad_request", False),
        (429, "rate_limit", True),
        (499, "bad_request", False),
        (500, "server_error", True),
        (502, "server_error", True),
        (503, "overloaded", True),
        (504, "timeout", True),
        (529, "overloaded", True),
        (599, "server_error", True),
    ],
)
def test_kind_by_status(status: int, kind: str, retryable: bool) -> None:
    assert http(status, {"error": {"message": "no"}}) == (kind, retryable)
    assert http(status, b"<html>oops</html>") == (kind, retryable)
    assert http(status, b"") == (kind, retryable)
    assert http(status, b"\xff\xfe\0") == (kind, retryable)
    assert http(status, b"[" * 60_000) == (kind, retryable)


@pytest.mark.parametrize(
    "words",
    [
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        "the request exceeds the available context size, try increasing it",
        "Your input exceeds the context window of this model.",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "Input is too long for requested model.",
        "Please reduce the length of the messages or completion.",
        "The input token count (1200000) exceeds the maximum number of tokens allowed",
        "The number of tokens to keep from the initial prompt is greater than the context length",
        "Too many input tokens",
        "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000",
        "Requested tokens (2285) exceed context window of 2048",
        "prompt contains too many tokens for this model",
        "Payload Too Large",
        "Request too large",
    ],
)
def test_a_conversation_that_does_not_fit_is_recognised(words: str) -> None:
    for status in (400, 413, 422, 500):
        assert http(status, {"error": {"message": words}}) == ("overflow", False)
    # The same words mean something else when the provider counts requests or refuses the key.
    assert http(429, {"error": {"message": words}}) == ("rate_limit", True)
    assert http(401, {"error": {"message": words}}) == ("auth", False)
    assert http(503, {"error": {"message": words}}) == ("overloaded", True)
    assert reported_failure(TARGET, {"message": words}).kind == "overflow"


def test_the_code_alone_tells_an_overflow() -> None:
    body = {"error": {"message": "no", "code": "context_length_exceeded"}}
    assert http(400, body) == ("overflow", False)
    too_large_answer = {"error": {"message": "max_tokens is too large: 99999"}}
    assert http(400, too_large_answer) == ("bad_request", False)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (429, {"error": {"message": "You exceeded your current quota", "type": "insufficient_quota"}}),
        (400, {"error": {"type": "invalid_request_error", "message": "Your credit balance is too low"}}),
        (403, {"error": {"message": "Insufficient balance"}}),
        (402, {"error": {"message": "This request requires more credits"}}),
        (429, {"error": {"message": "no", "code": "enforced_spend_limit_reached"}}),
    ],
)
def test_waiting_does_not_bring_credit(status: int, body: object) -> None:
    failure = http_failure(TARGET, status, msgspec.json.encode(body), {})
    assert (failure.kind, failure.retryable) == ("billing", False)
    assert "no credit" in failure.message and "look at the account" in failure.message


@pytest.mark.parametrize(
    ("words", "entry"),
    [
        ("messages.3.content.1: Invalid `signature` in `thinking` block", 3),
        ("messages.12: `tool_use` ids were found without `tool_result` blocks immediately after", 12),
        ("Invalid type for 'messages[2].content': expected a string", 2),
        ("Could not process image", None),
        ("text content blocks must be non-empty", None),
        (
            "An assistant message with 'tool_calls' must be followed by tool messages. The following "
            "tool_call_ids did not have response messages: call_1",
            None,
        ),
        ("messages.99999999999: what", 999999),
    ],
)
def test_a_refused_message_is_told_from_a_refused_request(words: str, entry: int | None) -> None:
    body = msgspec.json.encode({"error": {"message": words, "type": "invalid_request_error"}})
    for status in (400, 422):
        failure = http_failure(TARGET, status, body, {})
        assert (failure.kind, failure.retryable, failure.entry) == ("invalid_entry", False, entry)
        assert "one message of the conversation" in failure.message
    assert reported_failure(TARGET, {"message": words, "code": 400}).kind == "invalid_entry"
    # The same words from a broken server or a refused key are about something else.
    assert http_failure(TARGET, 500, body, {}).kind == "server_error"
    assert http_failure(TARGET, 401, body, {}).entry is None


def test_a_long_message_is_an_overflow_even_when_it_is_named() -> None:
    words = "messages.4.content: input is too long"
    body = msgspec.json.encode({"error": {"message": words}})
    failure = http_failure(TARGET, 400, body, {})
    assert (failure.kind, failure.entry) == ("overflow", None)


def test_a_content_filter_is_a_refusal() -> None:
    for words in ("content_filter", "content_policy_violation", "Output blocked by content filtering policy"):
        assert http(400, {"error": {"message": words}}) == ("refused", False)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": " 1.5 "}, 1.5),
        ({"Retry-After": "-3"}, 0.0),
        ({"Retry-After": "1e9"}, 86400.0),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": ""}, None),
        ({"Retry-After": "9" * 5000}, 86400.0),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"Retry-After": "Wed, 99 Oct 2015 07:28:00 GMT"}, None),
        ({"retry-after-ms": "250", "Retry-After": "9"}, 0.25),
        ({"retry-after-ms": "x", "Retry-After": "9"}, 9.0),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert http_failure(TARGET, 429, b"", headers).retry_after_s == seconds


def test_retry_after_as_a_date() -> None:
    at = formatdate(time.time() + 60, usegmt=True)
    wait = http_failure(TARGET, 503, b"", {"Retry-After": at}).retry_after_s
    assert wait is not None
    assert 55 < wait <= 60


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "why", "type": "t", "code": 7}}, "why 7 t"),
        ({"error": "why"}, "why"),
        ({"message": "why"}, "why"),
        ({"detail": "why"}, "why"),
        ({"error": {}}, "{'error': {}}"),
        ("why", "why"),
        (["why"], "['why']"),
        (b"plain\n text", "plain text"),
        (b'{"error": {"message": "half \\ud800"}}', "half"),
    ],
)
def test_the_words_of_the_provider_are_quoted(body: object, words: str) -> None:
    data = body if isinstance(body, bytes) else msgspec.json.encode(body)
    assert f"It said: {words}" in http_failure(TARGET, 400, data, {}).message


def test_hints_name_the_setting() -> None:
    assert "models.providers.acme.apiKey" in http_failure(TARGET, 401, b"", {}).message
    for status in (404, 308):
        assert "models.providers.acme.baseUrl" in http_failure(TARGET, status, b"", {}).message
    assert "models.providers" not in http_failure(TARGET, 400, b"", {}).message


def test_an_excerpt_is_one_short_line_without_secrets() -> None:
    assert excerpt(f"key {API_KEY} is bad", TARGET) == "key *** is bad"
    padded = make_target(api_key=f" {API_KEY}\n")
    assert API_KEY not in excerpt(f"key {API_KEY} is bad", padded)
    assert "abcdef123456" not in excerpt("sent Authorization: Bearer abcdef123456", TARGET)
    assert "abcdefghijklmnop" not in excerpt("other key sk-proj-abcdefghijklmnop", TARGET)
    assert excerpt("risk-averse task-oriented asking", TARGET) == "risk-averse task-oriented asking"
    assert excerpt(" a\n\tb\0 ", TARGET).startswith("a b")
    assert len(excerpt("x " * 5000, TARGET)) == 500
    assert excerpt("x" * 500, TARGET) == "x" * 500
    assert excerpt("x" * 501, TARGET) == "x" * 499 + "…"
    # The key stands across the cut: no part of it may be left.
    assert API_KEY[:8] not in excerpt("x" * 490 + API_KEY, TARGET)
    assert excerpt("x none", make_target(api_key="x")) == "x none"


def test_a_masking_pass_over_hostile_text_is_fast() -> None:
    start = time.process_time()
    for hostile in ("sk-" * 100_000, "bearer " * 100_000, "a" * 1_000_000, "sk" + "-" * 500_000):
        excerpt(hostile, TARGET)
    assert time.process_time() - start < 1.0


def test_long_and_dirty_names_stay_short_and_clean() -> None:
    label = label_of(make_target(provider="p" * 10_000, model="m\0\ud800" * 10_000))
    assert len(label) <= 201
    assert label.encode()
    assert "\0" not in label


@pytest.mark.parametrize(
    ("error", "kind", "retryable"),
    [
        ({"message": "slow", "code": 429}, "rate_limit", True),
        ({"message": "slow", "code": "429"}, "rate_limit", True),
        ({"message": "no", "status": 401}, "auth", False),
        ({"message": "no", "code": 99}, "server_error", True),
        ({"message": "no", "code": 200}, "server_error", True),
        ({"message": "no", "code": True}, "server_error", True),
        ({"message": "x", "type": "rate_limit_error"}, "rate_limit", True),
        ({"message": "x", "type": "overloaded_error"}, "overloaded", True),
        ({"message": "x", "type": "authentication_error"}, "auth", False),
        ({"message": "x", "type": "invalid_request_error"}, "bad_request", False),
        ({"type": "insufficient_quota"}, "billing", False),
        ({"type": "error", "error": {"type": "billing_error", "message": "pay"}}, "billing", False),
        ({"message": "x", "type": "timeout_error"}, "timeout", True),
        ({"message": "x", "type": "permission_error"}, "auth", False),
        ({"message": "x", "type": "not_found_error"}, "bad_request", False),
        ({"message": "x", "type": "request_too_large"}, "overflow", False),
        ({"message": "x", "type": "api_error"}, "server_error", True),
        ("Overloaded", "overloaded", True),
        ("boom", "server_error", True),
        ([1], "server_error", True),
        (7, "server_error", True),
    ],
)
def test_errors_inside_a_stream(error: object, kind: str, retryable: bool) -> None:
    failure = reported_failure(TARGET, error)
    assert (failure.kind, failure.retryable) == (kind, retryable)


KEY = ConnectionKey("h", 80, False, True, None, None, None)


@pytest.mark.parametrize(
    ("error", "answering", "kind", "retryable"),
    [
        (aiohttp.ConnectionTimeoutError(), False, "timeout", True),
        (aiohttp.SocketTimeoutError(), True, "timeout", True),
        (TimeoutError(), False, "timeout", True),
        (aiohttp.ClientConnectorError(KEY, OSError(111, "refused")), False, "network", True),
        (aiohttp.ClientConnectorCertificateError(KEY, ValueError("self signed")), False, "network", False),
        (aiohttp.ServerDisconnectedError(), False, "network", True),
        (aiohttp.ClientPayloadError("cut"), True, "protocol", True),
        (ConnectionResetError("reset"), False, "network", True),
        (ConnectionResetError("reset"), True, "protocol", True),
        (aiohttp.InvalidURL("x"), False, "bad_request", False),
        (aiohttp.NonHttpUrlClientError("ftp://x"), False, "bad_request", False),
        (RuntimeError(f"Session is closed {API_KEY}"), False, "internal", False),
    ],
)
def test_exceptions(error: Exception, answering: bool, kind: str, retryable: bool) -> None:
    failure = exception_failure(TARGET, error, answering=answering)
    assert (failure.kind, failure.retryable, failure.status) == (kind, retryable, 0)
    assert failure.message.startswith("acme/coyote-1: ")
    assert API_KEY not in failure.message


def test_the_table_of_retries_knows_every_kind_that_is_made() -> None:
    waiting_helps = {kind for kind, retryable in RETRYABLE.items() if retryable}
    assert waiting_helps == {"rate_limit", "overloaded", "server_error", "timeout", "network", "protocol"}
    assert set(RETRYABLE) - waiting_helps == {
        "auth",
        "billing",
        "overflow",
        "invalid_entry",
        "refused",
        "bad_request",
        "internal",
    }
