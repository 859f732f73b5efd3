"""Servers of the chat-completions wire and their habits, in what they are asked and in what they answer."""

from __future__ import annotations

from typing import Any

import aiohttp
import msgspec
import pytest

from openclaw.domain.transcript import (
    AssistantMessage,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
)
from openclaw.models.openai_chat import OpenAIChatModel
from openclaw.models.openai_request import encode_request, entry_position
from openclaw.models.openai_variants import extra_headers, max_tokens_field, reasoning_fields
from tests.fakes.openai_server import DONE, FakeOpenAIServer, FakeReply, delta, event
from tests.unit.models.asking import NOW_MS, Heard, ask, make_request, make_target

IMAGE = ImageBlock("aGk=", "image/png")
OPENROUTER = "https://openrouter.ai/api/v1"


@pytest.mark.parametrize(
    ("level", "effort"),
    [
        ("off", "none"),
        ("minimal", "minimal"),
        ("low", "low"),
        ("medium", "medium"),
        ("high", "high"),
        ("xhigh", "xhigh"),
        ("max", "xhigh"),
        ("adaptive", None),
        (None, None),
    ],
)
def test_openrouter_takes_every_level_in_an_object(level: str | None, effort: str | None) -> None:
    target = make_target(OPENROUTER, reasoning=True)
    wanted = {} if effort is None else {"reasoning": {"effort": effort}}
    assert reasoning_fields(target, level) == wanted
    assert reasoning_fields(make_target(OPENROUTER), level) == {}


def test_off_is_said_to_servers_that_think_by_themselves() -> None:
    def off(provider: str, **changes: Any) -> dict[str, Any]:
        return reasoning_fields(make_target(provider=provider, reasoning=True, **changes), "off")

    template = {"chat_template_kwargs": {"enable_thinking": False}}
    assert off("ollama") == {"reasoning_effort": "none"}
    assert off("vllm") == off("llamacpp") == template
    assert off("lmstudio") == off("acme") == off("openai") == {}
    off("vllm")["chat_template_kwargs"] = 1
    assert off("vllm") == template


def test_only_openrouter_is_told_who_calls() -> None:
    assert extra_headers(make_target(OPENROUTER)) == {"X-Title": "OpenClaw"}
    for other in ("https://openrouter.ai.evil.example/v1", "http://[broken", "http://127.0.0.1/v1"):
        assert extra_headers(make_target(other)) == {}
        assert max_tokens_field(make_target(other)) == "max_tokens"


def test_a_model_that_reads_text_only_is_told_of_images() -> None:
    told = "(an image is here, which this model cannot see)"
    messages: list[Message] = [
        UserMessage((TextBlock("see"), IMAGE), NOW_MS),
        AssistantMessage((ToolCallBlock("c", "look", {}),), NOW_MS),
        ToolResultMessage("c", "look", (TextBlock("here"), IMAGE), NOW_MS),
    ]
    blind = make_request(messages, target=make_target(images=False), system="")
    wire = msgspec.json.decode(encode_request(blind))["messages"]
    assert [message["content"] for message in wire] == [f"see\n{told}", None, f"here\n{told}"]
    seeing = msgspec.json.decode(encode_request(make_request(messages, system="")))["messages"]
    assert [message["role"] for message in seeing] == ["user", "assistant", "tool", "user"]
    assert seeing[2]["content"] == "here"


def test_a_number_on_the_wire_leads_back_to_the_message() -> None:
    messages: list[Message] = [
        UserMessage("go", NOW_MS),
        AssistantMessage((ToolCallBlock("a", "x", {}), ToolCallBlock("b", "x", {})), NOW_MS),
        ToolResultMessage("a", "x", (IMAGE,), NOW_MS),
        ToolResultMessage("b", "x", (TextBlock("2"),), NOW_MS),
        UserMessage("and?", NOW_MS),
    ]
    with_system = make_request(messages)
    # system, go, calls, a, b, the image of a, and?
    assert [entry_position(with_system, number) for number in range(8)] == [None, 0, 1, 2, 3, 2, 4, None]
    assert entry_position(make_request(messages[:4], system=""), 4) == 2


async def test_the_refused_message_is_pointed_at() -> None:
    body = {"error": {"message": "Invalid value for 'messages[1].content'", "type": "invalid_request_error"}}
    async with (
        FakeOpenAIServer(FakeReply(status=400, body=body)) as server,
        aiohttp.ClientSession() as session,
    ):
        heard = await ask(OpenAIChatModel(session), make_request(target=make_target(server.base_url)))
    assert heard.failure is not None
    assert (heard.failure.kind, heard.failure.entry) == ("invalid_entry", 0)


# -- answers as these servers really send them -----------------------------------------------------


async def hear(*chunks: bytes) -> Heard:
    reply = FakeReply(raw=chunks)
    async with FakeOpenAIServer(reply) as server, aiohttp.ClientSession() as session:
        return await ask(OpenAIChatModel(session), make_request(target=make_target(server.base_url)))


async def test_ollama_sends_a_whole_call_without_an_index_and_no_usage() -> None:
    call = {"id": "call_x", "type": "function", "function": {"name": "look", "arguments": '{"a":1}'}}
    heard = await hear(
        delta({"role": "assistant", "content": "", "reasoning": "hm"}),
        delta({"tool_calls": [call]}),
        delta({"content": ""}, "tool_calls"),
        DONE,
    )
    assert heard.failure is None
    assert heard.message.content == (ThinkingBlock("hm"), ToolCallBlock("call_x", "look", {"a": 1}))
    assert heard.message.usage is None


async def test_llama_cpp_sends_arguments_as_an_object_without_an_id() -> None:
    calls = [{"index": at, "function": {"name": "look", "arguments": {"at": at}}} for at in range(2)]
    heard = await hear(delta({"tool_calls": calls}), delta({}, "stop"), DONE)
    first, second = heard.message.content
    assert isinstance(first, ToolCallBlock) and isinstance(second, ToolCallBlock)
    assert (first.arguments, second.arguments) == ({"at": 0}, {"at": 1})
    assert first.id and second.id and first.id != second.id
    assert heard.message.stop_reason == "toolUse"


async def test_openrouter_comments_while_it_waits_and_names_the_failure_of_another() -> None:
    comment = b": OPENROUTER PROCESSING\n\n"
    heard = await hear(comment, comment, delta({"content": "hi"}), comment, delta({}, "stop"), DONE)
    assert (heard.text, heard.failure) == ("hi", None)
    broken = {"error": {"code": 502, "message": "Upstream error"}, "choices": []}
    assert (await hear(comment, delta({"content": "hi"}), event(broken))).kind == "server_error"


async def test_vllm_and_lm_studio_name_an_overflow_inside_the_stream() -> None:
    vllm = {"object": "error", "message": "This model's maximum context length is 8 tokens", "code": 400}
    assert (await hear(event(vllm))).kind == "overflow"
    lm_studio = b'event: error\ndata: {"error": {"message": "Reached context length, context size 8"}}\n\n'
    assert (await hear(lm_studio)).kind == "overflow"


async def test_comments_alone_are_given_up() -> None:
    reply = FakeReply(raw=(b": still here\n\n",) * 2000, delay_s=0.02)
    async with FakeOpenAIServer(reply) as server, aiohttp.ClientSession() as session:
        model = OpenAIChatModel(session, progress_timeout_s=0.2)
        heard = await ask(model, make_request(target=make_target(server.base_url)), timeout_s=60)
        await server.wait_for_disconnects(1, 60)
    assert heard.kind == "timeout"
