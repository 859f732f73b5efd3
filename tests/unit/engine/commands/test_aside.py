"""A side question is answered over the real context by a model, and changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from openclaw.domain.transcript import AssistantMessage, TextBlock, UserMessage, encode, text_of
from openclaw.engine.commands import aside
from openclaw.engine.commands.aside import MakeRequest, SideQuestions
from openclaw.engine.ports import ModelDone, ModelTarget
from openclaw.models.scripted import ScriptedModel, ScriptedStep, fail, say
from openclaw.store.records import EntryDraft, SessionRow
from tests.conformance.making import DONE, NOON, begin, present
from tests.unit.engine.commands.house import KEY, House


def ask_with(house: House, model: ScriptedModel) -> None:
    """Give the power to the commands, with a script in the place of a provider."""

    async def ask_models(
        session: SessionRow, targets: Sequence[ModelTarget], make_request: MakeRequest
    ) -> ModelDone:
        stream = model.stream(await make_request(targets[0]))
        events = [event async for event in stream]
        assert isinstance(events[-1], ModelDone)
        return events[-1]

    async def system(session: SessionRow) -> str:
        return f"You are in {session.session_key}."

    power = SideQuestions(house.store, house.context, lambda: house.settings, system, ask_models, house.clock)
    house.give(ask_aside=power.ask)


async def talk(house: House) -> None:
    claimed = await begin(house.store, "r1", "my cat is called Tom")
    reply = AssistantMessage((TextBlock("Noted."),), NOON)
    draft = EntryDraft("message", encode(reply), "assistant", run_id="r1", text="Noted.")
    await house.store.finish(claimed.run, (draft,), DONE, now_ms=NOON)


@pytest.mark.spec("CMD-16")
async def test_the_model_reads_the_conversation_and_then_the_question(house: House) -> None:
    await talk(house)
    await house.ask("/verbose on")
    before = await present(house.store)
    model = ScriptedModel(say(" Tom. "))
    ask_with(house, model)
    assert await house.ask("/btw what is my cat called?") == "Tom."
    (request,) = model.requests
    assert [text_of(message) for message in request.messages[:-1]] == ["my cat is called Tom", "Noted."]
    last = request.messages[-1]
    assert isinstance(last, UserMessage)
    assert text_of(last).endswith("\n\nwhat is my cat called?")
    assert (request.system, request.tools, request.cache) == (f"You are in {KEY}.", (), False)
    after = await present(house.store)
    assert (after.last_seq, after.last_text) == (before.last_seq, before.last_text)
    assert after.entry.total_tokens == before.entry.total_tokens


@pytest.mark.spec("CMD-16")
async def test_during_a_run_the_question_is_answered_beside_it(house: House) -> None:
    claimed = await begin(house.store, "r1", "hello")
    model = ScriptedModel(say("yes"))
    ask_with(house, model)
    assert await house.ask("/btw are you there?") == "yes"
    finished = await house.store.finish(claimed.run, (), DONE, now_ms=NOON)
    assert finished.session.last_seq == claimed.session.last_seq


@pytest.mark.spec("CMD-16")
async def test_a_failure_is_told_in_words(house: House) -> None:
    await talk(house)
    ask_with(house, ScriptedModel(fail("auth", "the key was refused"), ScriptedStep()))
    assert await house.ask("/btw why?") == "the key was refused"
    assert await house.ask("/btw why?") == "The model had nothing to say."


@pytest.mark.spec("CMD-16")
async def test_an_answer_that_does_not_come_is_given_up(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    await talk(house)
    monkeypatch.setattr(aside, "LONGEST_ANSWER_S", 0.05)
    ask_with(house, ScriptedModel(ScriptedStep(texts=("late",), gate=asyncio.Event())))
    assert await house.ask("/btw why?") == "No answer came within 0.05 s."


@pytest.mark.spec("CMD-16")
async def test_without_a_session_there_is_nothing_to_ask_about(house: House) -> None:
    ask_with(house, ScriptedModel())
    power = house.powers.ask_aside
    assert power is not None
    with pytest.raises(Exception, match="no conversation"):
        await power("agent:main:nobody", "why?")
