"""What a provider can do wrong, over a real loopback server: always one failure in words, never a crash."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import aiohttp
import pytest

from openclaw.domain.transcript import ToolCallBlock
from openclaw.models.cleaning import INVALID_JSON_KEY
from openclaw.models.openai_chat import OpenAIChatModel
from tests.fakes.openai_server import DONE, FakeCall, FakeOpenAIServer, FakeReply, delta
from tests.unit.models.asking import API_KEY, Heard, ask, make_request, make_target

MEGABYTE = 1024 * 1024


async def hear(reply: FakeReply) -> Heard:
    async with FakeOpenAIServer(reply) as server, aiohttp.ClientSession() as session:
        heard = await ask(OpenAIChatModel(session), make_request(target=make_target(server.base_url)))
    assert len(server.requests) == 1
    return heard


async def hear_raw(*chunks: bytes, **changes: Any) -> Heard:
    return await hear(FakeReply(raw=chunks, **changes))


def is_clean(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


@pytest.mark.parametrize(
    "chunks",
    [
        (b"data: {not json}\n\n",),
        (b"data: \x00\x01\x02\n\n",),
        (b"data: []\n\n",),
        (b'data: {"choices": "none"}\n\n',),
        (b'data: {"choices": [{"delta": {"content": 7}}]}\n\n',),
        (b"data: " + b"[" * 50_000 + b"\n\n",),
        (bytes(range(256)) * 40,),
        (b"<html><body>Welcome to the hotel network</body></html>",),
        (b"{" * 1000,),
        (b'{"object": "list", "data": []}',),
        (delta({"content": "good"}), b"data: }{\n\n", DONE),
    ],
)
async def test_garbage(chunks: tuple[bytes, ...]) -> None:
    heard = await hear_raw(*chunks)
    assert heard.failure is not None
    assert (heard.failure.kind, heard.failure.retryable) == ("protocol", True)
    assert "not a chat completion" in heard.failure.message
    assert is_clean(heard.failure.message)


async def test_a_page_of_something_else_is_quoted() -> None:
    heard = await hear_raw(b"<html><body>Welcome to the hotel network</body></html>")
    assert "hotel network" in str(heard.message.error_message)


@pytest.mark.parametrize("cut", [True, False])
async def test_half_a_stream(cut: bool) -> None:
    """The connection breaks; or the body ends in good order but too soon, here inside an event."""
    half = delta({"content": "lost"})[:-20]
    heard = await hear_raw(delta({"content": "half an "}), delta({"content": "answer"}), half, cut=cut)
    assert heard.failure is not None
    assert (heard.failure.kind, heard.failure.retryable) == ("protocol", True)
    assert heard.text == heard.streamed_text == "half an answer"
    assert "half-way" in heard.failure.message or "broke" in heard.failure.message


async def test_half_a_tool_call_is_not_a_call() -> None:
    heard = await hear(FakeReply(texts=("I will",), calls=(FakeCall("rm", ('{"path": "/',)),), cut=True))
    assert heard.kind == "protocol"
    assert heard.text == "I will"
    assert not any(isinstance(block, ToolCallBlock) for block in heard.message.content)


async def test_nothing_at_all() -> None:
    for heard in (
        await hear_raw(),
        await hear_raw(cut=True),
        await hear_raw(b"\n\n"),
        await hear_raw(b": hi\n\n"),
    ):
        assert heard.failure is not None
        assert (heard.failure.kind, heard.failure.retryable) == ("protocol", True)
        assert heard.message.content == ()


async def test_an_empty_reply() -> None:
    heard = await hear(FakeReply(usage={"prompt_tokens": 9, "completion_tokens": 0}))
    assert heard.failure is not None
    assert (heard.failure.kind, heard.failure.retryable) == ("protocol", True)
    assert "empty reply" in heard.failure.message
    # It was not free.
    assert heard.message.usage is not None
    assert heard.message.usage.input == 9


async def test_429_with_a_time_to_wait() -> None:
    body = {"error": {"message": f"Rate limit reached for {API_KEY}", "type": "requests"}}
    heard = await hear(FakeReply(status=429, body=body, headers={"Retry-After": "12"}))
    assert heard.failure is not None
    assert (heard.failure.kind, heard.failure.status, heard.failure.retryable) == ("rate_limit", 429, True)
    assert heard.failure.retry_after_s == 12.0
    assert "Rate limit reached for ***" in heard.failure.message


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (500, "server_error", True),
        (503, "overloaded", True),
        (401, "auth", False),
        (400, "bad_request", False),
    ],
)
async def test_other_refusals(status: int, kind: str, retryable: bool) -> None:
    for body in ({"error": {"message": "no"}}, b"", b"\xff\0<html>" + b"x" * 200_000):
        heard = await hear(FakeReply(status=status, body=body))
        assert heard.failure is not None
        assert (heard.failure.kind, heard.failure.status) == (kind, status)
        assert heard.failure.retryable is retryable
        assert is_clean(heard.failure.message)


async def test_a_conversation_that_does_not_fit() -> None:
    body = {"error": {"message": "This model's maximum context length is 8192 tokens."}}
    heard = await hear(FakeReply(status=400, body=body))
    assert (heard.kind, heard.failure is not None and heard.failure.retryable) == ("overflow", False)


async def test_a_tool_call_with_broken_json() -> None:
    heard = await hear(
        FakeReply(calls=(FakeCall("write", ('{"path": "/tmp/x", ', '"text": "line\\'), "c9"),))
    )
    assert heard.failure is None
    assert heard.message.stop_reason == "toolUse"
    raw = '{"path": "/tmp/x", "text": "line\\'
    assert heard.message.content == (ToolCallBlock("c9", "write", {INVALID_JSON_KEY: raw}),)


@pytest.mark.parametrize(
    "escape", [b"\\ud800", b"\\udfff", b"\\ud83d\\ud83d", b"\\u0000", b"\0", b"\xff\xc3"]
)
async def test_lone_surrogates_nul_and_bytes_that_are_not_utf8(escape: bytes) -> None:
    text = b'data: {"choices":[{"delta":{"content":"a' + escape + b'b"}}]}\n\n'
    thought = text.replace(b"content", b"reasoning_content")
    call = (
        b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c' + escape + b'","function":'
        b'{"name":"n' + escape + b'","arguments":"{\\"k\\": \\"v' + escape + b'\\"}"}}]}}]}\n\n'
    )
    heard = await hear_raw(thought, text, call, delta({}, "tool_calls"), DONE)
    assert heard.failure is None
    assert heard.text == heard.streamed_text
    assert (heard.text[0], heard.text[-1]) == ("a", "b")
    block = heard.message.content[-1]
    assert isinstance(block, ToolCallBlock)
    texts = [heard.text, heard.streamed_thinking, block.id, block.name, *block.arguments.values()]
    assert all(is_clean(part) for part in texts)
    assert (block.id[0], block.name[0], block.arguments["k"][0]) == ("c", "n", "v")


async def test_surrogate_pairs_and_split_utf8_survive() -> None:
    emoji = "😀".encode()
    first = b'data: {"choices":[{"delta":{"content":"' + emoji[:2]
    second = emoji[2:] + b'\\ud83d\\ude00"}}]}\n\n'
    heard = await hear_raw(first, second, DONE, delay_s=0.02)
    assert (heard.failure, heard.text) == (None, "😀😀")


async def test_a_line_of_5_megabytes_is_refused_early() -> None:
    start = time.process_time()
    line = b'data: {"choices":[{"delta":{"content":"' + b"x" * (5 * MEGABYTE) + b'"}}]}\n\n'
    pieces = tuple(line[at : at + 65_536] for at in range(0, len(line), 65_536))
    heard = await hear_raw(*pieces, DONE)
    assert heard.failure is not None
    assert (heard.failure.kind, heard.failure.retryable) == ("protocol", False)
    assert "more than can be read" in heard.failure.message
    assert time.process_time() - start < 5


async def test_a_line_of_3_megabytes_is_read() -> None:
    text = "y" * (3 * MEGABYTE)
    heard = await hear_raw(delta({"content": text}, "stop"), DONE)
    assert (heard.failure, heard.text) == (None, text)


async def test_a_reply_and_a_body_without_end_are_refused() -> None:
    piece = delta({"content": "z" * MEGABYTE})
    stream = await hear_raw(*[piece] * 10, DONE)
    body = await hear_raw(b'{"choices": [', *[b" " * MEGABYTE] * 10)
    for heard in (stream, body):
        assert heard.failure is not None
        assert (heard.failure.kind, heard.failure.retryable) == ("protocol", False)
        assert "too l" in heard.failure.message


@pytest.mark.parametrize(
    ("answer", "kinds"), [(b"", {"network"}), (b"\x00\x01garbage\r\n\r\n", {"network", "protocol"})]
)
async def test_a_server_that_does_not_speak_http(answer: bytes, kinds: set[str]) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    async with server, aiohttp.ClientSession() as session:
        port = server.sockets[0].getsockname()[1]
        target = make_target(f"http://127.0.0.1:{port}/v1")
        heard = await ask(OpenAIChatModel(session), make_request(target=target))
    assert heard.failure is not None
    assert heard.failure.kind in kinds
    assert heard.failure.retryable


@pytest.mark.parametrize("hangs", [False, True])
async def test_half_an_error_page_is_still_an_error_with_its_status(hangs: bool) -> None:
    released = asyncio.Event()

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(b"HTTP/1.1 503 Busy\r\nContent-Length: 999\r\nRetry-After: 3\r\n\r\nhalf a page")
        await writer.drain()
        if hangs:
            await released.wait()
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    async with server, aiohttp.ClientSession() as session:
        port = server.sockets[0].getsockname()[1]
        target = make_target(f"http://127.0.0.1:{port}/v1")
        model = OpenAIChatModel(session, idle_timeout_s=0.2)
        heard = await ask(model, make_request(target=target))
        released.set()
    assert heard.failure is not None
    assert (heard.failure.kind, heard.failure.status) == ("overloaded", 503)
    assert heard.failure.retry_after_s == 3.0
    assert "half a page" in heard.failure.message
