"""The scripted model, on which the tests of the engine rest."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from openclaw.domain.transcript import TextBlock, ThinkingBlock, ToolCallBlock, Usage
from openclaw.engine.ports import ModelRequest, TextDelta
from openclaw.models.scripted import ScriptedModel, ScriptedStep, call_tool, fail, say
from tests.unit.models.asking import Heard, ask, make_request


async def test_it_plays_its_steps_in_order_and_records_the_requests() -> None:
    usage = Usage(input=1, output=2, total_tokens=3)
    model = ScriptedModel(say("Hel", "lo", usage=usage), call_tool("look", {"at": 1}))
    first = await ask(model, make_request("one"))
    assert [part.text for part in first.deltas if isinstance(part, TextDelta)] == ["Hel", "lo"]
    assert first.message.content == (TextBlock("Hello"),)
    assert (first.message.usage, first.message.stop_reason) == (usage, "stop")
    second = await ask(model, make_request("two"))
    assert second.message.content == (ToolCallBlock("call_2_0", "look", {"at": 1}),)
    assert second.message.stop_reason == "toolUse"
    assert [request.messages[0].content for request in model.requests] == ["one", "two"]
    assert model.interrupted == 0


async def test_failures_are_data_and_keep_what_was_said() -> None:
    step = ScriptedStep(
        thinking=("hm",), texts=("half",), failure=fail("network", "acme/coyote-1: gone").failure
    )
    heard = await ask(ScriptedModel(step), make_request())
    assert heard.kind == "network"
    assert heard.message.content == (ThinkingBlock("hm"), TextBlock("half"))
    assert (heard.streamed_thinking, heard.streamed_text) == ("hm", "half")


async def test_a_step_may_depend_on_the_request_and_the_last_may_repeat() -> None:
    def count(request: ModelRequest) -> ScriptedStep:
        return say(f"{len(request.messages)} messages")

    model = ScriptedModel(then=count)
    assert (await ask(model, make_request("a"))).text == "1 messages"
    assert (await ask(model, make_request(()))).text == "0 messages"
    model.add(say("added"))
    assert (await ask(model, make_request("a"))).text == "added"


async def test_an_empty_script_fails_in_words() -> None:
    model = ScriptedModel(say("only one"))
    await ask(model, make_request())
    events = [event async for event in model.stream(make_request())]
    assert len(events) == 1
    assert "no step for call 2" in str(events[0])


@pytest.mark.parametrize("gate_after", [0, 1, 2, 9])
async def test_a_gate_holds_the_stream_at_its_place(gate_after: int) -> None:
    gate = asyncio.Event()
    model = ScriptedModel(ScriptedStep(texts=("a", "b"), gate=gate, gate_after=gate_after))
    seen: list[str] = []

    async def listen() -> None:
        async for event in model.stream(make_request()):
            seen.append(type(event).__name__)

    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        tasks.create_task(listen())
        await model.wait_for_requests(1)
        for _ in range(5):
            await asyncio.sleep(0)
        assert seen == ["TextDelta"] * min(gate_after, 2)
        gate.set()
    assert seen == ["TextDelta", "TextDelta", "ModelDone"]


async def test_interrupted_streams_are_counted() -> None:
    model = ScriptedModel(then=ScriptedStep(texts=("a", "b"), gate=asyncio.Event(), gate_after=1))
    task: asyncio.Task[Heard] = asyncio.create_task(ask(model, make_request()))
    async with asyncio.timeout(60):
        await model.wait_for_requests(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert model.interrupted == 1
    async with aclosing(model.stream(make_request())) as stream:
        assert await anext(stream) == TextDelta("a")
    assert model.interrupted == 2
