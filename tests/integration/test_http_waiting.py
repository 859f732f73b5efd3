"""Requests that wait: signs of life, the end of patience, and what fails inside."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import AsyncIterator

import pytest

from openclaw.app import Gateway
from openclaw.gateway.http import guards, history, runs, stream
from openclaw.gateway.http.files import Pages
from tests.fakes.openai_server import FakeReply
from tests.integration.conftest import House, client_of
from tests.integration.http_client import OPENED, HttpClient, said


@pytest.fixture
async def gateway(house: House) -> AsyncIterator[Gateway]:
    house.config["gateway"]["http"] = {"endpoints": OPENED}
    async with house.gateway() as running:
        yield running


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
async def test_a_silent_stream_gives_signs_of_life(
    house: House, gateway: Gateway, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Proxies and clients close a connection on which nothing comes."""
    monkeypatch.setattr(runs, "KEEP_ALIVE_S", 0.0)
    monkeypatch.setattr(runs, "POLL_S", 0.02)
    house.model.script(FakeReply(texts=("late",), hang_after=0))
    async with HttpClient(gateway) as http:
        body = said("hi", stream=True) if "chat" in path else {"input": "hi", "stream": True}
        async with http.session.post(path, json=body, headers=http.headers) as answer:
            seen = b""
            async with asyncio.timeout(60):
                while seen.count(b": still here\n\n") < 2:
                    seen += await answer.content.readany()
            house.model.release()
            seen += await answer.content.read()
    assert b"late" in seen


async def test_a_silent_history_gives_signs_of_life(
    house: House, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "KEEP_ALIVE_S", 0.02)
    house.model.script(FakeReply(texts=("hi",)))
    async with client_of(gateway) as client:
        await client.say("main", "hi", "r1")
    async with HttpClient(gateway) as http:
        headers = {**http.headers, "Accept": "text/event-stream"}
        async with http.session.get("/sessions/main/history", headers=headers) as answer:
            seen = b""
            async with asyncio.timeout(60):
                while b": still here\n\n" not in seen:
                    seen += await answer.content.readany()
    assert seen.startswith(b"event: history\n")


async def test_patience_ends_and_the_run_with_it(
    house: House, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "ANSWER_S", 0.2)
    monkeypatch.setattr(runs, "POLL_S", 0.05)
    house.model.script(FakeReply(texts=("never", " ends"), hang_after=2))
    async with HttpClient(gateway) as http:
        answer = await http.post("/v1/chat/completions", said("hi"))
    assert (answer.status, answer.json["error"]["type"]) == (504, "timeout")
    assert answer.headers["x-should-retry"] == "false"
    await house.model.wait_for_disconnects(1, 60)


async def test_a_turn_that_takes_too_long_is_stopped_by_the_engine(
    house: House, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "RUN_S", 0.3)
    house.model.script(FakeReply(texts=("never", " ends"), hang_after=2))
    async with HttpClient(gateway) as http:
        answer = await http.post("/v1/chat/completions", said("hi"))
    assert (answer.status, answer.json["error"]["type"]) == (504, "timeout")


async def test_a_reader_that_takes_nothing_is_let_go(
    house: House, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its run is stopped, as for one that closed the connection."""
    monkeypatch.setattr(stream, "SLOW_READER_S", 0.2)
    piece = "x" * 500_000
    house.model.script(FakeReply(texts=(piece,) * 40, delay_s=0.02))
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port, limit=1024)
    body = json.dumps(said("hi", stream=True)).encode()
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Authorization: {HttpClient(gateway).headers['Authorization']}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    await house.model.wait_for_disconnects(1, 60)
    writer.close()
    assert reader is not None


async def test_a_body_that_never_comes_is_not_waited_for(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guards, "BODY_WAIT_S", 0.1)
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    head = (
        "POST /tools/invoke HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Authorization: {HttpClient(gateway).headers['Authorization']}\r\nContent-Length: 100\r\n\r\n{{"
    )
    writer.write(head.encode())
    assert b" 408 " in await asyncio.wait_for(reader.readline(), 60)
    writer.close()


async def test_a_large_body_is_read(house: House, gateway: Gateway) -> None:
    house.model.script(FakeReply(texts=("read",)))
    padded = json.dumps(said("hi")).encode() + b" " * guards.LARGE_BODY
    async with HttpClient(gateway) as http:
        answer = await http.ask(
            "POST",
            "/v1/chat/completions",
            data=io.BytesIO(padded),
            headers={"Content-Type": "application/json"},
        )
    assert answer.json["choices"][0]["message"]["content"] == "read"


async def test_what_fails_inside_is_not_told_outside(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_args: object) -> None:
        raise RuntimeError("the secret is 4711")

    monkeypatch.setattr(Pages, "answer", fail)
    with caplog.at_level(logging.ERROR, logger="openclaw.http"):
        async with HttpClient(gateway) as http:
            answer = await http.get("/")
    assert answer.status == 500
    assert answer.json == {"ok": False, "error": {"message": "internal error", "type": "internal_error"}}
    assert "4711" in caplog.text
