"""Looking for models: keys in the environment, servers on this machine, and what is neither."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.models.discovery import Found, FoundModel, discover, found_in_environment, read_models
from openclaw.models.known import PROVIDERS, KnownProvider
from tests.fakes.openai_server import FakeOpenAIServer
from tests.fakes.ports import free_port

CLOUD = tuple(provider for provider in PROVIDERS if not provider.is_local)


def local(name: str, base_url: str) -> KnownProvider:
    return KnownProvider(name=name, title=name.title(), base_url=base_url, port=1)


def listing(*items: Any) -> dict[str, Any]:
    return {"object": "list", "data": list(items)}


async def look(
    *providers: KnownProvider, env: dict[str, str] | None = None, timeout_s: float = 20
) -> tuple[Found, ...]:
    async with aiohttp.ClientSession() as session:
        return await discover(env or {}, session, providers=(*CLOUD, *providers), timeout_s=timeout_s)


def test_keys_in_the_environment_in_the_order_of_the_table() -> None:
    env = {"OPENROUTER_API_KEY": "r", "ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": " "}
    anthropic, openrouter = found_in_environment(env)
    assert anthropic.ref == "anthropic/claude-sonnet-5-5"
    assert (anthropic.source, anthropic.where) == ("environment", "ANTHROPIC_API_KEY")
    assert anthropic.payer == "the Anthropic account behind ANTHROPIC_API_KEY pays"
    assert "claude-opus-5-5" in [model.name for model in anthropic.models]
    assert len({model.name for model in anthropic.models}) == len(anthropic.models)
    assert openrouter.ref == "openrouter/openrouter/auto"
    assert found_in_environment({}) == ()
    # The values never leave the environment.
    assert "a" not in (anthropic.where, anthropic.payer, anthropic.title)


async def test_servers_are_asked_together_and_keys_come_first() -> None:
    async with FakeOpenAIServer() as one, FakeOpenAIServer() as two:
        one.models = listing({"id": "nomic-embed-text"}, {"id": "qwen3:8b"}, {"id": "llama"})
        two.models = listing({"id": "org/big", "max_model_len": 4096})
        nothing = local("nothing", f"http://127.0.0.1:{free_port()}/v1")
        found = await look(
            local("first", one.base_url), nothing, local("second", two.base_url), env={"OPENAI_API_KEY": "k"}
        )
    assert [item.provider for item in found] == ["openai", "first", "second"]
    first, second = found[1:]
    assert first == Found(
        provider="first",
        title="First",
        source="local",
        where=one.base_url,
        models=(FoundModel("qwen3:8b"), FoundModel("llama")),
    )
    assert (first.ref, second.ref) == ("first/qwen3:8b", "second/org/big")
    assert second.models[0].context_window == 4096
    assert "nobody's money" in first.payer
    assert (one.requests, two.requests) == ([], [])


@pytest.mark.parametrize(
    "answer", [{}, [], "hello", {"data": {}}, {"data": []}, {"data": [7, {"id": 7}, {"name": "x"}]}, None]
)
async def test_something_else_on_the_port_is_not_a_model_server(answer: Any) -> None:
    async with FakeOpenAIServer() as server:
        server.models = answer
        assert await look(local("other", server.base_url)) == ()
        assert await look(local("missing", server.base_url + "/nowhere")) == ()


async def test_a_server_that_does_not_answer_costs_no_more_than_the_time_it_gets() -> None:
    arrived = asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived.set()
        await reader.read()
        writer.close()

    silent = await asyncio.start_server(hang, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    async with silent, FakeOpenAIServer() as server:
        server.models = listing({"id": "m"})
        slow = [local(f"slow{number}", f"http://127.0.0.1:{port}/v1") for number in range(4)]
        found = await look(*slow, local("good", server.base_url), timeout_s=2)
    assert arrived.is_set()
    assert [item.provider for item in found] == ["good"]


async def test_garbage_and_redirects_are_nothing() -> None:
    answers = [
        b"\x00\x01\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: http://example.com/\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n\xff\xfe{}",
    ]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answers.pop())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        while answers:
            assert await look(local("odd", f"http://127.0.0.1:{port}/v1")) == ()


@pytest.mark.parametrize(
    ("item", "window"),
    [
        ({"id": "m"}, None),
        ({"id": "m", "max_model_len": 8192, "meta": {"n_ctx": 1}}, 8192),
        ({"id": "m", "context_length": 100}, 100),
        ({"id": "m", "max_context_length": 100}, 100),
        ({"id": "m", "meta": {"n_ctx": 512, "n_ctx_train": 4096}}, 512),
        ({"id": "m", "meta": {"n_ctx_train": 4096}}, 4096),
        ({"id": "m", "meta": None, "context_length": True}, None),
        ({"id": "m", "context_length": 0, "max_model_len": -1}, None),
        ({"id": "m", "context_length": "8k"}, None),
    ],
)
def test_the_size_that_a_server_tells(item: dict[str, Any], window: int | None) -> None:
    assert read_models(msgspec.json.encode(listing(item))) == (FoundModel("m", window),)


@pytest.mark.parametrize(
    "name", ["", "a\nb", "a\0b", "x" * 201, "\u202eevil", "text-embedding-3", "Whisper-1"]
)
def test_names_that_cannot_be_used_are_left_out(name: str) -> None:
    body = msgspec.json.encode(listing({"id": name}, {"id": "x" * 200}))
    assert read_models(body) == (FoundModel("x" * 200),)


def test_a_list_is_bounded() -> None:
    many = [{"id": f"m{number}"} for number in range(500)]
    assert len(read_models(msgspec.json.encode(listing(*many)))) == 200
    assert read_models(b"[" * 100_000) == ()


@settings(max_examples=100, deadline=None)
@given(body=st.one_of(st.binary(max_size=200), st.text(max_size=50).map(lambda text: text.encode())))
def test_any_bytes_are_read(body: bytes) -> None:
    assert isinstance(read_models(body), tuple)
