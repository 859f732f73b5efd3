"""The Anthropic adapter over a real loopback server: answers, connections, refusals, cancellation."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import aiohttp
import pytest

from openclaw import __version__
from openclaw.domain.context import make_valid
from openclaw.domain.transcript import (
    AssistantMessage,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
)
from openclaw.engine.ports import ModelRequest, TextDelta
from openclaw.models.anthropic_messages import AnthropicModel
from tests.fakes.anthropic_server import (
    PING,
    FakeAnswer,
    FakeAnthropicServer,
    Said,
    Thought,
    Used,
    begin,
    error,
    start,
)
from tests.unit.models.asking import API_KEY, LIST_TOOL, NOW_MS, ask, make_request, make_target

HI = FakeAnswer(blocks=(Said(("hi",)),))


def request_to(server: FakeAnthropicServer, messages: Any = "hello", **changes: Any) -> ModelRequest:
    fields = {"api": "anthropic-messages", "model": "claude-sonnet-4-5", **changes.pop("target", {})}
    return make_request(messages, target=make_target(server.base_url, **fields), **changes)


async def test_a_tool_loop_sends_thoughts_back_as_they_came() -> None:
    look = FakeAnswer(
        blocks=(
            Thought(("let me ", "look"), "sig1=="),
            Thought(signature="aGlkZGVu", redacted=True),
            Said(("Looking.",)),
            Used("sessions_list", ('{"lim', 'it": 5}'), "toolu_a"),
        )
    )
    async with FakeAnthropicServer(look, HI) as server, aiohttp.ClientSession() as session:
        model = AnthropicModel(session)
        messages: list[Message] = [UserMessage("hello", NOW_MS)]
        first = await ask(model, request_to(server, messages, tools=(LIST_TOOL,), thinking="low"))
        assert first.message.stop_reason == "toolUse"
        assert first.streamed_thinking == "let me look"
        assert first.message.content[-1] == ToolCallBlock("toolu_a", "sessions_list", {"limit": 5})
        found = ToolResultMessage("toolu_a", "sessions_list", (TextBlock("none"),), NOW_MS)
        messages += [first.message, found]
        valid = make_valid(messages, "anthropic")
        second = await ask(model, request_to(server, valid, tools=(LIST_TOOL,), thinking="low"))
    assert second.text == "hi"
    sent = server.requests[0]
    assert sent.path == "/v1/messages"
    assert sent.headers["x-api-key"] == API_KEY
    assert "Authorization" not in sent.headers
    assert sent.headers["anthropic-version"] == "2023-06-01"
    assert sent.headers["User-Agent"] == f"openclaw/{__version__}"
    assert sent.body["thinking"] == {"type": "enabled", "budget_tokens": 4096}
    replayed = server.requests[1].body["messages"]
    assert replayed[1]["content"] == [
        {"type": "thinking", "thinking": "let me look", "signature": "sig1=="},
        {"type": "redacted_thinking", "data": "aGlkZGVu"},
        {"type": "text", "text": "Looking."},
        {"type": "tool_use", "id": "toolu_a", "name": "sessions_list", "input": {"limit": 5}},
    ]
    assert replayed[2]["content"][0]["tool_use_id"] == "toolu_a"
    assert server.requests[0].connection == server.requests[1].connection


async def test_a_login_token_travels_as_a_bearer() -> None:
    async with FakeAnthropicServer(then=HI) as server, aiohttp.ClientSession() as session:
        model = AnthropicModel(session)
        token = "sk-ant-oat01-abcdefghijklmnop"
        await ask(model, request_to(server, target={"api_key": token}))
        await ask(model, request_to(server, target={"api_key": ""}))
    login, without = (request.headers for request in server.requests)
    assert login["Authorization"] == f"Bearer {token}"
    assert login["anthropic-beta"] == "oauth-2025-04-20"
    assert "x-api-key" not in login
    assert "x-api-key" not in without and "Authorization" not in without


async def test_a_server_that_does_not_stream() -> None:
    answer = FakeAnswer(blocks=(Thought(), Said(("whole",)), Used("look")), stream=False)
    async with FakeAnthropicServer(answer) as server, aiohttp.ClientSession() as session:
        heard = await ask(AnthropicModel(session), request_to(server))
    assert heard.message.content == (
        ThinkingBlock("hm", "c2lnbmF0dXJl"),
        TextBlock("whole"),
        ToolCallBlock("toolu_1", "look", {}),
    )


def refusal(kind: str, message: str = "no") -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


@pytest.mark.parametrize(
    ("status", "body", "kind", "retryable"),
    [
        (529, refusal("overloaded_error", "Overloaded"), "overloaded", True),
        (429, refusal("rate_limit_error"), "rate_limit", True),
        (500, refusal("api_error"), "server_error", True),
        (504, refusal("timeout_error"), "timeout", True),
        (401, refusal("authentication_error", "invalid x-api-key"), "auth", False),
        (403, refusal("permission_error"), "auth", False),
        (402, refusal("billing_error"), "billing", False),
        (400, refusal("invalid_request_error", "Your credit balance is too low"), "billing", False),
        (400, refusal("invalid_request_error", "prompt is too long: 3 > 2"), "overflow", False),
        (413, refusal("request_too_large", "Request exceeds the maximum size"), "overflow", False),
        (404, refusal("not_found_error", "model: claude-none"), "bad_request", False),
        (400, refusal("invalid_request_error", "max_tokens: must be positive"), "bad_request", False),
        (307, b"", "bad_request", False),
    ],
)
async def test_refusals(status: int, body: Any, kind: str, retryable: bool) -> None:
    headers = {"Retry-After": "7", "Location": "http://127.0.0.1:1/"}
    answer = FakeAnswer(status=status, body=body, headers=headers)
    async with FakeAnthropicServer(answer) as server, aiohttp.ClientSession() as session:
        heard = await ask(AnthropicModel(session), request_to(server))
    assert heard.failure is not None
    assert (heard.failure.kind, heard.failure.retryable) == (kind, retryable)
    assert (heard.failure.status, heard.failure.retry_after_s) == (status, 7.0)


async def test_the_message_that_was_refused_is_pointed_at() -> None:
    words = "messages.2.content.0: Invalid `signature` in `thinking` block"
    answer = FakeAnswer(status=400, body=refusal("invalid_request_error", words))
    call = ToolCallBlock("c1", "look", {})
    blank = UserMessage(" ", NOW_MS)
    messages = [
        blank,
        UserMessage("go", NOW_MS),
        AssistantMessage((call,), NOW_MS),
        ToolResultMessage("c1", "look", (TextBlock("r"),), NOW_MS),
    ]
    async with FakeAnthropicServer(answer) as server, aiohttp.ClientSession() as session:
        heard = await ask(AnthropicModel(session), request_to(server, messages))
    assert heard.failure is not None
    assert (heard.failure.kind, heard.failure.entry) == ("invalid_entry", 3)


async def test_an_error_in_the_middle_keeps_what_was_said() -> None:
    answer = FakeAnswer(
        raw=(start(), begin(0, type="text", text="half"), error("overloaded_error", "Overloaded"))
    )
    async with FakeAnthropicServer(answer) as server, aiohttp.ClientSession() as session:
        heard = await ask(AnthropicModel(session), request_to(server))
    assert (heard.kind, heard.text, heard.streamed_text) == ("overloaded", "half", "half")


async def test_a_cut_stream_is_not_an_answer() -> None:
    answer = FakeAnswer(blocks=(Said(("half",)), Used("look")), cut=True)
    async with FakeAnthropicServer(answer) as server, aiohttp.ClientSession() as session:
        heard = await ask(AnthropicModel(session), request_to(server))
    assert heard.failure is not None
    assert (heard.failure.kind, heard.failure.retryable, heard.text) == ("protocol", True, "half")
    assert not any(isinstance(block, ToolCallBlock) for block in heard.message.content)


@pytest.mark.parametrize("hang_after", [-1, 0, 4])
async def test_silence_is_given_up(hang_after: int) -> None:
    answer = FakeAnswer(blocks=(Said(("a", "b")),), hang_after=hang_after)
    async with FakeAnthropicServer(answer) as server, aiohttp.ClientSession() as session:
        heard = await ask(AnthropicModel(session, idle_timeout_s=0.2), request_to(server))
        await server.wait_for_disconnects(1, 60)
    assert heard.failure is not None
    assert (heard.failure.kind, heard.failure.retryable) == ("timeout", True)
    assert "sent nothing for too long" in heard.failure.message


async def test_keep_alives_alone_are_given_up_too() -> None:
    answer = FakeAnswer(raw=(start(), *[PING] * 2000), delay_s=0.02)
    async with FakeAnthropicServer(answer) as server, aiohttp.ClientSession() as session:
        model = AnthropicModel(session, progress_timeout_s=0.2)
        heard = await ask(model, request_to(server), timeout_s=60)
        await server.wait_for_disconnects(1, 60)
    assert (heard.kind, heard.text) == ("timeout", "")


async def test_cancelling_closes_the_connection() -> None:
    answer = FakeAnswer(blocks=(Said(("first", "second")),), hang_after=4)
    async with FakeAnthropicServer(answer, HI) as server, aiohttp.ClientSession() as session:
        model = AnthropicModel(session)
        task = asyncio.create_task(ask(model, request_to(server), timeout_s=60))
        await server.wait_for_requests(1, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.wait_for_disconnects(1, 60)
        assert (await ask(model, request_to(server))).text == "hi"


async def test_closing_the_stream_early_closes_the_connection() -> None:
    answer = FakeAnswer(blocks=(Said(("first", "second")),), hang_after=4)
    async with FakeAnthropicServer(answer) as server, aiohttp.ClientSession() as session:
        async with aclosing(AnthropicModel(session).stream(request_to(server))) as stream:
            assert await anext(stream) == TextDelta("first")
        await server.wait_for_disconnects(1, 60)


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ({"base_url": "http://127.0.0.1:1"}, "network", "could not connect"),
        ({"base_url": " "}, "bad_request", "models.providers.acme.baseUrl"),
        ({"base_url": "nonsense"}, "bad_request", "models.providers.acme.baseUrl"),
        ({"api_key": "clé"}, "auth", "copy it again"),
    ],
)
async def test_targets_that_cannot_be_called(changes: dict[str, Any], kind: str, words: str) -> None:
    fields = {"api": "anthropic-messages", **changes}
    async with aiohttp.ClientSession() as session:
        heard = await ask(AnthropicModel(session), make_request(target=make_target(**fields)))
    assert heard.failure is not None
    assert heard.failure.kind == kind
    assert words in heard.failure.message
