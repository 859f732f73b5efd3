"""The registry: one way to call a tool, whatever it does."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import msgspec
import pytest

from openclaw.domain.transcript import TextBlock
from openclaw.engine.ports import ToolContext, ToolOutcome, ToolSpec
from openclaw.engine.tools import registry as module
from openclaw.engine.tools.registry import INVALID_JSON, ToolRegistry, failure
from openclaw.engine.tools.results import settle_outcome
from openclaw.errors import Forbidden, InvalidRequest

CONTEXT = ToolContext("agent:main:main", "sid", "main", "run", "call", 0)
SECRET = "correct-horse-battery-staple"


class Talker:
    """Says what it is told to, or raises it."""

    def __init__(self, answer: str | BaseException, name: str = "talk") -> None:
        self._answer = answer
        self._name = name

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(self._name, "Talks.", {"type": "object"})

    async def call(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutcome:
        if isinstance(self._answer, BaseException):
            raise self._answer
        return ToolOutcome((TextBlock(self._answer),), details={"said": self._answer})


async def ask(answer: str | BaseException, name: str = "talk", **arguments: Any) -> ToolOutcome:
    registry = ToolRegistry((Talker(answer),), lambda: frozenset({SECRET}))
    return await registry.call(name, arguments, CONTEXT, ("talk",))


def text_of(outcome: ToolOutcome) -> str:
    (block,) = outcome.content
    assert isinstance(block, TextBlock)
    return block.text


@pytest.mark.spec("TOOL-7")
@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (InvalidRequest("path is missing"), "error", "path is missing"),
        (Forbidden("not for you"), "forbidden", "not for you"),
        (ValueError("inner"), "error", "talk failed inside the gateway; the log has the details"),
    ],
)
async def test_a_failure_is_an_object_with_status_and_error(
    error: Exception, status: str, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.CRITICAL):
        outcome = await ask(error)
    assert outcome.is_error
    assert msgspec.json.decode(text_of(outcome)) == {"status": status, "error": words} == outcome.details


@pytest.mark.spec("TOOL-7")
async def test_a_call_that_cannot_be_made_is_told() -> None:
    unknown = await ask("hi", name="other")
    assert "there is no tool 'other' here; available: talk" in text_of(unknown)
    assert len(text_of(await ask("hi", name="x" * 10_000))) < 200
    assert "not valid JSON" in text_of(await ask("hi", **{INVALID_JSON: "{"}))
    registry = ToolRegistry((Talker("hi"),))
    assert "available: none" in text_of(await registry.call("talk", {}, CONTEXT, ()))


async def test_cancellation_is_not_a_result() -> None:
    with pytest.raises(asyncio.CancelledError):
        await ask(asyncio.CancelledError())


@pytest.mark.spec("TRX-11")
@pytest.mark.parametrize("padding", [0, 100_000])
async def test_what_a_tool_says_is_masked_also_in_an_error(padding: int) -> None:
    outcome = await ask("x" * padding + SECRET)
    assert SECRET not in text_of(outcome)
    assert "1 secret masked before this text was stored" in text_of(outcome)
    assert outcome.details is not None
    assert SECRET not in str(outcome.details)
    refused = await ask(InvalidRequest(f"{SECRET} is wrong"))
    assert SECRET not in text_of(refused) + str(refused.details)


@pytest.mark.spec("TRX-11")
async def test_the_secrets_in_force_count_not_those_at_the_start() -> None:
    known: set[str] = set()
    registry = ToolRegistry((Talker(SECRET),), lambda: frozenset(known))
    assert SECRET in text_of(await registry.call("talk", {}, CONTEXT, ("talk",)))
    known.add(SECRET)
    assert SECRET not in text_of(await registry.call("talk", {}, CONTEXT, ("talk",)))


async def test_long_text_is_settled_away_from_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []

    def watched(outcome: ToolOutcome, secrets: frozenset[str]) -> ToolOutcome:
        threads.append(threading.current_thread().name)
        return settle_outcome(outcome, secrets)

    monkeypatch.setattr(module, "settle_outcome", watched)
    await ask("x" * 65_536)
    await ask("x" * 65_537)
    assert threads[0] == threading.main_thread().name
    assert threads[1] != threads[0]


def test_models_are_told_the_tools_in_one_order() -> None:
    registry = ToolRegistry(Talker("", name) for name in ("b", "c", "a"))
    assert registry.names() == ("a", "b", "c")
    assert [spec.name for spec in registry.specs(("c", "a", "z"))] == ["a", "c"]
    assert failure("x\x00y").details == {"status": "error", "error": "xy"}
