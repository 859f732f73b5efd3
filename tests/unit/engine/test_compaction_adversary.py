"""Compaction against a summariser that does everything wrong: it ends in time and makes nothing worse."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.compaction import CompactionSettings, Trigger
from openclaw.domain.context import make_valid
from openclaw.domain.tokens import messages_tokens
from openclaw.domain.transcript import Message, ToolCallBlock, Usage, UserMessage, text_of
from openclaw.engine.compaction import Compacted, NotCompacted
from openclaw.engine.ports import ModelRequest
from openclaw.models.openai_chat import OpenAIChatModel
from openclaw.models.scripted import Script, ScriptedModel, ScriptedStep, call_tool, fail, say
from openclaw.store.sqlite import SqliteDatabase
from tests.conformance.making import NOON, begin, present, unique_name
from tests.fakes.openai_server import FakeOpenAIServer, FakeReply
from tests.unit.engine.compacting import SETTINGS, WINDOW, Workshop, draft, talk, turn
from tests.unit.models.asking import make_target


@pytest.fixture
async def workshop() -> AsyncIterator[Workshop]:
    database = await SqliteDatabase.open_memory(unique_name())
    yield Workshop(database)
    await database.close()


def echo(request: ModelRequest) -> ScriptedStep:
    """A summary that is larger than what it summarises."""
    return say(text_of(request.messages[0]) * 3)


def never() -> ScriptedStep:
    return ScriptedStep(texts=("too late",), gate=asyncio.Event())


LIAR = say("x" * 200_000, usage=Usage(input=1, output=1, total_tokens=2))
BAD: dict[str, Script] = {
    "empty": say(""),
    "blank": say(" \n\t "),
    "larger": echo,
    "failing": fail("server_error"),
    "overflowing": fail("context_overflow"),
    "lying about its size": LIAR,
    "calling tools": call_tool("exec", {"cmd": "rm -rf /"}),
    "cut off": ScriptedStep(texts=("half a summ",), stop_reason="length"),
    "only thinking": ScriptedStep(thinking=("hmm",)),
    "only scaffolding": say("<think>nothing but this</think>"),
}
QUICK = msgspec.structs.replace(SETTINGS, timeout_seconds=1)


@pytest.mark.spec("COMP-10")
@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("trigger", ["manual", "threshold", "overflow"])
async def test_a_bad_summary_is_never_kept(workshop: Workshop, kind: str, trigger: Trigger) -> None:
    row = await workshop.fill(talk(20))
    before = await workshop.texts()
    model = ScriptedModel(then=BAD[kind])
    result = await workshop.compactor.compact(await workshop.job(model, trigger))
    assert len(model.requests) == 2
    if trigger == "overflow":
        assert isinstance(result, Compacted)
        assert result.strategy == "local"
        assert result.tokens_after <= 0.9 * result.tokens_before
    else:
        assert isinstance(result, NotCompacted)
        assert result.reason == "failed"
        assert result.message.startswith("Nothing was compacted: ")
        assert await workshop.texts() == before
        assert (await present(workshop.store)).last_seq == row.last_seq


@pytest.mark.spec("COMP-10")
async def test_a_reply_with_text_beside_tool_calls_is_taken_for_its_text(workshop: Workshop) -> None:
    await workshop.fill(talk(20))
    step = ScriptedStep(texts=("Good notes.",), tool_calls=(ToolCallBlock("x", "exec", {}),))
    result = await workshop.compactor.compact(await workshop.job(ScriptedModel(step)))
    assert isinstance(result, Compacted)
    assert "Good notes." in (await workshop.texts())[0]


@pytest.mark.spec("COMP-10")
async def test_a_second_better_summary_is_taken(workshop: Workshop) -> None:
    await workshop.fill(talk(20))
    model = ScriptedModel(echo, say("Good notes."))
    result = await workshop.compactor.compact(await workshop.job(model))
    assert isinstance(result, Compacted)
    assert result.strategy == "short_summary"
    first, second = (text_of(request.messages[0]) for request in model.requests)
    assert first.count("Person: question") < second.count("Person: question")


@pytest.mark.spec("COMP-5", "COMP-10")
@pytest.mark.parametrize("trigger", ["manual", "overflow"])
async def test_a_model_that_never_answers_is_given_up(workshop: Workshop, trigger: Trigger) -> None:
    await workshop.fill(talk(20))
    model = ScriptedModel(never(), never())
    started = time.monotonic()
    async with asyncio.timeout(60):
        result = await workshop.compactor.compact(await workshop.job(model, trigger, settings=QUICK))
    assert time.monotonic() - started >= 0.6
    assert model.interrupted == len(model.requests) <= 2
    if trigger == "overflow":
        assert isinstance(result, Compacted)
        assert result.strategy == "local"
    else:
        assert isinstance(result, NotCompacted)
        # On a machine that stalls, no time may be left for the second call.
        assert "did not answer within" in result.message or "no time left" in result.message


@pytest.mark.spec("COMP-10")
async def test_the_runs_own_deadline_leaves_time_for_the_last_resort(workshop: Workshop) -> None:
    claimed = await begin(workshop.store, "run-1")
    await workshop.say(*talk(20))
    model = ScriptedModel(then=never())
    for left_ms, asked in ((5_000, 0), (5_600, 2)):  # the last resort keeps five seconds
        run = msgspec.structs.replace(claimed.run, deadline=NOON + left_ms)
        job = await workshop.job(model, "overflow", run=run)
        async with asyncio.timeout(60):
            result = await workshop.compactor.compact(job)
        assert isinstance(result, Compacted)
        assert result.strategy == "local"
        assert result.entry.run_id == "run-1"
        assert len(model.requests) == model.interrupted <= asked
        await workshop.say(*talk(20))


@pytest.mark.spec("COMP-5")
async def test_no_time_limit_in_the_configuration_means_the_default_one(workshop: Workshop) -> None:
    await workshop.fill(talk(20))
    unlimited = msgspec.structs.replace(SETTINGS, timeout_seconds=0)
    result = await workshop.compactor.compact(
        await workshop.job(ScriptedModel(say("notes")), settings=unlimited)
    )
    assert isinstance(result, Compacted)


@pytest.mark.spec("COMP-10")
async def test_a_refused_entry_is_not_shown_to_the_summariser(workshop: Workshop) -> None:
    messages = talk(20)
    await workshop.fill(messages)
    row = await present(workshop.store)
    poison = (await workshop.store.context(row.window_no))[0]
    body = {"customType": "quarantine", "data": {"entryIds": [poison.entry_id]}}
    mark = msgspec.structs.replace(draft(UserMessage("", 1)), type="custom", body=msgspec.json.encode(body))
    await workshop.store.append(row.session_key, (mark,), now_ms=NOON)
    model = ScriptedModel(say("notes"))
    await workshop.compactor.compact(await workshop.job(model))
    prompt = text_of(model.requests[0].messages[0])
    assert "question 1 about" not in prompt
    assert "question 2 about" in prompt


@pytest.mark.spec("COMP-4", "COMP-8")
async def test_a_provider_over_the_wire(workshop: Workshop) -> None:
    await workshop.fill(talk(20))
    overflow = FakeReply(status=400, body={"error": {"message": "maximum context length is 10 tokens"}})
    notes = FakeReply(texts=("Wire ", "notes."))
    async with FakeOpenAIServer(overflow, notes) as server, aiohttp.ClientSession() as session:
        target = make_target(server.base_url)
        job = await workshop.job(OpenAIChatModel(session), "threshold", target=target)
        result = await workshop.compactor.compact(job)
    assert isinstance(result, Compacted)
    assert result.strategy == "short_summary"
    assert "Wire notes." in (await workshop.texts())[0]
    sent = server.requests[1].body
    assert [message["role"] for message in sent["messages"]] == ["system", "user"]
    assert "tools" not in sent
    assert len(server.requests[1].raw) <= len(server.requests[0].raw)


# -- any conversation, any reply -----------------------------------------------------------------------------

REPLIES = st.one_of(
    st.sampled_from([BAD[kind] for kind in BAD]), st.builds(lambda n: say("s" * n), st.integers(0, 20_000))
)


@pytest.mark.spec("COMP-7", "COMP-10")
@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 6000), min_size=0, max_size=12),
    replies=st.lists(REPLIES, min_size=2, max_size=2),
    trigger=st.sampled_from(["manual", "threshold", "overflow"]),
    overhead=st.integers(0, 4000),
    keep=st.integers(0, 5000),
)
def test_whatever_happens_the_context_fits_or_is_as_it_was(
    sizes: list[int], replies: list[Script], trigger: Trigger, overhead: int, keep: int
) -> None:
    async def scenario() -> None:
        database = await SqliteDatabase.open_memory(unique_name(), readers=1)
        try:
            await check(Workshop(database))
        finally:
            await database.close()

    async def check(workshop: Workshop) -> None:
        messages: list[Message] = [
            message for number, size in enumerate(sizes, 1) for message in turn(number, size)
        ]
        await workshop.fill(messages)
        before = await workshop.texts() if messages else []
        chosen = CompactionSettings(keep_recent_tokens=keep, timeout_seconds=60)
        fields: dict[str, Any] = {"settings": chosen, "overhead_tokens": overhead}
        job = await workshop.job(ScriptedModel(*replies), trigger, **fields)
        result = await workshop.compactor.compact(job)
        if isinstance(result, NotCompacted):
            assert (await workshop.texts() if messages else []) == before
            return
        context = await workshop.context()
        assert result.tokens_after == overhead + messages_tokens(context)
        assert result.tokens_after <= 0.9 * result.tokens_before
        assert result.tokens_after <= WINDOW * 3 // 4
        assert make_valid(context, "openai") == context
        kept = [text_of(message) for message in context[1:]]
        assert kept == before[len(before) - len(kept) :]

    asyncio.run(scenario())
