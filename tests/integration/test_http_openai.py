"""The OpenAI endpoints of a real gateway, used by the official client."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from openclaw.app import Gateway
from tests.fakes.openai_server import FakeCall, FakeReply
from tests.integration.conftest import TOKEN, House, client_of
from tests.integration.http_client import OPENED, HttpClient, said

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
PNG = base64.b64encode(
    bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489") + b"\0" * 20
).decode()


@pytest.fixture
async def open_gateway(house: House) -> AsyncIterator[Gateway]:
    house.config["gateway"]["http"] = {"endpoints": OPENED}
    async with house.gateway() as running:
        yield running


@pytest.fixture
async def official(open_gateway: Gateway) -> AsyncIterator[AsyncOpenAI]:
    async with official_client(open_gateway) as client:
        yield client


def official_client(gateway: Gateway, key: str = TOKEN) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"http://127.0.0.1:{gateway.port}/v1", api_key=key, timeout=60, max_retries=0)


def told(house: House, number: int = -1) -> list[dict[str, Any]]:
    """The messages of a request that the model got."""
    messages: list[dict[str, Any]] = house.model.requests[number].body["messages"]
    return messages


async def keys(gateway: Gateway) -> list[str]:
    async with client_of(gateway) as client:
        return sorted(row["key"] for row in (await client.call("sessions.list", {}))["sessions"])


async def test_models_are_the_agents(official: AsyncOpenAI) -> None:
    names = [model.id async for model in official.models.list()]
    assert names == ["openclaw", "openclaw/default", "openclaw/bob", "openclaw/main"]
    assert (await official.models.retrieve("openclaw/bob")).owned_by == "openclaw"
    with pytest.raises(openai.NotFoundError):
        await official.models.retrieve("openclaw/nobody")


async def test_a_completion(house: House, open_gateway: Gateway, official: AsyncOpenAI) -> None:
    house.model.script(FakeReply(texts=("Good", " day"), usage=USAGE))
    answer = await official.chat.completions.create(
        model="openclaw/bob",
        messages=[
            {"role": "system", "content": "Speak like a lighthouse keeper."},
            {"role": "user", "content": "earlier words"},
            {"role": "assistant", "content": "earlier answer"},
            {"role": "user", "content": "hello there"},
        ],
    )
    assert answer.id.startswith("chatcmpl_")
    assert answer.choices[0].message.content == "Good day"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (
        7,
        3,
        10,
    )
    (key,) = await keys(open_gateway)
    assert key.startswith("agent:bob:openai:")
    messages = told(house)
    # The instructions stand beside the message, so that the beginning of the prompt stays the same.
    assert "Speak like a lighthouse keeper." in json.dumps(messages[:-1])
    last = json.dumps(messages[-1])
    assert (
        last.index("User: earlier words")
        < last.index("Assistant: earlier answer")
        < last.index("hello there")
    )


async def test_each_call_has_a_session_of_its_own(
    house: House, open_gateway: Gateway, official: AsyncOpenAI
) -> None:
    house.model.script(FakeReply(texts=("one",)), FakeReply(texts=("two",)))
    for _ in range(2):
        await official.chat.completions.create(model="openclaw", messages=[{"role": "user", "content": "hi"}])
    assert len(await keys(open_gateway)) == 2
    assert "one" not in json.dumps(told(house)[1:])


async def test_a_user_has_a_lasting_session(
    house: House, open_gateway: Gateway, official: AsyncOpenAI
) -> None:
    house.model.script(*(FakeReply(texts=(word,)) for word in ("one", "two", "three")))
    await official.chat.completions.create(
        model="openclaw",
        user="Ann",
        messages=[{"role": "assistant", "content": "known"}, {"role": "user", "content": "first"}],
    )
    assert "known" in json.dumps(told(house))
    await official.chat.completions.create(
        model="openclaw",
        user="Ann",
        messages=[{"role": "assistant", "content": "claimed"}, {"role": "user", "content": "second"}],
    )
    # The session remembers by itself; it is not told again, and not told otherwise.
    again = json.dumps(told(house))
    assert all(word in again for word in ("first", "one", "second"))
    assert "claimed" not in again
    await official.chat.completions.create(
        model="openclaw", user="ann", messages=[{"role": "user", "content": "other"}]
    )
    assert "first" not in json.dumps(told(house))
    found = await keys(open_gateway)
    assert len(found) == 2
    assert all(key.startswith("agent:main:openai-user:") and "ann" not in key for key in found)


async def test_a_stream(house: House, official: AsyncOpenAI) -> None:
    house.model.script(FakeReply(texts=("Hel", "lo ", "you"), usage=USAGE, delay_s=0.02))
    stream = await official.chat.completions.create(
        model="openclaw",
        messages=[{"role": "user", "content": "hi"}],
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = [chunk async for chunk in stream]
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "Hello you"
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert [chunk.choices[0].finish_reason for chunk in chunks[:-2]] == [None] * (len(chunks) - 2)
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 10
    assert all(chunk.usage is None for chunk in chunks[:-1])
    assert len({chunk.id for chunk in chunks}) == 1


async def test_the_bytes_of_a_stream(house: House, open_gateway: Gateway) -> None:
    house.model.script(FakeReply(texts=("Hi",)))
    async with HttpClient(open_gateway) as http:
        answer = await http.post("/v1/chat/completions", said("hi", stream=True))
    assert answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    events = answer.text.split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    assert "usage" not in json.loads(events[0].removeprefix("data: "))


async def test_the_steps_of_a_tool_turn_are_told_apart(house: House, official: AsyncOpenAI) -> None:
    steps = (
        FakeReply(texts=("Let me look.",), calls=(FakeCall("session_status"),), usage=USAGE),
        FakeReply(texts=("Done.",), usage=USAGE),
    )
    house.model.script(*steps, *steps)
    whole = await official.chat.completions.create(
        model="openclaw", messages=[{"role": "user", "content": "look"}]
    )
    assert whole.choices[0].message.content == "Done."
    assert whole.usage is not None
    assert whole.usage.total_tokens == 20
    stream = await official.chat.completions.create(
        model="openclaw", messages=[{"role": "user", "content": "look"}], stream=True
    )
    text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
    assert text == "Let me look.\n\nDone."


async def test_an_image_reaches_the_model(house: House, official: AsyncOpenAI) -> None:
    house.model.script(FakeReply(texts=("A dot.",)))
    url = f"data:image/png;base64,{PNG}"
    await official.chat.completions.create(
        model="openclaw",
        messages=[
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is it?"},
                    {"type": "image_url", "image_url": {"url": url}},
                ],
            }
        ],
    )
    assert PNG in json.dumps(told(house)[-1])


async def test_a_wrong_key(open_gateway: Gateway) -> None:
    async with official_client(open_gateway, "wrong") as client:
        with pytest.raises(openai.AuthenticationError) as refused:
            await client.chat.completions.create(
                model="openclaw", messages=[{"role": "user", "content": "hi"}]
            )
    assert refused.value.body == {"message": "Unauthorized", "type": "unauthorized"}
    assert await keys(open_gateway) == []


async def test_refusals_speak_the_clients_language(open_gateway: Gateway, official: AsyncOpenAI) -> None:
    ask = official.chat.completions.create
    with pytest.raises(openai.NotFoundError) as unknown:
        await ask(model="gpt-4", messages=[{"role": "user", "content": "hi"}])
    assert unknown.value.code == "model_not_found"
    assert "/v1/models" in unknown.value.message
    with pytest.raises(openai.BadRequestError) as tools:
        await ask(
            model="openclaw",
            messages=[{"role": "user", "content": "hi"}],
            tools=[{"type": "function", "function": {"name": "f"}}],
        )
    assert tools.value.code == "unsupported_parameter"
    with pytest.raises(openai.BadRequestError, match="not valid base64"):
        await ask(
            model="openclaw",
            messages=[
                {
                    "role": "user",
                    "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,!!"}}],
                }
            ],
        )
    assert await keys(open_gateway) == []


async def test_a_failing_model_is_an_error_that_is_not_repeated(house: House, open_gateway: Gateway) -> None:
    house.model.script(*[FakeReply(status=401, body={"error": {"message": "bad key"}})] * 2)
    async with AsyncOpenAI(
        base_url=f"http://127.0.0.1:{open_gateway.port}/v1", api_key=TOKEN, timeout=60, max_retries=2
    ) as client:
        with pytest.raises(openai.InternalServerError) as failed:
            await client.chat.completions.create(
                model="openclaw", messages=[{"role": "user", "content": "hi"}]
            )
        assert failed.value.status_code == 502
        assert len(house.model.requests) == 1
        stream = await client.chat.completions.create(
            model="openclaw", messages=[{"role": "user", "content": "hi"}], stream=True
        )
        with pytest.raises(openai.APIError):
            async for _chunk in stream:
                pass


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_goes_away_stops_its_run(
    house: House, open_gateway: Gateway, stream: bool
) -> None:
    house.model.script(FakeReply(texts=("never", " ends"), hang_after=2))
    async with official_client(open_gateway) as client:
        asking = asyncio.create_task(_read(client, stream))
        await house.model.wait_for_requests(1, 60)
        await asyncio.sleep(0.2)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    await house.model.wait_for_disconnects(1, 60)
    (key,) = await keys(open_gateway)
    active = open_gateway.services.workers.active_run(key)
    if active is not None:
        await open_gateway.services.turns.wait(active.run.run_id, 60)
    row = await open_gateway.services.store.session(key)
    assert row is not None
    assert row.entry.aborted_last_run


async def _read(client: AsyncOpenAI, stream: bool) -> None:
    ask = client.chat.completions.create
    if not stream:
        await ask(model="openclaw", messages=[{"role": "user", "content": "hi"}])
        return
    async for _chunk in await ask(
        model="openclaw", messages=[{"role": "user", "content": "hi"}], stream=True
    ):
        pass


async def test_a_run_that_somebody_stops_is_told(house: House, open_gateway: Gateway) -> None:
    house.model.script(FakeReply(texts=("never", " ends"), hang_after=2))
    async with HttpClient(open_gateway) as http, client_of(open_gateway) as client:
        asking = asyncio.create_task(http.post("/v1/chat/completions", said("hi", user="ann")))
        await house.model.wait_for_requests(1, 60)
        (key,) = await keys(open_gateway)
        await client.call("chat.abort", {"sessionKey": key})
        answer = await asking
    assert answer.status == 409
    assert answer.headers["x-should-retry"] == "false"


async def test_two_calls_in_one_session_get_their_own_answers(house: House, open_gateway: Gateway) -> None:
    house.model.decide = lambda body: FakeReply(texts=(f"re: {_last_word(body)}",), delay_s=0.05)
    async with HttpClient(open_gateway) as http:
        answers = await asyncio.gather(
            *(http.post("/v1/chat/completions", said(word, user="ann")) for word in ("red", "blue", "green"))
        )
    assert [answer.json["choices"][0]["message"]["content"] for answer in answers] == [
        "re: red",
        "re: blue",
        "re: green",
    ]


def _last_word(body: dict[str, Any]) -> str:
    content = body["messages"][-1]["content"]
    text = content if isinstance(content, str) else content[-1]["text"]
    return str(text).split()[-1]


async def test_the_owners_headers_choose_session_and_agent(
    house: House, open_gateway: Gateway, official: AsyncOpenAI
) -> None:
    house.model.script(FakeReply(texts=("a",)), FakeReply(texts=("b",)))
    for headers in ({"x-openclaw-session-key": "proj"}, {"x-openclaw-agent-id": "bob"}):
        await official.chat.completions.create(
            model="openclaw", messages=[{"role": "user", "content": "hi"}], extra_headers=headers
        )
    first, second = await keys(open_gateway)
    assert first.startswith("agent:bob:openai:")
    assert second == "agent:main:proj"


async def test_words_of_a_request_are_never_commands(house: House, official: AsyncOpenAI) -> None:
    house.model.script(FakeReply(texts=("You said slash status.",)))
    answer = await official.chat.completions.create(
        model="openclaw", messages=[{"role": "user", "content": "/status"}]
    )
    assert answer.choices[0].message.content == "You said slash status."
    assert "/status" in json.dumps(told(house)[-1])


async def test_responses(house: House, open_gateway: Gateway, official: AsyncOpenAI) -> None:
    house.model.script(FakeReply(texts=("Hi",), usage=USAGE), FakeReply(texts=("Str", "eamed"), delay_s=0.02))
    answer = await official.responses.create(model="openclaw", input="hello", instructions="Be brief.")
    assert answer.id.startswith("resp_")
    assert answer.status == "completed"
    assert answer.output_text == "Hi"
    assert answer.usage is not None
    assert answer.usage.total_tokens == 10
    assert "Be brief." in json.dumps(told(house)[:-1])
    stream = await official.responses.create(
        model="openclaw", input=[{"role": "user", "content": "hello"}], stream=True
    )
    events = [event async for event in stream]
    kinds = [event.type for event in events]
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"
    assert [event.sequence_number for event in events] == list(range(len(events)))
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == "Streamed"
    assert events[-1].type == "response.completed"
    assert events[-1].response.output_text == "Streamed"
    assert all(key.startswith("agent:main:openresponses:") for key in await keys(open_gateway))
    with pytest.raises(openai.BadRequestError, match="give `user`"):
        await official.responses.create(model="openclaw", input="x", previous_response_id="resp_1")


async def test_a_failed_response_says_so_in_the_stream(house: House, official: AsyncOpenAI) -> None:
    house.model.script(FakeReply(status=401, body={"error": {"message": "bad key"}}))
    stream = await official.responses.create(model="openclaw", input="hello", stream=True)
    events = [event async for event in stream]
    assert events[-1].type == "response.failed"
    assert events[-1].response.error is not None


async def test_the_endpoints_are_off_until_they_are_turned_on(gateway: Gateway) -> None:
    async with HttpClient(gateway) as http:
        for path, name in (("/v1/chat/completions", "chatCompletions"), ("/v1/responses", "responses")):
            answer = await http.post(path, said("hi"))
            assert answer.status == 404
            assert f"gateway.http.endpoints.{name}.enabled" in answer.json["error"]["message"]
        assert (await http.get("/v1/models")).status == 200
    assert await keys(gateway) == []


async def test_a_gateway_that_stops_answers_first(house: House) -> None:
    house.config["gateway"]["http"] = {"endpoints": OPENED}
    house.model.script(FakeReply(texts=("never", " ends"), hang_after=2), FakeReply(texts=("after",)))
    async with house.gateway() as gateway, HttpClient(gateway) as http:
        asking = asyncio.create_task(http.post("/v1/chat/completions", said("hi")))
        await house.model.wait_for_requests(1, 60)
        await asyncio.sleep(0.1)
        gateway._server.say_goodbye()
        answer = await asking
        house.model.release()
    assert answer.status == 503
    assert "stopping" in answer.json["error"]["message"]
