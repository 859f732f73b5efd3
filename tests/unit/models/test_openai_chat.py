"""The OpenAI adapter over a real loopback server: answers, connections, timeouts, cancellation."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from typing import Any

import aiohttp
import pytest

from openclaw import __version__
from openclaw.domain.transcript import ImageBlock, TextBlock, ToolCallBlock, UserMessage
from openclaw.engine.ports import ModelRequest, TextDelta
from openclaw.models.openai_chat import OpenAIChatModel
from tests.fakes.openai_server import FakeCall, FakeOpenAIServer, FakeReply
from tests.unit.models.asking import API_KEY, LIST_TOOL, NOW_MS, Heard, ask, make_request, make_target

USAGE = {
    "prompt_tokens": 1000,
    "completion_tokens": 100,
    "total_tokens": 1100,
    "prompt_tokens_details": {"cached_tokens": 400},
}


def request_to(server: FakeOpenAIServer, messages: Any = "hello", **changes: Any) -> ModelRequest:
    return make_request(messages, target=make_target(server.base_url), **changes)


async def test_a_turn_with_tools_and_its_answer() -> None:
    look = FakeCall("sessions_list", ('{"lim', 'it": 5}'), "call_a")
    async with (
        FakeOpenAIServer(
            FakeReply(thinking=("hm",), texts=("Let me ", "look."), calls=(look,), usage=USAGE)
        ) as server,
        aiohttp.ClientSession() as session,
    ):
        heard = await ask(OpenAIChatModel(session), request_to(server, tools=(LIST_TOOL,)))
    assert heard.failure is None
    assert heard.streamed_text == heard.text == "Let me look."
    assert heard.streamed_thinking == "hm"
    assert heard.message.content[-1] == ToolCallBlock("call_a", "sessions_list", {"limit": 5})
    assert heard.message.stop_reason == "toolUse"
    usage = heard.message.usage
    assert usage is not None
    assert (usage.input, usage.output, usage.cache_read, usage.total_tokens) == (600, 100, 400, 1100)
    assert usage.cost.total == pytest.approx((600 * 2 + 100 * 8 + 400 * 0.5) / 1e6)
    sent = server.requests[0]
    assert sent.path == "/v1/chat/completions"
    assert sent.headers["Authorization"] == f"Bearer {API_KEY}"
    assert sent.headers["Content-Type"] == "application/json"
    assert sent.headers["User-Agent"] == f"openclaw/{__version__}"
    assert sent.headers["Content-Length"] == str(len(sent.raw))
    assert sent.body["stream"] is True
    assert sent.body["messages"][-1] == {"role": "user", "content": "hello"}
    assert sent.body["tools"][0]["function"]["name"] == "sessions_list"


async def test_deltas_arrive_while_the_server_still_writes() -> None:
    async with (
        FakeOpenAIServer(FakeReply(texts=("first", "second"), hang_after=2)) as server,
        aiohttp.ClientSession() as session,
        asyncio.timeout(60),
        aclosing(OpenAIChatModel(session).stream(request_to(server))) as stream,
    ):
        assert await anext(stream) == TextDelta("first")
        server.release()
        assert await anext(stream) == TextDelta("second")


async def test_a_server_that_ignores_stream_is_understood() -> None:
    reply = FakeReply(texts=("hello",), calls=(FakeCall("look"),), usage=USAGE, stream=False)
    async with FakeOpenAIServer(reply) as server, aiohttp.ClientSession() as session:
        heard = await ask(OpenAIChatModel(session), request_to(server))
    assert heard.failure is None
    assert heard.streamed_text == "hello"
    assert heard.message.content == (TextBlock("hello"), ToolCallBlock("call_1", "look", {}))
    assert heard.message.usage is not None


async def test_one_connection_serves_many_calls() -> None:
    replies = [
        FakeReply(texts=("one",)),
        FakeReply(status=429, body={"error": {"message": "slow"}}),
        FakeReply(texts=("two",), stream=False),
        FakeReply(texts=("three",)),
    ]
    async with FakeOpenAIServer(*replies) as server, aiohttp.ClientSession() as session:
        model = OpenAIChatModel(session)
        kinds = [(await ask(model, request_to(server))).kind for _ in replies]
    assert kinds == ["", "rate_limit", "", ""]
    assert {request.connection for request in server.requests} == {0}


async def test_many_calls_at_once_do_not_mix() -> None:
    async with FakeOpenAIServer() as server, aiohttp.ClientSession() as session:
        server.script(*(FakeReply(texts=(f"answer {n} ", "end"), delay_s=0.01) for n in range(20)))
        model = OpenAIChatModel(session)
        async with asyncio.TaskGroup() as tasks:
            asked = [tasks.create_task(ask(model, request_to(server, f"q{n}"))) for n in range(20)]
    texts = sorted(task.result().text for task in asked)
    assert texts == sorted(f"answer {n} end" for n in range(20))


async def test_a_large_image_is_sent_whole() -> None:
    image = ImageBlock("QUJD" * 500_000, "image/png")
    async with FakeOpenAIServer(FakeReply(texts=("seen",))) as server, aiohttp.ClientSession() as session:
        request = request_to(server, (UserMessage((TextBlock("look"), image), NOW_MS),))
        heard = await ask(OpenAIChatModel(session), request)
    assert heard.text == "seen"
    url = server.requests[0].body["messages"][1]["content"][1]["image_url"]["url"]
    assert len(url) == 2_000_000 + len("data:image/png;base64,")


async def test_no_key_sends_no_header_and_a_padded_key_is_trimmed() -> None:
    async with FakeOpenAIServer(then=FakeReply(texts=("x",))) as server, aiohttp.ClientSession() as session:
        model = OpenAIChatModel(session)
        await ask(model, make_request(target=make_target(server.base_url, api_key="")))
        await ask(model, make_request(target=make_target(server.base_url, api_key=" abc123\n")))
    assert "Authorization" not in server.requests[0].headers
    assert server.requests[1].headers["Authorization"] == "Bearer abc123"


# -- targets that cannot work ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "kind", "word"),
    [
        ({"base_url": ""}, "bad_request", "models.providers.acme.baseUrl"),
        ({"base_url": "nonsense"}, "bad_request", "models.providers.acme.baseUrl"),
        ({"base_url": "ftp://127.0.0.1/v1"}, "bad_request", "models.providers.acme.baseUrl"),
        ({"base_url": "http://[broken/v1"}, "bad_request", "models.providers.acme.baseUrl"),
        ({"api_key": "sk-abc\ndef"}, "auth", "copy it again"),
        ({"api_key": "sk-ключ"}, "auth", "copy it again"),
        ({"base_url": "http://127.0.0.1:1/v1"}, "network", "could not connect"),
        ({"base_url": "http://no-such-host.invalid/v1"}, "network", "could not connect"),
    ],
)
async def test_a_target_that_cannot_work(changes: dict[str, str], kind: str, word: str) -> None:
    async with aiohttp.ClientSession() as session:
        heard = await ask(OpenAIChatModel(session), make_request(target=make_target(**changes)))
    assert heard.failure is not None
    assert heard.failure.kind == kind
    assert word in heard.failure.message
    assert heard.failure.retryable is (kind == "network")
    assert heard.message.content == ()


async def test_a_closed_session_is_our_fault_not_the_providers() -> None:
    session = aiohttp.ClientSession()
    await session.close()
    heard = await ask(OpenAIChatModel(session), make_request())
    assert heard.failure is not None
    assert (heard.failure.kind, heard.failure.retryable) == ("internal", False)


async def test_a_redirect_is_not_followed() -> None:
    async with FakeOpenAIServer(then=FakeReply(texts=("stolen",))) as elsewhere:
        location = {"Location": f"{elsewhere.base_url}/chat/completions"}
        async with (
            FakeOpenAIServer(FakeReply(status=307, body=b"", headers=location)) as server,
            aiohttp.ClientSession() as session,
        ):
            heard = await ask(OpenAIChatModel(session), request_to(server))
        assert elsewhere.requests == []
    assert heard.failure is not None
    assert (heard.failure.kind, heard.failure.status) == ("bad_request", 307)


# -- time --------------------------------------------------------------------------------------


@pytest.mark.parametrize("hang_after", [-1, 0, 2])
async def test_silence_is_given_up(hang_after: int) -> None:
    """Before the headers, before the first byte, and between chunks."""
    reply = FakeReply(texts=("so far", "never"), hang_after=hang_after)
    async with FakeOpenAIServer(reply) as server, aiohttp.ClientSession() as session:
        start = time.monotonic()
        heard = await ask(OpenAIChatModel(session, idle_timeout_s=0.2), request_to(server))
        assert time.monotonic() - start > 0.15
        await server.wait_for_disconnects(1)
    assert heard.failure is not None
    assert (heard.failure.kind, heard.failure.retryable) == ("timeout", True)
    assert heard.text == ("so far" if hang_after == 2 else "")


async def test_a_slow_drip_is_not_silence() -> None:
    texts = tuple(f"{number} " for number in range(12))
    async with (
        FakeOpenAIServer(FakeReply(texts=texts, delay_s=0.05)) as server,
        aiohttp.ClientSession() as session,
    ):
        heard = await ask(OpenAIChatModel(session, idle_timeout_s=0.3), request_to(server))
    assert heard.failure is None
    assert heard.text == "".join(texts)


async def test_silence_after_the_whole_answer_does_not_take_it_back() -> None:
    """The reason is in, the end mark never comes."""
    async with (
        FakeOpenAIServer(FakeReply(texts=("whole",), hang_after=3)) as server,
        aiohttp.ClientSession() as session,
    ):
        heard = await ask(OpenAIChatModel(session, idle_timeout_s=0.2), request_to(server))
    assert (heard.failure, heard.text) == (None, "whole")


async def test_a_server_that_stays_open_after_the_end_mark_costs_no_time() -> None:
    async with (
        FakeOpenAIServer(FakeReply(texts=("whole",), hang_after=99)) as server,
        aiohttp.ClientSession() as session,
    ):
        # `ask` waits half as long as a silence may last.
        heard = await ask(OpenAIChatModel(session), request_to(server))
        await server.wait_for_disconnects(1)
    assert (heard.failure, heard.text) == (None, "whole")


# -- cancellation ------------------------------------------------------------------------------


@pytest.mark.parametrize("hang_after", [-1, 0, 2])
async def test_cancelling_closes_the_connection_at_once(hang_after: int) -> None:
    reply = FakeReply(texts=("so far", "never"), hang_after=hang_after)
    async with FakeOpenAIServer(reply) as server, aiohttp.ClientSession() as session:
        task: asyncio.Task[Heard] = asyncio.create_task(ask(OpenAIChatModel(session), request_to(server)))
        await server.wait_for_requests(1)
        await asyncio.sleep(0.1)
        assert server.disconnects == 0
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.wait_for_disconnects(1)


async def test_closing_the_stream_early_closes_the_connection() -> None:
    reply = FakeReply(texts=("first", "second"), hang_after=2)
    async with FakeOpenAIServer(reply) as server, aiohttp.ClientSession() as session:
        async with aclosing(OpenAIChatModel(session).stream(request_to(server))) as stream:
            assert await anext(stream) == TextDelta("first")
        await server.wait_for_disconnects(1)


async def test_a_cancelled_call_leaves_the_model_usable() -> None:
    async with (
        FakeOpenAIServer(FakeReply(texts=("a",), hang_after=1), FakeReply(texts=("again",))) as server,
        aiohttp.ClientSession() as session,
    ):
        model = OpenAIChatModel(session)
        with pytest.raises(TimeoutError):
            await ask(model, request_to(server), timeout_s=0.2)
        heard = await ask(model, request_to(server))
    assert heard.text == "again"
