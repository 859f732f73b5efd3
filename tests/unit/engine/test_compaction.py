"""Compacting with a scripted model and a real store: the pipeline, its reports and its undoing (SPEC §20)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import msgspec
import pytest

from openclaw.domain.compaction import CompactionSettings
from openclaw.domain.context import make_valid
from openclaw.domain.tokens import messages_tokens
from openclaw.domain.transcript import UserMessage, text_of
from openclaw.engine.compaction import (
    Compacted,
    CompactionFinished,
    CompactionStarted,
    NotCompacted,
    tell_result,
)
from openclaw.errors import InvalidRequest
from openclaw.models.scripted import ScriptedModel, ScriptedStep, fail, say
from openclaw.store.runs import RunLost
from openclaw.store.sqlite import SqliteDatabase
from tests.conformance.making import begin, present, unique_name
from tests.unit.engine.compacting import KEY, SETTINGS, TARGET, Workshop, talk, turn


@pytest.fixture
async def workshop() -> AsyncIterator[Workshop]:
    database = await SqliteDatabase.open_memory(unique_name())
    yield Workshop(database)
    await database.close()


def compacted(result: Compacted | NotCompacted) -> Compacted:
    assert isinstance(result, Compacted), result
    return result


@pytest.mark.spec("COMP-1", "COMP-3", "COMP-9")
async def test_older_context_becomes_a_summary(workshop: Workshop) -> None:
    row = await workshop.fill(talk(20))
    before = await workshop.context()
    model = ScriptedModel(say("Notes: ticket TCK-00001 is done."))
    result = compacted(await workshop.compactor.compact(await workshop.job(model)))
    assert result.strategy == "summary"
    assert result.tokens_before == messages_tokens(before)
    after = await workshop.context()
    assert result.tokens_after == messages_tokens(after) < result.tokens_before * 0.9
    assert "Notes: ticket TCK-00001 is done." in text_of(after[0])
    assert after[1:] == before[len(before) - len(after) + 1 :]
    assert messages_tokens(after[1:]) <= 1500
    assert make_valid(after, "openai") == after
    entry = result.session.entry
    assert (entry.compaction_count, entry.total_tokens) == (1, result.tokens_after)
    assert entry.total_tokens_fresh is False
    assert entry.session_id == row.entry.session_id
    assert len(await workshop.store.context(row.window_no)) == 81
    assert tell_result(result, 10_000) == (
        f"Compacted: {result.tokens_before} → {result.tokens_after} tokens "
        f"({round(result.tokens_after / 100)} % of the 10000 that fit). /compact undo takes it back."
    )


@pytest.mark.spec("COMP-8", "TRX-10")
async def test_the_request_is_one_message_with_wishes_as_data(workshop: Workshop) -> None:
    messages = talk(20)
    messages[2] = msgspec.structs.replace(messages[2], details={"screen": "only-for-people"})
    await workshop.fill(messages)
    model = ScriptedModel(say("first notes"), say("second notes"))
    job = await workshop.job(model, instructions="keep the tickets " + "!" * 900)
    compacted(await workshop.compactor.compact(job))
    (request,) = model.requests
    (message,) = request.messages
    prompt = text_of(message)
    assert "keep the tickets" in prompt
    assert prompt.count("!") == 800 - len("keep the tickets ")
    assert "question 1 about ticket TCK-00001" in prompt
    assert "only-for-people" not in prompt
    assert (request.tools, request.cache, request.target) == ((), False, TARGET)
    assert request.max_tokens is not None
    assert request.max_tokens <= TARGET.max_tokens
    await workshop.say(*talk(20))
    compacted(await workshop.compactor.compact(await workshop.job(model)))
    merged = text_of(model.requests[1].messages[0])
    assert merged.count("first notes") == 1
    context = await workshop.texts()
    assert "second notes" in context[0]
    assert not any("first notes" in text for text in context)


@pytest.mark.spec("COMP-8")
async def test_files_and_dropped_identifiers_are_added_and_carried_on(workshop: Workshop) -> None:
    await workshop.fill(talk(20))
    model = ScriptedModel(say("short"), say("shorter"))
    first = compacted(await workshop.compactor.compact(await workshop.job(model)))
    details = msgspec.json.decode(first.entry.body)["details"]
    assert details["readFiles"][0] == "/srv/file1.py"
    assert (details["strategy"], details["trigger"]) == ("summary", "manual")
    summary = (await workshop.texts())[0]
    assert "TCK-00005" in summary
    await workshop.say(*talk(20))
    second = compacted(await workshop.compactor.compact(await workshop.job(model)))
    assert "/srv/file1.py" in msgspec.json.decode(second.entry.body)["details"]["readFiles"]


@pytest.mark.spec("COMP-9")
async def test_a_short_conversation_is_left_alone(workshop: Workshop) -> None:
    await workshop.fill(talk(2))
    model = ScriptedModel()
    result = await workshop.compactor.compact(await workshop.job(model))
    assert result == NotCompacted("too_short", "The conversation is too short to be compacted.")
    assert tell_result(result, 1) == "The conversation is too short to be compacted."
    assert model.requests == []
    assert (await present(workshop.store)).entry.compaction_count == 0


@pytest.mark.spec("COMP-9")
async def test_an_empty_session_is_left_alone(workshop: Workshop) -> None:
    await workshop.fill([])
    for trigger in ("manual", "threshold", "overflow"):
        result = await workshop.compactor.compact(await workshop.job(ScriptedModel(), trigger))
        assert isinstance(result, NotCompacted)
    assert (await present(workshop.store)).last_seq == 0


@pytest.mark.spec("COMP-11", "COMP-12")
async def test_beginning_and_end_are_told_and_logged(
    workshop: Workshop, caplog: pytest.LogCaptureFixture
) -> None:
    row = await workshop.fill(talk(20))
    with caplog.at_level(logging.INFO, "openclaw.compaction"):
        result = await workshop.compactor.compact(
            await workshop.job(ScriptedModel(say("notes")), "threshold")
        )
    assert workshop.events == [
        CompactionStarted(row, "threshold", None),
        CompactionFinished(row, "threshold", None, result),
    ]
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0] == f"compaction start: session={KEY} trigger=threshold attempt=1"
    assert lines[-1].startswith(
        f"compaction complete: session={KEY} trigger=threshold strategy=summary tokens="
    )
    caplog.clear()
    with caplog.at_level(logging.INFO, "openclaw.compaction"):
        await workshop.compactor.compact(await workshop.job(ScriptedModel()))
    assert caplog.records[-1].getMessage().startswith(f"compaction complete: session={KEY} nothing changed: ")


@pytest.mark.spec("COMP-10")
async def test_only_one_at_a_time_per_session(workshop: Workshop) -> None:
    await workshop.fill(talk(20))
    gate = asyncio.Event()
    model = ScriptedModel(ScriptedStep(texts=("notes",), gate=gate))
    job = await workshop.job(model)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        first = group.create_task(workshop.compactor.compact(job))
        await model.wait_for_requests(1)
        second = await workshop.compactor.compact(job)
        assert second == NotCompacted("busy", "This session is being compacted already.")
        gate.set()
    compacted(first.result())
    third = await workshop.compactor.compact(job)
    assert isinstance(third, NotCompacted)
    assert third.reason == "too_short"


@pytest.mark.spec("COMP-10")
async def test_a_compaction_that_is_overtaken_changes_nothing(workshop: Workshop) -> None:
    row = await workshop.fill(talk(20))
    gate = asyncio.Event()
    model = ScriptedModel(ScriptedStep(texts=("notes",), gate=gate))
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        task = group.create_task(workshop.compactor.compact(await workshop.job(model)))
        await model.wait_for_requests(1)
        await workshop.store.reset_session(KEY, "new", session_id="fresh", now_ms=1)
        gate.set()
    result = task.result()
    assert isinstance(result, NotCompacted)
    assert result.reason == "overtaken"
    assert "reset in the meantime" in result.message
    assert len(await workshop.store.context(row.window_no)) == 80


@pytest.mark.spec("COMP-10")
async def test_messages_that_come_meanwhile_are_kept(workshop: Workshop) -> None:
    await workshop.fill(talk(20))
    gate = asyncio.Event()
    model = ScriptedModel(ScriptedStep(texts=("notes",), gate=gate))
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        task = group.create_task(workshop.compactor.compact(await workshop.job(model)))
        await model.wait_for_requests(1)
        await workshop.say(UserMessage("by the way", 1))
        gate.set()
    compacted(task.result())
    assert (await workshop.texts())[-1] == "by the way"


@pytest.mark.spec("COMP-10")
async def test_a_cancelled_compaction_changes_nothing_and_frees_the_session(workshop: Workshop) -> None:
    await workshop.fill(talk(20))
    model = ScriptedModel(ScriptedStep(texts=("notes",), gate=asyncio.Event()), say("notes"))
    async with asyncio.timeout(60):
        task = asyncio.ensure_future(workshop.compactor.compact(await workshop.job(model)))
        await model.wait_for_requests(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert model.interrupted == 1
    ended = workshop.events[-1]
    assert isinstance(ended, CompactionFinished)
    assert ended.result == NotCompacted("cancelled", "The compaction was stopped.")
    assert (await present(workshop.store)).last_seq == 80
    compacted(await workshop.compactor.compact(await workshop.job(model)))


@pytest.mark.spec("COMP-10")
async def test_a_run_that_was_lost_cannot_compact(workshop: Workshop) -> None:
    claimed = await begin(workshop.store, "run-1")
    await workshop.say(*talk(20))
    await workshop.store.take_over("run-1", "other", now_ms=1)
    job = await workshop.job(ScriptedModel(say("notes")), "threshold", run=claimed.run)
    with pytest.raises(RunLost):
        await workshop.compactor.compact(job)
    ended = workshop.events[-1]
    assert isinstance(ended, CompactionFinished)
    assert isinstance(ended.result, NotCompacted)
    assert (ended.run_id, ended.result.reason) == ("run-1", "failed")
    assert (await present(workshop.store)).entry.compaction_count == 0


# -- strategies --------------------------------------------------------------------------------------------


@pytest.mark.spec("COMP-4", "COMP-10")
async def test_an_overflow_that_no_model_can_help_is_settled_locally(workshop: Workshop) -> None:
    await workshop.fill(talk(40))
    model = ScriptedModel(then=fail("context_overflow", "too long"))
    result = compacted(await workshop.compactor.compact(await workshop.job(model, "overflow")))
    assert result.strategy == "local"
    assert len(model.requests) == 2
    context = await workshop.context()
    assert messages_tokens(context) == result.tokens_after <= 7500
    assert "question 39 about ticket TCK-00039" in text_of(context[0])
    assert make_valid(context, "openai") == context


@pytest.mark.spec("COMP-10")
async def test_each_attempt_of_a_turn_begins_stronger(workshop: Workshop) -> None:
    await workshop.fill(talk(40))
    model = ScriptedModel(then=say("notes"))
    first = compacted(await workshop.compactor.compact(await workshop.job(model, "overflow")))
    await workshop.say(*talk(40))
    second = compacted(await workshop.compactor.compact(await workshop.job(model, "overflow", attempt=2)))
    await workshop.say(*talk(40))
    third = compacted(await workshop.compactor.compact(await workshop.job(model, "overflow", attempt=3)))
    assert [one.strategy for one in (first, second, third)] == ["summary", "short_summary", "local"]
    assert len(model.requests) == 2
    await workshop.say(*talk(40))
    last = await workshop.compactor.compact(await workshop.job(model, "overflow", attempt=4))
    assert isinstance(last, NotCompacted)


@pytest.mark.spec("COMP-4", "COMP-6", "COMP-10")
@pytest.mark.parametrize("helpful", [True, False])
async def test_one_huge_result_is_put_away_too(workshop: Workshop, helpful: bool) -> None:
    await workshop.fill([*talk(2), *turn(3, size=100_000)[:3]])
    model = ScriptedModel(then=say("good notes") if helpful else fail("server_error"))
    result = compacted(await workshop.compactor.compact(await workshop.job(model, "overflow")))
    # The first strategy has no room for a summary beside the result, so it asks nobody.
    (request,) = model.requests
    turn_so_far = text_of(request.messages[0]).partition("This turn so far")[2]
    assert "question 3 about ticket TCK-00003" in turn_so_far
    assert len(turn_so_far) < 2000
    assert result.strategy == ("short_summary" if helpful else "local")
    context = await workshop.context()
    assert result.tokens_after == messages_tokens(context) <= 7500
    assert len(context) == 1
    assert ("good notes" if helpful else "question 3 about ticket") in text_of(context[0])
    assert "TCK-00003" in text_of(context[0])
    await workshop.say(UserMessage("go on", 1))
    assert (await workshop.texts())[-1] == "go on"


@pytest.mark.spec("COMP-10")
async def test_when_the_prompt_alone_fills_the_window_nothing_is_pretended(workshop: Workshop) -> None:
    await workshop.fill(talk(20))
    job = await workshop.job(ScriptedModel(then=say("x")), "overflow", overhead_tokens=50_000)
    result = await workshop.compactor.compact(job)
    assert isinstance(result, NotCompacted)
    assert (result.reason, result.message) == (
        "failed",
        "Nothing was compacted: instructions and tools alone fill the model's window.",
    )


@pytest.mark.spec("COMP-1")
async def test_without_a_model_the_summary_is_made_locally(workshop: Workshop) -> None:
    await workshop.fill(talk(20))
    result = compacted(await workshop.compactor.compact(await workshop.job(None)))
    assert result.strategy == "local"
    assert "(These notes were made without a model" in (await workshop.texts())[0]


# -- undoing -----------------------------------------------------------------------------------------------


@pytest.mark.spec("TRX-9", "TRX-1")
async def test_undo_gives_the_context_back_with_what_came_later(workshop: Workshop) -> None:
    row = await workshop.fill(talk(20))
    before = await workshop.texts()
    compacted(await workshop.compactor.compact(await workshop.job(ScriptedModel(say("notes")))))
    await workshop.say(UserMessage("later", 1))
    kept = await workshop.compactor.undo(row, window=20_000, settings=SETTINGS, overhead_tokens=7)
    assert await workshop.texts() == [*before, "later"]
    assert kept.session.entry.total_tokens == 7 + messages_tokens(await workshop.context())
    assert kept.session.entry.total_tokens_fresh is False
    with pytest.raises(InvalidRequest, match="no compaction to undo"):
        await workshop.compactor.undo(row, window=20_000, settings=SETTINGS)


async def test_undo_is_refused_when_the_context_would_not_fit(workshop: Workshop) -> None:
    row = await workshop.fill(talk(20))
    tokens = messages_tokens(await workshop.context())
    compacted(await workshop.compactor.compact(await workshop.job(ScriptedModel(say("notes")))))
    free = CompactionSettings(reserve_tokens=0, reserve_tokens_floor=0)
    with pytest.raises(InvalidRequest, match=f"about {tokens} tokens and only {tokens - 1} fit"):
        await workshop.compactor.undo(row, window=tokens - 1, settings=free)
    assert (await present(workshop.store)).last_seq == 81
    await workshop.compactor.undo(row, window=tokens, settings=free)
    assert messages_tokens(await workshop.context()) == tokens
